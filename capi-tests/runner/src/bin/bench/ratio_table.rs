//! Medians over the rounds, ratios taken round by round, and the table that shows them.

use crate::aims::{BenchRow, RowAim, RowSizes, rows};
use crate::bench_system::LINE;
use crate::columns::RowFigures;
use std::fmt::Write;
use std::fs;
use std::process::Command;

/// The rounds of the system at this index of the list of names.
fn side<'a>(
    names: &[&str],
    name: &str,
    rounds: &'a [Vec<RowFigures>],
) -> Option<Vec<&'a RowFigures>> {
    let at = names.iter().position(|n| *n == name)?;
    Some(rounds.iter().map(|r| &r[at]).collect())
}

/// The name of a limit of the machine, measured in the turn of another measurement.
pub(crate) fn at(limit: &str, name: &str) -> String {
    format!("{limit} at {name}")
}

/// Lower quartile, median and upper quartile.
pub(crate) fn quartiles(values: &mut [f64]) -> Option<[f64; 3]> {
    if values.is_empty() {
        return None;
    }
    values.sort_by(f64::total_cmp);
    let last = values.len() - 1;
    Some([values[last / 4], values[values.len() / 2], values[last - last / 4]])
}

/// One row at one size.
struct Measured {
    /// Our size.
    size: u64,
    /// Medians.
    ours: f64,
    theirs: f64,
    /// Quartiles of the ratios, which are taken round by round.
    quartiles: [f64; 3],
}

/// A row at one size of ours and one of the other side; `None` if one of them was not measured.
fn measured(
    names: &[&str],
    rounds: &[Vec<RowFigures>],
    row: &BenchRow,
    size: u64,
    other_size: u64,
) -> Option<Measured> {
    let values = |(system, name, n): (&str, &str, u32), size| {
        let all = side(names, system, rounds)?;
        all.iter().map(|f| f.get(name, n, size)).collect::<Option<Vec<f64>>>()
    };
    let (system, name, n) = row.other;
    let line = at(LINE, row.ours.1);
    let theirs = if name == LINE { (system, line.as_str(), n) } else { row.other };
    let (mut ours, mut theirs) = (values(row.ours, size)?, values(theirs, other_size)?);
    let mut ratios: Vec<f64> = ours.iter().zip(&theirs).map(|(a, b)| a / b).collect();
    Some(Measured {
        size,
        quartiles: quartiles(&mut ratios)?,
        ours: quartiles(&mut ours)?[1],
        theirs: quartiles(&mut theirs)?[1],
    })
}

/// A row at the size that misses its goal by most.
fn worst(names: &[&str], rounds: &[Vec<RowFigures>], row: &BenchRow) -> Option<Measured> {
    let (low, high) = match row.sizes {
        RowSizes::One(size, other) => return measured(names, rounds, row, size, other),
        RowSizes::Each(low, high) => (low, high),
    };
    let sizes = (0..u64::BITS).map(|bit| 1 << bit).filter(|size| (low..=high).contains(size));
    let all = sizes.filter_map(|size| measured(names, rounds, row, size, size));
    all.max_by(|a, b| {
        let order = a.quartiles[1].total_cmp(&b.quartiles[1]);
        if matches!(row.aim, RowAim::AtMost(_)) { order } else { order.reverse() }
    })
}

/// Whether the goal is parity: then the median may miss it by 5 %, if the quartiles reach it.
fn parity(figure: f64) -> bool {
    (1.0..=1.05).contains(&figure)
}

