//! How far the end of a job has progressed, and the deadlines of each step.
//!
//! Owned by [`super::Supervisor`]. Invariant: once a decision exists, no rank is waited for
//! without a deadline, but for scripts around programs that have ended.
//!
//! ```text
//! Running --decision--> Grace --order to exit--> Exiting --deadline--> Killed --> given up
//!                      (a failure after a success may shorten it)
//!                                                   |        ^
//!                                     a rank lacks  v        | until the limit
//!                                     a CPU:     Extended ---'
//! ```
//!
//! The grace period lets ranks finish that are about to. Then the order to exit is given in the
//! control memory, where a rank that polls sees it. A message on the control socket interrupts
//! one that does not poll. Ranks that still run after the timeout are killed. Two things extend
//! the timeout in small steps, each up to a limit. One is that a rank waits longer for a CPU
//! than it has one. The other is that a rank prints the stack of its failure, itself or by a
//! debugger that keeps it stopped. The second extends it for that rank only, and gives it the
//! timeout anew when the stack is printed. A script around a program that has ended with success
//! goes on, until the job fails or is to end.

use super::rank_process::RankProcess;
use crate::boot::control_memory::ControlMemory;
use crate::boot::control_message::{ControlHead, ControlKind};
use crate::boot::decision::{ExitCause, ExitDecision};
use crate::report;
use std::rc::Rc;
use sys::process::{self, Liveness};
use sys::signal::Signal;

const MS: u64 = 1_000_000;
/// Extension of the timeout while a rank lacks a CPU, and the limit of all extensions.
const EXTENSION: u64 = 100 * MS;
const EXTENSIONS: u64 = 1000 * MS;
/// The limit while a rank prints its stack. A program that does so for it is ended after 30 s
/// (`tools::backtrace`).
const PRINTING: u64 = 31_000 * MS;
/// Between two looks whether the order was overwritten, and whether all ranks only poll.
const LOOK: u64 = 20 * MS;
const POLLS_LOOK: u64 = MS;
/// How long a killed process may take to disappear.
const KILLED: u64 = 5000 * MS;

/// How much longer ranks may take to disappear if some print their stacks on other hosts.
fn more_for(others_spare: bool) -> u64 {
    if others_spare { PRINTING } else { 0 }
}

/// A step of the end; times are those of [`sys::clock::now_ns`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ExitStage {
    /// No decision was made.
    Running,
    /// A decision was made; the order to exit is due at this time.
    Grace(u64),
    /// The order was given; ranks that run at this time are killed, unless one lacks a CPU.
    Exiting(u64),
    /// The same, extended; the timeout was over at the second time.
    Extended(u64, u64),
    /// All ranks were killed; they are given up at this time.
    Killed(u64),
}

/// The end of a job.
#[derive(Debug)]
pub(super) struct ExitProgress {
    stage: ExitStage,
    /// The decision that was noticed. Later changes of the word in the control memory do not
    /// count: a rank may have overwritten it.
    decision: Option<ExitDecision>,
    /// Nanoseconds that ranks may take to exit after the order.
    timeout: u64,
    /// The grace after a success has no end.
    no_cut_off: bool,
    /// All ranks run on this host, and no other has a supervisor: here it is seen whether all of
    /// them only poll.
    one_host: bool,
    /// A rank that prints its stack gets more time.
    spares: bool,
    /// Scripts around programs that have ended with success go on.
    spares_scripts: bool,
    /// One was killed after its program had ended with success.
    has_cut_script: bool,
}

impl ExitProgress {
    /// A job that runs.
    pub(super) fn new(timeout: u64, no_cut_off: bool, one_host: bool) -> ExitProgress {
        ExitProgress {
            stage: ExitStage::Running,
            decision: None,
            timeout,
            no_cut_off,
            one_host,
            spares: false,
            spares_scripts: false,
            has_cut_script: false,
        }
    }

