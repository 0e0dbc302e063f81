//! The drawings: a data file per measurement and system, one script; SVG and PNG by gnuplot.
//! Without gnuplot, data and script are still written.

use crate::columns::RowFigures;
use crate::ratio_table::quartiles;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs;
use std::path::Path;
use std::process::Command;

/// A drawing: its file, title, axes, and the machine's measurement that is its limit.
struct Drawing {
    file: &'static str,
    title: &'static str,
    /// The limit's measurement; `None` for no limit.
    name: &'static str,
    limit: Option<&'static str>,
    /// The horizontal axis: the ranks of the job, or else the size.
    by_processes: bool,
    /// Largest size.
    most: u64,
}

const DRAWINGS: &[Drawing] = &[
    Drawing {
        file: "put_latency",
        title: "blocking put, 2 processes",
        name: "put",
        limit: Some("memcpy_shared_latency"),
        by_processes: false,
        most: 4096,
    },
    Drawing {
        file: "put_bandwidth",
        title: "puts, 64 in flight, 2 processes",
        name: "put_bandwidth",
        limit: Some("memcpy_shared_bandwidth"),
        by_processes: false,
        most: u64::MAX,
    },
    Drawing {
        file: "medium_trip",
        title: "AM Medium, 2 processes",
        name: "medium_trip",
        limit: Some("copy_trip"),
        by_processes: false,
        most: u64::MAX,
    },
    Drawing {
        file: "barrier",
        title: "anonymous barrier",
        name: "barrier_anonymous",
        limit: None,
        by_processes: true,
        most: u64::MAX,
    },
    Drawing {
        file: "startup",
        title: "start and end of a job",
        name: "startup",
        limit: None,
        by_processes: true,
        most: u64::MAX,
    },
];

/// Writes data, script and drawings into `dir`.
pub(crate) fn all(dir: &Path, names: &[&str], rounds: &[Vec<RowFigures>]) -> Result<(), String> {
    let mut script = String::from(
        "# Written by `make bench`; the data files are in the same folder.\nset logscale xy\nset key left top\nset grid\n",
    );
    for d in DRAWINGS {
        let mut curves = Vec::new();
        let mut unit = String::new();
        for (at, system) in names.iter().enumerate() {
            let wanted = if *system == "machine" { d.limit } else { Some(d.name) };
            let Some(wanted) = wanted else { continue };
            let mut points: BTreeMap<u64, Vec<f64>> = BTreeMap::new();
            for round in rounds {
                for (key, value) in round[at].values.iter().filter(|(k, _)| k.name == wanted) {
                    let x = if d.by_processes { u64::from(key.processes) } else { key.size };
                    if x <= d.most {
                        points.entry(x).or_default().push(*value);
                    }
                }
                if *system != "machine" {
                    unit = round[at].units.get(wanted).cloned().unwrap_or(unit);
                }
            }
            if points.is_empty() {
                continue;
            }
            let data = format!("{}-{system}.dat", d.file);
            let mut text = format!("# {system}: {wanted}, median and quartiles over the rounds\n");
            for (x, values) in &mut points {
                if let Some([low, median, high]) = quartiles(values) {
                    let _ = writeln!(text, "{x} {median:.6} {low:.6} {high:.6}");
                }
            }
            write(&dir.join(&data), &text)?;
            let style = if *system == "machine" { "lines dashtype 2" } else { "linespoints" };
            curves.push(format!("'{data}' using 1:2 with {style} title '{system}'"));
        }
        let axis = if d.by_processes { "processes" } else { "bytes" };
        let _ = writeln!(
            script,
            "\nset title '{}'\nset xlabel '{axis}'\nset ylabel '{unit}'",
            d.title
        );
        for (terminal, ending) in [("svg size 720,480", "svg"), ("png size 720,480", "png")] {
            let _ = writeln!(
                script,
                "set terminal {terminal}\nset output '{}.{ending}'\nplot {}",
                d.file,
                curves.join(", ")
            );
        }
    }
    write(&dir.join("draw.gp"), &script)?;
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

fn write(path: &Path, text: &str) -> Result<(), String> {
    fs::write(path, text).map_err(|e| format!("{}: {e}", path.display()))
}
