//! What a supervisor owns, and how it comes to its ranks and hosts.
//!
//! Made by `boot::launch`, `boot::fork` and `boot::foreign`; [`super::watch`] is its life.
//! Invariant: it has the signals of its process, which has one thread.

use super::barrier_exchange::BarrierExchange;
use super::connections::Connections;
use super::cut_off_report::CutOffReport;
use super::exit_progress::ExitProgress;
use super::folded_errors::FoldedErrors;
use super::job_signals::JobSignals;
use super::job_signals::SignalSource;
use super::job_timeout::JobTimeout;
use super::late_ranks::LateRanks;
use super::other_hosts::{HostsToStart, OtherHosts};
use super::rank_ends::RankEnds;
use super::rank_output::RankOutput;
use super::rank_parents::RankParents;
use super::rank_process::RankProcess;
use super::status_request::StatusRequest;
use crate::boot::control_memory::ControlMemory;
use crate::boot::error::BootError;
use crate::boot::host_memory::HostMemory;
use crate::boot::host_share::{HostShare, RankPlace};
use crate::boot::hosts::link::HostLink;
use crate::boot::hosts::listener::HostListener;
use crate::boot::hosts::names::HostAddresses;
use crate::boot::hosts::remote_plan::{HostToStart, RemotePlan};
use crate::boot::member::Member;
use crate::boot::options::BootOptions;
use crate::boot::orphan_guard::OrphanGuard;
use crate::boot::poll_times::OnlyPolls;
use crate::boot::rank_id::RankId;
use crate::env::RankSet;
use crate::limits::MAX_HOST_RANKS;
use crate::rank::{JobRank, LocalRank};
use crate::report;
use handshake::JobSecret;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use sys::child::Forked;
use sys::process::ProcessIdentity;
use sys::signal::Signal;
use sys::watch::ProcessWatch;
use sys::{clock, process, socket};

/// The process that returns from [`Supervisor::start`].
#[derive(Debug)]
pub enum ProcessRole {
    /// A new process, to become this rank.
    Rank(RankId),
    /// The calling process; it goes on with [`Supervisor::watch`].
    Supervisor(Box<Supervisor>),
}

/// The supervisor of a job.
#[derive(Debug)]
pub struct Supervisor {
    pub(super) control: ControlMemory,
    /// The file of `control`.
    pub(super) control_file: OwnedFd,
    pub(super) cookie: u64,
    pub(super) memory: HostMemory,
    /// Those of this host, by local rank.
    pub(super) ranks: Vec<RankProcess>,
    pub(super) share: HostShare,
    pub(super) signals: JobSignals,
    pub(super) exit: ExitProgress,
    pub(super) ends: RankEnds,
    pub(super) collective: BarrierExchange,
    pub(super) others: OtherHosts,
    pub(super) connections: Connections,
    pub(super) parents: RankParents,
    pub(super) late: LateRanks,
    pub(super) status: StatusRequest,
    pub(super) errors: FoldedErrors,
    pub(super) cut_off: CutOffReport,
    /// When a request to end the job was passed on.
    pub(super) end_requested_at: Option<u64>,
    pub(super) output: RankOutput,
    /// The rank that has the standard input of this process.
    pub(super) reader: JobRank,
    /// What the ranks that work said when all of them did nothing but poll.
    pub(super) waiting: Vec<(JobRank, OnlyPolls)>,
    /// When the job ends because it runs too long.
    pub(super) timeout: Option<JobTimeout>,
    /// For the messages of ranks. Not on the stack, which may be small (`ulimit -s`).
    pub(super) buffer: Vec<u8>,
    /// How many descriptors this process was allowed before; the ranks are.
    descriptors: Option<u64>,
    /// Processes that are no children are watched without descriptors: the connections need them.
    pub(super) spares_descriptors: bool,
}

/// Whether one host can have this many ranks.
///
/// # Errors
/// They are too many.
fn check_host_ranks(ranks: u32) -> Result<(), BootError> {
    if ranks <= MAX_HOST_RANKS {
        return Ok(());
    }
    Err(BootError::new(
        format!("{ranks} ranks are more than one host can have ({MAX_HOST_RANKS})"),
        "Start fewer ranks, or distribute them over more hosts: -H names hosts to gasnetrun.",
    ))
}

/// Whether this process is allowed fewer descriptors than it has with two for each rank.
fn is_short_of_descriptors(share: &HostShare) -> bool {
    /// Those that are neither of ranks nor of other hosts, and some to spare.
    const OTHERS: u64 = 64;
    let needed = 2 * u64::from(share.local_size()) + u64::from(share.hosts) + OTHERS;
    !sys::limits::has_descriptors(needed)
}

