//! The C interface from C: headers, layouts, exported names, and the programs of
//! `portals/capi-tests`. Each program runs as a job of 1 to 8 processes, and with planted
//! faults, which it must detect.
//!
//! Everything is built against the shared library of this build, which gets its installed name
//! in the test directory.

#[path = "../src/abi.rs"]
#[allow(dead_code, unreachable_pub)]
mod abi;

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::OnceLock;
use std::thread::sleep;
use std::time::{Duration, Instant};

/// A job that has made no end after this is stuck; none needs a hundredth of it.
const WATCHDOG: Duration = Duration::from_secs(150);

fn source(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(name)
}

/// The directory in which the tests build: `lib` with the library under its installed names, and
/// the programs.
fn place() -> &'static Path {
    static PLACE: OnceLock<PathBuf> = OnceLock::new();
    PLACE.get_or_init(|| {
        let place =
            Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("capi-{}", std::process::id()));
        let lib = place.join("lib");
        fs::create_dir_all(&lib).expect("directory");
        let link = |built: PathBuf, name: &str| symlink(built, lib.join(name)).expect("link");
        link(built("libportals3_c.so"), "libportals3.so.0");
        link("libportals3.so.0".into(), "libportals3.so");
        link(built("libportals3_c.a"), "libportals3.a");
        place
    })
}

/// One of the libraries, built now: cargo does not build them for a test, since no Rust code
/// links with them.
fn built(name: &str) -> PathBuf {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    let built = BUILT.get_or_init(|| {
        let target = Path::new(env!("CARGO_TARGET_TMPDIR")).parent().expect("target directory");
        let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or("cargo".into()));
        cargo.args(["build", "--quiet", "--lib", "--target-dir"]).arg(target);
        succeeds_within(cargo.current_dir(source("")), Duration::from_secs(900));
        target.join("debug")
    });
    built.join(name)
}

fn run(command: &mut Command) -> Output {
    run_within(command, WATCHDOG)
}

fn run_within(command: &mut Command, time: Duration) -> Output {
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let end = Instant::now() + time;
    while child.try_wait().expect("wait").is_none() {
        if Instant::now() > end {
            child.kill().expect("kill");
            panic!("watchdog: {command:?}");
        }
        sleep(Duration::from_millis(5));
    }
    child.wait_with_output().expect("output")
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&[&output.stdout[..], &output.stderr[..]].concat()).into_owned()
}

fn succeeds(command: &mut Command) -> String {
    succeeds_within(command, WATCHDOG)
}

fn succeeds_within(command: &mut Command, time: Duration) -> String {
    let output = run_within(command, time);
    assert!(output.status.success(), "{command:?}: {}\n{}", output.status, said(&output));
    said(&output)
}

fn compiler(name: &str) -> Command {
    let mut command = Command::new(name);
    command
        .args(["-Wall", "-Wextra", "-pedantic", "-Werror", "-Wshadow", "-I"])
        .arg(source("include"));
    command
}

fn cc() -> Command {
    let mut command = compiler(&std::env::var("CC").unwrap_or("cc".into()));
    command.args(["-std=c99", "-O1"]);
    command
}

/// Builds a program of `portals/capi-tests`.
fn program(name: &str) -> PathBuf {
    let binary = place().join(name);
    let lib = place().join("lib");
    let run_path = format!("-Wl,-rpath,{}", lib.display());
    let text = source("../capi-tests").join(name).with_extension("c");
    succeeds(
        cc().arg(text).arg("-o").arg(&binary).arg("-L").arg(lib).args([&run_path, "-lportals3"]),
    );
    binary
}

fn job(processes: u32, program: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_ptlrun"));
    command.args(["-n", &processes.to_string()]).arg(program);
    command
}

/// Runs a program with several numbers of processes, then with each planted fault, which it must
/// detect.
fn check(name: &str, faults: &[&str]) {
    let program = program(name);
    for processes in [1, 2, 3, 8] {
        let output = succeeds(&mut job(processes, &program));
        assert!(output.contains(&format!("{name}: PASS")), "{name} with {processes}: {output}");
    }
    for fault in faults {
        let mut job = job(2, &program);
        job.env("LD_PRELOAD", plant());
        assert!(said(&run(&mut job)).contains("PASS"), "{name} fails without a planted fault");
        let output = run(job.env("PLANT", fault));
        assert!(!output.status.success(), "{name} does not notice {fault}");
        assert!(!said(&output).contains("PASS"), "{name} passes with {fault}");
    }
}

