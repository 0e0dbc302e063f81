//! The pages of docs/bench: what each system and each measurement is, and how to read the table.

use crate::aims::BenchRow;
use crate::bench_system::BenchSystem;
use crate::identity;
use std::fmt::Write;
use std::fs;
use std::process::Command;

/// What a system is, for the legends of drawings.
pub(crate) fn described(system: &str) -> String {
    let known = SYSTEMS.iter().find(|(name, ..)| *name == system);
    known.map_or_else(|| format!("GASNet, {system}-conduit"), |(_, short, _)| short.to_string())
}

/// The systems: name, what legends say, what the page says.
const SYSTEMS: &[(&str, &str, &str)] = &[
    (
        "cross-mapped",
        "libgasnet (ours), cross-mapped",
        "this library; the ranks map each other's segments, so a put is a copy",
    ),
    (
        "portals",
        "libgasnet (ours), through Portals",
        "this library with `GASNET_SUPERNODE_MAXSIZE=1`: puts and gets go through Portals too",
    ),
    (
        "everything",
        "libgasnet (ours), EVERYTHING",
        "this library for programs that are compiled for GASNET_SEGMENT_EVERYTHING",
    ),
    (
        "registered",
        "libgasnet (ours), LARGE, registered on demand",
        "this library for programs that are compiled for GASNET_SEGMENT_LARGE, with \
         `GASNET_PORTAL_PIN=1` and `GASNET_SUPERNODE_MAXSIZE=1`: segments are registered on \
         demand, and were when they are measured",
    ),
    (
        "registered-segment",
        "libgasnet (ours), LARGE, registered whole",
        "the same with `GASNET_USE_FIREHOSE=0`: segments are registered whole",
    ),
    (
        "registered-events",
        "libgasnet (ours), LARGE, registered on demand, with events",
        "`registered` with `GASNET_PORTAL_AT_ONCE=0`: an event completes each put",
    ),
    (
        "registered-segment-events",
        "libgasnet (ours), LARGE, registered whole, with events",
        "`registered-segment` with `GASNET_PORTAL_AT_ONCE=0`",
    ),
    (
        "firehose-sim",
        "libgasnet's firehose alone",
        "a hit of this library's firehose, and a bare probe of a hash table (`firehose-sim --speed`)",
    ),
    (
        "block",
        "libgasnet (ours), ranks block",
        "`cross-mapped`, and the program calls `gasnet_set_waitmode(GASNET_WAIT_BLOCK)`",
    ),
    (
        "smp-block",
        "GASNet, smp-conduit, ranks block",
        "`smp`, and the program calls `gasnet_set_waitmode(GASNET_WAIT_BLOCK)`",
    ),
    (
        "again",
        "libgasnet (ours), once more",
        "`cross-mapped` once more in the same turn: its rows show how much two measurements of one \
         thing differ",
    ),
    (
        "no-bypass",
        "libgasnet (ours), without application bypass",
        "this library over a libportals that completes a put in a call of its target",
    ),
    (
        "no-bypass-spin",
        "the same, spinning",
        "the same with `GASNET_WAITMODE=SPIN`: no rank ever sleeps",
    ),
    ("smp", "GASNet, smp-conduit (shared memory)", "GASNet's conduit for the ranks of one host"),
    ("smp-ex", "GASNet-EX, smp-conduit", "the smp-conduit of GASNet-EX"),
    ("smp-tests", "", "`smp`, and the test programs of that GASNet"),
    ("tests", "", "this library, and the same test programs"),
    ("smp-ex-tests", "", "`smp-ex`, and the test programs of that GASNet-EX"),
    ("ex-tests", "", "this library, and the same test programs"),
    ("udp", "GASNet, udp-conduit", "GASNet's conduit over the messages of UDP"),
    ("mpi", "GASNet, mpi-conduit (over MPI)", "GASNet's conduit over the messages of an MPI"),
    (
        "mpi-everything",
        "GASNet, mpi-conduit, EVERYTHING",
        "GASNet's mpi-conduit, built for GASNET_SEGMENT_EVERYTHING",
    ),
    ("openmpi", "Open MPI, without GASNet", "Open MPI's own puts and messages, without GASNet"),
    ("mpich", "MPICH, without GASNet", "MPICH's own puts and messages, without GASNet"),
    ("shmem", "Open MPI's OpenSHMEM", "the puts of the OpenSHMEM in Open MPI"),
    ("tcp", "", "this library over two hosts with `GASNET_NETWORK=TCP`"),
    ("tcp-thread", "", "the same with `GASNET_PROGRESS=THREAD`"),
    ("net", "", "this library over two hosts and libfabric's provider of plain TCP"),
    ("net-thread", "", "the same with `GASNET_PROGRESS=THREAD`"),
    ("rxm", "", "this library over two hosts and libfabric's provider `tcp;ofi_rxm`"),
    ("rxm-thread", "", "the same with `GASNET_PROGRESS=THREAD`"),
    ("one-host", "", "this library with two ranks of one host, through `gasnetrun`"),
    (
        "with-second",
        "",
        "the same with a third rank on another host; rank 0 and the last, of one host, are measured",
    ),
    ("four-hosts", "", "this library over four hosts: the start and end of a job"),
    ("openmpi-hosts", "", "Open MPI's `mpirun` over the same four hosts and the same command"),
    (
        "bare-tcp",
        "",
        "two processes that answer each other over TCP (`capi-tests/bench/wire_tcp.c`)",
    ),
    (
        "bare-net",
        "",
        "two processes that answer each other over libfabric's provider of plain TCP (`capi-tests/bench/wire_ofi.c`)",
    ),
    (
        "bare-rxm",
        "",
        "two processes that answer each other over libfabric's provider `tcp;ofi_rxm`",
    ),
    (
        "machine",
        "limit of the machine",
        "what the machine itself can do (`capi-tests/bench/limits.c`)",
    ),
];

