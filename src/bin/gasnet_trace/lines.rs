//! Reads the lines of GASNET_TRACEFILE and GASNET_STATSFILE, whose format docs/guide/tracing.md
//! describes. Called by the subcommands.

use crate::{Failure, files};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// A line of a trace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TraceEvent {
    pub(crate) rank: u32,
    /// Thread of the rank.
    pub(crate) thread: u32,
    /// Begin, in nanoseconds of the clock of its host.
    pub(crate) start: u64,
    /// Duration in nanoseconds; `None` for an event without one.
    pub(crate) took: Option<u64>,
    /// File and line of the client's source.
    pub(crate) place: Option<String>,
    /// Letter of its type.
    pub(crate) letter: char,
    /// The operation; empty for a message of the client.
    pub(crate) name: String,
    /// The rest of the line, without the duration.
    pub(crate) text: String,
}

/// A line of statistics.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TraceStatistic {
    pub(crate) rank: u32,
    /// Letter of its type.
    pub(crate) letter: char,
    /// The operation, or a line of the client.
    pub(crate) name: String,
    /// Its figures; `None` for a line of the client.
    pub(crate) sums: Option<OperationSums>,
}

/// The figures of a number of events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct OperationSums {
    pub(crate) count: u64,
    /// Bytes, if they have any: sum, least, greatest.
    pub(crate) bytes: Option<(u64, u64, u64)>,
    /// Nanoseconds: sum, least, greatest.
    pub(crate) ns: (u64, u64, u64),
}

impl OperationSums {
    /// The figures of both together.
    pub(crate) fn and(self, other: OperationSums) -> OperationSums {
        let join = |a: (u64, u64, u64), b: (u64, u64, u64)| {
            (a.0.saturating_add(b.0), a.1.min(b.1), a.2.max(b.2))
        };
        let bytes = match (self.bytes, other.bytes) {
            (Some(a), Some(b)) => Some(join(a, b)),
            (a, b) => a.or(b),
        };
        let count = self.count.saturating_add(other.count);
        OperationSums { count, bytes, ns: join(self.ns, other.ns) }
    }
}

/// The contents of some files.
#[derive(Debug, Default)]
pub(crate) struct TraceRecords {
    /// Lines of traces of all ranks, in the order of time.
    pub(crate) events: Vec<TraceEvent>,
    /// Lines of statistics of all ranks. Of those that a rank has written while it went on
    /// counting, the last.
    pub(crate) statistics: Vec<TraceStatistic>,
}

impl TraceEvent {
    /// The number that follows `key=` in its text.
    pub(crate) fn number(&self, key: &str) -> Option<u64> {
        self.field(key)?.parse().ok()
    }

    /// The word that follows `key=` in its text.
    pub(crate) fn field(&self, key: &str) -> Option<&str> {
        self.text.split(' ').find_map(|word| word.strip_prefix(key)?.strip_prefix('='))
    }

    fn parse(line: &str) -> Option<TraceEvent> {
        let (head, rest) = line.split_once("> ")?;
        let (source, when) = head.split_once(' ')?;
        let (rank, thread) = source.strip_suffix(')')?.split_once('(')?;
        let (seconds, rest_of_second) = when.split_once('.')?;
        let start = seconds.parse::<u64>().ok()?.checked_mul(1_000_000_000)?;
        let start = start.checked_add(rest_of_second.parse::<u64>().ok()?)?;
        let (place, rest) = match rest.strip_prefix('[').and_then(split_place) {
            Some((place, rest)) => (Some(place.to_string()), rest),
            None => (None, rest),
        };
        let (letter, rest) = parse_letter(rest)?;
        let (name, text) = match rest.split_once(':') {
            Some((name, text)) if !is_of_client(letter) => (name, text.trim_start()),
            _ => ("", rest),
        };
        let took = |t: &str| t.strip_suffix("ns").and_then(|t| t.parse().ok());
        let (text, took) = match text.rsplit_once("took=") {
            Some((before, t)) if !name.is_empty() => (before.trim_end(), took(t)),
            _ => (text, None),
        };
        Some(TraceEvent {
            rank: rank.parse().ok()?,
            thread: thread.parse().ok()?,
            start,
            took,
            place,
            letter,
            name: name.to_string(),
            text: text.to_string(),
        })
    }
}