fn plant() -> &'static Path {
    static PLANT: OnceLock<PathBuf> = OnceLock::new();
    PLANT.get_or_init(|| {
        let library = place().join("plant.so");
        let text = source("../capi-tests/plant.c");
        succeeds(cc().args(["-shared", "-fPIC"]).arg(text).arg("-o").arg(&library).arg("-ldl"));
        library
    })
}

macro_rules! programs {
    ($($name:ident: $($fault:ident)+;)*) => {
        $(
            #[test]
            fn $name() {
                check(stringify!($name), &[$(stringify!($fault)),+]);
            }
        )*
        const PROGRAMS: &[&str] = &[$(stringify!($name)),*];
    };
}

programs! {
    access: put_fails event_lies;
    bandwidth: put_fails event_lies;
    closing: put_fails;
    drops: put_fails event_lies;
    events: put_fails event_lies;
    getput: half_swap event_lies;
    handler: put_fails;
    init: always_ok;
    iovec: put_fails event_lies always_ok;
    limits: always_ok;
    lists: put_fails event_lies;
    lock: put_fails half_swap;
    maxsize: put_fails event_lies;
    names: put_fails event_lies;
    overflow: put_fails event_lies;
    pingpong: put_fails event_lies;
    poll: put_fails always_ok;
    ranks: always_ok;
    ring: put_fails event_lies;
    threshold: put_fails event_lies;
    unlink: put_fails event_lies;
    update: put_fails event_lies;
}

#[test]
fn every_program_is_run() {
    let files = fs::read_dir(source("../capi-tests")).expect("capi-tests");
    let found: BTreeSet<String> = files
        .map(|file| file.expect("entry").path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "c"))
        .map(|path| path.file_stem().expect("name").to_string_lossy().into_owned())
        .filter(|name| name != "plant")
        .collect();
    assert_eq!(found, PROGRAMS.iter().map(|name| name.to_string()).collect());
}

#[test]
fn a_program_links_with_the_archive() {
    let binary = place().join("ring-static");
    let mut command = cc();
    command
        .arg(source("../capi-tests/ring.c"))
        .arg("-o")
        .arg(&binary)
        .arg(place().join("lib/libportals3.a"));
    succeeds(command.args(["-lgcc_s", "-lutil", "-lrt", "-lpthread", "-lm", "-ldl", "-lc"]));
    assert!(succeeds(&mut job(2, &binary)).contains("ring: PASS"));
}

#[test]
fn headers_compile_alone_without_a_warning() {
    for (suffix, compilers, standards) in
        [("c", ["gcc", "clang"], ["c99", "gnu17"]), ("cc", ["g++", "clang++"], ["c++98", "c++17"])]
    {
        for header in ["portals3.h", "portals/portals3.h"] {
            let file = place().join(header.replace('/', "-")).with_extension(suffix);
            fs::write(&file, format!("#include <{header}>\ntypedef ptl_md_t not_empty;\n"))
                .expect("write");
            for name in compilers {
                if Command::new(name).arg("--version").stdout(Stdio::null()).status().is_err() {
                    continue;
                }
                for standard in standards {
                    let standard = format!("-std={standard}");
                    succeeds(compiler(name).args([&standard, "-fsyntax-only"]).arg(&file));
                    succeeds(
                        compiler(name)
                            .args([&standard, "-fsyntax-only", "-DPORTALS3_CRAY_SPELLINGS"])
                            .arg(&file),
                    );
                }
            }
        }
    }
}

/// Names of the functions and arrays that the header declares.
fn declared() -> BTreeSet<String> {
    let text = fs::read_to_string(source("include/portals3.h")).expect("portals3.h");
    let starts = ["int Ptl", "void Ptl", "const char *Ptl", "extern const char *const ptl_"];
    let lines = text.lines().filter(|line| starts.iter().any(|start| line.starts_with(start)));
    let name = |line: &str| {
        let end = line.find(['(', '[']).expect("a declaration");
        line[..end].rsplit([' ', '*']).next().expect("a name").to_string()
    };
    lines.map(name).collect()
}