/// The forms of a collective apart from that without an ending: the ending of the name, and what
/// it means.
const FORMS: &[(&str, &str)] = &[
    ("_nb_my", "`_my` without blocking, 16 in flight"),
    ("_nb_no", "`_no` without blocking, 16 in flight"),
    ("_nb", "without blocking, 16 in flight"),
    ("_my", "each rank waits until its own data has arrived (`MYSYNC`)"),
    ("_no", "no rank waits for others (`NOSYNC`)"),
];

/// The collectives.
const COLLECTIVES: &[(&str, &str)] = &[
    ("broadcast", "rank 0 sends a block of this size to all ranks"),
    ("scatter", "rank 0 sends each rank its own block"),
    ("gather", "each rank sends a block to rank 0"),
    ("gather_all", "each rank sends its block to all ranks"),
    ("exchange", "each rank sends each rank a block"),
    ("reduce", "rank 0 receives the sum of the blocks of all ranks"),
];

/// What each measurement is.
const MEASUREMENTS: &[(&str, &str)] = &[
    ("put_word", "blocking put of 8 bytes, a size that the compiler knows"),
    ("get_word", "blocking get of 8 bytes, a size that the compiler knows"),
    ("put", "blocking put of a size known at run time; of an MPI, a put and a flush"),
    ("get", "blocking get of a size known at run time; of an MPI, a get and a flush"),
    ("put_nbi", "implicit put and its sync"),
    ("get_nbi", "implicit get and its sync"),
    ("put_val", "put of a value (`gasnet_put_val`)"),
    ("get_val", "get of a value (`gasnet_get_val`)"),
    ("memset", "blocking `gasnet_memset`"),
    ("put_bandwidth", "64 puts in flight, then a sync"),
    ("get_bandwidth", "64 gets in flight, then a sync"),
    ("put_bibandwidth", "`put_bandwidth` of both ranks at once, their sum"),
    ("put_rate", "puts of 8 bytes, 64 in flight"),
    ("get_rate", "gets of 8 bytes, 64 in flight"),
    ("short_trip", "a Short request and its Short reply"),
    ("medium_trip", "a Medium request and its Medium reply of the same size"),
    ("long_trip", "a Long request and its Long reply of the same size"),
    ("own_short_trip", "a Short request of a rank to itself and its reply"),
    ("own_medium_trip", "a Medium request of a rank to itself and its reply of the same size"),
    ("short_flood", "Short requests without waiting between them, whose handlers reply"),
    ("medium_flood", "Medium requests without waiting between them, whose handlers reply"),
    ("short_one_way", "Short requests whose handlers do not reply"),
    ("medium_one_way", "Medium requests whose handlers do not reply"),
    ("pairs_trip", "Short round trips of every rank with every other one, at once; time of one"),
    ("barrier_anonymous", "an anonymous barrier; the size is the number of ranks"),
    ("barrier_named", "a named barrier; the size is the number of ranks"),
    (
        "memory",
        "proportional set size of all processes of the job, also of those that are no ranks, \
         divided by the ranks",
    ),
    ("startup", "a job that starts, passes a barrier and ends; `gasnet_init` forks the ranks"),
    (
        "startup_cpuinfo",
        "the same with `GASNET_TSC_RATE=cpuinfo`: without it, GASNet sleeps 100 ms to calibrate \
         its timer",
    ),
    ("launch", "the same job, started by gasnetrun or the MPI's launcher"),
    (
        "vis_strided_put",
        "strided put of 64 KiB in pieces of this size, as far apart as they are long",
    ),
    ("vis_strided_get", "strided get of 64 KiB, likewise"),
    ("vis_indexed_put", "indexed put of 64 KiB, likewise"),
    ("ex_put", "`gex_RMA_PutBlocking`"),
    ("ex_get", "`gex_RMA_GetBlocking`"),
    ("ex_put_nb", "`gex_RMA_PutNB` and the wait for its event"),
    ("ex_get_nb", "`gex_RMA_GetNB` and the wait for its event"),
    ("ex_put_nbi", "`gex_RMA_PutNBI` and its sync"),
    ("ex_get_nbi", "`gex_RMA_GetNBI` and its sync"),
    ("ex_fadd", "a remote fetching addition of 64 bits (`gex_AD_OpNB_U64`)"),
    ("ex_short_trip", "a Short request of GASNet-EX and its Short reply"),
    ("ex_medium_trip", "a Medium request of GASNet-EX and its Medium reply of the same size"),
    (
        "ex_negotiated_trip",
        "the same, but the request is negotiated: `gex_AM_PrepareRequestMedium`, a copy, the commit",
    ),
    (
        "ex_barrier",
        "`gex_Coll_BarrierNB` and the wait for its event; the size is the number of ranks",
    ),
    ("ex_reduce", "`gex_Coll_ReduceToAllNB` of 64-bit sums"),
    ("ex_broadcast", "`gex_Coll_BroadcastNB` of this many bytes"),
    ("attach_put", "blocking put in EVERYTHING to a rank that spins without calling the library"),
    ("attach_get", "blocking get likewise"),
    ("asleep_put", "`attach_put` to a rank that sleeps in the system"),
    ("bare_attach_put", "`process_vm_writev` of the same bytes, without the library"),
    ("bare_attach_get", "`process_vm_readv` of the same bytes, without the library"),
    ("singly_put", "as many blocking puts of 8 bytes as the size says"),
    ("singly_get", "as many blocking gets of 8 bytes as the size says"),
    ("train_put", "the same puts as implicit ones, and their sync"),
    ("train_get", "the same gets as implicit ones, and their sync"),
    ("bare_attach_vector", "one `process_vm_writev` of all these bytes"),
    ("testvis", "GASNet's test program of this name, all of it: strided and indexed transfers"),
    ("testvisperf", "likewise: strided and indexed transfers of 64 KiB, by GASNet-EX of 4 KiB"),
    ("testam", "likewise: active messages"),
    ("testlarge", "likewise: puts and gets of up to 64 KiB"),
    ("testqueue", "likewise: how many operations can be initiated"),
    ("testratomic", "likewise: remote atomics"),
    ("testcollperf", "likewise: collectives of up to 4 KiB"),
    ("hit_one_thread", "a firehose request for memory that is registered"),
    ("hit_threads", "the same while other threads do it too"),
    ("bare_probe", "a bare probe of a hash table"),
    (
        "two_sided_trip",
        "information: an MPI message and an empty answer, in which the target takes part",
    ),
    ("two_sided_bandwidth", "information: a window of 64 MPI messages and one answer"),
    ("memcpy_shared_latency", "memcpy into memory that another process touched"),
    ("memcpy_shared_bandwidth", "the same, as bandwidth"),
    ("line_trip", "round trip of a cache line between the two CPUs"),
    ("copy_trip", "round trip of a payload that each side copies, without a library"),
    ("yield_round", "the time in which each of 8 processes that only yield runs once"),
    ("idle_put", "put to a rank that does not call the library"),
    ("polling_put", "put to a rank that waits in a barrier"),
    ("wire_trip", "a message of the stated size and an answer of 8 bytes, without GASNet"),
    ("wire_asleep", "the same; the other process sleeps in the system until it arrives"),
    ("wire_bandwidth", "64 messages and one answer, without GASNet"),
];