/// The place in front of the letter of an event. The name of a file may have brackets.
fn split_place(text: &str) -> Option<(&str, &str)> {
    let mut ends = text.match_indices("] ").map(|(at, _)| (&text[..at], &text[at + 2..]));
    ends.find(|(_, rest)| parse_letter(rest).is_some())
}

fn parse_letter(text: &str) -> Option<(char, &str)> {
    let (letter, rest) = text.strip_prefix('(')?.split_once(')')?;
    let mut chars = letter.chars();
    let letter = chars.next().filter(char::is_ascii_uppercase)?;
    if chars.next().is_some() {
        return None;
    }
    Some((letter, rest.strip_prefix(' ').unwrap_or(rest)))
}

/// Whether lines with this letter are what the client has written.
pub(crate) fn is_of_client(letter: char) -> bool {
    matches!(letter, 'H' | 'U')
}

impl TraceStatistic {
    /// Of the line that begins the statistics of a rank: whether all was counted from 0 again
    /// after those before it.
    fn begins_anew(&self) -> Option<bool> {
        let fields = self.name.strip_prefix("STATISTICS: ").filter(|_| self.letter == 'I')?;
        Some(fields.split(' ').any(|field| field == "anew=1"))
    }

    fn parse(line: &str) -> Option<TraceStatistic> {
        let (rank, rest) = line.split_once("> ")?;
        let (letter, rest) = parse_letter(rest)?;
        let whole = |sums| {
            Some(TraceStatistic { rank: rank.parse().ok()?, letter, name: rest.to_string(), sums })
        };
        let Some((name, numbers)) = rest.split_once(": count=") else { return whole(None) };
        if is_of_client(letter) {
            return whole(None);
        }
        let mut words = numbers.split(' ');
        let Some(count) = words.next().and_then(|n| n.parse().ok()) else { return whole(None) };
        let mut sums = OperationSums { count, bytes: None, ns: (0, 0, 0) };
        let mut of_bytes = false;
        for (key, n) in words.filter_map(|w| w.split_once('=')) {
            let Ok(n) = n.parse() else { return whole(None) };
            of_bytes = key == "bytes" || (of_bytes && key != "ns");
            let of = if of_bytes { sums.bytes.get_or_insert((0, 0, 0)) } else { &mut sums.ns };
            match key {
                "bytes" | "ns" => of.0 = n,
                "min" => of.1 = n,
                "max" => of.2 = n,
                _ => {}
            }
        }
        Some(TraceStatistic {
            rank: rank.parse().ok()?,
            letter,
            name: name.to_string(),
            sums: Some(sums),
        })
    }
}

/// What is printed of files without an event that has a duration.
pub(crate) const NOT_TIMED: &str =
    "these files have no calls that are timed or counted; see GASNET_TRACEMASK";

/// What to do about files of another kind.
const REMEDY: &str = "Name files that GASNET_TRACEFILE or GASNET_STATSFILE named.";

/// Says that the last line of a file is cut off.
pub(crate) fn print_cut(file: &Path, number: usize) {
    eprintln!(
        "gasnet_trace: {}:{number}: the last line is cut off; it is left out",
        file.display()
    );
}

/// Reads files of a job, each once.
pub(crate) fn read(files: Vec<PathBuf>) -> Result<TraceRecords, Failure> {
    let mut records = TraceRecords::default();
    let (mut whole, mut empty) = (0, Vec::new());
    for file in files::distinct(files) {
        let bytes = std::fs::read(&file).map_err(|e| {
            Failure::Work(format!("{} cannot be read: {e}", file.display()), REMEDY.to_string())
        })?;
        let read = records.add(&bytes);
        if let Some((number, line)) = read.first_strange.as_ref().filter(|_| read.whole == 0) {
            return Err(Failure::Work(
                format!(
                    "{}:{number}: this is no line of a trace or of statistics: {line}",
                    file.display()
                ),
                REMEDY.to_string(),
            ));
        }
        read.print_left_out(&file);
        if bytes.is_empty() {
            empty.push(file);
        }
        whole += read.whole;
    }
    if whole == 0 {
        return Err(Failure::Work("these files hold no trace".to_string(), REMEDY.to_string()));
    }
    for file in empty {
        eprintln!("gasnet_trace: {} is empty", file.display());
    }
    records.align();
    Ok(records)
}