/// Watches a process that is no child, without a descriptor if that is to be `spared`.
///
/// # Errors
/// `ESRCH`: it has exited and was collected.
pub(super) fn watch_process(process: ProcessIdentity, spared: bool) -> io::Result<ProcessWatch> {
    if spared { ProcessWatch::by_looks(process) } else { ProcessWatch::of(process) }
}

impl Supervisor {
    /// Prepares the ranks of this host, and takes over the signals of this process, which has one
    /// thread.
    ///
    /// # Errors
    /// The system lacks a resource.
    pub fn new(
        share: HostShare,
        signals: SignalSource,
        options: &BootOptions,
    ) -> Result<Supervisor, BootError> {
        let cookie = sys::random::number()
            .map_err(|e| BootError::system("cannot get a random number", &e))?;
        Supervisor::with(share, cookie, signals, options)
    }

    fn with(
        share: HostShare,
        cookie: u64,
        signals: SignalSource,
        options: &BootOptions,
    ) -> Result<Supervisor, BootError> {
        check_host_ranks(share.local_size())?;
        let descriptors = sys::limits::maximize_descriptors();
        let (file, control) = ControlMemory::create(share.local_size(), cookie)?;
        let one_host = share.local_size() == share.size;
        let timeout = options.exit_timeout(share.size);
        Ok(Supervisor {
            control,
            control_file: file.into(),
            cookie,
            memory: HostMemory::create()?,
            ranks: Vec::new(),
            signals: JobSignals::take_over(signals)?,
            exit: ExitProgress::new(timeout, options.no_cut_off, one_host),
            ends: RankEnds::new(control),
            collective: BarrierExchange::default(),
            others: OtherHosts::default(),
            connections: Connections::default(),
            parents: RankParents::default(),
            late: LateRanks::new(options.spawn_timeout),
            status: StatusRequest::default(),
            errors: FoldedErrors::default(),
            cut_off: CutOffReport::default(),
            end_requested_at: None,
            output: RankOutput::default(),
            reader: JobRank(0),
            waiting: Vec::new(),
            timeout: None,
            buffer: Vec::new(),
            descriptors,
            spares_descriptors: false,
            share,
        })
    }

    /// Passes the output of the ranks through this process, which puts the rank in front of each
    /// line.
    pub fn prefix(mut self) -> Supervisor {
        self.output = self.output.prefixed();
        self
    }

    /// Has the ranks print into files of this folder, one for each rank and stream.
    ///
    /// # Errors
    /// The folder or a file cannot be made.
    pub(in crate::boot) fn output(mut self, folder: &Path) -> Result<Supervisor, BootError> {
        self.output = self.output.in_folder(folder, self.share.ranks())?;
        Ok(self)
    }

    /// Ends the job when it has run for this many seconds.
    pub(in crate::boot) fn timeout(mut self, seconds: f64) -> Supervisor {
        self.timeout = Some(JobTimeout::new(seconds));
        self
    }

    /// Starts the supervisors of the hosts below this one in the tree, of which these addresses
    /// are known. They must have connected within `timeout` nanoseconds.
    ///
    /// # Errors
    /// One cannot be started; those that were end with this process.
    pub(in crate::boot) fn start_hosts(
        mut self,
        all: &[HostToStart],
        plan: &RemotePlan,
        addresses: &HostAddresses,
        timeout: Option<u64>,
    ) -> Result<Supervisor, BootError> {
        if all.is_empty() {
            return Ok(self);
        }
        let mask = self.signals.ranks_mask();
        if let Err(e) = self.others.start(&HostsToStart { all, plan, addresses, mask, timeout }) {
            self.others.fail(e.code);
            self.signals.restore_mask();
            return Err(e);
        }
        Ok(self)
    }

    /// Has the supervisors of `number` other hosts, which a launcher has started, connect to this
    /// one within `timeout` nanoseconds.
    pub(in crate::boot) fn launched(
        mut self,
        listener: HostListener,
        number: u32,
        timeout: Option<u64>,
    ) -> Supervisor {
        self.others = OtherHosts::launched(listener, number, timeout);
        self
    }

    /// Connects this supervisor with the one above it, on another host, and takes the connection.
    /// Ranks that connect were started by another launcher than gasnetrun.
    ///
    /// # Errors
    /// The user names a network interface that this host does not have. The connection stays.
    pub(in crate::boot) fn below(
        mut self,
        link: &mut Option<HostLink>,
        secret: JobSecret,
    ) -> Result<Supervisor, BootError> {
        self.others = OtherHosts::above(link, secret, self.connections.is_open())?;
        // Also if all ranks run on this host: the one above waits as for those of several.
        self.exit.note_other_hosts();
        Ok(self)
    }

    /// Leaves output to the debuggers of these ranks; `reader` has standard input.
    pub(in crate::boot) fn debugged(
        mut self,
        ranks: RankSet,
        reader: Option<JobRank>,
    ) -> Supervisor {
        self.reader = reader.unwrap_or(self.reader);
        self.output.spared = Some(ranks);
        self
    }

