//! The scheme alone: single steps, and many processes whose messages take any time.

use super::policy::*;
use super::*;
use alloc::vec::Vec;
use core::cell::{Cell, RefCell};

#[test]
fn fields() {
    assert_eq!((needed(0), needed(256), needed(257), needed(2048)), (1, 1, 2, 8));
    assert_eq!(Taken { used: 8, epoch: false, left: 0 }.field(100), 7 << 9 | 8);
    assert_eq!(Taken { used: 1, epoch: true, left: 0 }.field(2), 1 << 12 | 2 << 9 | 1);
    assert_eq!(used(0xfff5), 0x1f5);
    let b = CreditField(0x1b03);
    assert_eq!((b.epoch(), b.extra(), b.used()), (true, 5, 0x103));
    assert_eq!(CreditField::new(true, 5, 0x103), b);
    let c = Credits(None);
    assert!(c.take(JobRank(0), 15).is_some());
    assert_eq!(c.reply_field(JobRank(0), 7 << 9 | 5), (5, false));
}

/// A store for tests.
struct Plain {
    peers: Vec<RefCell<PeerCredits>>,
    bank: RefCell<CreditBank>,
    epoch: Cell<u32>,
    received: Cell<u32>,
    moved: Cell<u64>,
    min: u16,
}

impl CreditStore for Plain {
    fn peer<R>(&self, rank: JobRank, f: impl FnOnce(&mut PeerCredits) -> R) -> R {
        f(&mut self.peers[rank.index()].borrow_mut())
    }
    fn bank<R>(&self, f: impl FnOnce(&mut CreditBank) -> R) -> R {
        f(&mut self.bank.borrow_mut())
    }
    fn note_spare(&self, _: JobRank, _: bool) {}
    fn next_spare(&self, after: JobRank) -> Option<JobRank> {
        let n = self.peers.len() as u32;
        // The record that is being changed is not looked at.
        (1..=n)
            .map(|i| JobRank((after.0 + i) % n))
            .find(|rank| self.peers[rank.index()].borrow().loan_credits > self.min)
    }
    fn epoch(&self) -> u32 {
        self.epoch.get()
    }
    fn count_request(&self, length: u32) {
        self.received.set(self.received.get() + 1);
        if self.received.get() == length {
            self.received.set(0);
            self.epoch.set(self.epoch.get() + 1);
        }
    }
    fn changed(&self, _: JobRank, _: &PeerCredits, change: CreditChange) {
        if let CreditChange::Lent(n) | CreditChange::Returned(n) = change {
            self.moved.set(self.moved.get() + u64::from(n));
        }
    }
}

fn process(ranks: usize, each: u16, bank: u32, limits: CreditLimits) -> CreditPolicy<Plain> {
    let store = Plain {
        peers: (0..ranks).map(|_| RefCell::new(PeerCredits::initial(each))).collect(),
        bank: RefCell::new(CreditBank::new(bank)),
        epoch: Cell::new(0),
        received: Cell::new(0),
        moved: Cell::new(0),
        min: limits.min,
    };
    CreditPolicy { limits, store }
}

#[test]
fn a_stall_is_answered_with_a_loan() {
    let limits = CreditLimits::new(8, 20, 1024);
    let (x, y) = (process(2, 8, 100, limits), process(2, 8, 100, limits));
    assert_eq!((x.take(JobRank(1), 8), x.take(JobRank(1), 1)), (Some((false, 0)), None));
    assert_eq!(x.stall(JobRank(1), 3), 3);
    // The stalled request leaves after the reply to the first.
    let first = CreditField::new(false, 0, 8);
    y.request_arrived(JobRank(0), first);
    let (back, low) = y.reply_field(JobRank(0), first);
    assert_eq!((back, low), (CreditField(8), false));
    assert!(x.reply_arrived(JobRank(1), back));
    assert_eq!(x.take(JobRank(1), 3), Some((false, 5)));
    let (back, low) = y.reply_field(JobRank(0), CreditField::new(false, 3, 3));
    assert_eq!((back.extra(), back.used(), low), (3, 3, false));
    assert!(x.reply_arrived(JobRank(1), back));
    assert_eq!(
        x.store.peer(JobRank(1), |p| (p.send_credits, p.send_inuse, p.send_max, p.send_stalls)),
        (11, 0, 8, 1)
    );
    assert_eq!(
        y.store.peer(JobRank(0), |p| (p.loan_credits, p.loan_given, p.loan_requested)),
        (11, 3, 1)
    );
    // No more than one peer may hold.
    assert_eq!(y.reply_field(JobRank(0), CreditField::new(false, 7, 1)).0.extra(), 7);
    assert_eq!(y.reply_field(JobRank(0), CreditField::new(false, 7, 1)).0.extra(), 2);
    assert_eq!(y.reply_field(JobRank(0), CreditField::new(false, 7, 1)).0.extra(), 0);
    assert_eq!(y.store.bank(|b| b.credits), 88);
}