/// The table of all figures to reach: measurement, median ratio with its quartiles, and whether
/// it is reached.
pub(crate) fn table(names: &[&str], rounds: &[Vec<RowFigures>]) -> String {
    let mut text = String::from(
        "| measurement | ranks | size | path | against | ours | theirs | ratio | quartiles | goal | |\n",
    );
    text += "|---|---|---|---|---|---|---|---|---|---|---|\n";
    for row in rows() {
        let Some(m) = worst(names, rounds, &row) else { continue };
        let (path, name, n) = row.ours;
        let [low, median, high] = m.quartiles;
        let units = side(names, path, rounds).and_then(|s| s.first().map(|f| &f.units));
        let unit = units.and_then(|u| u.get(name)).map_or("", |u| u);
        let (aim, reached) = match row.aim {
            RowAim::AtMost(x) => (
                format!("<= {x}"),
                Some(median <= x || parity(x) && median <= 1.05 * x && low <= x),
            ),
            RowAim::AtLeast(x) => (
                format!(">= {x}"),
                Some(median >= x || parity(x) && 1.05 * median >= x && high >= x),
            ),
            RowAim::Nothing => (String::new(), None),
        };
        let size = match row.sizes {
            RowSizes::One(size, _) => size.to_string(),
            RowSizes::Each(low, high) => format!("{low} to {high}, worst {}", m.size),
        };
        let against = if row.other.1 == name {
            row.other.0.to_string()
        } else {
            format!("{} ({})", row.other.0, row.other.1)
        };
        let _ = writeln!(
            text,
            "| {name}, {unit} | {n} | {size} | {path} | {against} | **{}** | {} | {} | {} to {} | {aim} | {} |",
            figure(m.ours),
            figure(m.theirs),
            figure(median),
            figure(low),
            figure(high),
            match reached {
                Some(true) => "reached",
                Some(false) => "not reached",
                None => "",
            }
        );
    }
    text
}

/// A number with three significant digits, and commas between thousands.
fn figure(value: f64) -> String {
    let rounded: f64 = format!("{value:.2e}").parse().unwrap_or(value);
    if rounded == 0.0 || !rounded.is_finite() {
        return rounded.to_string();
    }
    let decimals = (2.0 - rounded.abs().log10().floor()).max(0.0) as usize;
    let text = format!("{rounded:.decimals$}");
    let (whole, rest) = text.split_at(text.find('.').unwrap_or(text.len()));
    let mut grouped = String::new();
    for (i, digit) in whole.chars().enumerate() {
        if i > 0 && (whole.len() - i).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped + rest
}

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
        "this library as it is used by default, with `GASNET_WAITMODE=BLOCK`",
    ),
    (
        "smp-block",
        "GASNet, smp-conduit, ranks block",
        "GASNet's smp-conduit with `GASNET_WAITMODE=BLOCK`",
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
    ("mpi", "GASNet, mpi-conduit (over MPI)", "GASNet's conduit over the messages of an MPI"),
    (
        "mpi-everything",
        "GASNet, mpi-conduit, EVERYTHING",
        "GASNet's mpi-conduit, built for GASNET_SEGMENT_EVERYTHING",
    ),
    ("openmpi", "Open MPI, without GASNet", "Open MPI's own puts and messages, without GASNet"),
    ("mpich", "MPICH, without GASNet", "MPICH's own puts and messages, without GASNet"),
    ("shmem", "Open MPI's OpenSHMEM", "the puts of the OpenSHMEM in Open MPI"),
    (
        "machine",
        "limit of the machine",
        "what the machine itself can do (`capi-tests/bench/limits.c`)",
    ),
];

