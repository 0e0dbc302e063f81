//! What the models share, and the models of `sync`, `tickets` and `lid_cache`. Each is a few
//! steps of two or three threads, and what must hold however they interleave.

use super::hold::Hold;
use super::lid_cache::LidCache;
use super::primitive::{AtomicI64, AtomicU32, Ordering};
use super::sync::{self, FreeList, ParLock};
use super::tickets::Tickets;
use super::unmap_news::UnmapNews;
use crate::rank::JobRank;
use loom::cell::UnsafeCell;
use loom::sync::Arc;
use loom::thread;
use sys::unmap_watch::WatchedChange;

/// Loom tries all interleavings with at most this many preemptions. More find nothing new in
/// practice (Musuvathi and Qadeer 2007), and take hours.
const SWITCHES: usize = 3;

pub(crate) fn check(model: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(SWITCHES);
    builder.check(model);
}

/// Runs `body` in this many threads, one of which is this one.
pub(crate) fn in_threads<T: Send + Sync + 'static>(
    shared: T,
    threads: usize,
    body: impl Fn(&T, usize) + Copy + Send + 'static,
) -> Arc<T> {
    let shared = Arc::new(shared);
    let others: Vec<_> = (1..threads)
        .map(|i| {
            let shared = shared.clone();
            thread::spawn(move || body(&shared, i))
        })
        .collect();
    body(&shared, 0);
    others.into_iter().for_each(|t| t.join().expect("no thread fails"));
    shared
}

/// Memory that loom watches: two accesses, one of them a write, that nothing orders are a race.
pub(super) struct Watched(UnsafeCell<u32>);

// SAFETY: loom finds the accesses that are not ordered; that is what the models are for.
unsafe impl Sync for Watched {}

impl Watched {
    pub(super) fn new() -> Watched {
        Watched(UnsafeCell::new(0))
    }

    pub(super) fn add(&self) {
        // SAFETY: loom stops at an access that is not exclusive.
        self.0.with_mut(|p| unsafe { *p += 1 });
    }

    pub(super) fn get(&self) -> u32 {
        // SAFETY: loom stops at a concurrent write.
        self.0.with(|p| unsafe { *p })
    }
}

/// A chunk has one holder at a time, which sees what the last one wrote; none is lost.
pub fn chunks_have_one_holder() {
    check(|| {
        let chunks = [Watched::new(), Watched::new()];
        let shared = in_threads((FreeList::new(true, 2), chunks), 2, |(list, chunks), _| {
            let held = [list.take(Hold::HERE), list.take(Hold::HERE)];
            held.iter().flatten().for_each(|&i| chunks[i as usize].add());
            // The other way round, so that the head may be an old one with another successor.
            held.iter().flatten().for_each(|&i| list.give(i));
            if let Some(i) = list.take(Hold::HERE) {
                chunks[i as usize].add();
                list.give(i);
            }
        });
        let (list, chunks) = &*shared;
        assert!(
            list.take(Hold::HERE).is_some()
                && list.take(Hold::HERE).is_some()
                && list.take(Hold::HERE).is_none()
        );
        assert!(chunks.iter().map(Watched::get).sum::<u32>() >= 3);
    });
}

/// No more tickets are taken than exist, and all come back.
pub fn tickets_come_back() {
    check(|| {
        let shared =
            in_threads((Tickets::new(true, 3), AtomicI64::new(0)), 3, |(tickets, out), i| {
                let n = if i == 0 { 1 } else { 2 };
                if tickets.take(n).is_some() {
                    assert!(out.fetch_add(n.into(), Ordering::Relaxed) + i64::from(n) <= 3);
                    out.fetch_sub(n.into(), Ordering::Relaxed);
                    tickets.give(n);
                }
            });
        assert!(shared.0.take(3).is_some() && shared.0.take(1).is_none());
    });
}

/// Changes of memory that the reader notes one after the other are taken as they were, also those
/// noted while another thread takes.
pub fn changes_are_taken_as_they_were() {
    check(|| {
        fn change(i: usize) -> WatchedChange {
            WatchedChange { range: i << 12..(i + 1) << 12, ahead: false }
        }
        let all = (UnmapNews::<2>::new(), AtomicU32::new(0));
        let shared = in_threads(all, 2, |(news, taken), thread| match thread {
            0 => {
                for i in 1..3 {
                    let mut next = Some(change(i));
                    news.note(|| next.take());
                }
            }
            _ => {
                if let Some(first) = news.take() {
                    assert_eq!(first, change(1));
                    taken.store(1, Ordering::Relaxed);
                }
            }
        });
        let (news, taken) = &*shared;
        let rest = 1 + taken.load(Ordering::Relaxed) as usize..3;
        assert!(rest.map(change).all(|change| news.take() == Some(change)));
        assert_eq!(news.take(), None);
    });
}