#[test]
fn the_library_exports_what_the_header_declares() {
    let declared = declared();
    assert!(
        declared.len() > 40 && declared.contains("PtlPut") && declared.contains("ptl_err_str")
    );
    let listed = succeeds(
        Command::new("nm").args(["-D", "--defined-only", "-P"]).arg(built("libportals3_c.so")),
    );
    let exported =
        listed.lines().filter_map(|line| line.split(' ').next()).map(str::to_string).collect();
    assert_eq!(declared, exported);
    let name = succeeds(Command::new("readelf").arg("-d").arg(built("libportals3_c.so")));
    assert!(name.contains("[libportals3.so.0]"), "{name}");
}

#[test]
fn layouts_and_values_are_those_of_the_header() {
    let mut lines = vec!["#include <portals3.h>".to_string(), "#include <stddef.h>".into()];
    let mut same = |left: String, right: i64| {
        let number = lines.len();
        lines.push(format!(
            "typedef char same_{number}[(long long)({left}) == {right}LL ? 1 : -1];"
        ));
    };
    for (name, value) in abi::ERRORS.iter().chain(abi::WORDS).chain(abi::EVENTS).chain(abi::SIGNED)
    {
        same(name.to_string(), *value);
    }
    same("PTL_MAX_ERRNO".into(), i64::from(abi::PTL_UNKNOWN_ERROR) + 1);
    macro_rules! layout {
        ($rust:path, $c:literal: $($field:ident = $name:ident),*) => {
            same(format!("sizeof({})", $c), size_of::<$rust>() as i64);
            $(same(
                format!("offsetof({}, {})", $c, stringify!($name)),
                std::mem::offset_of!($rust, $field) as i64,
            );)*
        };
    }
    layout!(abi::PtlProcessId, "ptl_process_id_t": nid = nid, pid = pid);
    layout!(abi::MdIovec, "ptl_md_iovec_t": base = iov_base, len = iov_len);
    layout!(abi::CNiLimits, "ptl_ni_limits_t": max_mes = max_mes, max_mds = max_mds, max_eqs = max_eqs,
        max_ac_index = max_ac_index, max_pt_index = max_pt_index, max_md_iovecs = max_md_iovecs,
        max_me_list = max_me_list, max_getput_md = max_getput_md);
    layout!(abi::CMd, "ptl_md_t": start = start, length = length, threshold = threshold, max_size = max_size,
        options = options, user_ptr = user_ptr, eq_handle = eq_handle);
    layout!(abi::CEvent, "ptl_event_t": kind = type, initiator = initiator, uid = uid, jid = jid,
        pt_index = pt_index, match_bits = match_bits, rlength = rlength, mlength = mlength, offset = offset,
        md_handle = md_handle, md = md, hdr_data = hdr_data, link = link, ni_fail_type = ni_fail_type,
        sequence = sequence);
    for handle in ["any", "ni", "me", "md", "eq"] {
        same(format!("sizeof(ptl_handle_{handle}_t)"), size_of::<abi::CHandle>() as i64);
    }
    for (name, bytes) in
        [("ptl_size_t", 8), ("ptl_match_bits_t", 8), ("ptl_hdr_data_t", 8), ("ptl_sr_value_t", 8)]
            .into_iter()
            .chain([
                ("ptl_pt_index_t", 4),
                ("ptl_ac_index_t", 4),
                ("ptl_interface_t", 4),
                ("ptl_sr_index_t", 4),
            ])
            .chain([
                ("ptl_time_t", 4),
                ("ptl_seq_t", 4),
                ("ptl_unlink_t", 4),
                ("ptl_event_kind_t", 4),
            ])
            .chain([("ptl_eq_handler_t", size_of::<abi::CEqHandler>() as i64)])
    {
        same(format!("sizeof({name})"), bytes);
    }
    let file = place().join("layout.c");
    fs::write(&file, lines.join("\n") + "\n").expect("write");
    succeeds(
        Command::new("cc")
            .arg("-I")
            .arg(source("include"))
            .args(["-std=gnu99", "-fsyntax-only"])
            .arg(file),
    );
}