    /// Supervisors of other hosts wait for this one.
    pub(super) fn note_other_hosts(&mut self) {
        self.one_host = false;
    }

    /// Whether no decision has been noticed yet.
    pub(super) fn is_running(&self) -> bool {
        self.stage == ExitStage::Running
    }

    /// Whether no final decision has been noticed: a failure of a rank still counts.
    pub(super) fn is_open(&self) -> bool {
        self.decision.is_none_or(|d| !d.is_final) && !self.is_ordered()
    }

    /// Whether the order to exit has been given.
    fn is_ordered(&self) -> bool {
        !matches!(self.stage, ExitStage::Running | ExitStage::Grace(_))
    }

    /// Whether the order to exit is due now, and whether ranks that still work are cut off by a
    /// rank that has ended with success.
    pub(super) fn is_cut_due(&self, now: u64) -> bool {
        matches!(self.stage, ExitStage::Grace(t) if now >= t)
            && self.decision.is_some_and(ExitDecision::is_success)
    }

    /// Whether a rank has called `gasnet_exit` with success and the others may finish on their
    /// own, until this ends ([`ExitProgress::end_grace`]) or its time is over. Never with several
    /// hosts, where the grace ends by time alone.
    pub(super) fn may_finish(&self) -> bool {
        matches!(self.stage, ExitStage::Grace(_))
            && !self.no_cut_off
            && self.one_host
            && self.decision.is_some_and(|d| d.is_success() && d.cause == ExitCause::Exit)
    }

    /// Ends the grace now: no rank will finish on its own.
    pub(super) fn end_grace(&mut self, now: u64) {
        if let ExitStage::Grace(t) = self.stage {
            self.stage = ExitStage::Grace(t.min(now));
        }
    }

    /// When the next step is due, or the next look at the order or the ranks; `others_spare` as of
    /// [`ExitProgress::is_over`].
    pub(super) fn deadline(&self, now: u64, others_spare: bool) -> Option<u64> {
        match self.stage {
            ExitStage::Grace(_) if self.may_finish() => Some(now + POLLS_LOOK),
            ExitStage::Running => None,
            ExitStage::Grace(t) => Some(t),
            ExitStage::Killed(t) => Some(t + more_for(others_spare)),
            ExitStage::Exiting(t) | ExitStage::Extended(t, _) => Some(t.min(now + LOOK)),
        }
    }

    /// Says whether scripts around programs that have ended with success may go on now. They do
    /// so after a success, in a job of one host: other supervisors would wait for this one.
    pub(super) fn let_scripts_go_on(&mut self, may: bool) {
        let is_success = self.decision.is_some_and(ExitDecision::is_success);
        self.spares_scripts = may && is_success && self.one_host;
    }

    /// Whether the rest of a script was not waited for.
    pub(super) fn has_cut_script(&self) -> bool {
        self.has_cut_script
    }

    /// Whether this is the first call since a rank that prints its stack got more time.
    pub(super) fn takes_longer(&mut self) -> bool {
        core::mem::take(&mut self.spares)
    }

    /// Whether killed ranks have had their time to disappear. Other hosts end their ranks by the
    /// same rules; `others_spare`: one has said that a rank prints its stack there.
    pub(super) fn is_over(&self, now: u64, others_spare: bool) -> bool {
        matches!(self.stage, ExitStage::Killed(until) if now >= until + more_for(others_spare))
    }

    /// Begins the end with the grace period that suits the decision. If a failure has taken the
    /// place of a success, its grace may shorten that of the success. Returns whether the decision
    /// is new.
    pub(super) fn begin(&mut self, decision: ExitDecision, now: u64) -> bool {
        if self.decision == Some(decision) {
            return false;
        }
        let grace = match decision.cause {
            ExitCause::Killed | ExitCause::Supervisor => 0,
            ExitCause::Signal if decision.rank.is_none() => 0,
            _ if self.no_cut_off && decision.is_success() => u64::MAX,
            _ => decision.grace_ns(),
        };
        let mut until = now.saturating_add(grace);
        if let ExitStage::Grace(t) = self.stage {
            until = until.min(t);
        }
        self.stage = ExitStage::Grace(until);
        self.decision = Some(decision);
        true
    }

