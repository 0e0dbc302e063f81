//! The progress of long work, on one line of standard error, which is rewritten.
//!
//! Called by `soak` and `bench`. Invariant: nothing is printed unless standard error is a
//! terminal, and nothing is left of the line.

use std::io::{self, IsTerminal, Write};
use std::time::{Duration, Instant};

/// Longer lines would not be rewritten on a narrow terminal.
const WIDTH: usize = 79;

/// The progress of some work.
#[derive(Debug)]
pub struct WorkProgress {
    began: Instant,
    extent: WorkExtent,
    done: usize,
    is_shown: bool,
}

/// How much work there is.
#[derive(Clone, Copy, Debug)]
pub enum WorkExtent {
    /// This many pieces.
    Pieces(usize),
    /// As much as this time allows.
    Time(Duration),
}

impl WorkProgress {
    /// Work that begins now.
    pub fn new(extent: WorkExtent) -> WorkProgress {
        let is_shown = io::stderr().is_terminal();
        WorkProgress { began: Instant::now(), extent, done: 0, is_shown }
    }

    /// Work that shows nothing.
    pub fn hidden() -> WorkProgress {
        WorkProgress { is_shown: false, ..WorkProgress::new(WorkExtent::Pieces(0)) }
    }

    /// Shows that this piece begins.
    pub fn begin(&mut self, piece: &str) {
        if self.is_shown {
            let text = text(self.extent, self.done, self.began.elapsed(), piece);
            let _ = write!(io::stderr(), "\r\x1b[K{text}");
        }
    }

    /// A piece is done. Removes the line, so that others may print.
    pub fn end(&mut self) {
        self.done += 1;
        self.clear();
    }

    fn clear(&self) {
        if self.is_shown {
            let _ = write!(io::stderr(), "\r\x1b[K");
        }
    }
}

impl Drop for WorkProgress {
    fn drop(&mut self) {
        self.clear();
    }
}

/// `3 s`, `2 min` or `1.5 h`.
fn time(time: Duration) -> String {
    match time.as_secs() {
        s @ 0..120 => format!("{s} s"),
        s @ 120..5400 => format!("{} min", (s + 30) / 60),
        s => format!("{:.1} h", s as f64 / 3600.0),
    }
}

fn text(extent: WorkExtent, done: usize, elapsed: Duration, piece: &str) -> String {
    let left = match extent {
        WorkExtent::Time(all) => format!("{} left", time(all.saturating_sub(elapsed))),
        WorkExtent::Pieces(_) if done == 0 => format!("{} so far", time(elapsed)),
        WorkExtent::Pieces(all) => {
            let left = elapsed.mul_f64(all.saturating_sub(done) as f64 / done as f64);
            format!("about {} left", time(left))
        }
    };
    let of = match extent {
        WorkExtent::Pieces(all) => format!("{} of {all}", done + 1),
        WorkExtent::Time(_) => format!("{}", done + 1),
    };
    format!("[{of}, {left}] {piece}").chars().take(WIDTH).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines() {
        let seconds = Duration::from_secs;
        let pieces = WorkExtent::Pieces(10);
        assert_eq!(text(pieces, 0, seconds(3), "first"), "[1 of 10, 3 s so far] first");
        assert_eq!(text(pieces, 2, seconds(60), "third"), "[3 of 10, about 4 min left] third");
        assert_eq!(text(pieces, 10, seconds(60), "more"), "[11 of 10, about 0 s left] more");
        let hours = WorkExtent::Time(seconds(7200));
        assert_eq!(text(hours, 41, seconds(60), "case"), "[42, 2.0 h left] case");
        assert_eq!(text(hours, 41, seconds(9000), "case"), "[42, 0 s left] case");
        assert_eq!(text(pieces, 0, seconds(0), &"x".repeat(99)).len(), WIDTH);
    }
}
