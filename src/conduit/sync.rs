//! The lock, the counters and the free list of the conduit. With one calling thread they cost
//! plain loads and stores.
//!
//! Used by every file of the conduit. Invariant: `par` is the same in all calls on one object. It
//! is `false` only where the client's mode rules out that two threads are inside the library at
//! once (`GASNET_SEQ`).

use super::hold::Hold;
use super::primitive::{AtomicBool, AtomicI64, AtomicU32, AtomicU64, Backoff, Ordering};
use alloc::boxed::Box;
use core::cell::UnsafeCell;
use core::ops::{Deref, DerefMut};
use crossbeam_utils::CachePadded;
use sys::hint::cold_path;
use sys::peer::Peer;

/// A value behind a lock that is held for a few instructions only, never while a handler runs.
pub(super) struct ParLock<T> {
    par: bool,
    held: CachePadded<AtomicBool>,
    value: UnsafeCell<T>,
}

// SAFETY: the value is only reached through a `ParGuard`, and `held` lets one exist at a time.
// With `par` it does so by an atomic exchange, without it because only one thread calls.
unsafe impl<T: Send> Sync for ParLock<T> {}

/// Holds a [`ParLock`].
pub(super) struct ParGuard<'a, T>(&'a ParLock<T>);

impl<T> ParLock<T> {
    pub(super) fn new(par: bool, value: T) -> Self {
        ParLock {
            par,
            held: CachePadded::new(AtomicBool::new(false)),
            value: UnsafeCell::new(value),
        }
    }

    /// Takes the lock unless it is held.
    #[inline]
    pub(super) fn try_lock(&self) -> Option<ParGuard<'_, T>> {
        if self.held.load(Ordering::Relaxed) {
            cold_path();
            return None;
        }
        if self.par {
            cold_path();
            // Acquire pairs with the Release in `ParGuard::drop`.
            if self
                .held
                .compare_exchange(false, true, Ordering::Acquire, Ordering::Relaxed)
                .is_err()
            {
                return None;
            }
        } else {
            self.held.store(true, Ordering::Relaxed);
        }
        Some(ParGuard(self))
    }

    /// Takes the lock; its holder is about to let go.
    #[inline]
    pub(super) fn lock(&self) -> ParGuard<'_, T> {
        let backoff = Backoff::new();
        loop {
            if let Some(guard) = self.try_lock() {
                return guard;
            }
            backoff.snooze();
        }
    }
}

impl<T> Deref for ParGuard<'_, T> {
    type Target = T;
    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: the guard is the only one.
        unsafe { &*self.0.value.get() }
    }
}

impl<T> DerefMut for ParGuard<'_, T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: the guard is the only one.
        unsafe { &mut *self.0.value.get() }
    }
}

impl<T> Drop for ParGuard<'_, T> {
    #[inline]
    fn drop(&mut self) {
        self.0.held.store(false, Ordering::Release);
    }
}

/// Adds to a counter and returns the new value.
#[inline]
pub(super) fn add(par: bool, counter: &AtomicI64, n: i64) -> i64 {
    if par {
        counter.fetch_add(n, Ordering::AcqRel) + n
    } else {
        let new = counter.load(Ordering::Relaxed) + n;
        counter.store(new, Ordering::Relaxed);
        new
    }
}

/// Adds to a count of references and returns the new value. The thread that releases the last
/// reference sees all that the others did.
#[inline]
pub(super) fn count(par: bool, counter: &AtomicU32, n: i32) -> u32 {
    if par {
        counter.fetch_add(n as u32, Ordering::AcqRel).wrapping_add(n as u32)
    } else {
        let new = counter.load(Ordering::Relaxed).wrapping_add(n as u32);
        counter.store(new, Ordering::Relaxed);
        new
    }
}

/// Takes `n` off a counter if it holds that many.
#[inline]
pub(super) fn take(par: bool, counter: &AtomicU32, n: u32) -> bool {
    let mut now = counter.load(Ordering::Relaxed);
    if !par {
        if now < n {
            return false;
        }
        counter.store(now - n, Ordering::Relaxed);
        return true;
    }
    while now >= n {
        match counter.compare_exchange_weak(now, now - n, Ordering::AcqRel, Ordering::Relaxed) {
            Ok(_) => return true,
            Err(v) => now = v,
        }
    }
    false
}

