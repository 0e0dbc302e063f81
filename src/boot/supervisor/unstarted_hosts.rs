//! Hosts that did not start their ranks. The first one is reported at once, the others together:
//! most have the same cause.
//!
//! Owned by [`super::other_hosts`]. Invariant: each host is named once.

use crate::report;
use std::collections::BTreeMap;

/// The most hosts that a message names.
const MOST_NAMES: usize = 16;

/// See the module.
#[derive(Debug, Default)]
pub(super) struct UnstartedHosts {
    has_reported: bool,
    /// Those that are not reported yet, by how their shells have ended.
    others: BTreeMap<String, Vec<String>>,
}

impl UnstartedHosts {
    /// A host, and how its shell has ended.
    pub(super) fn add(&mut self, host: &str, how: &str) {
        if core::mem::replace(&mut self.has_reported, true) {
            self.others.entry(how.to_string()).or_default().push(host.to_string());
            return;
        }
        report::line(format_args!("host {host} did not start its ranks ({how}); the job ends"));
        report::line(format_args!(
            "  See what is printed above. `ssh {host} true` must work without a question, and \
             gasnetrun must be installed there at the same path."
        ));
    }

    /// Reports the others.
    pub(super) fn report_rest(&mut self) {
        for (how, hosts) in core::mem::take(&mut self.others) {
            let count = hosts.len();
            let names = hosts[..count.min(MOST_NAMES)].join(", ");
            match count.saturating_sub(MOST_NAMES) {
                0 => report::line(format_args!("nor did {names} ({how})")),
                more => report::line(format_args!("nor did {names} and {more} more ({how})")),
            }
        }
    }
}
