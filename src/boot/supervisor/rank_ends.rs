//! How ranks ended, and what that decides about the job.
//!
//! Owned by [`super::Supervisor`]. Invariants: a rank that ends without having decided the end of
//! the job causes that decision. One message names the rank that ends a job with a failure, unless
//! the rank has printed it.

use super::other_hosts::OtherHosts;
use super::rank_process::{END_KNOWN, RankProcess};
use crate::boot::control_memory::ControlMemory;
use crate::boot::decision::{ExitCause, ExitDecision};
use crate::report;
use sys::byte_count::ByteCount;
use sys::child::Ended;
use sys::memory;
use sys::signal::Signal;

/// Detects the ends of ranks.
#[derive(Debug)]
pub(super) struct RankEnds {
    control: ControlMemory,
    /// [`memory::lack_kills`] when the ranks started.
    lack_kills: u64,
    /// Exit code for a failure that came after an exit with code 0.
    pub(super) late_failure: Option<i32>,
    /// A message has named the rank that ends the job.
    is_named: bool,
}

impl RankEnds {
    pub(super) fn new(control: ControlMemory) -> RankEnds {
        RankEnds { control, lack_kills: 0, late_failure: None, is_named: false }
    }

    /// Called when all ranks have been started, which do not wait for it.
    pub(super) fn begin(&mut self) {
        self.lack_kills = memory::lack_kills();
    }

    fn decide(&self, r: &RankProcess, code: i32, cause: ExitCause) {
        self.control.decide(ExitDecision::new(code, cause, Some(r.rank)));
    }

    /// Whether the end of a rank may still decide the code of the job.
    fn is_open(&self) -> bool {
        self.control.decision().is_none_or(|d| !d.is_final)
    }

    /// Names the rank that ends the job with this failure, unless a message has.
    pub(super) fn announce(&mut self, decision: ExitDecision, ranks: &[RankProcess]) {
        let ended = ranks.iter().find(|r| decision.rank == Some(r.rank));
        let Some(r) = ended.filter(|_| !self.is_named && !decision.is_success()) else { return };
        let (title, code) = (r.title(), decision.code);
        match decision.cause {
            ExitCause::Exit => {
                report::line(format_args!("{title} called gasnet_exit({code}); the job ends"));
            }
            ExitCause::Ended => {
                let call = if r.joined.is_some() { "gasnet_exit" } else { "gasnet_init" };
                // What the system passes on of it.
                let code = code & 0xff;
                report::line(format_args!(
                    "{title} exited with {code} before {call}; the job ends"
                ));
            }
            _ => return,
        }
        self.is_named = true;
    }

    /// The child of rank `i` has ended.
    pub(super) fn child_ended(&mut self, ranks: &mut [RankProcess], i: usize, ended: Ended) {
        ranks[i].ended = Some(ended);
        let r = &ranks[i];
        match ended {
            Ended::Killed(_) if r.killed_by_us => {}
            Ended::Killed(signal) if self.is_open() => self.killed(r, signal),
            Ended::Killed(signal) => {
                self.late_failure.get_or_insert(128 + signal.number());
            }
            // What came after its success has failed: the rest of a script, or its last output.
            Ended::Exited(code @ 1..) if r.own_end.is_some_and(ExitDecision::is_success) => {
                if r.joined.is_some_and(|pid| pid != r.process) {
                    report::line(format_args!(
                        "{} has succeeded, but the script around it exited with {code}",
                        r.title()
                    ));
                } else if self.late_failure.is_none() {
                    report::line(format_args!(
                        "{} exited with {code} after it had left the job with success",
                        r.title()
                    ));
                }
                self.late_failure.get_or_insert(code);
            }
            Ended::Exited(_) if !self.is_open() => {}
            // The rank is another process, which still runs.
            Ended::Exited(0) if r.watch.is_some() => {}
            // `check_missing` looks at it once other ranks have joined.
            Ended::Exited(0) if r.joined.is_none() => {}
            Ended::Exited(code) => self.decide(r, code, ExitCause::Ended),
        }
    }

    /// Decides about watched processes that have exited.
    pub(super) fn check_watched(&mut self, ranks: &[RankProcess], now: u64) {
        for r in ranks {
            let Some(t) = r.exited_at.filter(|_| self.is_open()) else {
                continue;
            };
            match r.watched_end().filter(|_| !r.is_child) {
                Some(Ended::Exited(code)) if r.joined.is_none() => self.ended_in_init(r, code),
                Some(Ended::Exited(code)) => self.decide(r, code, ExitCause::Ended),
                Some(Ended::Killed(signal)) => self.killed(r, signal),
                None if now >= t + END_KNOWN && r.own_end.is_none() => {
                    report::line(format_args!(
                        "rank {} (pid {}) ended without leaving the job",
                        r.rank,
                        r.pid()
                    ));
                    self.is_named = true;
                    self.decide(r, 1, ExitCause::Ended);
                }
                None => {}
            }
        }
    }

    /// Ends a job because a process exited that had not joined it.
    fn ended_in_init(&mut self, r: &RankProcess, code: i32) {
        report::line(format_args!(
            "rank {} (pid {}) ended with exit code {code} within gasnet_init, and other ranks wait \
             for it",
            r.rank,
            r.pid()
        ));
        report::line(format_args!("  See what it prints about its end, and start the job again."));
        self.is_named = true;
        self.decide(r, if code == 0 { 1 } else { code }, ExitCause::Ended);
    }

    fn killed(&mut self, r: &RankProcess, signal: Signal) {
        let code = 128 + signal.number();
        report::line(format_args!(
            "{} was killed by signal {} ({}); the job ends with exit code {code}",
            r.title(),
            signal.number(),
            signal.name()
        ));
        if !r.is_child && r.joined.is_none() {
            report::line(format_args!(
                "  It had not joined the job yet: see what the launcher prints about its end, and \
                 start the job again."
            ));
        }
        if signal == Signal::KILL && memory::lack_kills() > self.lack_kills {
            let group = memory::limits().cgroup.map_or(String::new(), |c| {
                format!(" (its control group allows {})", ByteCount(c))
            });
            report::line(format_args!(
                "  The kernel found no memory for it{group}: raise the limit, or start fewer ranks \
                 with smaller segments (GASNET_MAX_SEGSIZE)."
            ));
        }
        self.is_named = true;
        self.decide(r, code, ExitCause::Killed);
    }

    /// Ends a job whose ranks wait for one that ended before it called `gasnet_init`, here or on a
    /// host below; its supervisor there had no other to wait for.
    pub(super) fn check_missing(&self, ranks: &[RankProcess], others: &OtherHosts) {
        const WHAT: &str =
            "ended with exit code 0 before gasnet_init, which other ranks have called";
        if self.control.decision().is_some() {
            return;
        }
        if let Some(r) = ranks.iter().find(|r| r.ended.is_some() && r.joined.is_none()) {
            report::line(format_args!("rank {} (pid {}) {WHAT}", r.rank, r.process));
        } else if let Some(host) = others.first_ended() {
            report::line(format_args!("the ranks of host {host} {WHAT}"));
        } else {
            return;
        }
        report::line(format_args!("  Every rank of a job must call gasnet_init."));
        self.control.decide_failure(1);
    }
}
