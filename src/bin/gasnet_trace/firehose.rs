//! `gasnet_trace firehose`: draws registered memory and hit rates of a trace, one rank below the
//! other.
//!
//! For each rank, over time, it draws the memory that is registered on demand. A second frame
//! has the hit rate of accesses to memory of peers, and that of uses of its own memory, from one
//! line of the trace to the next. Marks show when an operation found all regions in use.
//! `conduit/pinned/stats_trace.rs` writes the lines.

use crate::lines::{self, TraceEvent};
use crate::svg::{COLOURS, PlotFrame, Svg};
use crate::{Failure, Subcommand, files};
use lexopt::{Arg, Parser};
use std::collections::BTreeMap;
use std::path::PathBuf;

pub(crate) const SUBCOMMAND: Subcommand = Subcommand { name: "firehose", run };

const WIDTH: f64 = 960.0;
/// Height of the text that explains the drawing.
const HEAD: f64 = 46.0;
/// From the upper edge of one rank to the next.
const PITCH: f64 = 260.0;
const EXPLAINED: [&str; 2] = [
    "A region of memory is registered when a put or get needs it, and stays registered for later ones. An operation that finds",
    "its region registered is a hit. Others wait until it is, and a region that is not in use may be given up for it.",
];
const TIME: &str = "seconds since the start";
const MARK: &str = "#d55e00";

/// The lines of one rank, in the order of time.
struct RankLines<'a>(Vec<&'a TraceEvent>);

impl RankLines<'_> {
    /// Seconds and a counter of each line.
    fn curve(&self, counter: &str) -> Vec<(f64, f64)> {
        self.0.iter().map(|e| (seconds(e), e.number(counter).unwrap_or(0) as f64)).collect()
    }

    /// The counter at the end.
    fn last(&self, counter: &str) -> u64 {
        self.0.last().and_then(|e| e.number(counter)).unwrap_or(0)
    }

    /// Percent of hits among the accesses of one side before each line, as steps. No step where
    /// there was no access.
    fn hit_rate(&self, side: &str) -> Vec<(f64, f64)> {
        let (mut before, mut from, mut points) = ((0.0, 0.0), 0.0, Vec::new());
        let hits = self.curve(&format!("{side}_hits"));
        for ((at, hits), (_, misses)) in
            hits.into_iter().zip(self.curve(&format!("{side}_misses")))
        {
            let (new_hits, new_misses) = (hits - before.0, misses - before.1);
            if new_hits >= 0.0 && new_misses >= 0.0 && new_hits + new_misses > 0.0 {
                points.push((from, 100.0 * new_hits / (new_hits + new_misses)));
            }
            (before, from) = ((hits, misses), at);
        }
        points
    }

    /// When the number of stalls had grown.
    fn stalls(&self) -> Vec<f64> {
        let stalls = self.curve("stalls");
        stalls.windows(2).filter(|w| w[1].1 > w[0].1).map(|w| w[1].0).collect()
    }
}

fn seconds(e: &TraceEvent) -> f64 {
    e.start as f64 / 1e9
}

/// Percent that were hits, of all accesses.
fn percent(hits: u64, misses: u64) -> String {
    match hits.saturating_add(misses) {
        0 => "no accesses".to_string(),
        all => format!("{:.1} % hits", hits as f64 * 100.0 / all as f64),
    }
}

