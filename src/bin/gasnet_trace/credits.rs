//! `gasnet_trace credits`: draws the files of `GASNET_PORTAL_CREDIT_STATS`, one below the other.
//!
//! For each rank, over time, it draws its bank, the credits that each peer holds of it, and
//! those that it holds of each peer. It also draws the sums. Marks show where a request
//! lacked credits or a peer returned none. `conduit/credits/stats.rs` writes the files.

use crate::svg::{COLOURS, GREY, PlotFrame, Svg};
use crate::{Failure, Subcommand, files, lines};
use lexopt::{Arg, Parser};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

pub(crate) const SUBCOMMAND: Subcommand = Subcommand { name: "credits", run };

/// A movement of credits, or a request that lacked some.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum MovementKind {
    Lent,
    Returned,
    Borrowed,
    GaveBack,
    Stalled,
}

/// A line of a file about a movement. Its numbers of credits have 32 bits in the file, so that
/// no sum of them overflows.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Movement {
    seconds: f64,
    what: MovementKind,
    peer: u32,
    credits: i64,
    /// MovementKind the peer holds of us afterwards, and we of it.
    loan: i64,
    held: i64,
}

/// The file of one rank.
#[derive(Debug, Default, PartialEq)]
struct CreditFile {
    rank: u32,
    ranks: u32,
    /// Credits that each rank held at first, and those in the bank.
    each: i64,
    bank: i64,
    /// Stalls, credits lent and returned, returns without a credit, and the most that one peer
    /// held.
    stalls: u64,
    lent: u64,
    returned: u64,
    empty: u64,
    high_loan: u64,
    movements: Vec<Movement>,
    /// Movements that the rank did not keep.
    left_out: u64,
}

/// The number in the last line of a file: movements that the rank did not keep.
fn left_out(line: &str) -> Option<u64> {
    line.strip_prefix("# ")?.strip_suffix(" movements left out")?.parse().ok()
}

/// Where a file is cut off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FileCut {
    /// Within this line, which is left out.
    Within(usize),
    /// Behind this line.
    Behind(usize),
}

fn number<T: std::str::FromStr>(word: &str) -> Result<T, String> {
    word.parse().map_err(|_| format!("{word:?} is not a valid number"))
}

/// A number of credits.
fn credit(word: &str) -> Result<i64, String> {
    number::<i32>(word).map(i64::from)
}

/// Seconds since the start.
fn time(word: &str) -> Result<f64, String> {
    let seconds = number::<f64>(word)?;
    if (0.0..1e12).contains(&seconds) { Ok(seconds) } else { Err(format!("{word:?} is no time")) }
}

impl CreditFile {
    /// The file, and the place where it is cut off, if it is.
    fn read(text: &str) -> Result<(CreditFile, Option<FileCut>), String> {
        let mut p = CreditFile::default();
        let (whole, rest) = text.split_at(text.rfind('\n').map_or(0, |end| end + 1));
        for (i, line) in whole.lines().enumerate().filter(|(_, l)| !l.starts_with('#')) {
            p.line(line).map_err(|why| format!("line {}: {why}", i + 1))?;
        }
        let lines = whole.lines().count();
        let end = whole.lines().last().and_then(left_out);
        p.left_out = end.unwrap_or_default();
        let cut = match (rest.is_empty(), end.is_some()) {
            (false, _) => Some(FileCut::Within(lines + 1)),
            (true, false) => Some(FileCut::Behind(lines)),
            (true, true) => None,
        };
        if p.ranks == 0 {
            Err("it has no line that begins with \"process\"".to_string())
        } else {
            Ok((p, cut))
        }
    }

    fn line(&mut self, line: &str) -> Result<(), String> {
        let words: Vec<&str> = line.split(' ').collect();
        match words[..] {
            ["process", rank, ranks, each, bank] => {
                (self.rank, self.ranks) = (number(rank)?, number(ranks)?);
                (self.each, self.bank) = (credit(each)?, credit(bank)?);
            }
            ["peer", _, stalls, lent, returned, empty, _, _, high_loan, _, _] => {
                self.stalls = self.stalls.saturating_add(number(stalls)?);
                self.lent = self.lent.saturating_add(number(lent)?);
                self.returned = self.returned.saturating_add(number(returned)?);
                self.empty = self.empty.saturating_add(number(empty)?);
                self.high_loan = self.high_loan.max(number(high_loan)?);
            }
            [seconds, _epoch, what, peer, credits, loan, held] => {
                let what = match what {
                    "lent" => MovementKind::Lent,
                    "returned" => MovementKind::Returned,
                    "borrowed" => MovementKind::Borrowed,
                    "gave-back" => MovementKind::GaveBack,
                    "stalled" => MovementKind::Stalled,
                    _ => return Err(format!("{what:?} is not a movement of credits")),
                };
                self.movements.push(Movement {
                    seconds: time(seconds)?,
                    what,
                    peer: number(peer)?,
                    credits: credit(credits)?,
                    loan: credit(loan)?,
                    held: credit(held)?,
                });
            }
            _ => return Err("it is none of the lines of such a file".to_string()),
        }
        Ok(())
    }