/// The page of docs/bench.
pub(crate) fn page(names: &[&str], table: &str, rounds: usize, ms: f64, moved: usize) -> String {
    let mut systems = String::from("| name | what is measured |\n|---|---|\n");
    for name in names {
        let known = SYSTEMS.iter().find(|(known, ..)| known == name);
        let text = known.map_or_else(|| format!("GASNet's {name}-conduit"), |k| k.2.to_string());
        let _ = writeln!(systems, "| `{name}` | {text} |");
    }
    format!(
        "# Measurements\n\n`make bench PEER=<prefix>[,conduit]` writes this page and its drawings.\n\n\
         - Two ranks are pinned to one CPU each; more ranks than CPUs share them.\n\
         - {rounds} rounds. In each round all systems take turns, {ms} ms per value.\n\
         - A ratio is ours to the other's within one turn (within one round for libraries other\n  \
           than GASNet). The table has the median over the rounds and the quartiles.\n\
         - The round trip of a cache line is measured between the systems. If it changed by more\n  \
           than a quarter, the host had moved the CPUs. Such a turn of two ranks was repeated up\n  \
           to five times; {moved} such turns remained.\n\
         - A goal for a range of sizes applies to the worst size.\n\
         - Rows without a goal show how close we are to what the machine can do.\n\
         - Figures have three significant digits; ours are bold. Verdicts are of unrounded ratios.\n\
         - A goal of 1 to 1.05 is also reached if the median misses it by 5 % at most, and a\n  \
           quartile does not.\n\
         - Ours and theirs are medians of their own, so their quotient may differ from the ratio.\n\
         - The path is that of puts and gets. Active messages go through the conduit on each path.\n\
         - `put_word` and `get_word` move 8 bytes, a size that the compiler knows. `put` and `get` of\n  \
           8 bytes get their size at run time.\n\
         - The size of a barrier is its number of ranks.\n\n{systems}\n{}\n{table}\n\
         ![latency of small puts](put_latency.svg)\n![bandwidth of puts](put_bandwidth.svg)\n\
         ![round trip of AM Medium](medium_trip.svg)\n![barrier](barrier.svg)\n\
         ![start and end of a job](startup.svg)\n",
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
        "Machine: {model}, {cpus} CPUs usable, memory {memory}, Linux {}.\nCommit {}.\n",
        kernel.trim(),
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

    #[test]
    fn figures_have_three_digits() {
        let all =
            [0.0, 0.000_634_3, 0.9996, 1.0, 9.996, 29.2075, 138.1037, 105_749.9, 12_496_000.0];
        let texts = all.map(figure);
        let expected =
            ["0", "0.000634", "1.00", "1.00", "10.0", "29.2", "138", "106,000", "12,500,000"];
        assert_eq!(texts, expected);
    }

    #[test]
    fn quartiles_of_few() {
        assert_eq!(quartiles(&mut []), None);
        assert_eq!(quartiles(&mut [3.0]), Some([3.0, 3.0, 3.0]));
        assert_eq!(quartiles(&mut [5.0, 1.0, 4.0, 2.0, 3.0]), Some([2.0, 3.0, 4.0]));
    }

    fn figures(rows: &[(u64, f64)]) -> RowFigures {
        let mut f = RowFigures::default();
        let rows: String = rows.iter().map(|(size, value)| format!("{size} {value}\n")).collect();
        f.read(&format!("# put, 2 processes\n# Size  Latency (us)\n{rows}")).unwrap();
        f
    }

    #[test]
    fn ratios_are_taken_within_a_round() {
        let rounds = [
            vec![figures(&[(8, 1.0)]), figures(&[(8, 2.0)])],
            vec![figures(&[(8, 30.0)]), figures(&[(8, 10.0)])],
        ];
        let names = ["cross-mapped", "smp"];
        let row = rows().find(|r| r.ours.1 == "put").unwrap();
        let m = worst(&names, &rounds, &row).unwrap();
        assert_eq!((m.size, m.quartiles), (8, [0.5, 3.0, 3.0]));
        assert!(table(&names, &rounds).contains("not reached"));
    }

    #[test]
    fn the_worst_size_stands_for_a_range() {
        let rounds = [vec![
            figures(&[(4, 9.0), (8, 1.0), (16, 3.0), (64, 9.0)]),
            figures(&[(4, 1.0), (8, 1.0), (16, 2.0), (32, 1.0)]),
        ]];
        let row = |aim| BenchRow {
            ours: ("a", "put", 2),
            other: ("b", "put", 2),
            sizes: RowSizes::Each(8, 64),
            aim,
        };
        let size = |aim| worst(&["a", "b"], &rounds, &row(aim)).unwrap().size;
        assert_eq!((size(RowAim::AtMost(1.0)), size(RowAim::AtLeast(1.0))), (16, 8));
    }
}
