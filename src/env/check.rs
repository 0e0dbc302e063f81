//! The check of all variables at the start, and values that exclude each other.
//!
//! Called by `gasnet_init`, `gasnetrun` and `gasnet_info`. Invariant: a contradiction does not
//! depend on the job, so that `gasnet_info -c` reports what `gasnet_init` refuses.

use super::contradiction::Contradiction;
use super::table;
use super::variable::AnyVariable;
use crate::report;

/// Ends the job if any variable has an invalid value, or values exclude each other, whether or
/// not this job would read them. Called before the job has more than one process, so that the
/// user reads the message once.
pub fn check_all() {
    table::all().for_each(|v| v.check());
    if let Some(Contradiction { cause, remedy, .. }) = contradictions().next() {
        report::fatal(format_args!("{cause}"), format_args!("{remedy}"));
    }
}

/// All contradictions among valid values.
pub fn contradictions() -> impl Iterator<Item = Contradiction> {
    [both_provider_lists, signal_of_two_uses, credits_beyond_bound]
        .into_iter()
        .filter_map(|rule| rule())
}

/// The providers that may be used and those that must not be are both set.
pub fn both_provider_lists() -> Option<Contradiction> {
    let (include, exclude) =
        (table::portals::OFI_PROVIDER_INCLUDE, table::portals::OFI_PROVIDER_EXCLUDE);
    (include.read().ok()?.is_some() && exclude.read().ok()?.is_some()).then(|| Contradiction {
        variable: exclude.name(),
        cause: format!("{} and {} are both set", include.name(), exclude.name()),
        remedy: "Unset one of them.".into(),
    })
}

/// One signal is to print the stack and to pause.
fn signal_of_two_uses() -> Option<Contradiction> {
    let (backtrace, freeze) =
        (table::debugging::BACKTRACE_SIGNAL, table::debugging::FREEZE_SIGNAL);
    let (for_backtrace, for_freeze) = (backtrace.read().ok()??, freeze.read().ok()??);
    let both = for_backtrace.iter().find(|s| for_freeze.contains(s))?;
    Some(Contradiction {
        variable: freeze.name(),
        cause: format!("{} and {} both name {both:?}", backtrace.name(), freeze.name()),
        remedy: "Give each a signal of its own, such as SIGUSR1 and SIGUSR2.".into(),
    })
}

/// A rank would lend more credits at start than it may while they move.
fn credits_beyond_bound() -> Option<Contradiction> {
    use table::portals::{
        PORTAL_CRED_PER_NODE, PORTAL_DYNAMIC_CREDITS, PORTAL_FLOW_CONTROL,
        PORTAL_MAX_CRED_PER_NODE,
    };
    let each = PORTAL_CRED_PER_NODE.read().ok()??;
    let most = PORTAL_MAX_CRED_PER_NODE.read().ok()?;
    let is_moving = PORTAL_FLOW_CONTROL.read().ok()? && PORTAL_DYNAMIC_CREDITS.read().ok()?;
    let (least, _) = PORTAL_CRED_PER_NODE.bounds()?;
    let (name, bound) = (PORTAL_CRED_PER_NODE.name(), PORTAL_MAX_CRED_PER_NODE.name());
    (is_moving && each > most).then(|| Contradiction {
        variable: name,
        cause: format!("{name}={each} is more than {bound}={most}"),
        remedy: format!("Give {least} to {most}, or raise {bound}."),
    })
}
