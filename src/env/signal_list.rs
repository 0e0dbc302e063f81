//! Lists of signals: those that keep their action, and those that get a handler.
//!
//! Used by the table. Invariant: a handler can take each signal of a [`HandledSignals`] list, and
//! the library does not need it.

use super::kinds::shown_as_written;
use sys::signal::{self, Signal};

/// Names or numbers of signals, separated by commas, or `*` for all.
#[derive(Clone, Copy, Debug)]
pub struct Signals;

/// The signals that a list names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SignalList {
    all: bool,
    signals: Vec<Signal>,
}

impl SignalList {
    fn parse(text: &str) -> Option<SignalList> {
        let mut set = SignalList::default();
        for word in text.split(',').map(str::trim).filter(|w| !w.is_empty()) {
            match word {
                "*" => set.all = true,
                _ => set.signals.push(Signal::parse(word)?),
            }
        }
        Some(set)
    }

    /// Whether the list names this signal, or all.
    pub fn has(&self, signal: Signal) -> bool {
        self.all || self.signals.contains(&signal)
    }
}

/// Names or numbers of signals that a process can handle, separated by commas.
#[derive(Clone, Copy, Debug)]
pub struct HandledSignals;

/// The signals of a list, each of which can be handled; `None` for an empty list, and for `*`.
fn parse_handled(text: &str) -> Option<Vec<Signal>> {
    let SignalList { all, signals } = SignalList::parse(text)?;
    let is_free = |s: &Signal| s.can_be_handled() && *s != signal::notice();
    let is_valid = !all && !signals.is_empty() && signals.iter().all(is_free);
    is_valid.then_some(signals)
}

shown_as_written!(
    Signals,
    SignalList,
    SignalList::parse,
    "names or numbers of signals separated by commas, or *",
    "signals"
);
shown_as_written!(
    HandledSignals,
    Vec<Signal>,
    parse_handled,
    format!(
        "names or numbers of signals separated by commas, such as SIGUSR1, but not *, KILL, STOP, \
         32 or 33, which cannot be handled, nor {}, which the library uses",
        signal::notice().number()
    ),
    "signals, without *"
);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::env::ValueKind;

    #[test]
    fn lists_of_signals() {
        let set = Signals.parse("SIGSEGV, 7,").unwrap_or_default();
        assert!(set.has(Signal::BUS) && set.has(Signal::SEGV) && !set.has(Signal::HUP));
        assert!(Signals.parse("*").is_some_and(|set| set.has(Signal::HUP)));
        assert_eq!(Signals.parse("SEGV,NOSUCH"), None);
    }

    #[test]
    fn handled_signals_can_be_handled() {
        assert_eq!(HandledSignals.parse("USR1, 12"), Some(vec![Signal::USR1, Signal::USR2]));
        for bad in ["*", "KILL", "USR1,STOP", "32", "33", "USR1,*", ",", " ", "NOSUCH"] {
            assert_eq!(HandledSignals.parse(bad), None, "{bad}");
        }
        assert_eq!(HandledSignals.parse(&signal::notice().number().to_string()), None);
    }
}
