//! Gets into several pieces of memory, and puts from them.

use super::*;
use crate::conduit::portals::TrafficCounters;

#[test]
fn neighbouring_bytes_are_scattered_by_one_get() {
    let world = traffic::pair(1);
    for rank in &world.ranks {
        for at in 0..SEGMENT {
            // SAFETY: no rank runs yet.
            unsafe { rank.segment.add(at).write((at % 251) as u8) };
        }
    }
    world.run(traffic::nothing, |up| {
        let peer = 1 - up.rank;
        let segment = world.ranks[peer as usize].segment;
        let gets = || {
            let TrafficCounters { gets, .. } = up.conduit().portals.counters();
            gets
        };
        let free = up.conduit().tmpmd.left();
        for n in [2, 40, 1000] {
            // A byte of 9 stays between two pieces.
            let mut memory = vec![9u8; 16 * (n + 1)];
            let base = memory.as_mut_ptr();
            // SAFETY: the vector lives until the get is complete, and each piece lies in it.
            let piece = |i: usize| unsafe { Dst::new(base.wrapping_add(i * (n + 1)), n) };
            let most = up.conduit().most_pieces();
            assert_eq!(most, 16);
            for count in [2, most] {
                let (bytes, before) = (count * n, gets());
                let pieces: Vec<_> = (0..count).map(piece).collect();
                up.rank().ops[0].store(up.conduit().fragments(1), Ordering::Relaxed);
                let there = world.range(peer, segment.wrapping_add(7), bytes);
                up.conduit().get_scattered(up, &pieces, there, OpId(0));
                traffic::wait(up, 0);
                assert_eq!(gets(), before + 1);
                // SAFETY: no rank writes its segment.
                let segment = unsafe { core::slice::from_raw_parts(segment.add(7), bytes) };
                // SAFETY: the vector lives, and the get is complete.
                let memory = unsafe { core::slice::from_raw_parts(base, 16 * (n + 1)) };
                for (i, there) in segment.chunks(n).enumerate() {
                    let here = &memory[i * (n + 1)..][..n + 1];
                    assert_eq!((&here[..n], here[n]), (there, 9), "piece {i} of {count}");
                }
            }
        }
        assert_eq!(up.conduit().tmpmd.left(), free);
    });
}

#[test]
fn several_pieces_are_put_by_one_message() {
    let world = traffic::pair(1);
    world.run(traffic::nothing, |up| {
        let peer = 1 - up.rank;
        let segment = world.ranks[peer as usize].segment;
        let puts = || {
            let TrafficCounters { puts, .. } = up.conduit().portals.counters();
            puts
        };
        let free = up.conduit().tmpmd.left();
        for n in [2, 40, 1000] {
            // A byte stays between two pieces.
            let mut memory: Vec<u8> = (0..16 * (n + 1)).map(|at| (at % 251) as u8).collect();
            let base = memory.as_mut_ptr();
            // SAFETY: the vector lives until the put is complete, and each piece lies in it.
            let piece = |i: usize| unsafe { Dst::new(base.wrapping_add(i * (n + 1)), n) };
            for count in [1, 2, up.conduit().most_pieces()] {
                let (bytes, before) = (count * n, puts());
                let pieces: Vec<_> = (0..count).map(piece).collect();
                up.rank().ops[0].store(up.conduit().fragments(1), Ordering::Relaxed);
                let there = world.range(peer, segment.wrapping_add(7), bytes);
                up.conduit().put_scattered(up, there, &pieces, OpId(0));
                traffic::wait(up, 0);
                assert_eq!(puts(), before + 1);
                // SAFETY: the put is complete, and only this rank writes that segment.
                let segment = unsafe { core::slice::from_raw_parts(segment.add(7), bytes) };
                for (i, there) in segment.chunks(n).enumerate() {
                    let here = (i * (n + 1)..).take(n).map(|at| (at % 251) as u8);
                    assert!(here.eq(there.iter().copied()), "piece {i} of {count} of {n} bytes");
                }
            }
        }
        assert_eq!(up.conduit().tmpmd.left(), free);
    });
}