    /// Time of the last movement, in seconds.
    fn end(&self) -> f64 {
        self.movements.last().map_or(0.0, |m| m.seconds)
    }

    /// A number of credits over time for each peer whose number changed, the largest changes
    /// first. `change` returns the number after a movement, and the difference.
    fn curves(&self, change: impl Fn(&Movement) -> (i64, i64)) -> Vec<(u32, Vec<(f64, f64)>)> {
        let mut all: BTreeMap<u32, (i64, Vec<(f64, f64)>)> = BTreeMap::new();
        for m in &self.movements {
            let (now, more) = change(m);
            if more != 0 {
                let (sum, points) =
                    all.entry(m.peer).or_insert_with(|| (0, vec![(0.0, (now - more) as f64)]));
                *sum += more.abs();
                points.push((m.seconds, now as f64));
            }
        }
        let mut all: Vec<_> = all.into_iter().collect();
        all.sort_by_key(|(_, (sum, _))| -sum);
        all.into_iter().map(|(peer, (_, points))| (peer, points)).collect()
    }

    fn bank(&self) -> Vec<(f64, f64)> {
        let mut bank = self.bank;
        let mut points = vec![(0.0, bank as f64)];
        for m in &self.movements {
            match m.what {
                MovementKind::Lent => bank -= m.credits,
                MovementKind::Returned => bank += m.credits,
                _ => continue,
            }
            points.push((m.seconds, bank as f64));
        }
        points
    }

    fn times(&self, which: impl Fn(&Movement) -> bool) -> Vec<f64> {
        self.movements.iter().filter(|m| which(m)).map(|m| m.seconds).collect()
    }
}

/// The credits that the peer of a movement holds of this rank, and how they changed.
fn loan(m: &Movement) -> (i64, i64) {
    match m.what {
        MovementKind::Lent => (m.loan, m.credits),
        MovementKind::Returned => (m.loan, -m.credits),
        _ => (m.loan, 0),
    }
}

/// The credits that this rank holds of the peer of a movement, and how they changed.
fn held(m: &Movement) -> (i64, i64) {
    match m.what {
        MovementKind::Borrowed => (m.held, m.credits),
        MovementKind::GaveBack => (m.held, -m.credits),
        _ => (m.held, 0),
    }
}

const WIDTH: f64 = 960.0;
/// Height of the text that explains the drawing.
const HEAD: f64 = 46.0;
/// From the upper edge of one rank to the next.
const PITCH: f64 = 280.0;
/// What credits are.
const EXPLAINED: [&str; 2] = [
    "A credit is the right to send up to 256 bytes of a request to a rank. A rank lends credits out of a bank to the ranks that",
    "send to it, and revokes credits that are not used. A rank without enough credits waits before it sends.",
];
/// The horizontal axis.
const TIME: &str = "seconds since the start";
/// The colour of marks.
const MARK: &str = "#d55e00";

fn most(curves: &[(u32, Vec<(f64, f64)>)], least: f64) -> f64 {
    curves.iter().flat_map(|(_, points)| points).map(|p| p.1).fold(least.max(1.0), f64::max)
}

/// Draws the curves of other ranks, the first ones in colour, and the legend; the last line of it
/// says what the marks are.
fn peers(
    svg: &mut Svg,
    f: &PlotFrame,
    curves: &[(u32, Vec<(f64, f64)>)],
    unchanged: &str,
    marks: &str,
) {
    let coloured = curves.len().min(COLOURS.len());
    for (_, points) in curves[coloured..].iter().rev() {
        svg.steps(f, points, GREY, 0.7);
    }
    for (i, (_, points)) in curves[..coloured].iter().enumerate().rev() {
        svg.steps(f, points, COLOURS[i], 1.4);
    }
    let y = f.y + f.height + 40.0;
    let mut x = f.x;
    for (i, (peer, _)) in curves[..coloured].iter().enumerate() {
        let text = format!("rank {peer}");
        svg.text(x, y, 10, COLOURS[i], &text);
        x += 6.0 * text.len() as f64 + 8.0;
    }
    let others = curves.len() - coloured;
    let grey = if others == 0 { String::new() } else { format!("grey: {others} more ranks; ") };
    svg.text(f.x, y + 14.0, 10, "#606060", &format!("{grey}{unchanged}"));
    svg.text(f.x, y + 28.0, 10, MARK, &format!("mark: {marks}"));
}

