//! The drawings: a data file per measurement and system, one script; SVG and PNG by gnuplot.
//! Without gnuplot, data and script are still written. Called by `main`.
//!
//! Invariant: the script follows from the data files of the folder alone.

use crate::columns::RowFigures;
use crate::pages::described;
use crate::ratio_table::quartiles;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs;
use std::path::Path;
use std::process::Command;

/// What the vertical axis of a drawing shows, and the unit of its data files.
#[derive(Clone, Copy)]
enum DrawnQuantity {
    Microseconds,
    Milliseconds,
    MegabytesPerSecond,
}

impl DrawnQuantity {
    /// The axis: its label, the factor to seconds or bytes per second, the form of its ticks.
    fn axis(self) -> (&'static str, &'static str, &'static str) {
        match self {
            DrawnQuantity::Microseconds => ("time", "1e-6", "%.0s %cs"),
            DrawnQuantity::Milliseconds => ("time", "1e-3", "%.0s %cs"),
            DrawnQuantity::MegabytesPerSecond => ("bandwidth", "1e6", "%.0s %cB/s"),
        }
    }
}

/// A drawing: its file, title, axes, and the machine's measurement that is its limit.
struct Drawing {
    file: &'static str,
    title: &'static str,
    /// The limit's measurement; `None` for no limit.
    name: &'static str,
    limit: Option<&'static str>,
    /// The horizontal axis: the ranks of the job, or else the size.
    by_ranks: bool,
    /// Largest size.
    most: u64,
    quantity: DrawnQuantity,
}

const DRAWINGS: &[Drawing] = &[
    Drawing {
        file: "put_latency",
        title: "Blocking put, 2 ranks",
        name: "put",
        limit: Some("memcpy_shared_latency"),
        by_ranks: false,
        most: 4096,
        quantity: DrawnQuantity::Microseconds,
    },
    Drawing {
        file: "put_bandwidth",
        title: "Puts, 64 in flight, 2 ranks",
        name: "put_bandwidth",
        limit: Some("memcpy_shared_bandwidth"),
        by_ranks: false,
        most: u64::MAX,
        quantity: DrawnQuantity::MegabytesPerSecond,
    },
    Drawing {
        file: "medium_trip",
        title: "Round trip of an AM Medium, 2 ranks",
        name: "medium_trip",
        limit: Some("copy_trip"),
        by_ranks: false,
        most: u64::MAX,
        quantity: DrawnQuantity::Microseconds,
    },
    Drawing {
        file: "barrier",
        title: "Anonymous barrier",
        name: "barrier_anonymous",
        limit: None,
        by_ranks: true,
        most: u64::MAX,
        quantity: DrawnQuantity::Microseconds,
    },
    Drawing {
        file: "startup",
        title: "Start and end of a job",
        name: "startup",
        limit: None,
        by_ranks: true,
        most: u64::MAX,
        quantity: DrawnQuantity::Milliseconds,
    },
];

/// The systems in the order of the legends, and how their curves look: ours thick, the others
/// thin, the limit of the machine without points. The colours differ for colour-blind readers too
/// (Okabe and Ito 2008; Paul Tol's muted ones for the rest).
const STYLES: &[(&str, &str)] = &[
    ("cross-mapped", "linespoints linewidth 3.5 linecolor '#0072b2' pointtype 7 pointsize 0.8"),
    ("portals", "linespoints linewidth 3.5 linecolor '#d55e00' pointtype 5 pointsize 0.8"),
    ("block", "linespoints linewidth 3 linecolor '#0072b2' dashtype 3 pointtype 9 pointsize 0.9"),
    ("everything", "linespoints linewidth 3 linecolor '#000000' pointtype 13 pointsize 0.9"),
    ("registered", "linespoints linewidth 3 linecolor '#882255' pointtype 9 pointsize 0.9"),
    (
        "registered-events",
        "linespoints linewidth 3 linecolor '#cc6677' dashtype 3 pointtype 5 pointsize 0.9",
    ),
    (
        "registered-segment",
        "linespoints linewidth 3 linecolor '#44aa99' pointtype 11 pointsize 0.9",
    ),
    (
        "registered-segment-events",
        "linespoints linewidth 3 linecolor '#117733' dashtype 3 pointtype 13 pointsize 0.9",
    ),
    ("smp", "linespoints linewidth 1.2 linecolor '#009e73' pointtype 4 pointsize 0.6"),
    ("mpi", "linespoints linewidth 1.2 linecolor '#cc79a7' pointtype 6 pointsize 0.6"),
    (
        "smp-block",
        "linespoints linewidth 1.2 linecolor '#009e73' dashtype 3 pointtype 12 pointsize 0.7",
    ),
    (
        "mpi-everything",
        "linespoints linewidth 1.2 linecolor '#999933' dashtype 3 pointtype 14 pointsize 0.7",
    ),
    ("openmpi", "linespoints linewidth 1.2 linecolor '#e69f00' pointtype 8 pointsize 0.6"),
    ("mpich", "linespoints linewidth 1.2 linecolor '#56b4e9' pointtype 10 pointsize 0.6"),
    ("machine", "lines linewidth 1.2 linecolor '#808080' dashtype 2"),
];
const OTHER_STYLE: &str =
    "linespoints linewidth 1.2 linecolor '#606060' pointtype 2 pointsize 0.6";

