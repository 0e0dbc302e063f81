//! The model of `fragments`: an owner initiates, two threads complete.

use super::fragments::{CountedFragment, count_before};
use super::primitive::{AtomicU32, Ordering};
use crate::conduit::models::check;
use loom::sync::Arc;
use loom::thread;

/// The implicit operations of a thread, two fragments, and the events that report their ends.
#[derive(Default)]
struct ModelOperations {
    issued: AtomicU32,
    done: AtomicU32,
    events: [AtomicU32; 2],
}

impl ModelOperations {
    fn initiate(&self, fragment: usize) {
        self.events[fragment].store(1, Ordering::Release);
    }

    /// Takes the event of a fragment, if it has arrived.
    fn poll(&self, fragment: usize) {
        if self.events[fragment].load(Ordering::Acquire) == 1 {
            let counted = CountedFragment::count(&self.issued, &self.done, None, true);
            assert!(counted.was_in_flight(), "the job ends, as nothing is in flight");
        }
    }
}

/// Each implicit fragment is counted, then initiated, while the earlier ones end.
pub fn fragments_that_were_counted_are_in_flight() {
    check(|| {
        let operations = Arc::new(ModelOperations::default());
        let polls: Vec<_> = (0..2)
            .map(|fragment| {
                let operations = operations.clone();
                thread::spawn(move || operations.poll(fragment))
            })
            .collect();
        for fragment in 0..2 {
            count_before(&operations.issued, 1);
            operations.initiate(fragment);
        }
        polls.into_iter().for_each(|poll| poll.join().expect("no thread fails"));
    });
}