/// A request that waits for many credits keeps its stall while others take few.
#[test]
fn a_stall_goes_on_while_others_take_credits() {
    let x = process(2, 20, 100, CreditLimits::new(8, 20, 1024));
    assert!(x.take(JobRank(1), 16).is_some());
    x.stall(JobRank(1), 8);
    assert!(x.take(JobRank(1), 1).is_some() && x.take(JobRank(1), 8).is_none());
    x.stall_goes_on(JobRank(1));
    let ended = CreditField::new(true, 0, 1);
    (0..8).for_each(|_| assert!(x.reply_arrived(JobRank(1), ended)));
    assert_eq!(x.store.peer(JobRank(1), |p| p.send_stalls), 1);
    assert!(x.take(JobRank(1), 8).is_some());
    assert!(x.reply_arrived(JobRank(1), ended));
    assert_eq!(x.store.peer(JobRank(1), |p| p.send_stalls), 0);
}

#[test]
fn lending_keeps_its_pace() {
    let limits = CreditLimits::new(8, 400, 4);
    let y = process(2, 8, 1000, limits);
    let ask = CreditField::new(false, 7, 1);
    let lent: u16 = (0..20).map(|_| y.reply_field(JobRank(0), ask).0.extra()).sum();
    assert_eq!(lent, 32);
    (0..4).for_each(|_| y.request_arrived(JobRank(1), ask));
    assert_eq!(y.store.epoch(), 1);
    // What was lent counts a quarter now; the borrower learns of the new epoch once.
    let (first, second) = (y.reply_field(JobRank(0), ask).0, y.reply_field(JobRank(0), ask).0);
    assert_eq!((first.epoch(), second.epoch()), (true, false));
    let rest: u16 = (0..20).map(|_| y.reply_field(JobRank(0), ask).0.extra()).sum();
    assert_eq!(first.extra() + second.extra() + rest, 24);
    // After eight epochs nothing is left of it.
    (0..32).for_each(|_| y.request_arrived(JobRank(1), ask));
    assert_eq!((0..20).map(|_| y.reply_field(JobRank(0), ask).0.extra()).sum::<u16>(), 32);
}

#[test]
fn who_is_asked_to_give_back() {
    let limits = CreditLimits { low: 1000, targets: 2, ..CreditLimits::new(8, 400, 2) };
    let y = process(6, 20, 0, limits);
    let asked = || {
        let mut all = Vec::new();
        y.scavenge(|rank, epoch| all.push((rank.0, epoch)));
        all
    };
    y.store.peer(JobRank(2), |p| p.loan_credits = 8);
    let _ = y.reply_field(JobRank(3), CreditField::new(false, 1, 1));
    // 2 has the least, 3 requests more itself; two at a time, and no peer twice at once.
    assert_eq!(asked(), [(1, false), (4, false)]);
    assert_eq!(asked(), []);
    assert!(y.return_arrived(JobRank(1), CreditReturn { credits: 0, epoch: false }));
    assert_eq!(asked(), [(5, false)]);
    assert!(y.return_arrived(JobRank(4), CreditReturn { credits: 5, epoch: false }));
    assert_eq!(asked(), [(0, false)]);
    assert!(y.return_arrived(JobRank(5), CreditReturn { credits: 0, epoch: false }));
    assert!(y.return_arrived(JobRank(0), CreditReturn { credits: 0, epoch: false }));
    // 1, 5 and 0 had nothing to spare in this epoch.
    assert_eq!(asked(), [(4, false)]);
    assert!(y.return_arrived(JobRank(4), CreditReturn { credits: 7, epoch: false }));
    assert_eq!(asked(), []);
    // In the next epoch they are asked again, from where the search ended; 3's demand has decayed.
    (0..2).for_each(|_| y.request_arrived(JobRank(1), CreditField(1)));
    assert_eq!(asked(), [(1, true), (3, true)]);
    assert_eq!(y.store.bank(|b| b.credits), 12);
    // Neither more than was lent, nor twice, nor unasked.
    assert!(!y.return_arrived(JobRank(3), CreditReturn { credits: 13, epoch: false }));
    // A bank that is not low revokes nothing.
    assert!(y.return_arrived(JobRank(3), CreditReturn { credits: 12, epoch: false }));
    for rank in [3, 2] {
        assert!(!y.return_arrived(JobRank(rank), CreditReturn { credits: 0, epoch: false }));
    }
    y.store.bank(|b| b.credits = 1000);
    assert_eq!(asked(), []);
}

