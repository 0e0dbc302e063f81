//! Medians over the rounds, ratios taken round by round, and the table that shows them.

use crate::aims::{BenchRow, RowAim, RowSizes};
use crate::columns::RowFigures;
use crate::turns::LINE;
use std::fmt::Write;

/// The name of a limit of the machine, measured in the turn of another measurement.
pub(crate) fn at(limit: &str, name: &str) -> String {
    format!("{limit} at {name}")
}

/// Lower quartile, median and upper quartile. Between two values they are interpolated linearly:
/// quantile q of n sorted values is at position q (n - 1), counted from 0.
pub(crate) fn quartiles(values: &mut [f64]) -> Option<[f64; 3]> {
    if values.is_empty() {
        return None;
    }
    values.sort_by(f64::total_cmp);
    let last = values.len() - 1;
    Some([0.25, 0.5, 0.75].map(|q| {
        let position = q * last as f64;
        let (below, part) = (position.floor() as usize, position.fract());
        values[below] + part * (values[(below + 1).min(last)] - values[below])
    }))
}

/// One row at one size.
struct Measured {
    /// Our size, and that of the other side.
    sizes: (u64, u64),
    /// Medians.
    ours: f64,
    theirs: f64,
    /// Quartiles of the ratios, which are taken round by round.
    quartiles: [f64; 3],
}

/// A row at the size that misses its goal by most.
struct WorstSize {
    at: Measured,
    /// The least and the largest size that both sides measured, if they are several.
    range: Option<(u64, u64)>,
}

/// The names of the systems, and the rounds of each.
#[derive(Clone, Copy)]
pub(crate) struct AllRounds<'a> {
    pub(crate) names: &'a [&'a str],
    pub(crate) rounds: &'a [Vec<RowFigures>],
}

