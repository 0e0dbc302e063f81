//! The processes that a launcher's daemon started on this host, watched by each of them while it
//! waits for the others.
//!
//! Used by `boot::pmi` and `boot::pmix` while they wait. Invariant: a surviving process detects
//! the exit of any other; no particular process has to survive for that.
//!
//! Not every launcher ends a job when a process exits that has not used its service yet. srun
//! does not if the process is killed, mpiexec does not if it exits. The others would wait
//! forever, at a time when there is no supervisor. So each process that waits checks
//! periodically that the daemon still has as many children as it was to start.
//!
//! When the daemon has all its children:
//! - slurmstepd forks all before the first one runs;
//! - hydra_pmi_proxy forks all before it answers the first question;
//! - Open MPI's mpirun starts them one by one. It ends the job itself, except when a process
//!   exits with 0 before others use PMIx. So the children of mpirun count as too few only after
//!   several checks in which their number does not grow.

use super::error::BootError;
use super::launcher_variables::{self, FIRST_LATE_REPORT, numbers};
use crate::report;
use sys::clock;
use sys::process::{self, Liveness, ProcessIdentity};

/// Milliseconds between two checks, and how many more for each process that is checked.
const PAUSE: u32 = 100;
const PAUSE_EACH: u32 = 4;
const SECOND: u64 = 1_000_000_000;

/// How a launcher's daemon is recognised.
#[derive(Debug)]
struct LauncherKind {
    launcher: &'static str,
    /// Names of the process that starts the ranks of a host.
    daemons: &'static [&'static str],
    /// The variable that says how many these are: a number, or a list of ranks.
    local: &'static str,
    /// The variable that holds the rank of each.
    rank: &'static str,
    /// How many checks in a row must find too few. A single one can err, since the system may skip
    /// entries of a list that changes.
    checks: u32,
    /// The daemon may have other children, which lack `rank`: those that start its other hosts.
    has_others: bool,
}

static LAUNCHERS: [LauncherKind; 3] = [
    LauncherKind {
        launcher: "srun",
        daemons: &["slurmstepd"],
        local: "SLURM_GTIDS",
        rank: "SLURM_PROCID",
        checks: 2,
        has_others: false,
    },
    LauncherKind {
        launcher: "mpiexec",
        daemons: &["hydra_pmi_proxy"],
        local: "MPI_LOCALNRANKS",
        rank: "PMI_RANK",
        checks: 2,
        has_others: false,
    },
    LauncherKind {
        launcher: "mpirun",
        daemons: &["mpirun", "mpirun.openmpi", "orterun", "orted", "prterun", "prted"],
        local: "OMPI_COMM_WORLD_LOCAL_SIZE",
        rank: "OMPI_COMM_WORLD_RANK",
        checks: 25,
        has_others: true,
    },
];
/// The search for the daemon among the ancestors ends at these: this process has no daemon.
const NOT_DAEMONS: [&str; 2] = ["mpiexec", "gasnetrun"];

#[derive(Debug)]
struct LauncherDaemon {
    process: ProcessIdentity,
    kind: &'static LauncherKind,
    /// How many processes it was to start.
    expected: usize,
}

/// The processes that this process's daemon started, itself included.
#[derive(Debug)]
pub(super) struct Siblings {
    daemon: Option<LauncherDaemon>,
    /// GASNET_SPAWN_TIMEOUT in nanoseconds.
    timeout: Option<u64>,
    /// When this process began to wait.
    began: u64,
    /// After which wait rank 0 reports next.
    next_report: u64,
    /// See [`too_few`].
    few: Option<(usize, u32)>,
    /// Which were missing at the first check that found too few.
    missing: Option<BootError>,
}

/// The state after a check that found `left` processes; `None` if none is missing. Otherwise it is
/// `left`, and how many checks there were since the number last grew.
fn too_few(before: Option<(usize, u32)>, left: usize, expected: usize) -> Option<(usize, u32)> {
    let checks = before.filter(|&(there, _)| left <= there).map_or(0, |(_, checks)| checks);
    (left < expected).then_some((left, checks + 1))
}