#[test]
fn asking_in_vain_has_an_end() {
    let limits = CreditLimits { targets: 2, vain: 5, ..CreditLimits::new(8, 400, 4) };
    let y = process(20, 20, 0, limits);
    // Asks two at a time until it stops: how many had nothing.
    let asked = || {
        let mut vain = 0;
        loop {
            let mut all = Vec::new();
            y.scavenge(|rank, _| all.push(rank));
            if all.is_empty() {
                return vain;
            }
            vain += all.len();
            all.iter().for_each(|&rank| {
                assert!(y.return_arrived(rank, CreditReturn { credits: 0, epoch: false }))
            });
        }
    };
    assert_eq!(asked(), 6);
    // Not again in this epoch; in the next one, others first.
    assert_eq!(asked(), 0);
    (0..4).for_each(|_| y.request_arrived(JobRank(1), CreditField(1)));
    let mut next = Vec::new();
    y.scavenge(|rank, _| next.push(rank));
    assert_eq!(next, [7, 8].map(JobRank));
    for rank in next {
        assert!(y.return_arrived(rank, CreditReturn { credits: 3, epoch: false }));
    }
    // What gives something does not count.
    assert_eq!(asked(), 6);
}

#[test]
fn what_is_given_back() {
    let limits = CreditLimits::new(8, 400, 1024);
    let x = process(2, 100, 0, limits);
    let give = |epoch| x.revoke_arrived(JobRank(1), epoch).credits;
    (0..5).for_each(|_| assert!(x.take(JobRank(1), 8).is_some()));
    // 40 in use and room for a largest request, 52 to spare, 32 of them in an epoch.
    assert_eq!((give(false), give(false)), (32, 0));
    // Revoked counts 8 now, so 24 more; what is in use stays, and the room.
    assert_eq!((give(true), give(true), give(true)), (20, 0, 0));
    assert_eq!(x.store.peer(JobRank(1), |p| (p.send_credits, p.send_max)), (48, 40));
    assert!((0..5).all(|_| x.reply_arrived(JobRank(1), CreditField(8))));
    // What was used in this epoch counts in full, in the next one a quarter; then the least stays.
    assert_eq!((give(false), give(false)), (8, 0));
    assert_eq!((give(true), give(true), give(true)), (30, 2, 0));
    assert_eq!(x.store.peer(JobRank(1), |p| p.send_credits), 8);
    // A process that was short lately gives nothing.
    let x = process(2, 100, 0, limits);
    (0..4).for_each(|_| {
        let _ = x.stall(JobRank(1), 101);
    });
    let give = || x.revoke_arrived(JobRank(1), true).credits;
    assert_eq!((give(), give(), give()), (0, 0, 0));
    // It waited all the time until now. Having waited counts for this epoch and the next.
    assert!(x.take(JobRank(1), 8).is_some());
    assert!(x.reply_arrived(JobRank(1), CreditField(8)));
    assert_eq!((give(), give()), (0, 32));
}

#[test]
fn no_more_credits_return_than_are_in_use() {
    let x = process(2, 8, 0, CreditLimits::new(8, 20, 1024));
    assert!(x.take(JobRank(1), 5).is_some());
    let before = x.store.peer(JobRank(1), |p| *p);
    for field in [CreditField(6), CreditField::new(true, 3, 500)] {
        assert!(!x.reply_arrived(JobRank(1), field));
        assert_eq!(x.store.peer(JobRank(1), |p| *p), before);
    }
    assert!(x.reply_arrived(JobRank(1), CreditField(5)));
}

#[test]
fn without_dynamic_credits_nothing_moves() {
    let limits = CreditLimits { dynamic: false, ..CreditLimits::new(8, 400, 1) };
    let y = process(2, 8, 100, limits);
    let asks = CreditField::new(false, 7, 15);
    y.request_arrived(JobRank(0), asks);
    assert_eq!(y.reply_field(JobRank(0), asks), (CreditField(15), false));
    assert_eq!((y.store.moved.get(), y.store.epoch()), (0, 0));
}

/// A message between two processes of the test below.
#[derive(Clone, Copy)]
enum Wire {
    Request(CreditField),
    Reply(CreditField),
    Revoke(bool),
    CreditReturn(CreditReturn),
}