/// Puts `n` back that [`take`] took.
#[inline]
pub(super) fn give(par: bool, counter: &AtomicU32, n: u32) {
    if par {
        counter.fetch_add(n, Ordering::Release);
    } else {
        counter.store(counter.load(Ordering::Relaxed) + n, Ordering::Relaxed);
    }
}

/// The end of a [`FreeList`].
const NONE: u32 = u32::MAX;

/// The free numbers below a limit: a stack, so that the number used last is used next. It also
/// records what each number that is not free is held for.
///
/// Treiber's stack (IBM RJ 5118, 1986) of indices. The upper half of the head counts changes, so
/// that a head which was taken and put back meanwhile differs from the old one.
pub(super) struct FreeList {
    par: bool,
    head: CachePadded<AtomicU64>,
    /// Of a free number, the next free one or [`NONE`]; of another, its [`Hold`].
    next: Box<[AtomicU32]>,
}

impl FreeList {
    /// All of `0..count` are free; 0 is taken first.
    pub(super) fn new(par: bool, count: u32) -> Self {
        let next =
            (1..=count).map(|i| AtomicU32::new(if i == count { NONE } else { i })).collect();
        let first = if count == 0 { NONE } else { 0 };
        FreeList { par, head: CachePadded::new(AtomicU64::new(u64::from(first))), next }
    }

    /// The number that is taken next, unless another thread takes or gives one first.
    #[inline]
    pub(super) fn next(&self) -> Option<u32> {
        let index = self.head.load(Ordering::Relaxed) as u32;
        (index != NONE).then_some(index)
    }

    /// Takes a number, for `hold`.
    #[inline]
    pub(super) fn take(&self, hold: Hold) -> Option<u32> {
        // Acquire pairs with the Release in `give`: the link below the head is seen as stored.
        let mut head = self.head.load(Ordering::Acquire);
        loop {
            let index = head as u32;
            if index == NONE {
                cold_path();
                return None;
            }
            let link = &self.next[index as usize];
            let next = u64::from(link.load(Ordering::Relaxed));
            if !self.par {
                self.head.store(next, Ordering::Relaxed);
                link.store(hold.word(), Ordering::Relaxed);
                return Some(index);
            }
            cold_path();
            let new = (head >> 32).wrapping_add(1) << 32 | next;
            match self.head.compare_exchange_weak(head, new, Ordering::Acquire, Ordering::Acquire)
            {
                Ok(_) => {
                    link.store(hold.word(), Ordering::Relaxed);
                    return Some(index);
                }
                Err(h) => head = h,
            }
        }
    }

    /// Says what a number, which the caller has, is held for from now on.
    #[inline]
    pub(super) fn set_hold(&self, index: u32, hold: Hold) {
        self.next[index as usize].store(hold.word(), Ordering::Relaxed);
    }

    /// The event that `hold` waits for has arrived and names this number: the number, once, if it
    /// is held for that. The caller has it then; before it takes another event it gives the
    /// number back or calls [`FreeList::set_hold`].
    #[inline(always)]
    pub(super) fn end_hold(&self, number: Peer<usize>, hold: Hold) -> Option<u32> {
        let index = number.below(self.next.len())?;
        let word = &self.next[index];
        if self.par {
            cold_path();
            let (relaxed, here) = (Ordering::Relaxed, Hold::HERE.word());
            // Events of one queue are taken by one thread at a time, so nothing is ordered here.
            let ended = word.compare_exchange(hold.word(), here, relaxed, relaxed);
            return ended.ok().map(|_| index as u32);
        }
        (word.load(Ordering::Relaxed) == hold.word()).then_some(index as u32)
    }

    /// What the numbers that are not free are held for.
    pub(super) fn holds(&self) -> impl Iterator<Item = Hold> {
        self.next.iter().filter_map(|word| Hold::of_word(word.load(Ordering::Relaxed)))
    }

    /// A number that changes with the list. With one thread it is the same again once the numbers
    /// that were taken have been given back.
    pub(super) fn changes(&self) -> u64 {
        self.head.load(Ordering::Relaxed)
    }

    /// Whether this is a number that is not free.
    pub(super) fn is_held(&self, number: Peer<usize>) -> bool {
        let word = number.below(self.next.len()).map(|i| self.next[i].load(Ordering::Relaxed));
        word.and_then(Hold::of_word).is_some()
    }