fn draw(all: &[CreditFile]) -> String {
    let mut svg = Svg::new(WIDTH);
    // The same time axis for all ranks.
    let end = all.iter().map(CreditFile::end).fold(1e-6, f64::max);
    for (i, line) in EXPLAINED.iter().enumerate() {
        svg.text(10.0, 18.0 + 16.0 * i as f64, 12, "#404040", line);
    }
    for (i, p) in all.iter().enumerate() {
        let top = HEAD + 20.0 + i as f64 * PITCH;
        let title = format!(
            "rank {} of {}: {} requests waited; {} credits lent, {} returned; {} times none returned; at most {} lent to one rank",
            p.rank, p.ranks, p.stalls, p.lent, p.returned, p.empty, p.high_loan
        );
        let title = match p.left_out {
            0 => title,
            n => format!("{title}; the last {n} movements are not drawn"),
        };
        svg.text(10.0, top, 13, "#000000", &title);
        let frame = |at: f64, width: f64, most_y: f64| PlotFrame {
            x: at,
            y: top + 30.0,
            width,
            height: 150.0,
            most_x: end,
            most_y: most_y * 1.05,
        };
        let unchanged = |curves: usize| {
            let still = (p.ranks as usize).saturating_sub(curves);
            format!("{still} of {} ranks kept the {} of the start", p.ranks, p.each)
        };
        let (lent, borrowed, bank) = (p.curves(loan), p.curves(held), p.bank());
        let f = frame(50.0, 330.0, most(&lent, p.each as f64));
        svg.frame(&f, "credits that each rank has to send to this rank", TIME);
        let empty = |m: &Movement| m.what == MovementKind::Returned && m.credits == 0;
        svg.marks(&f, &p.times(empty), MARK);
        let marks = "this rank revoked credits, and none returned";
        peers(&mut svg, &f, &lent, &unchanged(lent.len()), marks);
        let f = frame(430.0, 330.0, most(&borrowed, p.each as f64));
        svg.frame(&f, "credits that this rank has to send to each rank", TIME);
        svg.marks(&f, &p.times(|m| m.what == MovementKind::Stalled), MARK);
        let marks = "a request of this rank had to wait for credits";
        peers(&mut svg, &f, &borrowed, &unchanged(borrowed.len()), marks);
        let f = frame(815.0, 130.0, bank.iter().map(|b| b.1).fold(1.0, f64::max));
        svg.frame(&f, "left in the bank", TIME);
        svg.steps(&f, &bank, COLOURS[0], 1.4);
    }
    svg.finish(HEAD + all.len() as f64 * PITCH)
}

fn read(path: &Path) -> Result<CreditFile, Failure> {
    fs::read_to_string(path)
        .map_err(|e| e.to_string())
        .and_then(|text| CreditFile::read(&text))
        .map(|(file, cut)| {
            match cut {
                Some(FileCut::Within(line)) => lines::print_cut(path, line),
                Some(FileCut::Behind(line)) => eprintln!(
                    "gasnet_trace: {}:{line}: the file is cut off behind this line",
                    path.display()
                ),
                None => {}
            }
            if file.left_out > 0 {
                eprintln!(
                    "gasnet_trace: {}: the rank kept its first {} movements; {} later ones are \
                     not drawn",
                    path.display(),
                    file.movements.len(),
                    file.left_out
                );
            }
            file
        })
        .map_err(|why| {
            let what = format!("{} cannot be read: {why}", path.display());
            Failure::Work(
                what,
                "Name files that GASNET_PORTAL_CREDIT_STATS=1 wrote: gasnet_credits.RANK."
                    .to_string(),
            )
        })
}