/// Processes that send as they like over a network that delivers in any order. After each step
/// what X has lent to Y must be what Y may send X and what is under way.
fn any_order(seed: u64, ranks: usize, limits: CreditLimits, each: u16, bank: u32) -> u64 {
    let mut dice = seed | 1;
    let mut roll = |n: usize| {
        dice ^= dice << 13;
        dice ^= dice >> 7;
        dice ^= dice << 17;
        (dice % n as u64) as usize
    };
    let all: Vec<_> = (0..ranks).map(|_| process(ranks, each, bank, limits)).collect();
    let mut wire: Vec<(usize, usize, Wire)> = Vec::new();
    let mut wants: Vec<Option<(usize, u16, u16)>> = alloc::vec![None; ranks];
    let total = u64::from(each) * ranks as u64 + u64::from(bank);
    for step in 0..6000 {
        let me = roll(ranks);
        if roll(2) == 0 && step < 5000 {
            // Mostly to a favourite, which changes.
            let (to, n, short) = wants[me].unwrap_or_else(|| {
                let to = if roll(4) == 0 { roll(ranks) } else { (me + 1 + step / 2000) % ranks };
                (to, 1 + roll(8) as u16, 0)
            });
            wants[me] = match all[me].take(JobRank(to as u32), n) {
                Some((epoch, _)) => {
                    wire.push((me, to, Wire::Request(CreditField::new(epoch, short, n))));
                    None
                }
                None if short == 0 => Some((to, n, all[me].stall(JobRank(to as u32), n))),
                None => Some((to, n, short)),
            };
        } else if !wire.is_empty() {
            let (from, to, message) = wire.swap_remove(roll(wire.len()));
            let (p, f) = (&all[to], JobRank(from as u32));
            match message {
                Wire::Request(field) => {
                    p.request_arrived(f, field);
                    let (back, low) = p.reply_field(f, field);
                    wire.push((to, from, Wire::Reply(back)));
                    if low {
                        p.scavenge(|rank, epoch| {
                            wire.push((to, rank.index(), Wire::Revoke(epoch)))
                        });
                    }
                }
                Wire::Reply(byte) => assert!(p.reply_arrived(f, byte)),
                Wire::Revoke(epoch) => {
                    wire.push((to, from, Wire::CreditReturn(p.revoke_arrived(f, epoch))))
                }
                Wire::CreditReturn(back) => assert!(p.return_arrived(f, back)),
            }
        }
        for x in 0..ranks {
            let mut lent = 0;
            for y in 0..ranks {
                let (on_loan, held) =
                    (*all[x].store.peers[y].borrow(), *all[y].store.peers[x].borrow());
                let under_way: u16 = wire
                    .iter()
                    .map(|w| match *w {
                        (from, to, Wire::Reply(byte)) if (from, to) == (x, y) => byte.extra(),
                        (from, to, Wire::CreditReturn(back)) if (from, to) == (y, x) => {
                            back.credits
                        }
                        _ => 0,
                    })
                    .sum();
                assert_eq!(
                    on_loan.loan_credits,
                    held.send_credits + under_way,
                    "seed {seed} step {step}"
                );
                assert!(
                    held.send_credits >= limits.min && on_loan.loan_credits <= limits.max_per_node
                );
                assert!(held.send_inuse <= held.send_max && held.send_max <= held.send_credits);
                // One system message of a kind between two.
                let revokes = wire
                    .iter()
                    .filter(|w| matches!(w, (a, b, Wire::Revoke(_)) if (*a, *b) == (x, y)));
                let returns = wire
                    .iter()
                    .filter(|w| matches!(w, (a, b, Wire::CreditReturn(_)) if (*a, *b) == (y, x)));
                assert!(revokes.count() + returns.count() == usize::from(on_loan.is_revoking()));
                lent += u64::from(on_loan.loan_credits);
            }
            assert_eq!(lent + u64::from(all[x].store.bank.borrow().credits), total);
        }
    }
    all.iter().map(|p| p.store.moved.get()).sum()
}

#[test]
fn no_credit_is_lost_in_any_order() {
    let mut moved = 0;
    for seed in 1..13 {
        for (each, bank, most, epoch) in
            [(8, 0, 8, 1), (8, 40, 30, 7), (30, 0, 60, 16), (12, 200, 400, 64)]
        {
            moved += any_order(seed * 77, 4, CreditLimits::new(8, most, epoch), each, bank);
        }
    }
    assert!(moved > 1000, "credits moved: {moved}");
}
