//! `--starts`: the time of jobs of this library that only start and end.
//!
//! Called by `main`.

use crate::bench_system::{BenchSystem, STARTS};
use crate::columns::RowFigures;
use capi_tests::progress::{WorkExtent, WorkProgress};
use std::collections::BTreeMap;

/// The times in ms, without and with gasnetrun: shortest and median of these rounds.
pub(crate) fn table(ours: &BenchSystem, rounds: usize) -> Result<String, String> {
    let launcher = ours.launch.iter().map(|(start, program)| ("gasnetrun", start, *program));
    let ways: Vec<_> = launcher.chain([("GASNET_PSHM_NODES", &ours.start, "startup")]).collect();
    let mut times: BTreeMap<(u32, &str), Vec<f64>> = BTreeMap::new();
    let mut progress = WorkProgress::new(WorkExtent::Pieces(rounds * ways.len()));
    for round in 1..=rounds {
        for (way, start, program) in &ways {
            progress.begin(&format!("bench: round {round} of {rounds}, {way}"));
            let mut figures = RowFigures::default();
            ours.time_starts(&mut figures, way, start, STARTS, program)?;
            progress.end();
            for (key, time) in figures.values {
                times.entry((key.processes, way)).or_default().push(time);
            }
        }
    }
    let names: Vec<&str> = ways.iter().map(|way| way.0).collect();
    let mut table =
        format!("| processes | {} |\n|---|{}\n", names.join(" | "), "---|".repeat(names.len()));
    for processes in STARTS {
        table += &format!("| {processes} |");
        for way in &names {
            let all = times.get_mut(&(*processes, *way)).ok_or("no round was run")?;
            all.sort_by(f64::total_cmp);
            table += &format!(" {:.1}, {:.1} |", all[0], all[all.len() / 2]);
        }
        table += "\n";
    }
    Ok(table)
}