    #[inline]
    pub(super) fn give(&self, index: u32) {
        let mut head = self.head.load(Ordering::Relaxed);
        loop {
            self.next[index as usize].store(head as u32, Ordering::Relaxed);
            if !self.par {
                self.head.store(u64::from(index), Ordering::Relaxed);
                return;
            }
            cold_path();
            let new = (head >> 32).wrapping_add(1) << 32 | u64::from(index);
            match self.head.compare_exchange_weak(head, new, Ordering::Release, Ordering::Relaxed)
            {
                Ok(_) => return,
                Err(h) => head = h,
            }
        }
    }

    /// How many numbers there are.
    pub(super) fn count(&self) -> u32 {
        self.next.len() as u32
    }
}

#[cfg(test)]
impl FreeList {
    /// How many are free; a guess if threads take or give meanwhile.
    pub(super) fn left(&self) -> u32 {
        let mut index = self.head.load(Ordering::Acquire) as u32;
        let mut n = 0;
        // The word of a number that a thread takes meanwhile is no number: it ends the list, too.
        while n < self.count()
            && let Some(next) = self.next.get(index as usize)
        {
            index = next.load(Ordering::Relaxed);
            n += 1;
        }
        n
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::thread;

    #[test]
    fn what_was_used_last_is_used_next() {
        for par in [false, true] {
            let list = FreeList::new(par, 3);
            assert_eq!(
                [
                    list.take(Hold::HERE),
                    list.take(Hold::HERE),
                    list.take(Hold::HERE),
                    list.take(Hold::HERE)
                ],
                [Some(0), Some(1), Some(2), None]
            );
            list.give(1);
            list.give(2);
            assert_eq!(
                [list.take(Hold::HERE), list.take(Hold::HERE), list.take(Hold::HERE)],
                [Some(2), Some(1), None]
            );
        }
        assert_eq!(FreeList::new(true, 0).take(Hold::HERE), None);
    }

    #[test]
    fn an_event_ends_the_hold_that_it_is_for_and_once() {
        let (put, get) = (Hold::put(5), Hold::get(5));
        for par in [false, true] {
            let list = FreeList::new(par, 2);
            let ends = |number, hold| list.end_hold(Peer::new(number), hold).is_some();
            assert!(!ends(0, put) && !ends(7, put));
            let held = |number| list.is_held(Peer::new(number));
            assert!(!held(0) && !held(1) && !held(7));
            assert_eq!(list.take(put), Some(0));
            assert!(held(0) && !held(1));
            assert!(!ends(0, get) && !ends(1, put));
            assert!(ends(0, put));
            list.set_hold(0, Hold::HERE);
            assert!(!ends(0, put));
            list.set_hold(0, get);
            assert!(ends(0, get));
            list.give(0);
            assert!(!ends(0, get) && !ends(0, Hold::HERE));
            assert_eq!([list.take(put), list.take(put), list.take(put)], [Some(0), Some(1), None]);
        }
    }

    #[test]
    fn threads_never_hold_the_same_number() {
        let list = FreeList::new(true, 3);
        let held: [AtomicBool; 3] = core::array::from_fn(|_| AtomicBool::new(false));
        thread::scope(|s| {
            for _ in 0..3 {
                s.spawn(|| {
                    for _ in 0..20_000 {
                        if let Some(i) = list.take(Hold::HERE) {
                            assert!(!held[i as usize].swap(true, Ordering::AcqRel));
                            held[i as usize].store(false, Ordering::Release);
                            list.give(i);
                        }
                    }
                });
            }
        });
        assert!(
            (0..3).all(|_| list.take(Hold::HERE).is_some()) && list.take(Hold::HERE).is_none()
        );
    }

    #[test]
    fn counters() {
        for par in [false, true] {
            let c = AtomicU32::new(3);
            assert!(take(par, &c, 2) && !take(par, &c, 2) && take(par, &c, 1));
            give(par, &c, 3);
            assert!(take(par, &c, 3));
            let r = AtomicU32::new(1);
            assert_eq!(count(par, &r, 1), 2);
            assert_eq!(count(par, &r, -1), 1);
            assert_eq!(add(par, &AtomicI64::new(4), -5), -1);
            let l = ParLock::new(par, 1);
            let g = l.try_lock();
            assert!(g.is_some() && l.try_lock().is_none());
            drop(g);
            *l.lock() += 1;
            assert_eq!(*l.lock(), 2);
        }
    }
}
