//! The tables of a rank of the largest job, which is never started.
//!
//! Run in a process of its own, whose memory is measured.

use super::{emulation, run_alone, tiny};
use crate::boot::bootstrap::WireStart;
use crate::boot::placement::Placement;
use crate::conduit::portals::emulation::Emulation;
use crate::conduit::portals::{Portals, PortalsId};
use crate::conduit::{Conduit, Config};
use crate::limits::MAX_RANKS;
use crate::rank::{JobRank, LocalRank};
use handshake::JobSecret;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::os::fd::OwnedFd;

const HOSTS: u32 = 4096;
const PER_HOST: u32 = MAX_RANKS / HOSTS;

/// Most bytes of memory that this test leaves in use for each rank of the job: 86 of tables, and
/// what it needs for a while.
const MOST: usize = 300;

#[test]
fn the_tables_of_the_largest_job_are_made() {
    let (code, text) = run_alone("conduit::tests::largest::tables", &[]);
    assert_eq!(code, Some(0), "{text}");
}

fn resident() -> usize {
    let text = std::fs::read_to_string("/proc/self/statm").unwrap();
    let pages: usize = text.split(' ').nth(1).and_then(|n| n.parse().ok()).unwrap();
    pages * sys::limits::page_size()
}

/// What a job of this size lends and receives, as the defaults say.
fn config() -> Config {
    let mut config = tiny(MAX_RANKS, 2);
    config.reqrb_chunks = 1024;
    config.share_credits(None, None, None);
    config
}

#[test]
#[ignore = "run alone by the_tables_of_the_largest_job_are_made"]
fn tables() {
    drop(emulation(1, &tiny(1, 1)));
    let before = resident();
    let config = config();
    // 8 credits of each rank and 25,600 in the bank fill 68 buffers, and two are spare.
    assert_eq!((config.credits_each, config.reqrb_buffers), (8, 70));
    let [_, am, sys] = config.event_counts().map(usize::next_power_of_two);
    assert_eq!((config.library_bytes() >> 20, am, sys), (140, 1 << 20, 1 << 19));
    let host_of = |rank: u32| rank / PER_HOST;
    let me = JobRank(1000 * PER_HOST + 3);
    let hosts: Vec<u32> = (0..MAX_RANKS).map(host_of).collect();
    let placement = Placement::apart(me, MAX_RANKS).with_hosts(&hosts);
    assert_eq!((placement.local_rank(), placement.local_size()), (LocalRank(3), PER_HOST));
    assert_eq!(placement.supernodes()[JobRank(MAX_RANKS - 1)], HOSTS - 1);

    let arena = OwnedFd::from(sys::memory::MemFd::create(c"arena").unwrap());
    let wire = WireStart {
        secret: JobSecret::from_bytes([1; 16]),
        address: IpAddr::V4(Ipv4Addr::LOCALHOST),
        ports: 0..=0,
    };
    let share = (placement.hosts(), host_of(me.0));
    let portals = Emulation::open(arena, placement.local_rank(), share, Some(wire), &config);
    let portals = portals.expect("open");
    let own = SocketAddr::from((Ipv4Addr::LOCALHOST, 1));
    let address = vec![own.port() as u8; portals.wire_address().len()];
    let peers: Vec<PortalsId> =
        (0..MAX_RANKS).map(|r| PortalsId { nid: host_of(r), pid: r % PER_HOST }).collect();
    assert_eq!(portals.id(), peers[me.index()]);
    portals.connect(&peers, &vec![address; peers.len()]).expect("connect");
    let conduit = Conduit::open(portals, config, me, peers).expect("conduit");
    assert_eq!(conduit.credits(JobRank(MAX_RANKS - 1)), Some(8));

    let each = (resident() - before) / MAX_RANKS as usize;
    assert!(each <= MOST, "{each} bytes of memory for each rank");
}