impl AllRounds<'_> {
    /// The rounds of a system.
    fn of(&self, system: &str) -> Option<Vec<&RowFigures>> {
        let at = self.names.iter().position(|n| *n == system)?;
        Some(self.rounds.iter().map(|r| &r[at]).collect())
    }

    /// The sizes of a measurement that each round has, in ascending order.
    fn sizes(&self, (system, name, n): (&str, &str, u32)) -> Vec<u64> {
        let all = self.of(system).unwrap_or_default();
        let Some(first) = all.first() else { return Vec::new() };
        let keys = first.values.keys().filter(|key| key.name == name && key.processes == n);
        keys.map(|key| key.size)
            .filter(|&s| all.iter().all(|f| f.get(name, n, s).is_some()))
            .collect()
    }

    /// A row at one size of ours and one of the other side; `None` if one of them was not
    /// measured.
    fn measured(&self, row: &BenchRow, sizes: (u64, u64)) -> Option<Measured> {
        let values = |(system, name, n): (&str, &str, u32), size| {
            let all = self.of(system)?;
            all.iter().map(|f| f.get(name, n, size)).collect::<Option<Vec<f64>>>()
        };
        let (system, name, n) = row.other;
        let line = at(LINE, row.ours.1);
        let theirs = if name == LINE { (system, line.as_str(), n) } else { row.other };
        let (mut ours, mut theirs) = (values(row.ours, sizes.0)?, values(theirs, sizes.1)?);
        let mut ratios: Vec<f64> = ours.iter().zip(&theirs).map(|(a, b)| a / b).collect();
        Some(Measured {
            sizes,
            quartiles: quartiles(&mut ratios)?,
            ours: quartiles(&mut ours)?[1],
            theirs: quartiles(&mut theirs)?[1],
        })
    }

    /// A row at the size that misses its goal by most; `None` if a size that it names was not
    /// measured.
    fn worst(&self, row: &BenchRow) -> Option<WorstSize> {
        let (low, high) = match row.sizes {
            RowSizes::One(size, other) => {
                let at = self.measured(row, (size, other))?;
                return Some(WorstSize { at, range: None });
            }
            RowSizes::Largest => {
                let largest = (*self.sizes(row.ours).last()?, *self.sizes(row.other).last()?);
                return Some(WorstSize { at: self.measured(row, largest)?, range: None });
            }
            RowSizes::Each(low, high) => (low, high),
        };
        let theirs = self.sizes(row.other);
        let sizes: Vec<u64> = self
            .sizes(row.ours)
            .into_iter()
            .filter(|size| (low..=high).contains(size) && theirs.contains(size))
            .collect();
        if sizes.first() != Some(&low) || sizes.last() != Some(&high) {
            return None;
        }
        let all = sizes.iter().filter_map(|&size| self.measured(row, (size, size)));
        let at = all.max_by(|a, b| {
            let order = a.quartiles[1].total_cmp(&b.quartiles[1]);
            if matches!(row.aim, RowAim::AtMost(_)) { order } else { order.reverse() }
        })?;
        Some(WorstSize { at, range: Some((low, high)) })
    }

    /// The rows of which a side was not measured, or not at all sizes, though both systems took
    /// part.
    pub(crate) fn unmeasured(&self, rows: &[BenchRow]) -> Vec<String> {
        let lacks = |row: &&BenchRow| {
            [row.ours.0, row.other.0].iter().all(|system| self.names.contains(system))
                && self.worst(row).is_none()
        };
        let side = |(system, name, n): (&str, &str, u32)| format!("{name} of {system}, {n} ranks");
        let text = |row: &BenchRow| {
            let sizes = sizes_wanted(row.sizes);
            format!("{} against {}, size {sizes}", side(row.ours), side(row.other))
        };
        rows.iter().filter(lacks).map(text).collect()
    }

    /// The table of the rows: measurement, median ratio with its quartiles, and whether the goal
    /// is reached. Rows that were not measured are left out unless `all` are wanted.
    pub(crate) fn table(&self, rows: &[BenchRow], all: bool) -> String {
        let mut text = String::from(
            "| measurement | ranks | size | path | against | ours | theirs | ratio | quartiles | goal | |\n",
        );
        text += "|---|---|---|---|---|---|---|---|---|---|---|\n";
        for row in rows {
            let (path, name, n) = row.ours;
            let aim = match row.aim {
                RowAim::AtMost(x) => format!("<= {x}"),
                RowAim::AtLeast(x) => format!(">= {x}"),
                RowAim::Nothing => String::new(),
            };
            let against = if row.other.1 == name {
                row.other.0.to_string()
            } else {
                format!("{} ({})", row.other.0, row.other.1)
            };
            let Some(worst) = self.worst(row) else {
                if all {
                    let size = sizes_wanted(row.sizes);
                    let _ = writeln!(
                        text,
                        "| {name} | {n} | {size} | {path} | {against} | | | | | {aim} | not measured |"
                    );
                }
                continue;
            };
            let m = &worst.at;
            let [low, median, high] = m.quartiles;
            let units = self.of(path).and_then(|s| s.first().and_then(|f| f.units.get(name)));
            let unit = units.map_or("", |u| u);
            let size = match worst.range {
                Some((low, high)) => format!("{low} to {high}, worst {}", m.sizes.0),
                None if matches!(row.sizes, RowSizes::Largest) => sizes_of_both(m.sizes),
                None => sizes_wanted(row.sizes),
            };
            let _ = writeln!(
                text,
                "| {name}, {unit} | {n} | {size} | {path} | {against} | **{}** | {} | {} | {} to {} | {aim} | {} |",
                figure(m.ours),
                figure(m.theirs),
                figure(median),
                figure(low),
                figure(high),
                match reached(row, m.quartiles) {
                    Some(true) => "reached",
                    Some(false) => "not reached",
                    None => "",
                }
            );
        }
        text
    }
}

/// Our size, and that of the other side if it differs.
fn sizes_of_both((ours, theirs): (u64, u64)) -> String {
    if ours == theirs { ours.to_string() } else { format!("{ours}, against {theirs}") }
}

/// The sizes that a row names. A side without sizes has 0, and a barrier its ranks: these do not
/// count as different.
fn sizes_wanted(sizes: RowSizes) -> String {
    match sizes {
        RowSizes::One(ours, 0) => ours.to_string(),
        RowSizes::One(ours, theirs) => sizes_of_both((ours, theirs)),
        RowSizes::Each(low, high) => format!("{low} to {high}"),
        RowSizes::Largest => "largest".to_string(),
    }
}

/// Whether the goal is parity, which two equal systems miss half the time. The memory of a rank
/// does not vary so.
fn parity(row: &BenchRow, figure: f64) -> bool {
    figure == 1.0 && row.ours.1 != "memory"
}