/// Writes data, script and drawings into `dir`.
pub(crate) fn all(dir: &Path, names: &[&str], rounds: &[Vec<RowFigures>]) -> Result<(), String> {
    for d in DRAWINGS {
        // What earlier runs have measured of other systems is not part of this one.
        for (path, _) in data_files(dir, d) {
            fs::remove_file(&path).map_err(|e| format!("{path}: {e}"))?;
        }
        for (at, system) in names.iter().enumerate() {
            let wanted = match *system {
                "machine" => d.limit,
                // It would hide the curve of the same system.
                "again" => None,
                _ => Some(d.name),
            };
            let Some(wanted) = wanted else { continue };
            let mut points: BTreeMap<u64, Vec<f64>> = BTreeMap::new();
            for round in rounds {
                for (key, value) in round[at].values.iter().filter(|(k, _)| k.name == wanted) {
                    let x = if d.by_ranks { u64::from(key.processes) } else { key.size };
                    if x <= d.most {
                        points.entry(x).or_default().push(*value);
                    }
                }
            }
            if points.is_empty() {
                continue;
            }
            let mut text = format!("# {system}: {wanted}, median and quartiles over the rounds\n");
            for (x, values) in &mut points {
                if let Some([low, median, high]) = quartiles(values) {
                    let _ = writeln!(text, "{x} {median:.6} {low:.6} {high:.6}");
                }
            }
            write(&dir.join(format!("{}-{system}.dat", d.file)), &text)?;
        }
    }
    draw(dir)
}

/// Writes script and drawings of the data files in `dir`.
pub(crate) fn draw(dir: &Path) -> Result<(), String> {
    let mut text = String::from(
        "# Written by `make bench`; the data files are in the same folder.\nset logscale xy\n\
         set key bmargin center horizontal maxcols 2 Left reverse samplen 3 width 2\nset grid linecolor '#d8d8d8'\n\
         set border linecolor '#404040'\n",
    );
    for d in DRAWINGS {
        text += &commands(dir, d)?;
    }
    write(&dir.join("draw.gp"), &text)?;
    match Command::new("gnuplot").arg("draw.gp").current_dir(dir).status() {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(format!("gnuplot ended with {status}")),
        Err(_) => {
            eprintln!(
                "bench: gnuplot is not installed (Debian package gnuplot-nox), so nothing was drawn; gnuplot draw.gp in {} does it",
                dir.display()
            );
            Ok(())
        }
    }
}

/// The data files of a drawing, with their systems, in the order of the legend.
fn data_files(dir: &Path, d: &Drawing) -> Vec<(String, String)> {
    let mut systems: Vec<String> = fs::read_dir(dir)
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|e| {
            let name = e.file_name().into_string().ok()?;
            let rest = name.strip_prefix(d.file)?.strip_prefix('-')?;
            Some(rest.strip_suffix(".dat")?.to_string())
        })
        .collect();
    systems.sort();
    systems.sort_by_key(|s| STYLES.iter().position(|(name, _)| name == s).unwrap_or(STYLES.len()));
    let path = |s: &String| dir.join(format!("{}-{s}.dat", d.file)).display().to_string();
    systems.iter().map(|s| (path(s), s.clone())).collect()
}

