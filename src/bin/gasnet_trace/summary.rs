//! `gasnet_trace summary`: counts, bytes and times by operation and by line of the client's
//! source.

use crate::lines::{self, OperationSums, TraceEvent, TraceStatistic};
use crate::{Failure, Subcommand};
use lexopt::{Arg, Parser};
use std::collections::BTreeMap;
use std::path::PathBuf;

pub(crate) const SUBCOMMAND: Subcommand = Subcommand { name: "summary", run };

/// What a row of the table stands for, together with the operation.
#[derive(Clone, Copy, PartialEq, Eq)]
enum By {
    Line,
    Operation,
    Rank,
}

fn run(args: &mut Parser) -> Result<(), Failure> {
    let (mut files, mut by) = (Vec::new(), By::Line);
    while let Some(arg) = args.next()? {
        match arg {
            Arg::Short('h') | Arg::Long("help") => return Err(Failure::Help),
            Arg::Value(file) => files.push(PathBuf::from(file)),
            Arg::Long("by") => {
                by = match &*args.value()?.to_string_lossy() {
                    "line" => By::Line,
                    "operation" => By::Operation,
                    "rank" => By::Rank,
                    other => {
                        return Err(Failure::Usage(format!(
                            "--by {other}: give line, operation or rank"
                        )));
                    }
                }
            }
            other => return Err(other.unexpected().into()),
        }
    }
    if files.is_empty() {
        return Err(Failure::Usage("no file was given".to_string()));
    }
    let records = lines::read(files)?;
    let mut text = traced(&records.events, by) + &counted(&records.statistics, by);
    if text.is_empty() {
        text = format!("{}\n", lines::NOT_TIMED);
    }
    sys::stdio::write("gasnet_trace", &text);
    Ok(())
}

const HEAD: [&str; 9] =
    ["count", "bytes", "least", "average", "most", "time us", "average", "most", "operation"];

/// A table of rows, the largest time first.
fn table(title: &str, rows: BTreeMap<(String, String), OperationSums>) -> String {
    if rows.is_empty() {
        return String::new();
    }
    let mut rows: Vec<_> = rows.into_iter().collect();
    rows.sort_by_key(|(_, s)| core::cmp::Reverse(s.ns.0));
    let us = |ns: u64| format!("{}.{:03}", ns / 1000, ns % 1000);
    let cells = |(of, name): &(String, String), s: &OperationSums| -> [String; 9] {
        let b = |f: fn((u64, u64, u64), u64) -> u64| {
            s.bytes.map_or("-".to_string(), |b| f(b, s.count).to_string())
        };
        [
            s.count.to_string(),
            b(|b, _| b.0),
            b(|b, _| b.1),
            b(|b, n| b.0 / n.max(1)),
            b(|b, _| b.2),
            us(s.ns.0),
            us(s.ns.0 / s.count.max(1)),
            us(s.ns.2),
            if of.is_empty() { name.clone() } else { format!("{name:<22} {of}") },
        ]
    };
    let rows: Vec<[String; 9]> = [HEAD.map(str::to_string)]
        .into_iter()
        .chain(rows.iter().map(|(k, s)| cells(k, s)))
        .collect();
    let mut text = format!("{title}\n");
    let width = |i: usize| rows.iter().map(|r| r[i].len()).max().unwrap_or(0);
    let widths: [usize; 8] = core::array::from_fn(width);
    for row in &rows {
        for (cell, width) in row.iter().zip(widths) {
            text += &format!("{cell:>width$}  ");
        }
        text = text + &row[8] + "\n";
    }
    text
}

fn add(
    rows: &mut BTreeMap<(String, String), OperationSums>,
    key: (String, String),
    sums: OperationSums,
) {
    rows.entry(key).and_modify(|s| *s = s.and(sums)).or_insert(sums);
}

/// The table of the events of a trace.
fn traced(events: &[TraceEvent], by: By) -> String {
    let mut rows = BTreeMap::new();
    for e in events {
        let Some(took) = e.took else { continue };
        let of = match by {
            By::Line => e.place.clone().unwrap_or_else(|| "-".to_string()),
            By::Operation => String::new(),
            By::Rank => format!("rank {}", e.rank),
        };
        let bytes = e.number("bytes").map(|b| (b, b, b));
        add(
            &mut rows,
            (of, e.name.clone()),
            OperationSums { count: 1, bytes, ns: (took, took, took) },
        );
    }
    let ranks: std::collections::BTreeSet<u32> = events.iter().map(|e| e.rank).collect();
    let end =
        events.iter().map(|e| e.start.saturating_add(e.took.unwrap_or(0))).max().unwrap_or(0);
    table(&format!("{} events of {} ranks in {} us", events.len(), ranks.len(), end / 1000), rows)
}

/// The table of statistics, and the lines of the client.
fn counted(statistics: &[TraceStatistic], by: By) -> String {
    let mut rows = BTreeMap::new();
    let mut own = String::new();
    for s in statistics {
        let of = if by == By::Rank { format!("rank {}", s.rank) } else { String::new() };
        match s.sums {
            Some(sums) => add(&mut rows, (of, s.name.clone()), sums),
            None if lines::is_of_client(s.letter) => {
                own += &format!("rank {}: {}\n", s.rank, s.name)
            }
            None => {}
        }
    }
    table("statistics", rows) + &own
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lines::TraceRecords;
    use crate::{firehose, perfetto};

    /// Whether strings end, and what is opened is closed.
    fn is_balanced(json: &str) -> bool {
        let (mut open, mut chars) = (Vec::new(), json.chars());
        while let Some(c) = chars.next() {
            match c {
                '"' => loop {
                    match chars.next() {
                        Some('\\') => drop(chars.next()),
                        Some('"') => break,
                        Some(c) if c >= ' ' => {}
                        _ => return false,
                    }
                },
                '{' => open.push('}'),
                '[' => open.push(']'),
                '}' | ']' if open.pop() != Some(c) => return false,
                _ => {}
            }
        }
        open.is_empty()
    }

    /// Any file is summarised and converted, without its lines that are none of a trace.
    fn any_file(input: &[u8]) {
        let mut records = TraceRecords::default();
        let lines = String::from_utf8_lossy(input).lines().count();
        let read = records.add(input);
        let left_out = read.strange + usize::from(read.cut.is_some());
        assert_eq!(read.whole + left_out, lines);
        assert_eq!(read.first_strange.is_some(), read.strange > 0);
        let kept = records.events.len() + records.statistics.len();
        // Sums that later ones contain are left out.
        let is_dumped = input.windows(12).any(|part| part == b"STATISTICS: ");
        assert!(kept == read.whole || is_dumped && kept < read.whole, "{kept} of {lines}");
        records.align();
        assert!(records.events.first().is_none_or(|e| e.start == 0));
        for by in [By::Line, By::Operation, By::Rank] {
            traced(&records.events, by);
            counted(&records.statistics, by);
        }
        assert!(is_balanced(&perfetto::json(&records.events)));
        let (drawing, _) = firehose::draw(&records.events);
        assert!(!drawing.contains("NaN") && !drawing.contains("inf"), "{drawing}");
    }

    #[test]
    fn fuzz_trace() {
        fuzz::check("trace", 5_000, any_file);
    }
}