#[test]
fn a_job_that_cannot_be_is_refused_in_a_line() {
    let program = program("ring");
    let cases: [(&[(&str, &str)], &str); 8] = [
        (&[("PTL_MY_RID", "0")], "must be set together"),
        (
            &[("PTL_MY_RID", "x"), ("PTL_NIDMAP", "0"), ("PTL_PIDMAP", "0")],
            "PTL_MY_RID=x: not a number",
        ),
        (
            &[("PTL_MY_RID", "0"), ("PTL_NIDMAP", "0:"), ("PTL_PIDMAP", "0:1")],
            "PTL_NIDMAP=0:: not numbers",
        ),
        (
            &[("PTL_MY_RID", "2"), ("PTL_NIDMAP", "0:0"), ("PTL_PIDMAP", "0:1")],
            "there are 2 processes",
        ),
        (&[("PTL_MY_RID", "0"), ("PTL_NIDMAP", "0:1"), ("PTL_PIDMAP", "0:1")], "one host only"),
        (
            &[("PTL_MY_RID", "0"), ("PTL_NIDMAP", "0:0"), ("PTL_PIDMAP", "98:99")],
            "pids are 0, 1, 2",
        ),
        (
            &[("PTL_MY_RID", "0"), ("PTL_NIDMAP", "0:0"), ("PTL_PIDMAP", "0:1")],
            "PTL_FABRIC_FD: must be set",
        ),
        (&[("PTL_FABRIC_FD", "77")], "PTL_FABRIC_FD=77: no such descriptor"),
    ];
    for (variables, line) in cases {
        let output = run(Command::new(&program).envs(variables.iter().copied()));
        let text = said(&output);
        assert!(!output.status.success() && text.contains(line), "{variables:?}: {text}");
    }
    let output = run(job(2, &program).env("PTL_ARENA_BYTES", "65536"));
    assert!(
        !output.status.success() && said(&output).contains("PTL_NO_SPACE"),
        "{}",
        said(&output)
    );
    let output = run(&mut Command::new(env!("CARGO_BIN_EXE_ptlrun")));
    assert_eq!(said(&output), "*** ptlrun: the program is missing\n***   Try ptlrun --help.\n");
}

#[test]
fn messages_may_have_to_wait_for_a_call_of_their_target() {
    for name in ["ring", "events", "getput", "limits", "update"] {
        let text = succeeds(job(3, &program(name)).env("PTL_ATTACH", "0"));
        assert!(text.contains("PASS"), "{text}");
    }
}

/// Each of the two processes waits in a barrier for the other, which waits for a message: of the
/// one that it is the initiator, of the other the target.
const MESSAGES_BEFORE_BARRIERS: &str = r#"
#include "check.h"
#include <cnos_mpi_os.h>

int main(void) {
    static char bytes[1 << 18];
    cnos_nidpid_map_t *map;
    ptl_handle_md_t from;
    ptl_handle_eq_t eq;

    start();
    CHECK(cnos_barrier_init(ni) == 0 && cnos_register_ptlid(self) == 0 && cnos_get_nidpid_map(&map) == 2);
    eq = queue(16);
    (void)target(PT, region(bytes, sizeof bytes, PTL_MD_OP_PUT | PTL_MD_MANAGE_REMOTE, eq));
    from = source(region(bytes, sizeof bytes, 0, eq));
    barrier();
    alarm(20);
    if (rank == 0)
        OK(PtlPut(from, PTL_NO_ACK_REQ, next, PT, 0, 0, 0, 0));
    else
        (void)expect(eq, PTL_EVENT_PUT_END);
    CHECK(cnos_barrier() == 0);
    if (rank == 0) {
        (void)expect(eq, PTL_EVENT_SEND_END);
        OK(PtlPut(from, PTL_ACK_REQ, next, PT, 0, 0, 0, 0));
        (void)expect(eq, PTL_EVENT_SEND_END);
        (void)expect(eq, PTL_EVENT_ACK);
    }
    CHECK(cnos_barrier() == 0);
    return finish("cnos");
}
"#;

#[test]
fn a_barrier_of_cnos_takes_and_sends_messages() {
    let (text, binary, lib) = (place().join("cnos.c"), place().join("cnos"), place().join("lib"));
    fs::write(&text, MESSAGES_BEFORE_BARRIERS).expect("write");
    let mut build = cc();
    build.arg("-I").arg(source("../capi-tests")).arg(&text).arg(source("cnos/cnos.c"));
    build.arg("-o").arg(&binary).arg("-L").arg(&lib);
    succeeds(build.arg(format!("-Wl,-rpath,{}", lib.display())).arg("-lportals3"));
    for attach in ["0", "1"] {
        let text = succeeds(job(2, &binary).env("PTL_ATTACH", attach));
        assert!(text.contains("cnos: PASS"), "{text}");
    }
}