/// A collective without the ending of its form.
fn without_form(name: &str) -> &str {
    let collective = |n: &&str| COLLECTIVES.iter().any(|(known, _)| known == n);
    let mut stems = FORMS.iter().filter_map(|(ending, _)| name.strip_suffix(ending));
    stems.find(collective).unwrap_or(name)
}

/// What a measurement is; `None` if it is not described.
fn meaning(name: &str) -> Option<&'static str> {
    let mut all = MEASUREMENTS.iter().chain(COLLECTIVES);
    all.find(|(known, _)| *known == without_form(name)).map(|(_, text)| *text)
}

/// The table of the measurements of these rows.
fn measurements_table(rows: &[BenchRow]) -> String {
    let mut text = String::from("| measurement | what is measured |\n|---|---|\n");
    let mut seen: Vec<&str> = Vec::new();
    let mut forms = false;
    for name in rows.iter().flat_map(|row| [row.ours.1, row.other.1]) {
        let stem = without_form(name);
        forms |= stem != name;
        if !seen.contains(&stem) {
            seen.push(stem);
            let _ = writeln!(text, "| `{stem}` | {} |", meaning(name).unwrap_or_default());
        }
    }
    if forms {
        text += "| collectives without an ending | all ranks have entered before data moves, and \
                 have their data at the end (`ALLSYNC`) |\n";
    }
    for (ending, meaning) in FORMS.iter().filter(|_| forms) {
        let _ = writeln!(text, "| collectives with `{ending}` | {meaning} |");
    }
    text
}

