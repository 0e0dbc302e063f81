//! Medians over the rounds, ratios taken round by round, and the table that shows them.

use crate::aims::{BenchRow, RowAim, RowSizes, rows};
use crate::columns::RowFigures;
use crate::turns::LINE;
use std::fmt::Write;

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

/// The figures to reach that lack a side, though both systems took part.
pub(crate) fn unmeasured(names: &[&str], rounds: &[Vec<RowFigures>]) -> Vec<String> {
    let lacks = |row: &BenchRow| {
        [row.ours.0, row.other.0].iter().all(|system| names.contains(system))
            && worst(names, rounds, row).is_none()
    };
    let side = |(system, name, n): (&str, &str, u32)| format!("{name} of {system}, {n} ranks");
    rows()
        .filter(lacks)
        .map(|row| format!("{} against {}", side(row.ours), side(row.other)))
        .collect()
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