/// How the lines of a file were read.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct LinesRead {
    /// Number of lines of a trace or of statistics.
    pub(crate) whole: usize,
    /// Number of lines that are none, without the last one if it is cut off.
    pub(crate) strange: usize,
    /// The first of them: its number and its begin.
    pub(crate) first_strange: Option<(usize, String)>,
    /// The number of the last line, if it is cut off.
    pub(crate) cut: Option<usize>,
}

impl LinesRead {
    /// Says which lines of the file are left out.
    fn print_left_out(&self, file: &Path) {
        if let Some((number, line)) = &self.first_strange {
            let of = if self.strange == 1 { "line that is none" } else { "lines that are none" };
            eprintln!(
                "gasnet_trace: {}: {} {of} of a trace or of statistics left out, first line \
                 {number}: {line}",
                file.display(),
                self.strange
            );
        }
        if let Some(number) = self.cut {
            print_cut(file, number);
        }
    }
}

impl TraceRecords {
    /// Adds the lines of a file. Those that are none are left out.
    pub(crate) fn add(&mut self, bytes: &[u8]) -> LinesRead {
        let text = String::from_utf8_lossy(bytes);
        let mut lines = (1..).zip(text.lines()).peekable();
        let mut counted: BTreeMap<u32, Vec<TraceStatistic>> = BTreeMap::new();
        let mut read = LinesRead::default();
        while let Some((number, line)) = lines.next() {
            if let Some(event) = TraceEvent::parse(line) {
                self.events.push(event);
            } else if let Some(statistic) = TraceStatistic::parse(line) {
                let of_rank = counted.entry(statistic.rank).or_default();
                match statistic.begins_anew() {
                    Some(true) => self.statistics.append(of_rank),
                    Some(false) => of_rank.clear(),
                    None => {}
                }
                match statistic.sums {
                    Some(_) => of_rank.push(statistic),
                    None => self.statistics.push(statistic),
                }
            } else if read.whole > 0 && lines.peek().is_none() && !bytes.ends_with(b"\n") {
                read.cut = Some(number);
                break;
            } else {
                read.strange += 1;
                read.first_strange.get_or_insert_with(|| {
                    (number, format!("{:.80}", line.escape_debug().to_string()))
                });
                continue;
            }
            read.whole += 1;
        }
        self.statistics.extend(counted.into_values().flatten());
        read
    }