/// The table of these systems.
fn systems_table(all: &[BenchSystem]) -> String {
    let mut systems = String::from("| name | what is measured | version |\n|---|---|---|\n");
    for system in all {
        let known = SYSTEMS.iter().find(|(known, ..)| *known == system.name);
        let text =
            known.map_or_else(|| format!("GASNet's {}-conduit", system.name), |k| k.2.to_string());
        let _ = writeln!(systems, "| `{}` | {text} | {} |", system.name, system.version);
    }
    systems
}

/// How to read verdicts and ratios; both pages have it.
const READING: &str = "\
- A time, or an amount of memory, reaches its goal if the median of its ratios is at most the
  goal; a rate or a bandwidth if it is at least the goal.
- A goal of exactly 1, memory excepted, is parity. It is also reached if the median misses it by
  5 % at most, and the quartile on the better side reaches it.
- Quartiles and medians of few rounds are interpolated linearly.
- A range of sizes is that of all measured sizes. The worst one counts. `a, against b` are the
  sizes of ours and of the other side.
- Figures have three significant digits; ours are bold. Verdicts are of unrounded ratios.
- Ours and theirs are medians of their own, so their quotient may differ from the ratio.
- `not measured`: the other side was not part of this run.
";

/// The page of several hosts in docs/bench.
pub(crate) fn hosts_page(
    systems: &[BenchSystem],
    rows: &[BenchRow],
    table: &str,
    rounds: usize,
    ms: f64,
) -> String {
    format!(
        "# Measurements over several hosts\n\n`make bench HOSTS=2 PEER=<prefix>,udp` writes this page.\n\n\
         - Hosts are network namespaces of one machine, joined by a bridge (`ci/with-hosts.sh`).\n\
         - Two ranks are pinned to one CPU each; more ranks than CPUs share them.\n\
         - {rounds} rounds. In each round all systems take turns, another one first, {ms} ms per\n  \
           value.\n\
         - A value is the 10th percentile of slices of at least 5 us: of single operations, if they\n  \
           take as long. Of barriers it is the fastest of seven blocks.\n\
         - A ratio is ours to the other's within one turn. The table has the median over the rounds\n  \
           and the quartiles.\n\
         {READING}\n{}\n{}\n{}\n{table}",
        systems_table(systems),
        measurements_table(rows),
        machine()
    )
}

