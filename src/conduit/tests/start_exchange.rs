//! The exchange at start over the fake network: every rank gets the bytes of all, by rank.

use super::fake;
use crate::boot::network_start::NetworkCollective;
use crate::conduit::portals::Portals;
use crate::conduit::start_exchange::StartExchange;
use crate::rank::JobRank;
use core::time::Duration;
use std::sync::mpsc;

/// What a rank gives in an exchange.
fn given(rank: usize, number: usize, len: usize) -> Vec<u8> {
    (0..len).map(|i| (rank * 31 + number * 7 + i) as u8).collect()
}

/// All ranks do the same exchanges, at their own pace; what was wrong.
fn job(size: usize, seed: u64) -> Vec<String> {
    let net = fake::net(size, seed % 2 * 3, seed);
    let peers: Vec<_> = net.iter().map(Portals::id).collect();
    let open = |(rank, p)| StartExchange::open(p, 39, JobRank(rank as u32), &peers).unwrap();
    let ranks: Vec<StartExchange<fake::Fake>> = net.into_iter().enumerate().map(open).collect();
    let mut wrong = Vec::new();
    std::thread::scope(|s| {
        let threads: Vec<_> = ranks
            .iter()
            .enumerate()
            .map(|(rank, exchange)| {
                s.spawn(move || {
                    let mut wrong = Vec::new();
                    for (number, len) in [0, 1, 8, 24, 0, 0, 64, 65, 8, 200, 0].iter().enumerate()
                    {
                        let mine = given(rank, number, *len);
                        let all = exchange.exchange_bytes(&mine, &|_| std::thread::yield_now());
                        let right: Vec<u8> =
                            (0..size).flat_map(|r| given(r, number, *len)).collect();
                        if all != right {
                            wrong.push(format!("rank {rank} of {size}, exchange {number}"));
                        }
                    }
                    wrong
                })
            })
            .collect();
        wrong.extend(threads.into_iter().flat_map(|t| t.join().unwrap()));
    });
    wrong
}

#[test]
fn every_rank_gets_the_bytes_of_all() {
    let (done, ends) = mpsc::channel();
    std::thread::spawn(move || {
        let sizes = (1..10).chain([13, 16]);
        let wrong: Vec<_> =
            sizes.flat_map(|n| (0..4).flat_map(move |seed| job(n, seed))).collect();
        done.send(wrong).unwrap();
    });
    let wrong = ends.recv_timeout(Duration::from_secs(120)).expect("the exchanges end");
    assert_eq!(wrong, Vec::<String>::new());
}