/// A change of memory, as its reader, the thread that made it, and one that deals with changes see
/// it: when the call that made the change has returned, it has been dealt with, or is announced.
pub fn a_change_is_announced_until_it_is_dealt_with() {
    check(|| {
        let of = (UnmapNews::<2>::new(), AtomicU32::new(0), AtomicU32::new(0));
        in_threads(of, 3, |(news, returned, dealt), thread| match thread {
            0 => {
                let mut read = false;
                news.note(|| {
                    if core::mem::replace(&mut read, true) {
                        return None;
                    }
                    // The kernel lets the thread go on whose change was read.
                    returned.store(1, Ordering::Release);
                    Some(WatchedChange { range: 4096..8192, ahead: false })
                });
            }
            1 => {
                if returned.load(Ordering::Acquire) == 1 && !news.any() {
                    assert_eq!(dealt.load(Ordering::Relaxed), 1, "nothing says that it changed");
                }
            }
            _ => {
                if news.any() {
                    while let Some(change) = news.take() {
                        assert_eq!(change.range, 4096..8192);
                        dealt.store(1, Ordering::Relaxed);
                    }
                }
            }
        });
    });
}

/// What a lock guards is touched by one thread at a time, which sees what the last one did.
pub fn locks_exclude() {
    check(|| {
        let shared = in_threads(ParLock::new(true, Watched::new()), 2, |lock, i| {
            lock.lock().add();
            match lock.try_lock() {
                Some(guard) => guard.add(),
                None => assert!(i < 2),
            }
        });
        assert!((2..=4).contains(&shared.lock().get()));
    });
}

/// The thread that releases the last reference of a receive buffer sees all that the others did
/// with it, and only one thread does so.
pub fn the_last_reference_sees_all() {
    check(|| {
        let shared = (
            AtomicU32::new(3),
            [Watched::new(), Watched::new(), Watched::new()],
            AtomicU32::new(0),
        );
        let shared = in_threads(shared, 3, |(refs, parts, last), i| {
            parts[i].add();
            if sync::count(true, refs, -1) == 0 {
                parts.iter().for_each(Watched::add);
                last.fetch_add(1, Ordering::Relaxed);
            }
        });
        assert_eq!(shared.2.load(Ordering::Relaxed), 1);
    });
}

/// One taker checks the slack of the receive buffers and lowers it; any thread raises it. It never
/// falls below zero.
pub fn slack_never_falls_below_zero() {
    check(|| {
        let shared =
            in_threads((AtomicI64::new(2), AtomicU32::new(0)), 3, |(slack, started), i| {
                if i != 0 {
                    assert!(sync::add(true, slack, 2) >= 0);
                    return;
                }
                for _ in 0..3 {
                    if slack.load(Ordering::Relaxed) >= 2 {
                        assert!(sync::add(true, slack, -2) >= 0);
                        started.fetch_add(1, Ordering::Relaxed);
                    }
                }
            });
        let started = i64::from(shared.1.load(Ordering::Relaxed));
        assert_eq!(shared.0.load(Ordering::Relaxed) + 2 * started, 6);
    });
}

/// The two halves of a Long meet once, whichever thread takes which off its queue.
pub fn halves_meet_once() {
    check(|| {
        let cache = LidCache::new(true);
        // Another Long makes the lists: once_cell, which the models do not see into, shares them.
        assert!(cache.header(JobRank(2), 0, || ()).is_none());
        assert!(cache.data(JobRank(2), 0, ()).is_some());
        let shared = (cache, Watched::new(), AtomicU32::new(0));
        let shared = in_threads(shared, 2, |(cache, buffer, met), i| {
            let whole = if i == 0 {
                cache.header(JobRank(1), 4096, || ()).is_some()
            } else {
                buffer.add();
                cache.data(JobRank(1), 4096, ()).is_some()
            };
            if whole {
                assert_eq!(buffer.get(), 1);
                met.fetch_add(1, Ordering::Relaxed);
            }
        });
        assert_eq!(shared.2.load(Ordering::Relaxed), 1);
    });
}

/// That a race is found: a chunk that is given back before it is written.
pub fn a_planted_race() {
    check(|| {
        in_threads((FreeList::new(true, 1), Watched::new()), 2, |(list, chunk), _| {
            if let Some(i) = list.take(Hold::HERE) {
                list.give(i);
                chunk.add();
            }
        });
    });
}