/// The page of one host in docs/bench.
pub(crate) fn page(
    systems: &[BenchSystem],
    rows: &[BenchRow],
    table: &str,
    rounds: usize,
    ms: f64,
    moved: usize,
) -> String {
    format!(
        "# Measurements\n\n`make bench PEER=<prefix>[,conduit]` writes this page and its drawings.\n\n\
         - Two ranks are pinned to one CPU each; more ranks than CPUs share them.\n\
         - {rounds} rounds. In each round all systems take turns, another one first, {ms} ms per\n  \
           value. A value is the median of seven blocks. Where more ranks than CPUs act at once, it\n  \
           is that of three blocks of at least 6 ms; where all ranks act on more than 32 KiB, that\n  \
           of three blocks.\n\
         - A ratio is ours to the other's within one turn (within one round for libraries other\n  \
           than GASNet). The table has the median over the rounds and the quartiles.\n\
         - The round trip of a cache line is measured between the systems. If it changed by more\n  \
           than a quarter, the host had moved the CPUs. Such a turn of two ranks was repeated up\n  \
           to five times; {moved} such turns remained.\n\
         - Rows against `machine` without a goal show how close we are to what it can do. Rows\n  \
           against `again` are the noise: a ratio that differs from 1 by less says nothing.\n\
         {READING}\
         - The path is that of puts and gets. Active messages go through the conduit on each path.\n\
         - Peers are as configured below. GASNet's smp-conduit sleeps 100 ms at each start to\n  \
           calibrate its timer, unless GASNET_TSC_RATE names a source: `startup_cpuinfo`.\n\n\
         {}\n{}\n{}\n{table}\n\
         ![latency of small puts](put_latency.svg)\n![bandwidth of puts](put_bandwidth.svg)\n\
         ![round trip of AM Medium](medium_trip.svg)\n![barrier](barrier.svg)\n\
         ![start and end of a job](startup.svg)\n",
        systems_table(systems),
        measurements_table(rows),
        machine()
    )
}

/// CPU, kernel and memory of this machine, and the commit.
fn machine() -> String {
    let cpu = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = cpu
        .lines()
        .find_map(|l| {
            l.strip_prefix("model name")?.split_once(':').map(|(_, m)| m.trim().to_string())
        })
        .unwrap_or("unknown".to_string());
    let cpus = std::thread::available_parallelism().map_or(0, usize::from);
    let kernel = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let memory = fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let memory = memory
        .lines()
        .find_map(|l| l.strip_prefix("MemTotal:"))
        .map(str::trim)
        .unwrap_or("unknown")
        .to_string();
    format!(
        "Machine: {model}, {cpus} CPUs usable, memory {memory}, Linux {}.\nCompiler: {}.\nCommit {}.\n",
        kernel.trim(),
        identity::of_compiler(),
        commit()
    )
}

/// The commit that was measured.
fn commit() -> String {
    let git = Command::new("git").args(["log", "-1", "--format=%h, %cs"]).output();
    let text = git.map(|o| String::from_utf8_lossy(&o.stdout).trim().to_string());
    text.ok().filter(|t| !t.is_empty()).unwrap_or("unknown".to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::aims::{host_rows, rows};

    #[test]
    fn each_measurement_and_system_is_described() {
        for row in rows().chain(host_rows()) {
            for (system, name, _) in [row.ours, row.other] {
                assert!(meaning(name).is_some(), "{name}");
                assert!(SYSTEMS.iter().any(|(known, ..)| *known == system), "{system}");
            }
        }
    }

    #[test]
    fn lines_of_the_pages_are_short() {
        let (rows, hosts) = (rows().collect::<Vec<_>>(), host_rows().collect::<Vec<_>>());
        let pages = [page(&[], &rows, "", 4, 3.0, 10), hosts_page(&[], &hosts, "", 4, 3.0)];
        for line in pages.iter().flat_map(|page| page.lines()) {
            // Tables, and the machine and its compiler.
            let free = ["|", "Machine: ", "Compiler: "].iter().any(|head| line.starts_with(head));
            assert!(free || line.chars().count() < 100, "{line}");
        }
        assert!(pages[0].contains("\n- A goal of exactly 1"), "{}", pages[0]);
    }

    #[test]
    fn collectives_are_described_without_their_forms() {
        assert_eq!(without_form("gather_all_nb_no"), "gather_all");
        assert_eq!(without_form("gather_all"), "gather_all");
        assert_eq!(without_form("put_nb"), "put_nb");
        let table = measurements_table(&rows().collect::<Vec<_>>());
        assert_eq!(table.matches("| `broadcast` |").count(), 1);
        assert!(table.contains("| collectives with `_my` |"));
    }
}