fn run(args: &mut Parser) -> Result<(), Failure> {
    let (mut files, mut out): (Vec<PathBuf>, Option<PathBuf>) = (Vec::new(), None);
    while let Some(arg) = args.next()? {
        match arg {
            Arg::Short('h') | Arg::Long("help") => return Err(Failure::Help),
            Arg::Short('o') | Arg::Long("output") => out = Some(args.value()?.into()),
            Arg::Value(file) => files.push(file.into()),
            other => return Err(other.unexpected().into()),
        }
    }
    let Some(out) = out.filter(|_| !files.is_empty()) else {
        return Err(Failure::Usage(
            "credits needs files, and -o with the drawing to write".to_string(),
        ));
    };
    files::check_output(&out, &files)?;
    let files = files::distinct(files);
    let mut all = files.iter().map(|f| read(f)).collect::<Result<Vec<_>, _>>()?;
    all.sort_by_key(|p| p.rank);
    files::write(&out, &draw(&all))
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = "# process ...\nprocess 1 3 8 100\n# peer ...\npeer 0 2 10 3 1 0 0 18 8 8\npeer 2 0 0 0 0 7 0 8 15 8\n\
        # movements ...\n0.000100 0 lent 0 7 15 8\n0.000200 0 lent 0 3 18 8\n0.000250 0 stalled 2 7 8 8\n\
        0.000300 1 borrowed 2 7 8 15\n0.000400 1 returned 0 3 15 8\n0.000500 1 returned 0 0 15 8\n# 0 movements left out\n";

    #[test]
    fn a_file_is_read_and_drawn() {
        let (p, cut) = CreditFile::read(FILE).unwrap();
        assert_eq!(cut, None);
        assert_eq!(
            (p.rank, p.ranks, p.stalls, p.lent, p.returned, p.empty, p.high_loan),
            (1, 3, 2, 10, 3, 1, 18)
        );
        assert_eq!(
            p.curves(loan),
            [(0, vec![(0.0, 8.0), (0.0001, 15.0), (0.0002, 18.0), (0.0004, 15.0)])]
        );
        assert_eq!(p.curves(held), [(2, vec![(0.0, 8.0), (0.0003, 15.0)])]);
        assert_eq!(
            p.bank().iter().map(|b| b.1).collect::<Vec<_>>(),
            [100.0, 93.0, 90.0, 93.0, 93.0]
        );
        let svg = draw(&[p]);
        assert!(
            svg.contains("2 requests waited; 10 credits lent, 3 returned")
                && svg.contains(">rank 0<")
                && svg.contains("2 of 3 ranks kept the 8 of the start")
                && !svg.contains("not drawn"),
            "{svg}"
        );
    }

    #[test]
    fn movements_that_the_rank_left_out_are_counted() {
        let (p, cut) = CreditFile::read(&FILE.replace("# 0 mov", "# 70 mov")).unwrap();
        assert_eq!((p.left_out, cut), (70, None));
        assert!(draw(&[p]).contains("; the last 70 movements are not drawn"));
    }

    #[test]
    fn a_file_that_is_cut_off_is_read_up_to_there() {
        let upto = |end: &str| &FILE[..FILE.find(end).unwrap()];
        for (text, movements, cut) in [
            (upto("8 15\n0.0004"), 3, FileCut::Within(10)),
            (upto("0.000400"), 4, FileCut::Behind(10)),
            (upto("# 0 mov"), 6, FileCut::Behind(12)),
            (upto("left out"), 6, FileCut::Within(13)),
        ] {
            let (file, found) = CreditFile::read(text).unwrap();
            assert_eq!((file.movements.len(), found), (movements, Some(cut)), "{text}");
        }
    }

    #[test]
    fn other_files_are_rejected() {
        for (text, why) in [
            ("", "no line that begins with"),
            ("process 1 3 8 100\n0.1 0 sold 0 7 15 8\n", "line 2: \"sold\" is not a movement"),
            ("process one 3 8 100\n", "line 1: \"one\" is not a valid number"),
            ("\n", "line 1: it is none"),
        ] {
            let e = CreditFile::read(text).unwrap_err();
            assert!(e.contains(why), "{e}");
        }
    }

    /// Any file is drawn or refused, and a drawing has numbers only.
    fn any_file(input: &[u8]) {
        let Ok((file, _)) = CreditFile::read(&String::from_utf8_lossy(input)) else { return };
        let svg = draw(&[file]);
        assert!(!svg.contains("NaN") && !svg.contains("inf"), "{svg}");
    }

    #[test]
    fn fuzz_credits() {
        fuzz::check("credits", 5_000, any_file);
    }
}