/// The variable that holds a list of ranks.
const LIST: &str = "SLURM_GTIDS";

/// How many processes the value of a variable means.
fn count(name: &str, value: &str) -> Option<usize> {
    let all = numbers(value)?;
    if name == LIST { Some(all.len()) } else { all.first().map(|&n| n as usize) }
}

impl LauncherDaemon {
    /// The nearest ancestor of this process that is a daemon.
    fn find() -> Option<LauncherDaemon> {
        let mut pid = process::parent();
        while pid > 1 {
            let name = process::name_of(pid);
            if let Some(kind) = LAUNCHERS.iter().find(|k| k.daemons.contains(&name.as_str())) {
                let expected = count(kind.local, &launcher_variables::variable(kind.local)?)?;
                return Some(LauncherDaemon {
                    process: ProcessIdentity::of(pid)?,
                    kind,
                    expected,
                });
            }
            if NOT_DAEMONS.iter().any(|other| name.starts_with(other)) {
                return None;
            }
            pid = process::parent_of(pid)?;
        }
        None
    }

    /// The error that names the processes missing from `left`.
    fn missing(&self, left: &[u32]) -> BootError {
        let LauncherKind { launcher, local, rank, .. } = self.kind;
        let present: Option<Vec<u32>> =
            left.iter().map(|&pid| process::variable_of(pid, rank)?.parse().ok()).collect();
        let wanted = match launcher_variables::launch_size() {
            _ if *local == LIST => {
                launcher_variables::variable(local).and_then(|list| numbers(&list))
            }
            // The ranks of this host are known only if it has all of them.
            Some(l) if l.processes as usize == self.expected => Some((0..l.processes).collect()),
            _ => None,
        };
        let wanted = wanted.unwrap_or_default();
        let ended = present.map(|present| {
            wanted.into_iter().filter(|r| !present.contains(r)).collect::<Vec<_>>()
        });
        let ranks = match &ended.unwrap_or_default()[..] {
            [] => format!("{} of the {} processes", self.expected - left.len(), self.expected),
            [one] => format!("rank {one}"),
            more => {
                let list: Vec<String> = more.iter().take(8).map(u32::to_string).collect();
                format!("ranks {}{}", list.join(", "), if more.len() > 8 { ", ..." } else { "" })
            }
        };
        BootError::new(
            format!("{ranks} ended before the processes had found each other, so the job ends"),
            format!(
                "See what {launcher} or that process prints about its end; each process must live \
                 until gasnet_init has returned in all."
            ),
        )
        .with_loss()
    }
}

impl Siblings {
    /// The siblings of this process, for a wait of at most `timeout` nanoseconds. Under launchers
    /// other than those above there are none, and only the timeout counts.
    pub(super) fn find(timeout: Option<u64>) -> Siblings {
        Siblings {
            daemon: LauncherDaemon::find(),
            timeout,
            began: clock::now_ns(),
            next_report: FIRST_LATE_REPORT,
            few: None,
            missing: None,
        }
    }

    /// Milliseconds to wait before the next check.
    pub(super) fn pause(&self) -> u32 {
        PAUSE + self.daemon.as_ref().map_or(0, |d| d.expected as u32 * PAUSE_EACH)
    }

