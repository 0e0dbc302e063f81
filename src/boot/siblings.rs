//! The processes that the daemon of a launcher of others has started here, as one of them sees them that waits for the
//! rest. Called by `boot::pmi` and `boot::pmix` while they wait.
//!
//! Not every launcher ends a job of which a process ends that has said nothing to it: srun does not if it is killed,
//! mpiexec does not if it exits. The others would wait for it in the exchange for ever, at a time when there is no supervisor. So
//! everybody who waits there looks, now and then, at whether the daemon still has as many children as it was to start.
//! slurmstepd forks all of them before it lets the first go on; hydra's proxy before it answers the first question. Open MPI's mpirun
//! starts them one by one, and ends such jobs itself but for a process that exits with 0 before others have asked for PMIx; so it
//! gets some time in which the number of its children does not grow.
//!
//! A process that does nothing but wait for its turn is no trouble: it lives. Nobody has to live for another to notice.

use super::{BootError, detect};
use super::{LATE, MS};
use crate::{env, report};
use sys::clock;
use sys::process::{self, Liveness, ProcessIdentity};

/// How long one waits before a look, and how much longer for each process that is looked at.
const PAUSE: u32 = 100;
const EACH: u32 = 4;

/// A launcher, as far as it matters here.
#[derive(Debug)]
struct LauncherKind {
    launcher: &'static str,
    /// What its process is called that starts the ranks of a machine.
    daemons: &'static [&'static str],
    /// The variable that tells how many these are: by a number, or by a list of ranks.
    local: &'static str,
    /// The variable that tells each its rank.
    rank: &'static str,
    /// How many looks in a row must find too few of them. A single one may err, since the system may skip entries of a
    /// list that changes.
    looks: u32,
}
static LAUNCHERS: [LauncherKind; 3] = [
    LauncherKind {
        launcher: "srun",
        daemons: &["slurmstepd"],
        local: "SLURM_GTIDS",
        rank: "SLURM_PROCID",
        looks: 2,
    },
    LauncherKind {
        launcher: "mpiexec",
        daemons: &["hydra_pmi_proxy"],
        local: "MPI_LOCALNRANKS",
        rank: "PMI_RANK",
        looks: 2,
    },
    LauncherKind {
        launcher: "mpirun",
        daemons: &["mpirun", "mpirun.openmpi", "orterun", "orted", "prterun", "prted"],
        local: "OMPI_COMM_WORLD_LOCAL_SIZE",
        rank: "OMPI_COMM_WORLD_RANK",
        looks: 25,
    },
];
/// Ends the search for an ancestor that is a daemon: this process is not one of its.
const OTHERS: [&str; 2] = ["mpiexec", "gasnetrun"];

#[derive(Debug)]
struct LauncherDaemon {
    who: ProcessIdentity,
    kind: &'static LauncherKind,
    expected: usize,
}

/// See the module.
#[derive(Debug)]
pub(super) struct Siblings {
    daemon: Option<LauncherDaemon>,
    /// When this process began to wait, and when to tell of it.
    begun: u64,
    tell: u64,
    /// See [`too_few`].
    few: Option<(usize, u32)>,
    /// What was missing at the first of them.
    lack: Option<BootError>,
}

/// What is known after a look that has found `left`: how many there are, if these are too few, and how many looks have seen that
/// while they did not become more.
fn too_few(before: Option<(usize, u32)>, left: usize, expected: usize) -> Option<(usize, u32)> {
    let looks = before.filter(|&(there, _)| left <= there).map_or(0, |(_, looks)| looks);
    (left < expected).then_some((left, looks + 1))
}

/// The variable that holds a list.
const LIST: &str = "SLURM_GTIDS";

/// The numbers in a list.
fn numbers(list: &str) -> Option<Vec<u32>> {
    list.trim().split(',').map(|n| n.parse().ok()).collect()
}

/// How many processes this variable speaks of.
fn count(name: &str, value: &str) -> Option<usize> {
    let all = numbers(value)?;
    if name == LIST { Some(all.len()) } else { all.first().map(|&n| n as usize) }
}

impl LauncherDaemon {
    /// The nearest ancestor of this process that is one.
    fn find() -> Option<LauncherDaemon> {
        let mut pid = process::parent();
        while pid > 1 {
            let name = process::name_of(pid);
            if let Some(kind) = LAUNCHERS.iter().find(|kind| kind.daemons.contains(&name.as_str()))
            {
                let expected = count(kind.local, &env::lookup(kind.local)?)?;
                return Some(LauncherDaemon { who: ProcessIdentity::of(pid)?, kind, expected });
            }
            if OTHERS.iter().any(|other| name.starts_with(other)) {
                return None;
            }
            pid = process::parent_of(pid)?;
        }
        None
    }

