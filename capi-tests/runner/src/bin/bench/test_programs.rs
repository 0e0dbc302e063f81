//! GASNet's own test programs, with this library and with that GASNet.
//!
//! Called by `main`. Invariant: both sides run the same sources.

use crate::bench_system::{BenchSystem, Kind, UNCALIBRATED};
use crate::building::{cc, client_of, compile_from, package};
use crate::turns::{GasnetKind, TURNS, Turn};
use capi_tests::build_trees;
use std::path::Path;

/// This library and the peer `PREFIX[,smp]` with the programs of this folder.
pub(crate) fn systems(text: &str, folder: &str) -> Result<[BenchSystem; 2], String> {
    let peer = BenchSystem::peer(text)?;
    let (prefix, conduit) = text.split_once(',').unwrap_or((text, "smp"));
    if conduit != "smp" {
        return Err(format!("{text}: --tests is for smp-conduit"));
    }
    let (kind, name) = match peer.kind {
        Kind::Gasnet => (GasnetKind::Gasnet1, "tests"),
        Kind::Ex => (GasnetKind::Ex, "ex-tests"),
        _ => return Err(format!("{}: its test programs are not compared", peer.name)),
    };
    let side = |name: &str| {
        let programs = build_trees::build().join("bench").join(name);
        BenchSystem::new(name, programs, Kind::Tests(kind))
    };
    let ours = side(name);
    let theirs = BenchSystem { version: peer.version, ..side(&format!("{}-tests", peer.name)) }
        .with_variable(UNCALIBRATED);
    let own_flags = package(&build_trees::build(), "gasnet-portals-seq", &["--cflags", "--libs"])?;
    let (linker, flags) = client_of(Path::new(prefix), conduit)?;
    for &turn in TURNS {
        let Turn::Tests(of, (program, ..)) = turn else { continue };
        if of == kind {
            let folder = Path::new(folder);
            compile_from(folder, &cc(), program, &ours.programs, &own_flags)?;
            compile_from(folder, &linker, program, &theirs.programs, &flags)?;
        }
    }
    Ok([ours, theirs])
}
