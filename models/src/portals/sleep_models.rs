//! What must hold for threads that sleep until an event is posted. A wake-up that is lost is a
//! deadlock here: no sleep has an end of its own.

use super::doorbell;
use super::primitive::{AtomicU32, AtomicU64, Ordering, fence};
use super::sleepers::{Sleepers, WakeSource};
use crate::conduit::models::{check, in_threads};
use loom::sync::{Condvar, Mutex};

loom::lazy_static! {
    /// What the kernel knows: whether the bell rings. Threads that it keeps wait for `CHANGED`.
    static ref RINGS: Mutex<bool> = Mutex::new(false);
    static ref CHANGED: Condvar = Condvar::new();
}

/// Stands in for `sys::futex`: to compare the word and to fall asleep is one step.
pub(super) mod futex {
    use super::{AtomicU32, CHANGED, Ordering, RINGS};

    pub(in super::super) fn wait(word: &AtomicU32, expected: u32, _timeout_ns: Option<u64>) {
        let rings = RINGS.lock().expect("no thread fails");
        if word.load(Ordering::Relaxed) == expected {
            drop(CHANGED.wait(rings));
        }
    }

    pub(in super::super) fn wake(_word: &AtomicU32, _count: u32) {
        let _rings = RINGS.lock().expect("no thread fails");
        CHANGED.notify_all();
    }
}

/// Stands in for `sys::bell`: there is one.
pub(super) mod bell {
    use super::{CHANGED, RINGS};

    pub(in super::super) fn ring(_name: u64) {
        *RINGS.lock().expect("no thread fails") = true;
        CHANGED.notify_all();
    }
}

/// The bell alone: nothing comes on a wire.
struct TheBell;

impl WakeSource for TheBell {
    fn wait(&self) -> bool {
        let mut rings = RINGS.lock().expect("no thread fails");
        while !*rings {
            rings = CHANGED.wait(rings).expect("no thread fails");
        }
        true
    }

    fn silence(&self) {
        *RINGS.lock().expect("no thread fails") = false;
    }

    fn ring(&self) {
        bell::ring(1);
    }
}

/// The words of an arena that a doorbell has.
pub(super) struct ModelHeader {
    pub(super) doorbell: (AtomicU32,),
    pub(super) ident: BellIdent,
}

pub(super) struct BellIdent {
    pub(super) bell: AtomicU64,
}

/// A process with an event queue of one event, and its threads.
struct Process {
    header: ModelHeader,
    event: AtomicU32,
    sleepers: Sleepers,
}

impl Process {
    fn new() -> Process {
        let ident = BellIdent { bell: AtomicU64::new(1) };
        Process {
            header: ModelHeader { doorbell: (AtomicU32::new(0),), ident },
            event: AtomicU32::new(0),
            sleepers: Sleepers::default(),
        }
    }

    /// Posts an event, as a producer of another process.
    fn post(&self) {
        self.event.store(1, Ordering::Relaxed);
        fence(Ordering::SeqCst);
        doorbell::ring(&self.header);
    }

    fn has_event(&self) -> bool {
        self.event.load(Ordering::Relaxed) == 1
    }

    /// Sleeps until an event is posted.
    fn await_event(&self, by_bell: bool) {
        loop {
            let seen = doorbell::before_sleep(&self.header, by_bell);
            if self.has_event() {
                return;
            }
            if by_bell {
                self.sleepers.sleep(&TheBell, || doorbell::is_unchanged(&self.header, seen));
            } else {
                doorbell::sleep(&self.header, seen, u64::MAX);
            }
        }
    }
}

/// A thread sleeps on the doorbell of its arena.
pub fn a_doorbell_wakes() {
    check(|| {
        in_threads(Process::new(), 2, |process, thread| match thread {
            0 => process.await_event(false),
            _ => process.post(),
        });
    });
}

/// Two threads sleep until the bell rings.
pub fn a_bell_wakes_all() {
    check(|| {
        in_threads(Process::new(), 3, |process, thread| match thread {
            0 => process.post(),
            _ => process.await_event(true),
        });
    });
}

/// A thread sleeps until the bell rings; another one, which only delivers, silences a ring from
/// before.
pub fn a_ring_before_takes_none_away() {
    check(|| {
        bell::ring(1);
        in_threads(Process::new(), 3, |process, thread| match thread {
            0 => process.post(),
            1 => {
                process.await_event(true);
                // Ends the sleep of the other one.
                bell::ring(1);
            }
            _ => process.sleepers.deliver(&TheBell),
        });
    });
}