    /// Converts the clocks of all hosts to that of the first, by the time of day that the START
    /// line of each rank contains. The first event begins at 0.
    pub(crate) fn align(&mut self) {
        let mut hosts: BTreeMap<String, i128> = BTreeMap::new();
        let mut shifts: BTreeMap<u32, i128> = BTreeMap::new();
        let mut first = None;
        for e in self.events.iter().filter(|e| e.letter == 'I' && e.name == "START") {
            let (Some(us), Some(host)) = (e.number("us"), e.field("host")) else { continue };
            let offset = i128::from(us) * 1000 - i128::from(e.start);
            let offset = *hosts.entry(host.to_string()).or_insert(offset);
            shifts.insert(e.rank, offset - *first.get_or_insert(offset));
        }
        let shifted =
            |e: &TraceEvent| i128::from(e.start) + shifts.get(&e.rank).copied().unwrap_or(0);
        let begin = self.events.iter().map(shifted).min().unwrap_or(0);
        let starts: Vec<u64> = self.events.iter().map(|e| (shifted(e) - begin) as u64).collect();
        self.events.iter_mut().zip(starts).for_each(|(e, start)| e.start = start);
        self.events.sort_by_key(|e| (e.start, e.rank, e.thread));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_traces() {
        let e = TraceEvent::parse("3(1) 12.000000005> [a.c:7] (P) PUT: node=2 bytes=40 took=31ns")
            .unwrap();
        assert_eq!((e.rank, e.thread, e.start, e.took), (3, 1, 12_000_000_005, Some(31)));
        assert_eq!((e.place.as_deref(), e.letter, &*e.name), (Some("a.c:7"), 'P', "PUT"));
        assert_eq!(
            (e.number("bytes"), e.number("node"), e.number("n")),
            (Some(40), Some(2), None)
        );
        let h = TraceEvent::parse("0(0) 1.5> (H) step: took=3ns").unwrap();
        assert_eq!((&*h.name, &*h.text, h.took), ("", "step: took=3ns", None));
        assert_eq!(TraceEvent::parse("Segmentation fault"), None);
        assert_eq!(TraceEvent::parse("0(0) 18446744074.0> (P) PUT: took=1ns"), None);
        assert_eq!(TraceEvent::parse("0(0) 1.0> (\") PUT: took=1ns"), None);
        assert_eq!(TraceEvent::parse("0> (P) PUT: count=1 ns=1 min=1 avg=1 max=1"), None);
    }

    #[test]
    fn lines_of_statistics() {
        let s = TraceStatistic::parse(
            "1> (G) GET: count=2 bytes=30 min=10 avg=15 max=20 ns=9 min=4 avg=4 max=5",
        )
        .unwrap();
        let sums = OperationSums { count: 2, bytes: Some((30, 10, 20)), ns: (9, 4, 5) };
        assert_eq!((s.rank, s.letter, &*s.name, s.sums), (1, 'G', "GET", Some(sums)));
        let b =
            TraceStatistic::parse("1> (B) BARRIER_WAIT: count=3 ns=9 min=1 avg=3 max=5").unwrap();
        let both = b.sums.unwrap().and(sums);
        assert_eq!(both, OperationSums { count: 5, bytes: Some((30, 10, 20)), ns: (18, 1, 5) });
        for own in ["pongs=4", "cache: count=5 rate=0.7", "PUT: count=1000 bytes=9 ns=1"] {
            let s = TraceStatistic::parse(&format!("0> (H) {own}")).unwrap();
            assert_eq!((s.sums, &*s.name), (None, own));
        }
    }

    #[test]
    fn a_place_may_have_brackets() {
        let e = TraceEvent::parse("0(0) 1.5> [we ird] x.c:3] (P) PUT: took=3ns").unwrap();
        assert_eq!((e.place.as_deref(), &*e.name), (Some("we ird] x.c:3"), "PUT"));
    }

    /// A rank that counts on writes sums that have those before it in them.
    #[test]
    fn sums_are_added_once() {
        let part = |rank: u32, anew: u32, count: u32| {
            format!(
                "{rank}> (I) STATISTICS: mask=P ns=5 anew={anew}\n\
                 {rank}> (P) PUT: count={count} ns=1 min=1 avg=1 max=1\n"
            )
        };
        let text = [part(0, 1, 2), part(1, 1, 8), part(0, 0, 3), part(0, 1, 4)].concat();
        let mut records = TraceRecords::default();
        assert_eq!(records.add(text.as_bytes()).whole, 8);
        let sums = records.statistics.iter().filter_map(|s| s.sums);
        assert_eq!(sums.map(|sums| sums.count).sum::<u64>(), 8 + 3 + 4);
    }

    #[test]
    fn lines_that_are_none_are_left_out() {
        let mut records = TraceRecords::default();
        let read = |whole, strange, first: Option<(usize, &str)>, cut| LinesRead {
            whole,
            strange,
            first_strange: first.map(|(number, text)| (number, text.to_string())),
            cut,
        };
        let text = "0(0) 1.5> (P) PUT: took=3ns\n0(0) 2.5> [a.c:3] (";
        assert_eq!(records.add(text.as_bytes()), read(1, 0, None, Some(2)));
        assert_eq!(records.events.len(), 1);
        let (text, first) = (format!("{text}\n\t\n{text}"), (2, "0(0) 2.5> [a.c:3] ("));
        assert_eq!(records.add(text.as_bytes()), read(2, 2, Some(first), Some(5)));
        assert_eq!(records.events.len(), 3);
        // Without a line of a trace, nothing is cut off: the file is of another kind.
        assert_eq!(records.add(&[0; 3]), read(0, 1, Some((1, "\\0\\0\\0")), None));
        assert_eq!(records.add(b""), LinesRead::default());
    }

    #[test]
    fn clocks_of_two_hosts() {
        let start = |rank, at, us, host| {
            TraceEvent::parse(&format!("{rank}(0) {at}> (I) START: nodes=2 us={us} host={host}"))
                .unwrap()
        };
        let events = vec![
            start(0, "100.000000000", 5_000_000, "x"),
            start(1, "900.000000000", 6_000_000, "y"),
        ];
        let mut a = TraceRecords { events, ..TraceRecords::default() };
        a.align();
        assert_eq!(a.events.iter().map(|e| e.start).collect::<Vec<_>>(), [0, 1_000_000_000]);
    }
}