    /// Kills all ranks that are left.
    pub(super) fn kill_now(&mut self, now: u64, ranks: &mut [RankProcess]) {
        for r in ranks.iter_mut().filter(|r| !r.has_exited() && !r.is_killed_late) {
            kill(r);
        }
        self.stage = ExitStage::Killed(now + KILLED);
    }

    /// The decision that was noticed.
    pub(super) fn decision(&self) -> Option<ExitDecision> {
        self.decision
    }

    /// The exit code of the decision that was noticed; 0 if none was.
    pub(super) fn code(&self) -> i32 {
        self.decision.map_or(0, |d| d.code)
    }

    /// Goes on to the next step if it is due; returns whether it was the order to exit.
    pub(super) fn advance(
        &mut self,
        now: u64,
        control: ControlMemory,
        ranks: &mut [RankProcess],
    ) -> bool {
        let began = match self.stage {
            ExitStage::Grace(t) if now >= t => {
                control.order_exit();
                order_exit(ranks);
                self.stage = ExitStage::Exiting(now.saturating_add(self.timeout));
                return true;
            }
            ExitStage::Exiting(t) if now >= t => now,
            ExitStage::Extended(t, began) if now >= t => began,
            ExitStage::Exiting(_) | ExitStage::Extended(..) => {
                if control.restore_order() {
                    order_exit(ranks);
                }
                return false;
            }
            _ => return false,
        };
        let extended = now - began;
        let starved = extended < EXTENSIONS && is_any_starved(ranks);
        let spared = !starved && self.kill_rest(now, ranks, extended < PRINTING);
        self.spares |= spared;
        self.stage = if starved || spared {
            ExitStage::Extended(now + EXTENSION, began)
        } else {
            ExitStage::Killed(now + KILLED)
        };
        false
    }

    /// Kills the ranks that are left, but for scripts that may go on and, if `spare`, for those
    /// that printed their stacks within the timeout. Returns whether there are any such.
    fn kill_rest(&mut self, now: u64, ranks: &mut [RankProcess], spare: bool) -> bool {
        let ms = self.timeout / MS;
        let mut spared = false;
        for r in ranks.iter_mut().filter(|r| !r.has_exited() && !r.is_killed_late) {
            let goes_on = self.spares_scripts && r.is_script_only();
            if goes_on || spare && r.printed_stack(now, self.timeout) {
                spared = true;
                continue;
            }
            let pid = r.pid();
            let what = match process::liveness(pid) {
                Liveness::Stopped => match process::tracer_of(pid) {
                    Some(tracer) => format!("is stopped by process {tracer} and cannot exit"),
                    None => "is stopped and cannot exit".to_string(),
                },
                _ => format!("did not exit within {ms} ms"),
            };
            let subject = match r.is_script_only() {
                true => format!("the script around rank {}", r.rank),
                false => format!("rank {} (pid {pid})", r.rank),
            };
            self.has_cut_script |= r.is_script_only();
            report::line(format_args!("{subject} {what}; it is killed"));
            kill(r);
        }
        spared
    }
}

/// Kills the processes of a rank.
fn kill(r: &mut RankProcess) {
    (r.killed_by_us, r.is_killed_late) = (true, true);
    r.signal_tree(Signal::KILL);
    if r.ended.is_none() && r.pid() != r.process {
        process::kill(r.pid(), Signal::KILL);
    }
}