/// gnuplot's commands for a drawing; none without data.
fn commands(dir: &Path, d: &Drawing) -> Result<String, String> {
    let mut xs: Vec<u64> = Vec::new();
    let mut curves = Vec::new();
    let (label, factor, form) = d.quantity.axis();
    for (path, system) in data_files(dir, d) {
        let text = fs::read_to_string(&path).map_err(|e| format!("{path}: {e}"))?;
        let lines = text.lines().filter_map(|l| l.split(' ').next()?.parse().ok());
        xs.extend(lines.filter(|&x: &u64| x <= d.most));
        let style = STYLES.iter().find(|(name, _)| *name == system).map_or(OTHER_STYLE, |s| s.1);
        curves.push(format!(
            "'{}-{system}.dat' using 1:($2*{factor}) with {style} title '{}'",
            d.file,
            described(&system)
        ));
    }
    xs.sort_unstable();
    xs.dedup();
    let (Some(&low), Some(&high)) = (xs.first(), xs.last()) else { return Ok(String::new()) };
    // Each number of ranks has a tick, and each third power of two of a size.
    let ticked = |x: &u64| d.by_ranks || x.trailing_zeros().is_multiple_of(3) || *x == high;
    let ticks: Vec<String> = xs
        .iter()
        .filter(|x| ticked(x) && (d.by_ranks || x.is_power_of_two()))
        .map(|&x| format!("'{}' {x}", short(x)))
        .collect();
    let axis = if d.by_ranks { "ranks" } else { "bytes" };
    let mut text = format!(
        "\nset title '{}'\nset xlabel '{axis}'\nset xrange [{low}/1.2:{high}*1.2]\n\
         set xtics ({})\nset ylabel '{label}'\nset format y '{form}'\n",
        d.title,
        ticks.join(", ")
    );
    for (terminal, ending) in [("svg size 800,560", "svg"), ("png size 800,560", "png")] {
        let _ = writeln!(
            text,
            "set terminal {terminal}\nset output '{}.{ending}'\nplot {}",
            d.file,
            curves.join(", \\\n  ")
        );
    }
    Ok(text)
}

/// A number with K, M or G for powers of 1,024.
fn short(x: u64) -> String {
    let (mut x, mut units) = (x, ["", "K", "M", "G"].into_iter());
    let mut unit = units.next().unwrap_or_default();
    while x >= 1024 && x.is_multiple_of(1024) {
        let Some(next) = units.next() else { break };
        (x, unit) = (x / 1024, next);
    }
    format!("{x}{unit}")
}

fn write(path: &Path, text: &str) -> Result<(), String> {
    fs::write(path, text).map_err(|e| format!("{}: {e}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_short() {
        let all = [8, 512, 1024, 65536, 4 << 20, 1 << 30, 1 << 40, 1000].map(short);
        assert_eq!(all, ["8", "512", "1K", "64K", "4M", "1G", "1024G", "1000"]);
    }

    #[test]
    fn axes_and_curves_follow_from_the_data() {
        let dir = std::env::temp_dir().join(format!("plots-{}", std::process::id()));
        fs::create_dir_all(&dir).unwrap();
        for system in ["other", "smp", "cross-mapped"] {
            write(&dir.join(format!("barrier-{system}.dat")), "# x\n2 1 1 1\n8 5 5 5\n").unwrap();
        }
        let barrier = DRAWINGS.iter().find(|d| d.file == "barrier").unwrap();
        let text = commands(&dir, barrier).unwrap();
        let put = DRAWINGS.iter().find(|d| d.file == "put_latency").unwrap();
        let empty = commands(&dir, put).unwrap();
        fs::remove_dir_all(&dir).unwrap();
        assert!(text.contains("set xrange [2/1.2:8*1.2]\nset xtics ('2' 2, '8' 8)"), "{text}");
        let at = |word: &str| text.find(word).unwrap();
        assert!(
            at("cross-mapped.dat") < at("smp.dat") && at("smp.dat") < at("other.dat"),
            "{text}"
        );
        assert!(text.contains("(ours)") && empty.is_empty(), "{text}");
    }
}