#[test]
fn a_job_ends_when_a_process_dies() {
    let file = place().join("dies.sh");
    fs::write(&file, "test $PTL_MY_RID = 1 && kill -9 $$; exec sleep 1000\n").expect("write");
    let output = run(Command::new(env!("CARGO_BIN_EXE_ptlrun")).args(["-n", "3", "sh"]).arg(file));
    assert_eq!(output.status.code(), Some(128 + 9));
}

/// Names of the cases of the conformance suite, as they are instantiated.
fn cases() -> BTreeSet<String> {
    let mut cases = BTreeSet::new();
    for file in fs::read_dir(source("../tests/conformance")).expect("conformance") {
        let path = file.expect("entry").path();
        let module = path.file_stem().expect("name").to_string_lossy().into_owned();
        let text = fs::read_to_string(&path).expect("source");
        for list in text.split("\ninstantiate! {").skip(1) {
            let list = list.split('}').next().unwrap_or_default();
            cases.extend(list.split_whitespace().map(|case| format!("{module}::{case}")));
        }
    }
    cases
}

#[test]
fn the_conformance_table_names_every_test_and_no_other() {
    let page = fs::read_to_string(source("../../docs/internals/portals33.md"))
        .expect("docs/internals/portals33.md");
    let rows = page.lines().filter(|line| line.starts_with("| "));
    let quoted: BTreeSet<&str> = rows.flat_map(|row| row.split('`').skip(1).step_by(2)).collect();
    let (named, programs): (BTreeSet<&str>, BTreeSet<&str>) =
        quoted.into_iter().partition(|name| name.contains("::"));
    let cases = cases();
    let cases: BTreeSet<&str> = cases.iter().map(String::as_str).collect();
    assert!(cases.len() > 100);
    let missing: Vec<_> = cases.difference(&named).collect();
    let unknown: Vec<_> = named.difference(&cases).collect();
    assert!(
        missing.is_empty() && unknown.is_empty(),
        "missing: {missing:?}; unknown: {unknown:?}"
    );
    let files: BTreeSet<String> = PROGRAMS.iter().map(|name| format!("{name}.c")).collect();
    assert_eq!(programs, files.iter().map(String::as_str).collect());
}

#[test]
fn ptlrun_has_a_help_and_a_version() {
    let run = |options: &[&str]| {
        let o = Command::new(env!("CARGO_BIN_EXE_ptlrun")).args(options).output().unwrap();
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        (o.status.code(), text(o.stdout), text(o.stderr))
    };
    let usage = command_line::PTLRUN.usage();
    for option in ["-h", "--help"] {
        assert_eq!(run(&[option]), (Some(0), usage.clone(), String::new()));
    }
    assert_eq!(run(&["--version"]).1, format!("ptlrun {}\n", env!("CARGO_PKG_VERSION")));
    for (words, why) in [
        (&["-n", "0", "true"][..], "-n 0 is not a number from 1 to 1024"),
        (&["true"], "the number of processes is missing"),
        (&["-n", "2"], "the program is missing"),
        (&["--no-such-option"], "no-such-option"),
    ] {
        let (code, _, err) = run(words);
        assert_eq!(code, Some(2), "{err}");
        assert!(err.contains(why) && err.ends_with("***   Try ptlrun --help.\n"), "{err}");
    }
    assert_eq!(run(&["-n", "2", "--", "sh", "-c", "exit 3"]).0, Some(3));
    assert_eq!(run(&["-n", "2", "--", "sh", "-c", "test $PTL_LAUNCHER = $PPID"]).0, Some(0));
    let (code, _, err) = run(&["-n", "2", "/"]);
    let line = "*** ptlrun: / cannot be run: Permission denied";
    assert!(code == Some(126) && err.starts_with(line) && err.contains("\n***   "), "{err}");
    let (code, _, err) = run(&["-n", "2", "/no/such/program"]);
    let line = "*** ptlrun: /no/such/program cannot be run: No such file or directory";
    assert!(code == Some(127) && err.starts_with(line) && err.contains("\n***   "), "{err}");
}