    /// The supervisor of ranks that connect to `listener` and know the cookie: those of `share`,
    /// each with its member, which is `None` if its process is unknown.
    pub(in crate::boot) fn adopt(
        cookie: u64,
        listener: OwnedFd,
        share: HostShare,
        members: &[Option<Member>],
        options: &BootOptions,
    ) -> Result<Supervisor, BootError> {
        let mut s = Supervisor::with(share, cookie, SignalSource::Launcher, options)?;
        s.spares_descriptors = is_short_of_descriptors(&s.share);
        let spared = s.spares_descriptors;
        let watch = |process| watch_process(process, spared);
        s.late.all_called(clock::now_ns());
        let locals = (0..s.share.local_size()).map(LocalRank);
        s.ranks = locals.map(|l| RankProcess::expected(s.share.place(l), s.control)).collect();
        for (i, member) in members.iter().enumerate() {
            let Some(Member { process, parent }) = member else { continue };
            s.ranks[i].watch(process.pid, watch(*process).ok());
            let Some(parent) = parent else { continue };
            s.ranks[i].parent = Some(parent.pid);
            if s.parents.has(parent.pid) {
                continue;
            }
            match watch(*parent) {
                Ok(watch) => s.parents.add(parent.pid, watch),
                Err(_) => s.end_without_launcher(parent.pid),
            }
        }
        s.connections.listen(listener);
        Ok(s)
    }

    /// Ends the job because a process that started ranks has exited.
    pub(super) fn end_without_launcher(&self, pid: u32) {
        if self.control.decision().is_none() {
            report::line(format_args!("the launcher (process {pid}) has exited, so the job ends"));
            self.control.decide_failure(1);
        }
    }

    /// Starts the process that ends what the ranks have started if this one is killed.
    ///
    /// # Errors
    /// The system lacks a resource.
    pub(in crate::boot) fn guard(&mut self) -> Result<OrphanGuard, BootError> {
        OrphanGuard::start(self.cookie, self.share.local_size(), self.control)
            .inspect_err(|e| self.others.fail(e.code))
    }

    /// Starts all ranks.
    ///
    /// # Errors
    /// Not all can be started; those that were are killed.
    pub fn start(mut self) -> Result<ProcessRole, BootError> {
        let own = process::pid();
        for local in (0..self.share.local_size()).map(LocalRank) {
            let place = self.share.place(local);
            let rank = place.rank;
            let pair = socket::pair()
                .and_then(|pair| socket::note_senders(pair.0.as_fd()).map(|()| pair));
            let (here, there) = match pair {
                Ok(pair) => pair,
                Err(e) => return Err(self.give_up(rank, &e)),
            };
            let mut ends = match self.output.ends(rank) {
                Ok(ends) => ends,
                Err(e) => return Err(self.give_up(rank, &e)),
            };
            // SAFETY: this process has one thread.
            match unsafe { sys::child::fork() } {
                Err(e) => return Err(self.give_up(rank, &e)),
                Ok(Forked::Parent(child)) => {
                    let mut r = RankProcess::of_child(place, self.control, child, here);
                    r.has_debugger = self.output.is_spared(rank);
                    self.ranks.push(r);
                    ends.clear();
                }
                Ok(Forked::Child) => {
                    if !sys::child::die_with_parent(own) {
                        sys::exit_now(1);
                    }
                    drop(here);
                    for (standard, end) in &ends {
                        let _ = sys::descriptor::redirect(*standard, end.as_fd());
                    }
                    return Ok(ProcessRole::Rank(self.into_rank_id(place, there)));
                }
            }
        }
        Ok(ProcessRole::Supervisor(Box::new(self)))
    }

    /// The ranks of this host, each with the process that was started.
    pub fn processes(&self) -> Vec<(JobRank, u32)> {
        self.ranks.iter().map(|r| (r.rank, r.process)).collect()
    }

    /// In a new process: gives the signals and the limit of descriptors back, and keeps only what
    /// a rank needs.
    fn into_rank_id(self, place: RankPlace, socket: OwnedFd) -> RankId {
        self.signals.restore();
        if place.rank != self.reader {
            sys::stdio::null_stdin();
        }
        // Last: until this returns, the process has the descriptors of other ranks, too.
        sys::limits::allow_descriptors(self.descriptors);
        RankId {
            place,
            cookie: self.cookie,
            control: self.control_file,
            memory: self.memory,
            socket,
        }
    }

    fn give_up(&mut self, rank: JobRank, e: &io::Error) -> BootError {
        for r in &self.ranks {
            process::kill(r.process, Signal::KILL);
        }
        self.signals.restore_mask();
        let e = BootError::system(&format!("cannot start rank {rank} of {}", self.share.size), e);
        self.others.fail(e.code);
        e
    }
}