/// Sends all ranks the order to exit.
fn order_exit(ranks: &mut [RankProcess]) {
    let order = Rc::new(ControlHead::new(ControlKind::ExitNow).bytes().to_vec());
    for r in ranks.iter_mut().filter(|r| !r.has_exited()) {
        // No other message matters any more.
        r.outgoing.clear();
        r.send(order.clone());
        // A child that has not called gasnet_init does not receive messages; nor does a debugger,
        // which restores its terminal.
        if r.is_child && (r.joined.is_none() || r.has_debugger) && r.ended.is_none() {
            r.killed_by_us = true;
            match r.has_debugger {
                true => _ = process::kill(r.process, Signal::TERM),
                false => r.signal_tree(Signal::TERM),
            }
        }
    }
}

/// Whether a rank that still runs gets too little CPU time to exit. Looks at all, so that the next
/// look compares.
fn is_any_starved(ranks: &mut [RankProcess]) -> bool {
    ranks.iter_mut().filter(|r| !r.has_exited()).fold(false, |any, r| r.is_starved() | any)
}

/// Reports ranks that were killed but do not disappear, and hosts that have not ended.
pub(super) fn report_unended(ranks: &[RankProcess], hosts: &[&str]) {
    for host in hosts {
        report::line(format_args!("host {host} has not ended its ranks; it is left behind"));
    }
    for r in ranks.iter().filter(|r| !r.has_exited()) {
        report::line(format_args!(
            "rank {} (pid {}) was killed but does not disappear; it is left behind",
            r.rank,
            r.pid()
        ));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::boot::decision::{GRACE_AFTER_FAILURE, GRACE_AFTER_SUCCESS};
    use core::sync::atomic::Ordering;

    /// The order to exit is given again while ranks run that may not have seen it.
    #[test]
    fn an_order_that_was_overwritten_is_given_again() {
        let (_file, control) = ControlMemory::create(1, 5).unwrap();
        let mut exit = ExitProgress::new(1000 * MS, false, true);
        control.decide_failure(3);
        assert!(exit.begin(control.decision().unwrap(), 0));
        assert!(exit.advance(0, control, &mut []));
        let given = control.order().swap(0, Ordering::Relaxed);
        assert_ne!(given, 0);
        assert_eq!(exit.deadline(MS, false), Some(MS + LOOK));
        assert!(!exit.advance(MS + LOOK, control, &mut []));
        assert_eq!(control.order().load(Ordering::Relaxed), given);
    }
    /// A failure within the grace after a success shortens it; with no cut-off it has no end.
    #[test]
    fn a_failure_within_the_grace_begins_the_end_again() {
        use crate::rank::JobRank;
        let by = |code| ExitDecision::new(code, ExitCause::Ended, Some(JobRank(0)));
        for no_cut_off in [false, true] {
            let mut exit = ExitProgress::new(1000 * MS, no_cut_off, true);
            assert!(exit.begin(by(0), 0) && !exit.begin(by(0), MS));
            assert_eq!(exit.is_cut_due(GRACE_AFTER_SUCCESS), !no_cut_off);
            assert!(exit.is_open() && exit.begin(by(3), 10 * MS) && !exit.is_open());
            assert_eq!(
                (exit.code(), exit.deadline(0, false)),
                (3, Some(10 * MS + GRACE_AFTER_FAILURE))
            );
            assert!(!exit.is_cut_due(GRACE_AFTER_SUCCESS));
        }
    }

    /// Only on one host does a look at the ranks come before the end of the grace.
    #[test]
    fn the_grace_of_several_hosts_ends_by_time_alone() {
        use crate::rank::JobRank;
        let exit_call = ExitDecision::new(0, ExitCause::Exit, Some(JobRank(0)));
        for (one_host, next) in [(true, POLLS_LOOK), (false, GRACE_AFTER_SUCCESS)] {
            let mut exit = ExitProgress::new(1000 * MS, false, one_host);
            assert!(exit.begin(exit_call, 0));
            assert_eq!((exit.may_finish(), exit.deadline(0, false)), (one_host, Some(next)));
        }
    }
}
