//! Medians over the rounds, ratios taken round by round, and the table that shows them.

use crate::aims::{Aim, ROWS, Row};
use crate::columns::Figures;
use std::fmt::Write;
use std::fs;

/// The rounds of the system at this place in the list of names.
fn side<'a>(names: &[&str], name: &str, rounds: &'a [Vec<Figures>]) -> Option<Vec<&'a Figures>> {
    let at = names.iter().position(|n| *n == name)?;
    Some(rounds.iter().map(|r| &r[at]).collect())
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

/// The ratios of one row, round by round.
fn ratios(names: &[&str], rounds: &[Vec<Figures>], row: &Row) -> Vec<f64> {
    let (Some(ours), Some(other)) = (side(names, row.ours, rounds), side(names, row.other.0, rounds)) else {
        return Vec::new();
    };
    let pairs = ours.iter().zip(other);
    let ratio = |(a, b): (&&Figures, &Figures)| {
        let (name, n, size) = row.what;
        Some(a.get(name, n, size)? / b.get(row.other.1, row.other.2, row.other.3)?)
    };
    pairs.filter_map(ratio).collect()
}

/// Whether a figure asks for being as good as the other: then the median may miss it by a twentieth, if the quartiles reach it.
fn parity(figure: f64) -> bool {
    (1.0..=1.05).contains(&figure)
}

/// The table of all figures to reach: what was measured, the median ratio with its quartiles, and whether it is reached.
pub(crate) fn table(names: &[&str], rounds: &[Vec<Figures>]) -> String {
    let mut text = String::from(
        "| measurement | processes | size | path | against | ours | theirs | ratio | quartiles | to reach | |\n",
    );
    text += "|---|---|---|---|---|---|---|---|---|---|---|\n";
    for row in ROWS {
        let Some([low, median, high]) = quartiles(&mut ratios(names, rounds, row)) else { continue };
        let (name, n, size) = row.what;
        let value = |who: &str, name: &str, n: u32, size: u64| {
            let mut all: Vec<f64> =
                side(names, who, rounds)?.iter().filter_map(|f| f.get(name, n, size)).collect();
            quartiles(&mut all).map(|q| q[1])
        };
        let unit = side(names, row.ours, rounds)
            .and_then(|s| s.first().and_then(|f| f.units.get(name).cloned()))
            .unwrap_or_default();
        let (sign, bound, reached) = match row.aim {
            Aim::AtMost(x) => ("<=", x, median <= x || parity(x) && median <= 1.05 * x && low <= x),
            Aim::AtLeast(x) => (">=", x, median >= x || parity(x) && 1.05 * median >= x && high >= x),
        };
        let against = if row.other.1 == name {
            row.other.0.to_string()
        } else {
            format!("{} ({})", row.other.0, row.other.1)
        };
        let _ = writeln!(
            text,
            "| {name}, {unit} | {n} | {size} | {} | {against} | {:.4} | {:.4} | {median:.2} | {low:.2} to {high:.2} | {sign} {bound} | {} |",
            row.ours,
            value(row.ours, name, n, size).unwrap_or(f64::NAN),
            value(row.other.0, row.other.1, row.other.2, row.other.3).unwrap_or(f64::NAN),
            if reached { "reached" } else { "not reached" }
        );
    }
    text
}

/// The page of docs/bench.
pub(crate) fn page(table: &str, rounds: usize, ms: f64) -> String {
    format!(
        "# Measurements\n\n`make bench PEER=<prefix>[,conduit]` writes this page and the drawings beside it. Two processes are \
         pinned to a CPU each; where there are more processes than CPUs they share them. {rounds} rounds, in each of which all \
         systems run in turn, {ms} ms for each figure; a ratio is the median over the rounds of ours to the other of the same \
         round, with its quartiles. `machine` is what the machine itself can do (`capi-tests/bench/limits.c`).\n\n{}\n{table}\n\
         ![latency of small puts](put_latency.svg)\n![bandwidth of puts](put_bandwidth.svg)\n\
         ![round trip of AM Medium](medium_trip.svg)\n![barrier](barrier.svg)\n![start and end of a job](startup.svg)\n",
        machine()
    )
}

/// CPU, kernel and memory of this machine.
fn machine() -> String {
    let cpu = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = cpu
        .lines()
        .find_map(|l| l.strip_prefix("model name")?.split_once(':').map(|(_, m)| m.trim().to_string()))
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
    format!("Machine: {model}, {cpus} CPUs usable, memory {memory}, Linux {}.\n", kernel.trim())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quartiles_of_few() {
        assert_eq!(quartiles(&mut []), None);
        assert_eq!(quartiles(&mut [3.0]), Some([3.0, 3.0, 3.0]));
        assert_eq!(quartiles(&mut [5.0, 1.0, 4.0, 2.0, 3.0]), Some([2.0, 3.0, 4.0]));
    }

    #[test]
    fn ratios_are_taken_within_a_round() {
        let figures = |value: f64| {
            let mut f = Figures::default();
            f.read(&format!("# put, 2 processes\n# Size  Latency (us)\n8 {value}\n")).unwrap();
            f
        };
        let rounds = [vec![figures(1.0), figures(2.0)], vec![figures(30.0), figures(10.0)]];
        let row = ROWS.iter().find(|r| r.what == ("put", 2, 8)).unwrap();
        assert_eq!(ratios(&["cross-mapped", "smp"], &rounds, row), [0.5, 3.0]);
        assert!(table(&["cross-mapped", "smp"], &rounds).contains("not reached"));
    }
}
