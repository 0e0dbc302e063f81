//! The times of the phases over the number of hosts, as a drawing for the book.
//!
//! Called by `main`. Invariant: both axes are logarithmic, and a thin line is a job without tree.

use crate::{DEGREE, HOSTS, PHASES, RANKS, simulate};
use std::fmt::Write;

const WIDTH: f64 = 720.0;
const HEIGHT: f64 = 420.0;
/// Left, top, right and bottom of the axes.
const AXES: [f64; 4] = [70.0, 20.0, 600.0, 370.0];
/// Decades of microseconds.
const DECADES: [u32; 2] = [1, 7];
const COLOURS: [&str; 5] = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#666666"];

fn x(hosts: u32) -> f64 {
    let [left, _, right, _] = AXES;
    left + (right - left) * f64::from(hosts).log2() / 12.0
}

fn y(us: f64) -> f64 {
    let [_, top, _, bottom] = AXES;
    let [least, most] = DECADES.map(f64::from);
    bottom - (bottom - top) * (us.log10() - least) / (most - least)
}

fn text(out: &mut String, x: f64, y: f64, anchor: &str, text: &str) {
    let _ =
        writeln!(out, "<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\">{text}</text>");
}

/// The drawing, as SVG.
pub(crate) fn drawn() -> String {
    let [left, top, right, bottom] = AXES;
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" \
         font-family=\"sans-serif\" font-size=\"12\">\n\
         <rect width=\"{WIDTH}\" height=\"{HEIGHT}\" fill=\"white\"/>\n"
    );
    let mut line = |x1: f64, y1: f64, x2: f64, y2: f64| {
        let _ = writeln!(
            out,
            "<line x1=\"{x1:.1}\" y1=\"{y1:.1}\" x2=\"{x2:.1}\" y2=\"{y2:.1}\" stroke=\"#ddd\"/>"
        );
    };
    for decade in DECADES[0]..=DECADES[1] {
        let at = y(10f64.powi(decade as i32));
        line(left, at, right, at);
    }
    for hosts in HOSTS {
        line(x(hosts), top, x(hosts), bottom);
    }
    for decade in DECADES[0]..=DECADES[1] {
        let at = y(10f64.powi(decade as i32)) + 4.0;
        let shown = match decade {
            0..3 => format!("{} us", 10u32.pow(decade)),
            3..6 => format!("{} ms", 10u32.pow(decade - 3)),
            _ => format!("{} s", 10u32.pow(decade - 6)),
        };
        text(&mut out, left - 8.0, at, "end", &shown);
    }
    for hosts in HOSTS.into_iter().filter(|hosts| *hosts != 512) {
        text(&mut out, x(hosts), bottom + 18.0, "middle", &hosts.to_string());
    }
    text(&mut out, f64::midpoint(left, right), bottom + 38.0, "middle", "hosts of 16 ranks");
    let jobs = HOSTS.map(|hosts| [0, DEGREE].map(|degree| simulate(hosts, RANKS, degree).1));
    for (phase, (name, colour)) in PHASES.iter().zip(COLOURS).enumerate() {
        for (kind, width) in [(0, 1), (1, 3)] {
            let points: Vec<String> = HOSTS
                .iter()
                .zip(&jobs)
                .map(|(hosts, job)| {
                    let us = job[kind][phase].links.time as f64 / 1000.0;
                    format!("{:.1},{:.1}", x(*hosts), y(us.max(10.0)))
                })
                .collect();
            let _ = writeln!(
                out,
                "<polyline points=\"{}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"{width}\"/>",
                points.join(" ")
            );
        }
        let at = top + 20.0 * (phase as f64 + 1.0);
        let _ = writeln!(
            out,
            "<line x1=\"{}\" y1=\"{at}\" x2=\"{}\" y2=\"{at}\" stroke=\"{colour}\" stroke-width=\"3\"/>",
            right + 15.0,
            right + 40.0
        );
        text(&mut out, right + 48.0, at + 4.0, "start", name);
    }
    text(&mut out, right + 15.0, top + 140.0, "start", "thin: no tree");
    out + "</svg>\n"
}