/// Whether a row reaches its goal: its median does; or the goal is parity, the median misses it by
/// 5 % at most, and the quartile on the better side reaches it.
fn reached(row: &BenchRow, [low, median, high]: [f64; 3]) -> Option<bool> {
    match row.aim {
        RowAim::AtMost(x) => Some(median <= x || parity(row, x) && median <= 1.05 * x && low <= x),
        RowAim::AtLeast(x) => {
            Some(median >= x || parity(row, x) && 1.05 * median >= x && high >= x)
        }
        RowAim::Nothing => None,
    }
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
    fn quartiles_of_few_are_interpolated() {
        assert_eq!(quartiles(&mut []), None);
        assert_eq!(quartiles(&mut [3.0]), Some([3.0, 3.0, 3.0]));
        assert_eq!(quartiles(&mut [5.0, 1.0, 4.0, 2.0, 3.0]), Some([2.0, 3.0, 4.0]));
        assert_eq!(quartiles(&mut [4.0, 1.0, 3.0, 2.0]), Some([1.75, 2.5, 3.25]));
        assert_eq!(quartiles(&mut [1.0, 2.0]), Some([1.25, 1.5, 1.75]));
    }

    fn figures(rows: &[(u64, f64)]) -> RowFigures {
        let mut f = RowFigures::default();
        let rows: String = rows.iter().map(|(size, value)| format!("{size} {value}\n")).collect();
        f.read(&format!("# put, 2 processes\n# Size  Latency (us)\n{rows}")).unwrap();
        f
    }

    fn row(name: &'static str, sizes: RowSizes, aim: RowAim) -> BenchRow {
        BenchRow { ours: ("a", name, 2), other: ("b", name, 2), sizes, aim }
    }

    #[test]
    fn ratios_are_taken_within_a_round() {
        let rounds = [
            vec![figures(&[(8, 1.0)]), figures(&[(8, 2.0)])],
            vec![figures(&[(8, 30.0)]), figures(&[(8, 10.0)])],
        ];
        let all = AllRounds { names: &["a", "b"], rounds: &rounds };
        let row = row("put", RowSizes::One(8, 8), RowAim::AtMost(1.0));
        let m = all.worst(&row).unwrap().at;
        assert_eq!((m.sizes, m.quartiles), ((8, 8), [1.125, 1.75, 2.375]));
        assert!(all.table(&[row], false).contains("not reached"));
    }

    #[test]
    fn the_worst_measured_size_stands_for_a_range() {
        let rounds = [vec![
            figures(&[(4, 9.0), (8, 1.0), (16, 3.0), (60, 2.0), (64, 9.0), (100, 1.0)]),
            figures(&[(4, 1.0), (8, 1.0), (16, 2.0), (32, 1.0), (60, 1.0), (90, 1.0)]),
        ]];
        let all = AllRounds { names: &["a", "b"], rounds: &rounds };
        let each = |low, high, aim| all.worst(&row("put", RowSizes::Each(low, high), aim));
        let size = |low, high, aim| each(low, high, aim).map(|w| w.at.sizes.0);
        assert_eq!(size(8, 16, RowAim::AtMost(1.0)), Some(16));
        assert_eq!(size(8, 16, RowAim::AtLeast(1.0)), Some(8));
        // No power of two.
        assert_eq!(size(8, 60, RowAim::AtMost(1.0)), Some(60));
        // One side did not measure an end of the range.
        assert_eq!(size(8, 64, RowAim::AtMost(1.0)), None);
        assert_eq!(size(1, 60, RowAim::AtMost(1.0)), None);
        let missing = [row("put", RowSizes::Each(8, 64), RowAim::AtMost(1.0))];
        assert_eq!(all.unmeasured(&missing).len(), 1);
        assert!(
            all.table(&missing, true).contains("| 8 to 64 | a | b | | | | | <= 1 | not measured")
        );
        let largest = row("put", RowSizes::Largest, RowAim::AtMost(1.0));
        assert_eq!(all.worst(&largest).unwrap().at.sizes, (100, 90));
        assert!(all.table(&[largest], false).contains("| 100, against 90 |"));
        assert!(all.unmeasured(&[largest]).is_empty());
    }

    #[test]
    fn parity_widens_only_a_goal_of_one() {
        let reached =
            |name, aim, quartiles| super::reached(&row(name, RowSizes::One(8, 8), aim), quartiles);
        let near = [0.99, 1.04, 1.2];
        assert_eq!(reached("put", RowAim::AtMost(1.0), near), Some(true));
        assert_eq!(reached("put", RowAim::AtMost(1.0), [1.01, 1.04, 1.2]), Some(false));
        assert_eq!(reached("put", RowAim::AtMost(1.0), [0.99, 1.06, 1.2]), Some(false));
        assert_eq!(reached("put", RowAim::AtMost(1.05), [1.0, 1.06, 1.2]), Some(false));
        assert_eq!(reached("memory", RowAim::AtMost(1.0), near), Some(false));
        assert_eq!(reached("put", RowAim::AtLeast(1.0), [0.9, 0.97, 1.0]), Some(true));
        assert_eq!(reached("put", RowAim::AtLeast(0.95), [0.9, 0.94, 1.0]), Some(false));
        assert_eq!(reached("put", RowAim::Nothing, near), None);
    }
}