    /// Checks that waiting on makes sense; `rank` is this process.
    ///
    /// # Errors
    /// A process is missing, the launcher has exited, or the timeout has passed.
    pub(super) fn check(&mut self, rank: u32) -> Result<(), BootError> {
        let waited = clock::now_ns() - self.began;
        let seconds = waited / SECOND;
        if self.timeout.is_some_and(|timeout| waited > timeout) {
            return Err(BootError::new(
                format!(
                    "rank {rank} has waited for {seconds} s, but not all ranks have called \
                     gasnet_init"
                ),
                "See what they do, or raise GASNET_SPAWN_TIMEOUT (seconds; 0 for no limit).",
            )
            .with_loss());
        }
        let mut left = Vec::new();
        if let Some(d) = &self.daemon {
            if !d.process.exists() {
                return Err(BootError::new(
                    format!(
                        "process {} of {}, which started this one, has exited",
                        d.process.pid, d.kind.launcher
                    ),
                    "See what it prints about its end, and start the job again.",
                )
                .with_loss());
            }
            let stopped = process::liveness(d.process.pid) == Liveness::Stopped;
            // A process that the system does not show is not missing.
            if let Some(children) = process::children(d.process.pid) {
                left = children;
                if d.kind.has_others {
                    left.retain(|&pid| process::variable_of(pid, d.kind.rank).is_some());
                }
                self.few = too_few(self.few, left.len(), if stopped { 0 } else { d.expected });
                match self.few {
                    // Later checks miss more, since others have detected it.
                    Some((_, 1)) => self.missing = Some(d.missing(&left)),
                    Some((_, checks)) if checks >= d.kind.checks => {
                        return Err(self.missing.take().unwrap_or_else(|| d.missing(&left)));
                    }
                    _ => {}
                }
            }
        }
        if rank == 0 && waited >= self.next_report {
            self.next_report = 2 * waited;
            let stopped =
                left.into_iter().find(|&pid| process::liveness(pid) == Liveness::Stopped);
            let stopped =
                stopped.map_or(String::new(), |pid| format!("; process {pid} is stopped"));
            report::line(format_args!(
                "{seconds} s after rank 0, not all ranks have called gasnet_init{stopped}"
            ));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::boot::member::Member;

    #[test]
    fn counts() {
        assert_eq!(count("MPI_LOCALNRANKS", "3"), Some(3));
        assert_eq!(count(LIST, "3"), Some(1));
        assert_eq!(count(LIST, "0,1,5"), Some(3));
        assert_eq!(count(LIST, "0-3"), None);
        assert_eq!(count(LIST, ""), None);
    }

    #[test]
    fn checks_in_a_row() {
        let few = [4, 2, 2, 1, 3, 3, 4].iter().scan(None, |few, &left| {
            *few = too_few(*few, left, 4);
            Some(*few)
        });
        let checks: Vec<u32> = few.map(|few| few.map_or(0, |(_, checks)| checks)).collect();
        assert_eq!(checks, [0, 1, 2, 3, 1, 2, 0]);
    }

    #[test]
    fn a_daemon_and_its_children() {
        let me = ProcessIdentity::of(process::pid()).unwrap();
        let siblings = |expected, process| Siblings {
            daemon: Some(LauncherDaemon { process, kind: &LAUNCHERS[1], expected }),
            timeout: None,
            began: clock::now_ns(),
            next_report: FIRST_LATE_REPORT,
            few: Some((usize::MAX, 1)),
            missing: None,
        };
        assert!(siblings(0, me).check(1).is_ok());
        let missing = siblings(1000, me).check(1).unwrap_err();
        assert!(missing.cause.contains("before the processes had found each other"), "{missing}");
        let exited = ProcessIdentity { start: me.start + 1, ..me };
        assert!(siblings(0, exited).check(1).unwrap_err().cause.contains("has exited"));
    }

    /// What launchers say in variables, and a process as text, is read as it was written or
    /// refused.
    fn any_word(input: &[u8]) {
        let text = String::from_utf8_lossy(input);
        if let Some(list) = numbers(&text) {
            assert_eq!(count(LIST, &text), Some(list.len()));
            assert_eq!(count("MPI_LOCALNRANKS", &text), Some(list[0] as usize));
            let again: Vec<String> = list.iter().map(u32::to_string).collect();
            assert_eq!(numbers(&again.join(",")), Some(list));
        }
        let namespace = crate::boot::member::namespace("pid").unwrap();
        let member = Member::read(&format!("{namespace}.{text}"));
        if let Some(member) = member {
            let again = Member::read(&member.text());
            assert_eq!(again.map(Member::text), Some(member.text()));
        }
        assert!(Member::read(&format!("{namespace}0.{text}")).is_none());
    }

    #[test]
    fn fuzz_launcher_words() {
        fuzz::check("launcher_words", 3_000, any_word);
    }
}
