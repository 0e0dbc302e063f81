//! Compiles the programs of `capi-tests/bench` against an installation.
//!
//! Called by `bench_system`. Invariant: a source is compiled as the pkg-config file of the
//! installation says.

use capi_tests::build_trees::{self, succeed};
use std::fs;
use std::path::Path;
use std::process::Command;

/// The C compiler.
pub(crate) fn cc() -> String {
    std::env::var("CC").unwrap_or("cc".to_string())
}

/// Compiles `capi-tests/bench/<program>.c` into `to`.
pub(crate) fn compile(cc: &str, program: &str, to: &Path, flags: &[String]) -> Result<(), String> {
    fs::create_dir_all(to).map_err(|e| format!("{}: {e}", to.display()))?;
    let source = build_trees::root().join("capi-tests/bench").join(format!("{program}.c"));
    let mut compiler = Command::new(cc);
    // It may be the C++ compiler, which links what it takes for C++ otherwise.
    compiler.args(["-O2", "-x", "c"]).arg(&source).args(["-x", "none", "-o"]);
    compiler.arg(to.join(program)).args(flags);
    succeed(compiler).map(drop)
}

/// The words of `wanted` in the pkg-config file of a package in the tree `prefix`.
pub(crate) fn package(prefix: &Path, name: &str, wanted: &[&str]) -> Result<Vec<String>, String> {
    let mut pkg_config = Command::new("pkg-config");
    pkg_config.args(wanted).arg(name).env("PKG_CONFIG_PATH", prefix.join("lib/pkgconfig"));
    Ok(succeed(pkg_config)?.split_whitespace().map(str::to_string).collect())
}