/// The drawing, and of how many ranks.
pub(crate) fn draw(events: &[TraceEvent]) -> (String, usize) {
    let mut ranks: BTreeMap<u32, RankLines<'_>> = BTreeMap::new();
    for e in events.iter().filter(|e| e.letter == 'C' && e.name == "FIREHOSE") {
        ranks.entry(e.rank).or_insert_with(|| RankLines(Vec::new())).0.push(e);
    }
    let mut svg = Svg::new(WIDTH);
    for (i, line) in EXPLAINED.iter().enumerate() {
        svg.text(10.0, 18.0 + 16.0 * i as f64, 12, "#404040", line);
    }
    // The same axes for all ranks.
    let lines = || ranks.values().flat_map(|r| r.0.iter());
    let end = lines().map(|e| seconds(e)).fold(1e-6, f64::max);
    let most = lines().filter_map(|e| e.number("pinned_bytes")).max().unwrap_or(0);
    let megabytes = |bytes: f64| bytes / f64::from(1 << 20);
    for (i, (rank, lines)) in ranks.iter().enumerate() {
        let top = HEAD + 20.0 + i as f64 * PITCH;
        let side = |side: &str| {
            percent(lines.last(&format!("{side}_hits")), lines.last(&format!("{side}_misses")))
        };
        let title = format!(
            "rank {rank}: at most {} regions; {} registered, {} given up for others; memory of peers: {}; its own: {}",
            lines.last("most_pinned"),
            lines.last("pins"),
            lines.last("victims"),
            side("remote"),
            side("local"),
        );
        svg.text(10.0, top, 13, "#000000", &title);
        let frame = |x: f64, most_y: f64| PlotFrame {
            x,
            y: top + 30.0,
            width: 390.0,
            height: 150.0,
            most_x: end,
            most_y: most_y * 1.05,
        };
        let f = frame(50.0, megabytes(most as f64).max(1.0 / 256.0));
        svg.frame(&f, "MB that are registered on demand", TIME);
        let pinned = lines.curve("pinned_bytes");
        let pinned: Vec<_> =
            pinned.into_iter().map(|(at, bytes)| (at, megabytes(bytes))).collect();
        svg.steps(&f, &pinned, COLOURS[0], 1.4);
        svg.marks(&f, &lines.stalls(), MARK);
        svg.text(f.x, f.y + f.height + 40.0, 10, MARK, "mark: all regions were in use");
        let f = frame(510.0, 100.0);
        svg.frame(&f, "% of accesses that found their region registered", TIME);
        for (i, (side, words)) in [("remote", "memory of peers"), ("local", "memory of this rank")]
            .into_iter()
            .enumerate()
        {
            svg.steps(&f, &lines.hit_rate(side), COLOURS[2 * i], 1.4);
            let x = f.x + 120.0 * i as f64;
            svg.text(x, f.y + f.height + 40.0, 10, COLOURS[2 * i], words);
        }
    }
    (svg.finish(HEAD + ranks.len() as f64 * PITCH), ranks.len())
}

fn run(args: &mut Parser) -> Result<(), Failure> {
    let (mut files, mut out) = (Vec::new(), None);
    while let Some(arg) = args.next()? {
        match arg {
            Arg::Short('h') | Arg::Long("help") => return Err(Failure::Help),
            Arg::Short('o') | Arg::Long("output") => out = Some(PathBuf::from(args.value()?)),
            Arg::Value(file) => files.push(PathBuf::from(file)),
            other => return Err(other.unexpected().into()),
        }
    }
    let Some(out) = out.filter(|_| !files.is_empty()) else {
        return Err(Failure::Usage(
            "firehose needs files, and -o with the drawing to write".to_string(),
        ));
    };
    files::check_output(&out, &files)?;
    let (drawing, ranks) = draw(&lines::read(files)?.events);
    if ranks == 0 {
        return Err(Failure::Work(
            "these files have no line about registered memory".to_string(),
            "Trace a job that registers memory on demand, with C in GASNET_TRACEMASK.".to_string(),
        ));
    }
    files::write(&out, &drawing)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lines::TraceRecords;

    const TRACE: &str = "\
        0(0) 5.000000000> (I) END:\n\
        1(0) 6.000000000> (C) FIREHOSE: remote_hits=0 remote_misses=4 stalls=0 pinned_bytes=1048576\n\
        1(0) 7.000000000> (C) FIREHOSE: remote_hits=3 remote_misses=5 stalls=1 pinned_bytes=2097152\n\
        1(0) 8.000000000> (C) FIREHOSE: remote_hits=3 remote_misses=5 stalls=1 pinned_bytes=0\n";

    #[test]
    fn lines_become_curves() {
        let mut records = TraceRecords::default();
        records.add(TRACE.as_bytes());
        records.align();
        let lines = RankLines(records.events.iter().filter(|e| e.name == "FIREHOSE").collect());
        assert_eq!(lines.hit_rate("remote"), [(0.0, 0.0), (1.0, 75.0)]);
        assert_eq!((lines.hit_rate("local"), lines.stalls()), (vec![], vec![2.0]));
        let (svg, ranks) = draw(&records.events);
        assert_eq!(ranks, 1);
        assert!(svg.contains("memory of peers: 37.5 % hits; its own: no accesses"), "{svg}");
        assert!(svg.contains(">rank 1: ") && svg.contains(">mark: all regions were in use<"));
    }
}
