//! A property: for any sequence of calls, the library does what a small, slow and obvious model
//! of the specification does.
//!
//! The model ([`model`]) keeps lists, descriptors and queues in plain vectors and delivers a
//! message by a plain loop. Operations are drawn at random and made on both; every result, event
//! and byte is compared. What the specification leaves open is either not drawn or marked in the
//! model (`Due::optional`, a range of drops).

#[path = "../rig/mod.rs"]
mod rig;

mod compare;
mod draw;
mod driver;
mod model;

use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};

use draw::{DrawnOp, ops, ops_at_once};
use driver::play;
use portals3::nal::ofi::OfiTagMode;
use rig::watchdog::Watchdog;
use rig::{OfiRig, RigKind};

/// Checks `cases` lists of operations, or as many as `PROPTEST_CASES` says.
fn check(kind: RigKind, cases: u32) {
    check_those(kind, cases, ops());
}

/// Checks the lists that a strategy draws.
fn check_those(kind: RigKind, cases: u32, ops: impl Strategy<Value = Vec<DrawnOp>>) {
    let cases =
        if std::env::var_os("PROPTEST_CASES").is_some() { Config::default().cases } else { cases };
    let _watchdog =
        Watchdog::new(format!("random operations on {kind:?}"), 300 + u64::from(cases));
    let config =
        Config { cases, failure_persistence: None, max_shrink_iters: 4000, ..Config::default() };
    let strategy = (any::<u64>(), ops);
    let run = |(seed, ops): (u64, Vec<DrawnOp>)| play(&kind.rig_seeded(seed), &ops);
    if let Err(failure) = TestRunner::new(config).run(&strategy, run) {
        panic!("{kind:?}: {failure}");
    }
}

#[test]
fn random_operations_on_a_loopback_do_what_the_model_does() {
    check(RigKind::Loopback, 300);
}

#[test]
fn random_operations_on_shared_memory_do_what_the_model_does() {
    check(RigKind::ShmOneProcess, 100);
}

#[test]
fn random_operations_at_once_do_what_the_model_does() {
    check_those(RigKind::ShmOneProcess, 300, ops_at_once());
}

#[test]
fn random_operations_in_frames_do_what_the_model_does() {
    check(RigKind::Framed, 200);
}

#[test]
fn random_operations_over_tcp_do_what_the_model_does() {
    check(RigKind::Tcp, 100);
}

#[test]
fn random_operations_over_libfabric_do_what_the_model_does() {
    let rigs = [OfiRig::Native, OfiRig::Rxm(OfiTagMode::One), OfiRig::Rxm(OfiTagMode::Two)];
    let kinds = rigs.map(RigKind::Ofi);
    let here: Vec<RigKind> = kinds.into_iter().filter(|kind| kind.missing().is_none()).collect();
    if here.is_empty() && !kinds[0].is_here() {
        return;
    }
    for kind in here {
        check(kind, 30);
    }
}
