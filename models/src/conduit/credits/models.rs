//! The models of the credits: the policy over the store that threads share.

use super::policy::{CreditField, CreditLimits, CreditPolicy, CreditReturn, CreditStore};
use super::store::CreditTable;
use crate::conduit::models::{Watched, check, in_threads};
use crate::conduit::primitive::{AtomicU32, Ordering};
use crate::rank::JobRank;

/// A process with this bank, and two peers that hold `each` of its credits.
fn lender(each: u16, bank: u32) -> CreditPolicy<CreditTable> {
    let limits = CreditLimits::new(8, 20, 1);
    CreditPolicy {
        limits,
        store: CreditTable::new(true, 2, each, |_| each, limits.min, bank, None),
    }
}

/// The sum of what is lent and what is in the bank stays constant, and the peers that hold more
/// than the least are noted.
fn balanced(policy: &CreditPolicy<CreditTable>, total: u32) {
    let lent = |rank| policy.store.peer(JobRank(rank), |p| p.loan_credits);
    assert_eq!(u32::from(lent(0) + lent(1)) + policy.store.bank(|b| b.credits), total);
    let noted = |rank: u32| policy.store.next_spare(JobRank(1 - rank)) == Some(JobRank(rank));
    for rank in [0, 1] {
        assert_eq!(noted(rank), lent(rank) > policy.limits.min, "{rank} holds {}", lent(rank));
    }
}

/// Two of three events at the same time, the third one later. (Loom needs too long for three
/// threads that spin for one lock.)
const PAIRS: [[usize; 3]; 3] = [[0, 1, 2], [0, 2, 1], [1, 2, 0]];

/// Replies lend while a CREDIT_RETURN arrives: no credit is lost or made.
pub fn loans_keep_the_sum() {
    for [first, second, last] in PAIRS {
        check(move || {
            let policy = lender(9, 2);
            let mut asked = Vec::new();
            policy.scavenge(|JobRank(rank), _| asked.push(rank));
            assert_eq!(asked, [1, 0]);
            let event = |policy: &CreditPolicy<CreditTable>, i| match i {
                0 => {
                    let back = CreditReturn { credits: 1, epoch: false };
                    assert!(policy.return_arrived(JobRank(1), back));
                }
                1 => assert!(
                    policy.reply_field(JobRank(0), CreditField::new(false, 2, 1)).0.extra() <= 2
                ),
                _ => assert!(
                    policy.reply_field(JobRank(1), CreditField::new(false, 1, 1)).0.extra() <= 1
                ),
            };
            let policy = in_threads(policy, 2, move |p, i| event(p, [first, second][i]));
            event(&policy, last);
            assert!(policy.return_arrived(JobRank(0), CreditReturn { credits: 0, epoch: false }));
            balanced(&policy, 20);
        });
    }
}

/// Two peers borrow at the same time: both are noted as holding more than the least.
pub fn who_holds_more_is_noted() {
    check(|| {
        let policy = in_threads(lender(8, 4), 2, |policy, i| {
            assert_eq!(
                policy.reply_field(JobRank(i as u32), CreditField::new(false, 2, 1)).0.extra(),
                2
            );
        });
        balanced(&policy, 20);
    });
}

/// A record is touched by one thread at a time, which sees what the last one did.
pub fn records_exclude() {
    check(|| {
        let shared = in_threads((lender(8, 0), Watched::new()), 2, |(policy, record), _| {
            policy.store.peer(JobRank(0), |_| record.add());
        });
        shared.0.store.peer(JobRank(0), |_| assert_eq!(shared.1.get(), 2));
    });
}

/// Two threads search for credits while an answer arrives: no peer has two unanswered
/// CREDIT_REVOKEs, and the bank knows how many there are.
pub fn one_revoke_at_a_time() {
    check(|| {
        let shared = (lender(9, 0), AtomicU32::new(0));
        let shared = in_threads(shared, 2, |(policy, asked), _| {
            policy.scavenge(|JobRank(rank), _| {
                let before = asked.fetch_add(1 << (8 * rank), Ordering::Relaxed);
                assert_eq!(before >> (8 * rank) & 0xff, 0, "{rank} is asked twice");
            });
        });
        let (policy, asked) = &*shared;
        for rank in [0, 1] {
            let expected = asked.load(Ordering::Relaxed) >> (8 * rank) & 0xff == 1;
            assert_eq!(policy.store.peer(JobRank(rank), |p| p.is_revoking()), expected);
            if expected {
                assert!(
                    policy
                        .return_arrived(JobRank(rank), CreditReturn { credits: 1, epoch: false })
                );
            }
        }
        balanced(policy, 18);
    });
}

/// Credits are taken while a reply brings some back and a CREDIT_REVOKE takes what is to spare.
pub fn credits_are_taken_once() {
    for [first, second, last] in PAIRS {
        check(move || {
            let policy = lender(10, 0);
            assert!(policy.take(JobRank(0), 2).is_some());
            let event = |(policy, taken): &(CreditPolicy<CreditTable>, AtomicU32), i| match i {
                0 => assert!(policy.reply_arrived(JobRank(0), CreditField::new(false, 1, 2))),
                1 => drop(policy.revoke_arrived(JobRank(0), true)),
                _ => {
                    let n = [5, 5]
                        .into_iter()
                        .filter(|&n| policy.take(JobRank(0), n).is_some())
                        .count();
                    taken.fetch_add(5 * n as u32, Ordering::Relaxed);
                }
            };
            let shared = in_threads((policy, AtomicU32::new(0)), 2, move |s, i| {
                event(s, [first, second][i])
            });
            event(&shared, last);
            shared.0.store.peer(JobRank(0), |p| {
                assert_eq!(u32::from(p.send_inuse), shared.1.load(Ordering::Relaxed));
                assert!(p.send_inuse <= p.send_max && p.send_max <= p.send_credits, "{p:?}");
            });
        });
    }
}

/// A peer receives the epoch's flag once, with whichever message leaves first.
pub fn an_epoch_is_reported_once() {
    check(|| {
        let policy = lender(10, 0);
        policy.request_arrived(JobRank(0), CreditField::new(false, 0, 1));
        let shared = in_threads((policy, AtomicU32::new(0)), 2, |(policy, reported), i| {
            let epoch = match i {
                0 => policy.take(JobRank(0), 1).is_some_and(|(epoch, _)| epoch),
                _ => policy.reply_field(JobRank(0), CreditField::new(false, 0, 1)).0.epoch(),
            };
            reported.fetch_add(epoch.into(), Ordering::Relaxed);
        });
        assert_eq!(shared.1.load(Ordering::Relaxed), 1);
    });
}
