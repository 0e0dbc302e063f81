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
    compile_from(&build_trees::root().join("capi-tests/bench"), cc, program, to, flags)
}

/// Compiles `<program>.c` of a folder into `to`.
pub(crate) fn compile_from(
    folder: &Path,
    cc: &str,
    program: &str,
    to: &Path,
    flags: &[String],
) -> Result<(), String> {
    fs::create_dir_all(to).map_err(|e| format!("{}: {e}", to.display()))?;
    let source = folder.join(format!("{program}.c"));
    let mut compiler = Command::new(cc);
    // It may be the C++ compiler, which links what it takes for C++ otherwise.
    compiler
        .args(["-O2", "-I"])
        .arg(folder)
        .args(["-x", "c"])
        .arg(&source)
        .args(["-x", "none", "-o"]);
    compiler.arg(to.join(program)).args(flags);
    succeed(compiler).map(drop)
}

/// The words of `wanted` in the pkg-config file of a package in the tree `prefix`.
pub(crate) fn package(prefix: &Path, name: &str, wanted: &[&str]) -> Result<Vec<String>, String> {
    let mut pkg_config = Command::new("pkg-config");
    pkg_config.args(wanted).arg(name).env("PKG_CONFIG_PATH", prefix.join("lib/pkgconfig"));
    Ok(succeed(pkg_config)?.split_whitespace().map(str::to_string).collect())
}

/// The linker that clients of a conduit of an installation need, such as mpicc, and the flags.
pub(crate) fn client_of(prefix: &Path, conduit: &str) -> Result<(String, Vec<String>), String> {
    let package = |wanted: &[&str]| package(prefix, &format!("gasnet-{conduit}-seq"), wanted);
    let linker = package(&["--variable=GASNET_LD"])?.into_iter().next().unwrap_or(cc());
    Ok((linker, package(&["--cflags", "--libs"])?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::{Duration, Instant};
    use sys::process::{Liveness, children, liveness};

    /// A folder for the programs of a test.
    fn folder(name: &str) -> std::path::PathBuf {
        std::env::temp_dir().join(format!("bench-{name}-{}", std::process::id()))
    }

    /// What a program prints that includes a header of `capi-tests/bench`.
    fn printed(name: &str, source: &str) -> String {
        let dir = folder(name);
        fs::create_dir_all(&dir).unwrap();
        let (text, program) = (dir.join("program.c"), dir.join("program"));
        fs::write(&text, source).unwrap();
        let mut compiler = Command::new(cc());
        let headers = build_trees::root().join("capi-tests/bench");
        compiler.arg("-I").arg(headers).arg(&text).arg("-o").arg(&program);
        succeed(compiler).unwrap();
        let output = succeed(Command::new(&program)).unwrap();
        fs::remove_dir_all(&dir).unwrap();
        output
    }

    #[test]
    fn a_slow_first_call_does_not_shorten_the_blocks() {
        let output = printed(
            "cold",
            "#include \"figures.h\"
             static volatile long sum;
             static inline void bench_barrier(void) {}
             static void run(size_t n, long times) {
                 static int calls;
                 (void)n;
                 if (calls++ == 0) usleep(50000);
                 while (bench_again(&times)) sum = sum + 1;
             }
             int main(void) {
                 printf(\"%ld\\n\", bench_calibrate(run, 0, bench_wanted_ns()));
                 return 0;
             }",
        );
        // 1.4 ms of additions.
        assert!(output.trim().parse::<u64>().unwrap() > 10_000, "{output}");
    }

    #[test]
    fn delays_of_some_operations_leave_the_tenth_percentile() {
        let output = printed(
            "delayed",
            "#include \"figures.h\"
             static inline void bench_barrier(void) {}
             static void run(size_t n, long times) {
                 static int calls;
                 while (times--) usleep(calls++ % 2 ? 50 : (useconds_t)n);
             }
             int main(void) {
                 bench_ms = 200;
                 bench_tenth = 1;
                 printf(\"%.0f\\n\", bench_timed(run, 20000));
                 return 0;
             }",
        );
        // In any block the mean is above 10 ms.
        assert!(output.trim().parse::<u64>().unwrap() < 5_000_000, "{output}");
    }

    #[test]
    fn collectives_of_many_ranks_are_repeated_often() {
        let output = printed(
            "together",
            "#include \"figures.h\"
             static inline void bench_barrier(void) {}
             static long bench_agree(long times) { return times; }
             #include \"together.h\"
             static long least = 1000000, rest;
             static void run(size_t n, long times) {
                 (void)n;
                 if (times < least) least = times;
                 rest |= times % 16;
                 usleep((unsigned)times * 500);
             }
             int main(void) {
                 bench_nodes = 16;
                 bench_together(run, 8);
                 printf(\"%ld %ld\\n\", least, rest);
                 return 0;
             }",
        );
        assert_eq!(output.trim(), "64 0");
    }

    #[test]
    fn a_second_process_that_does_not_start_ends_the_first() {
        let dir = folder("wire");
        compile(&cc(), "wire_tcp", &dir, &[]).unwrap();
        let mut wire = Command::new(dir.join("wire_tcp"));
        wire.args(["-t", "1", "wire_trip"]).env("HOSTS", "127.0.0.1,127.0.0.1");
        wire.env("GASNET_SSH_CMD", "false");
        let began = Instant::now();
        assert!(succeed(wire).is_err());
        assert!(began.elapsed() < Duration::from_secs(20));
        fs::remove_dir_all(&dir).unwrap();
    }

    #[test]
    fn processes_that_spin_end_with_their_parent() {
        let dir = folder("limits");
        compile(&cc(), "limits", &dir, &[]).unwrap();
        let mut limits = Command::new(dir.join("limits")).arg("copy_trip").spawn().unwrap();
        let spinning = loop {
            match children(limits.id()) {
                Some(all) if !all.is_empty() => break all[0],
                _ => assert!(limits.try_wait().unwrap().is_none(), "it has ended"),
            }
        };
        limits.kill().unwrap();
        limits.wait().unwrap();
        let began = Instant::now();
        while !matches!(liveness(spinning), Liveness::Dead) {
            assert!(began.elapsed() < Duration::from_secs(20), "process {spinning} spins");
            std::thread::sleep(Duration::from_millis(10));
        }
        fs::remove_dir_all(&dir).unwrap();
    }
}
