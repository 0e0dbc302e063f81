//! Variables of the job: how it starts, its memory and threads, how it waits and how it ends.

use crate::env::kinds::{Bytes, FreeText, Integer, OneOf, Ports, YesNo};
use crate::env::real_number::Seconds;
use crate::env::segment_size::SegmentSize;
use crate::env::signal_list::Signals;
use crate::env::variable::variables;
use crate::env::words::{SpawnControl, WaitMode, WireProgress};
use crate::limits::{MAX_HOST_RANKS, MAX_RANKS, MAX_THREADS as THREADS};

variables! {
    /// Number of ranks that gasnet_init forks, unless a launcher has started several processes. 0
    /// counts as 1.
    PSHM_NODES: Integer(0..=MAX_HOST_RANKS) = 1;

    /// How ranks that gasnetrun did not start find each other: not at all, by
    /// GASNET_PSHM_NODES, or through the launcher's PMI or PMIx. Or they use functions that the
    /// program is linked with: CNOS, and PMI if PMI_FD is not set. The default is what the
    /// environment and the program offer.
    SPAWN_CONTROL: OneOf<SpawnControl>(&[
        ("ALONE", SpawnControl::Alone),
        ("FORK", SpawnControl::Fork),
        ("CNOS", SpawnControl::Cnos),
        ("PMI", SpawnControl::Pmi),
        ("PMIX", SpawnControl::Pmix),
    ]);

    /// Seconds after the first rank within which all ranks must call gasnet_init. 0 means no
    /// limit.
    SPAWN_TIMEOUT: Seconds = 300.0;

    /// File with a host on each line, on which gasnetrun starts ranks: `name`, `name:ranks` or
    /// `name slots=ranks`. The options -H and --hostfile come first.
    SSH_NODEFILE: FreeText;

    /// Hosts as in GASNET_SSH_NODEFILE, separated by blanks or commas. Ignored if that is set.
    SSH_SERVERS: FreeText;

    /// As GASNET_SSH_NODEFILE. Ignored if that or GASNET_SSH_SERVERS is set.
    NODEFILE: FreeText;

    /// The command that runs a program on another host, with the host and the program as its last
    /// arguments.
    SSH_CMD: FreeText;

    /// Options of GASNET_SSH_CMD, separated by blanks.
    SSH_OPTIONS: FreeText;

    /// The most hosts that gasnetrun starts itself. If there are more, each of these starts
    /// others, as many at most. 0 means that gasnetrun starts all.
    SSH_OUT_DEGREE: Integer(0..=MAX_RANKS) = 16;

    /// The network interface for jobs of several hosts: its name, its address, or a network such
    /// as 10.0.0.0/8. The default is the one from which packets to the other hosts leave.
    NETWORK_INTERFACE: FreeText;

    /// The TCP ports on which a job of several hosts listens, such as 50000-50100. The default is
    /// any free port.
    NETWORK_PORTS: Ports;

    /// What delivers puts and gets of other hosts to a rank that does not call the library: a
    /// thread of the library, or nothing until the rank polls. The default is THREAD in PAR and
    /// PARSYNC, and POLL in SEQ. A job of one host has no such thread.
    PROGRESS: OneOf<WireProgress>(&[
        ("THREAD", WireProgress::Thread),
        ("POLL", WireProgress::Poll),
    ]);

    /// Largest group of ranks that map each other's segments. 1 sends all traffic through
    /// Portals; 0 means no limit. In EVERYTHING each is alone.
    SUPERNODE_MAXSIZE: Integer(0..=u32::MAX) = 0;

    /// Upper bound of the segment of one rank. A number below 1 is a part of the memory of the
    /// host. With /H it is the bound of all ranks of a host together. Each rank has a page at
    /// least.
    MAX_SEGSIZE: SegmentSize(Bytes(4096..=1 << 47));

    /// Put segments of 2 MB and more into huge pages, if the kernel grants them on request
    /// (shmem_enabled of transparent huge pages).
    USE_HUGEPAGES: YesNo = true;

    /// Number of client threads of one rank that may use the library at the same time.
    MAX_THREADS: Integer(1..=THREADS as u32) = THREADS as u32;

    /// How a rank waits: it polls, sleeps, or polls and then sleeps. The default is SPIN, or
    /// SPINBLOCK if the host has more ranks than CPUs. Unless SPIN is set, a thread also sleeps
    /// where yielding the CPU takes long, or where more threads wait than there are CPUs for
    /// them.
    WAITMODE: OneOf<WaitMode>(&[
        ("SPIN", WaitMode::Spin),
        ("BLOCK", WaitMode::Block),
        ("SPINBLOCK", WaitMode::SpinBlock),
    ]);

    /// After a rank has exited with 0, wait until the others have ended, instead of ending them
    /// 1 s later. The same as gasnetrun --no-cut-off.
    NO_CUT_OFF: YesNo = false;

    /// Seconds that ranks may take to exit when the job ends. The default is the smaller of
    /// GASNET_EXITTIMEOUT_MAX and GASNET_EXITTIMEOUT_MIN + ranks * GASNET_EXITTIMEOUT_FACTOR.
    EXITTIMEOUT: Seconds;

    /// Upper bound of the default of GASNET_EXITTIMEOUT.
    EXITTIMEOUT_MAX: Seconds = 2.0;

    /// Fixed part of the default of GASNET_EXITTIMEOUT.
    EXITTIMEOUT_MIN: Seconds = 0.7;

    /// Part per rank of the default of GASNET_EXITTIMEOUT.
    EXITTIMEOUT_FACTOR: Seconds = 0.002;

    /// Signals that keep their default action: names or numbers separated by commas, or * for all.
    NO_CATCH_SIGNAL: Signals;

    /// Whether gasnett_maximize_rlimits raises the limit of CPU time (ulimit -t).
    MAXIMIZE_RLIMIT_CPU: YesNo = true;

    /// The same for the limit of the size of files (ulimit -f).
    MAXIMIZE_RLIMIT_FSIZE: YesNo = true;

    /// The same for the limit of the data segment (ulimit -d).
    MAXIMIZE_RLIMIT_DATA: YesNo = true;

    /// The same for the limit of the stack (ulimit -s).
    MAXIMIZE_RLIMIT_STACK: YesNo = true;

    /// The same for the limit of resident memory (ulimit -m).
    MAXIMIZE_RLIMIT_RSS: YesNo = true;

    /// The same for the limit of the address space (ulimit -v).
    MAXIMIZE_RLIMIT_AS: YesNo = true;
}
