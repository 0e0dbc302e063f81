//! What becomes of the ranks that a success cuts off: the host above, or the report, names them.
//!
//! Called by [`super::watch`]. Invariant: that of [`super::cut_off_report`].

use super::job::Supervisor;
use super::status_request;
use crate::boot::hosts::message::{CutOffRanks, HostMessage};
use sys::clock;

impl Supervisor {
    /// Ranks of this host, or of one below, are cut off.
    pub(super) fn add_cut_off(&mut self, part: CutOffRanks) {
        if self.others.is_printed_above() {
            return self.others.send_up(&HostMessage::CutOff(part));
        }
        self.cut_off.add(part, clock::now_ns());
        if !self.others.print_here() {
            self.report_cut_off();
        }
    }

    /// Prints which ranks are cut off, if there are any that are not reported yet.
    pub(super) fn report_cut_off(&mut self) {
        let all = self.cut_off.take();
        if let Some(first) = self.exit.decision().filter(|_| !all.ranks.is_empty()) {
            status_request::report_cut_off(&self.ranks, self.share.size, first, &all);
        }
    }
}