    /// What to say when only these are left.
    fn lack(&self, left: &[u32]) -> BootError {
        let LauncherKind { launcher, local, rank, .. } = self.kind;
        let there: Option<Vec<u32>> =
            left.iter().map(|&pid| process::variable_of(pid, rank)?.parse().ok()).collect();
        let wanted = match detect::expected() {
            _ if *local == LIST => env::lookup(local).and_then(|list| numbers(&list)),
            // Which ranks these are is told nowhere, unless they are all.
            Some((n, ..)) if n as usize == self.expected => Some((0..n).collect()),
            _ => None,
        };
        let wanted = wanted.unwrap_or_default();
        let ended = there
            .map(|there| wanted.into_iter().filter(|r| !there.contains(r)).collect::<Vec<_>>());
        let who = match &ended.unwrap_or_default()[..] {
            [] => format!("{} of the {} processes", self.expected - left.len(), self.expected),
            [one] => format!("rank {one}"),
            more => {
                let list: Vec<String> = more.iter().take(8).map(u32::to_string).collect();
                format!("ranks {}{}", list.join(", "), if more.len() > 8 { ", ..." } else { "" })
            }
        };
        BootError::new(
            format!(
                "{who} of the job ended before the processes had found each other, so there is no job"
            ),
            format!(
                "See what {launcher} or that process itself says of its end; each must live until gasnet_init has returned in all."
            ),
        )
    }
}

impl Siblings {
    /// Those that this process is one of; nothing is known of them under launchers that need no such care.
    pub(super) fn here() -> Siblings {
        let now = clock::now_ns();
        Siblings { daemon: LauncherDaemon::find(), begun: now, tell: LATE, few: None, lack: None }
    }

    /// How many milliseconds to wait before the next look.
    pub(super) fn pause(&self) -> u32 {
        PAUSE + self.daemon.as_ref().map_or(0, |d| d.expected as u32 * EACH)
    }

    /// Looks whether it makes sense to wait for longer; `rank` is this process.
    pub(super) fn look(&mut self, rank: u32) -> Result<(), BootError> {
        let waited = clock::now_ns() - self.begun;
        let seconds = waited / (1000 * MS);
        let patience = env::SPAWN_TIMEOUT.get();
        if patience > 0.0 && waited as f64 > patience * 1e9 {
            return Err(BootError::new(
                format!(
                    "rank {rank} has waited for {seconds} s, but not all processes have called gasnet_init"
                ),
                "Look at what they do; GASNET_SPAWN_TIMEOUT says how many seconds they may take, 0 that they may take for ever.",
            ));
        }
        let mut left = Vec::new();
        if let Some(d) = &self.daemon {
            left = process::children(d.who.pid);
            if !d.who.exists() {
                return Err(BootError::new(
                    format!(
                        "process {} of {}, which has started this one, is gone",
                        d.who.pid, d.kind.launcher
                    ),
                    "See what it says of its end, and start the job again.",
                ));
            }
            let stopped = process::liveness(d.who.pid) == Liveness::Stopped;
            self.few = too_few(self.few, left.len(), if stopped { 0 } else { d.expected });
            match self.few {
                // Later more are missing, since others have noticed.
                Some((_, 1)) => self.lack = Some(d.lack(&left)),
                Some((_, looks)) if looks >= d.kind.looks => {
                    return Err(self.lack.take().unwrap_or_else(|| d.lack(&left)));
                }
                _ => {}
            }
        }
        if rank == 0 && waited >= self.tell {
            self.tell = 2 * waited;
            let stopped =
                left.into_iter().find(|&pid| process::liveness(pid) == Liveness::Stopped);
            let stopped =
                stopped.map_or(String::new(), |pid| format!("; process {pid} is stopped"));
            report::line(format_args!(
                "{seconds} s after rank 0, gasnet_init has not been called by all processes{stopped}"
            ));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts() {
        assert_eq!(count("MPI_LOCALNRANKS", "3"), Some(3));
        assert_eq!(count(LIST, "3"), Some(1));
        assert_eq!(count(LIST, "0,1,5"), Some(3));
        assert_eq!(count(LIST, "0-3"), None);
        assert_eq!(count(LIST, ""), None);
    }

    #[test]
    fn looks() {
        let few = [4, 2, 2, 1, 3, 3, 4].iter().scan(None, |few, &left| {
            *few = too_few(*few, left, 4);
            Some(*few)
        });
        let looks: Vec<u32> = few.map(|few| few.map_or(0, |(_, looks)| looks)).collect();
        assert_eq!(looks, [0, 1, 2, 3, 1, 2, 0]);
    }

    #[test]
    fn a_daemon_and_its_children() {
        let me = ProcessIdentity::of(process::pid()).unwrap();
        let siblings = |expected, who| Siblings {
            daemon: Some(LauncherDaemon { who, kind: &LAUNCHERS[1], expected }),
            begun: clock::now_ns(),
            tell: LATE,
            few: Some((usize::MAX, 1)),
            lack: None,
        };
        assert!(siblings(0, me).look(1).is_ok());
        let lack = siblings(1000, me).look(1).unwrap_err();
        assert!(lack.cause.contains("before the processes had found each other"), "{lack}");
        let gone = ProcessIdentity { start: me.start + 1, ..me };
        assert!(siblings(0, gone).look(1).unwrap_err().cause.contains("is gone"));
    }
}
