//! Segment mode LARGE: its largest segment exceeds the memory of the machine; over networks that
//! register, its pages are registered on demand.
//!
//! Called by `everything`.

use super::registered::{counter, last_counters, traced};
use super::{CaseSetting, Means, run};
use crate::build_trees::ClientMode;
use crate::program::{self, TestProgram};
use crate::{Failure, TestCase};
use std::fs;

/// Ranks do not map each other's segments.
const APART: (&str, &str) = ("GASNET_SUPERNODE_MAXSIZE", "1");
const PROGRAMS: [&str; 7] =
    ["testword", "testvis", "testmemset", "testgasnet", "testsmall", "testam", "testcoll"];

/// The sample meets each means twice at least.
pub(super) fn cases() -> Vec<TestCase> {
    let mut all = Vec::new();
    for nodes in [1, 2, 4] {
        let name = format!("testsegment::large::n{nodes}");
        all.push(TestCase::new(name, true, move || {
            let p = program::named("testsegment").ok_or("there is no testsegment")?;
            let s = CaseSetting { mode: ClientMode::LargeSeq, means: Means::Attach, nodes };
            run(&p, s, &["beyond"], &[])?.passed(&p.name)
        }));
    }
    let registered: Vec<Means> = Means::built().filter(|means| means.registers()).collect();
    for (i, program) in PROGRAMS.into_iter().filter_map(program::named).enumerate() {
        for (j, &means) in registered.iter().enumerate() {
            for nodes in [2, 4] {
                let s = CaseSetting { mode: ClientMode::LargeSeq, means, nodes };
                let name = format!("{}::large::{}::n{nodes}", program.name, means.name());
                let sampled = nodes == 2 && i % registered.len() == j;
                let p = program.clone();
                all.push(TestCase::new(name, sampled, move || on_demand(&p, s)));
            }
        }
    }
    if let Some(p) = program::named("testsmall") {
        all.push(TestCase::new("testsmall::large::whole".to_string(), true, move || whole(&p)));
    }
    all
}

/// A job that passes, and registers regions of segments for its peers.
fn on_demand(program: &TestProgram, s: CaseSetting) -> Result<(), Failure> {
    let name = format!("large-{}-{}-{}", program.name, s.means.name(), s.nodes);
    let (ended, folder) = traced(program, s, &[], &[APART], &name)?;
    let last = last_counters(&folder, s.nodes);
    let sum = |name: &str| last.iter().filter_map(|line| counter(line, name)).sum::<u64>();
    // Each rank of testword uses its own segment. Longs of testam fit into their messages.
    let is_used = !["testword", "testam"].contains(&&*program.name);
    if last.len() != s.nodes as usize || is_used && (sum("moves") == 0 || sum("pins") == 0) {
        return Err(ended.failure(format!("no region was registered for a peer: {last:?}")));
    }
    match sum("holds") {
        0 => Ok(()),
        n => Err(ended.failure(format!("{n} regions are held when all is done"))),
    }
}

/// Without firehose the segment is registered whole.
fn whole(program: &TestProgram) -> Result<(), Failure> {
    let s = CaseSetting { mode: ClientMode::LargeSeq, means: Means::Registered, nodes: 2 };
    let env = [APART, ("GASNET_USE_FIREHOSE", "0")];
    let (ended, folder) = traced(program, s, &[], &env, "large-whole")?;
    let traced = |rank| fs::read_to_string(folder.join(format!("trace.{rank}")));
    let is_traced = |rank| traced(rank).is_ok_and(|trace| trace.contains("(C) PORTALS: "));
    if !(0..2).all(is_traced) {
        return Err(ended.failure("a rank has traced no counters"));
    }
    match &last_counters(&folder, 2)[..] {
        [] => Ok(()),
        lines => Err(ended.failure(format!("regions were registered: {lines:?}"))),
    }
}
