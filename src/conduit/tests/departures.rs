//! Puts that count the departures of their fragments.

use super::*;

/// Puts of all ways to depart, one after the other; how often all sources had departed while the
/// put was under way.
fn departed_first<P: Portals>(world: &World<P>) -> u32 {
    let up = traffic::up(world, 0, traffic::nothing);
    let own = up.rank();
    let poll = || {
        (0..2).for_each(|rank| {
            _ = {
                let up = traffic::up(world, rank, traffic::nothing);
                up.conduit().poll(up)
            }
        })
    };
    let mut first = 0;
    for turn in 0..60u32 {
        // Bounced, by a temporary descriptor, by that of the segment, in pieces.
        let n = [8, 3000, 3000, 20000][turn as usize % 4];
        let outside = vec![turn as u8; n].leak();
        let inside = own.segment.wrapping_add(SEGMENT / 2);
        // SAFETY: the upper half of the segment is ours; it has room for the largest put.
        let inside = unsafe { Dst::new(inside, n) };
        inside.copy_from(Src::from(&*outside));
        let src = if turn % 4 < 2 { Src::from(&*outside) } else { inside.into() };
        let at = world.ranks[1].segment;
        let (op, fragments) = (OpId(turn % 8).with_departures(), up.conduit().fragments(n));
        let (left, departed) = (&own.ops[turn as usize % 8], &own.departed[turn as usize % 8]);
        departed.store(0, Ordering::Relaxed);
        left.store(2 * fragments, Ordering::Relaxed);
        up.conduit().put_bulk(up, world.range(1, at, n), src, op);
        while departed.load(Ordering::Relaxed) != fragments {
            poll();
        }
        first += u32::from(left.load(Ordering::Relaxed) != 0);
        while left.load(Ordering::Relaxed) != 0 {
            poll();
        }
        // SAFETY: the put is complete, and nothing else writes there.
        let there = unsafe { Dst::new(at, n) };
        assert_eq!(bytes_of(there), vec![turn as u8; n], "turn {turn}");
    }
    first
}

#[test]
fn each_fragment_departs_once_and_not_after_its_operation() {
    for transfer in [1 << 30, 5000] {
        let config = Config { max_transfer: transfer, ..usual(tiny(2, 1)) };
        departed_first(&World::open(emulation(2, &config), &config));
        // A network whose SEND events come before or after the acknowledgements.
        let seeds = (0..8).map(|seed| World::open(fake::net(2, 3, seed), &config));
        let first: u32 = seeds.map(|world| departed_first(&world)).sum();
        assert!(first > 20, "{first} of 480 puts had departed before they were complete");
    }
}
