//! Programs built out of tree against an installed library, as the README describes. They use
//! the make fragment, pkg-config, CMake and plain flags; C, C++, Fortran and Python; the shared
//! library and the archive. Also the other files that `make install` installs. The sources of
//! the clients are in `capi-tests/clients`.

mod fortran;

use crate::build_trees::{self, ClientMode, compiler, root, succeed};
use crate::job_launcher::JobLauncher;
use crate::test_job::TestJob;
use crate::{Failure, TestCase};
use std::fs;
use std::io::Read;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::time::Duration;

const MODES: [ClientMode; 3] = [ClientMode::Seq, ClientMode::Par, ClientMode::Parsync];

/// One entry per test.
pub fn cases() -> Vec<TestCase> {
    let mut all = Vec::new();
    let case = |name: &str, run: fn() -> Result<(), Failure>| {
        TestCase::new(format!("clients::{name}"), true, run)
    };
    all.extend([
        case("cmake", cmake).needs("cmake"),
        case("fortran", fortran::run).needs("gfortran"),
        case("python", python).needs("python3"),
        case("manual_pages_format", manual_pages_format).needs("groff"),
        case("gasnet_info_json", gasnet_info_json).needs("python3"),
    ]);
    let mut add = |name: &str, run: fn() -> Result<(), Failure>| all.push(case(name, run));
    add("make_fragments", make_fragments);
    add("pkg_config", || pkg_config(&prefix()?));
    add("pkg_config_of_the_build_tree", || pkg_config(&build_trees::build()));
    add("plain_flags", plain_flags);
    add("static_with_the_documented_line", with_archive);
    add("staged_install", staged_install);
    add("manual_pages", manual_pages);
    add("gasnet_info", gasnet_info);
    add("tools_end_with_their_reader", tools_end_with_their_reader);
    add("tools_report_a_full_device", tools_report_a_full_device);
    add("long_work_shows_its_progress", long_work_shows_its_progress);
    // It compiles the runner once more.
    all.push(TestCase::new("clients::check_programs".to_string(), false, check_programs));
    all
}

pub(crate) fn dir(name: &str) -> Result<PathBuf, Failure> {
    build_trees::require(&build_trees::build())?;
    let dir = build_trees::build().join("capi-tests/clients").join(name);
    if dir.exists() {
        fs::remove_dir_all(&dir).map_err(|e| format!("{}: {e}", dir.display()))?;
    }
    fs::create_dir_all(&dir).map_err(|e| format!("{}: {e}", dir.display()))?;
    Ok(dir)
}

fn sources() -> PathBuf {
    root().join("capi-tests/clients")
}

fn install(destdir: &Path, prefix: &Path) -> Result<(), Failure> {
    let mut install = Command::new(root().join("ci/install.sh"));
    install.arg(destdir).arg(prefix);
    succeed(install).map(drop)
}

/// The installed tree, which all cases share. The first case installs it.
pub(crate) fn prefix() -> Result<PathBuf, Failure> {
    static MADE: Mutex<Option<PathBuf>> = Mutex::new(None);
    let mut made = MADE.lock().map_err(|e| e.to_string())?;
    if made.is_none() {
        let to = dir("prefix")?;
        install(Path::new(""), &to)?;
        *made = Some(to);
    }
    made.clone().ok_or_else(|| "the library could not be installed".to_string())
}

/// Runs a program as a job of two ranks without LD_LIBRARY_PATH. The program must print PASS.
fn passes(
    tree: &Path,
    program: &Path,
    args: &[String],
    launcher: JobLauncher,
) -> Result<(), Failure> {
    let job = TestJob::new(tree, program, args, launcher, 2).without_library_path();
    let ended = job.watchdog(Duration::from_secs(60)).run()?;
    ended.tidy()?;
    if ended.code == Some(0) && ended.output.contains("PASS") {
        Ok(())
    } else {
        Err(ended.failure("expected exit code 0 and PASS".to_string()))
    }
}

fn make_fragments() -> Result<(), Failure> {
    let prefix = prefix()?;
    for mode in MODES {
        let dir = dir(&format!("make_{}", mode.name()))?;
        let tools = if mode == ClientMode::Seq { "seq" } else { "par" };
        let mut make = Command::new("make");
        make.arg("-C").arg(&dir).arg("-f").arg(sources().join("Makefile"));
        make.arg(format!("SOURCES={}", sources().display()))
            .arg(format!("PREFIX={}", prefix.display()));
        make.arg(format!("MODE={}", mode.name())).arg(format!("TOOLS={tools}"));
        // Variables of the make that runs this test must not reach the inner make.
        make.env_remove("MAKEFLAGS").env_remove("MFLAGS").env_remove("MAKELEVEL");
        succeed(make)?;
        for program in ["c", "cxx", "static"] {
            passes(&prefix, &dir.join(program), &[], JobLauncher::Gasnetrun)?;
        }
        let output = succeed(Command::new(dir.join("tools")))?;
        if !output.contains("PASS") {
            return Err(format!("tools: {output}"));
        }
    }
    Ok(())
}

pub(crate) fn pkg(tree: &Path, args: &[&str]) -> Result<Vec<String>, Failure> {
    let mut pkg = Command::new("pkg-config");
    pkg.env("PKG_CONFIG_PATH", tree.join("lib/pkgconfig")).args(args);
    Ok(succeed(pkg)?.split_whitespace().map(str::to_string).collect())
}

fn pkg_config(tree: &Path) -> Result<(), Failure> {
    let dir = dir("pkg_config")?;
    for mode in MODES {
        let package = format!("gasnet-portals-{}", mode.name());
        let program = dir.join(mode.name());
        let mut cc = compiler();
        cc.arg(sources().join("hello.c")).args(pkg(tree, &["--cflags", "--libs", &package])?);
        cc.arg("-o").arg(&program);
        succeed(cc)?;
        passes(tree, &program, &[], JobLauncher::PshmNodes)?;
        for variable in
            ["GASNET_CC", "GASNET_LD", "GASNET_DEFINES", "GASNET_INCLUDES", "GASNET_LIBS"]
        {
            if pkg(tree, &[&format!("--variable={variable}"), &package])?.is_empty() {
                return Err(format!("{package} has no {variable}"));
            }
        }
        pkg(tree, &["--atleast-version=1.18.0", &package])?;
    }
    for mode in ["seq", "par"] {
        let program = dir.join(format!("tools_{mode}"));
        let mut cc = compiler();
        cc.arg(sources().join("tools.c")).arg("-o").arg(&program);
        cc.args(pkg(tree, &["--cflags", "--libs", &format!("gasnet_tools-{mode}")])?);
        succeed(cc)?;
        if !succeed(Command::new(&program))?.contains("PASS") {
            return Err(format!("{} does not pass", program.display()));
        }
    }
    Ok(())
}

fn cmake() -> Result<(), Failure> {
    let prefix = prefix()?;
    for (name, is_static) in [("cmake", "OFF"), ("cmake_static", "ON")] {
        let dir = dir(name)?;
        let mut configure = Command::new("cmake");
        configure.arg("-S").arg(sources()).arg("-B").arg(&dir);
        configure.arg(format!("-DCMAKE_PREFIX_PATH={}", prefix.display()));
        configure.arg(format!("-DGASNet_USE_STATIC_LIBS={is_static}"));
        succeed(configure)?;
        let mut build = Command::new("cmake");
        build.arg("--build").arg(&dir).env_remove("MAKEFLAGS").env_remove("MFLAGS");
        succeed(build)?;
        for program in ["seq", "par", "parsync", "cxx"] {
            passes(&prefix, &dir.join(program), &[], JobLauncher::Gasnetrun)?;
        }
    }
    Ok(())
}

fn plain_flags() -> Result<(), Failure> {
    let prefix = prefix()?;
    let lib = prefix.join("lib");
    let program = dir("plain")?.join("program");
    let mut cc = compiler();
    cc.arg("-DGASNET_PAR").arg("-I").arg(prefix.join("include")).arg(sources().join("hello.c"));
    cc.arg("-o")
        .arg(&program)
        .arg("-L")
        .arg(&lib)
        .arg(format!("-Wl,-rpath,{}", lib.display()))
        .arg("-lgasnet");
    succeed(cc)?;
    passes(&prefix, &program, &[], JobLauncher::Gasnetrun)
}

/// The pkg-config line of the README.
fn with_archive() -> Result<(), Failure> {
    let prefix = prefix()?;
    let dir = dir("static")?;
    for mode in MODES {
        let package = format!("gasnet-portals-{}", mode.name());
        let program = dir.join(mode.name());
        let mut cc = compiler();
        cc.arg(sources().join("hello.c")).arg("-o").arg(&program);
        cc.args(pkg(&prefix, &["--cflags", &package])?);
        cc.args(pkg(&prefix, &["--variable=GASNET_STATIC_LIBS", &package])?);
        succeed(cc)?;
        let mut readelf = Command::new("readelf");
        readelf.arg("-d").arg(&program);
        if succeed(readelf)?.contains("libgasnet") {
            return Err("the program with the archive wants the shared library".to_string());
        }
        for launcher in [JobLauncher::Gasnetrun, JobLauncher::PshmNodes] {
            passes(&prefix, &program, &[], launcher)?;
        }
    }
    Ok(())
}

fn python() -> Result<(), Failure> {
    let prefix = prefix()?;
    let args = [sources().join("hello.py"), prefix.join("lib/libgasnet.so")]
        .map(|p| p.display().to_string());
    passes(&prefix, Path::new("python3"), &args, JobLauncher::Gasnetrun)
}

/// Files go to DESTDIR and are searched under PREFIX: no file mentions DESTDIR.
fn staged_install() -> Result<(), Failure> {
    let to = dir("staged")?;
    install(&to, Path::new("/opt/gasnet"))?;
    let tree = to.join("opt/gasnet");
    let files = [
        "include/gasnet.h",
        "include/gasnet_tools.h",
        "include/gasnet_coll.h",
        "include/gasnet_vis.h",
        "include/gasnet_config.h",
        "include/portals-conduit/gasnet_core.h",
        "include/portals-conduit/portals-seq.mak",
        "include/gasnet_tools-par.mak",
        "lib/libgasnet.so",
        "lib/libgasnet.so.0",
        "lib/libgasnet.a",
        "lib/libgasnet-portals-seq.so",
        "lib/libgasnet-portals-par.a",
        "lib/libgasnet_tools-seq.so",
        "lib/pkgconfig/gasnet-portals-parsync.pc",
        "lib/pkgconfig/gasnet_tools-par.pc",
        "lib/cmake/GASNet/GASNetConfig.cmake",
        "bin/gasnetrun",
        "bin/gasnetrun_portals",
        "bin/gasnet_info",
        "bin/gasnet_trace",
        "share/man/man1/gasnetrun.1",
        "share/man/man1/gasnet_info.1",
        "share/man/man1/gasnet_trace.1",
        "share/man/man7/gasnet_environment.7",
        "share/doc/GASNet/README.md",
    ];
    if let Some(missing) = files.iter().find(|f| !tree.join(f).exists()) {
        return Err(format!("{missing} was not installed"));
    }
    for file in
        files.iter().filter(|f| f.ends_with(".mak") || f.ends_with(".pc") || f.ends_with(".cmake"))
    {
        let text = fs::read_to_string(tree.join(file)).map_err(|e| format!("{file}: {e}"))?;
        if text.contains(&to.display().to_string()) || text.contains('@') {
            return Err(format!(
                "{file} speaks of DESTDIR, or has a place that was not filled:\n{text}"
            ));
        }
    }
    Ok(())
}

/// Each option of a tool's --help is in its manual page, and the pages are well formed.
fn manual_pages() -> Result<(), Failure> {
    let prefix = prefix()?;
    for tool in ["gasnetrun", "gasnet_info", "gasnet_trace"] {
        let mut help = Command::new(prefix.join("bin").join(tool));
        help.arg("--help");
        let path = prefix.join(format!("share/man/man1/{tool}.1"));
        let page = fs::read_to_string(&path).map_err(|e| format!("{}: {e}", path.display()))?;
        let page = page.replace('\\', "");
        for line in
            succeed(help)?.lines().filter(|l| l.starts_with("  ") && l.trim().starts_with('-'))
        {
            for option in
                line.split_whitespace().take_while(|w| w.starts_with('-') || w.len() <= 2)
            {
                // A page separates the name of a value from its option.
                let option = option.trim_end_matches(',').split('=').next().unwrap_or_default();
                if option.starts_with('-') && !page.contains(option) {
                    return Err(format!("{option} is not on the page of {tool}"));
                }
            }
        }
    }
    Ok(())
}

/// groff reports no mistake in the manual pages.
fn manual_pages_format() -> Result<(), Failure> {
    let prefix = prefix()?;
    let pages = [
        "man1/gasnetrun.1",
        "man1/gasnet_info.1",
        "man1/gasnet_trace.1",
        "man7/gasnet_environment.7",
    ];
    let mut groff = Command::new("groff");
    groff.args(["-ww", "-b", "-Tutf8", "-man", "-P-c"]);
    groff
        .args(pages.map(|p| prefix.join("share/man").join(p)))
        .arg(root().join("portals/capi/ptlrun.1"));
    let out = groff.output().map_err(|e| e.to_string())?;
    let output = String::from_utf8_lossy(&out.stderr);
    if !out.status.success() || output.contains("warning") {
        return Err(format!("groff says: {output}"));
    }
    Ok(())
}

fn gasnet_info() -> Result<(), Failure> {
    let info = |args: &[&str], vars: &[(&str, &str)]| {
        let mut info = Command::new(prefix()?.join("bin/gasnet_info"));
        for (name, _) in
            std::env::vars_os().filter(|(n, _)| n.to_string_lossy().starts_with("GASNET_"))
        {
            info.env_remove(name);
        }
        info.args(args).envs(vars.iter().copied());
        let out = info.output().map_err(|e| e.to_string())?;
        Ok::<_, Failure>((out.status.code(), String::from_utf8_lossy(&out.stdout).into_owned()))
    };
    let expect = |args: &[&str], vars: &[(&str, &str)], code: i32, words: &[&str]| {
        let (got, output) = info(args, vars)?;
        match words.iter().find(|w| !output.contains(**w)) {
            _ if got != Some(code) => {
                Err(format!("gasnet_info {args:?} {vars:?}: exit code {got:?}:\n{output}"))
            }
            Some(word) => {
                Err(format!("gasnet_info {args:?} {vars:?} does not say {word:?}:\n{output}"))
            }
            None => Ok(()),
        }
    };
    expect(&["-v"], &[], 0, &["libgasnet: ", "GASNet release: 1.29.3"])?;
    expect(&["-b"], &[], 0, &["compiler: rustc ", "planted faults: no"])?;
    expect(
        &["-n"],
        &[],
        0,
        &["name: ", "used by gasnet_init: yes", "other memory (GASNET_SEGMENT_EVERYTHING): "],
    )?;
    expect(&["-s"], &[], 0, &["page size: ", "processes may copy from each other's memory: "])?;
    expect(
        &["-c"],
        &[],
        0,
        &["GASNET_PORTAL_MSG_LIMIT = 250  (default)", "GASNET_WAITMODE = -  (not set)"],
    )?;
    let set = [("GASNET_MAX_SEGSIZE", "64M"), ("GASNET_QUIT", "1")];
    let lines = ["GASNET_MAX_SEGSIZE = 64M (64 MB)  (environment)", "did you mean GASNET_QUIET?"];
    expect(&["-c"], &set, 0, &lines)?;
    expect(&["-c"], &[("GASNET_QUIET", "maybe")], 1, &["REFUSED: give Y, YES, 1, N, NO or 0"])?;
    expect(&["--nosuch"], &[], 2, &[])?;
    expect(&["--json", "-c"], &[("GASNET_X", "\"\\\n")], 0, &["\"value\":\"\\\"\\\\\\u000a\""])
}

/// A tool whose reader has exited ends by SIGPIPE without a message. `gasnetrun` keeps its exit
/// code where only the message is lost.
fn tools_end_with_their_reader() -> Result<(), Failure> {
    let without_reader = || {
        let (end, reader) = UnixStream::pair().map_err(|e| e.to_string())?;
        drop(reader);
        Ok::<_, Failure>(OwnedFd::from(end))
    };
    for (tool, good) in
        [("gasnet_info", "-v"), ("gasnet_trace", "--help"), ("gasnetrun", "--help")]
    {
        for option in [good, "--nosuch"] {
            let mut command = Command::new(prefix()?.join("bin").join(tool));
            command.arg(option).stdout(without_reader()?);
            command.stderr(if option == good { Stdio::piped() } else { without_reader()?.into() });
            let ended = command.output().map_err(|e| e.to_string())?;
            let output = String::from_utf8_lossy(&ended.stderr);
            let is_as_documented = match (tool, option) {
                ("gasnetrun", "--nosuch") => ended.status.code() == Some(2),
                // SIGPIPE is 13 on every system.
                _ => ended.status.signal() == Some(13),
            };
            if !is_as_documented || !output.is_empty() {
                return Err(format!("{tool} {option}: {}: {output}", ended.status));
            }
        }
    }
    Ok(())
}

/// A tool that cannot write its output prints an error and returns a non-zero code.
fn tools_report_a_full_device() -> Result<(), Failure> {
    for (tool, option) in [
        ("gasnet_info", "-v"),
        ("gasnet_info", "--json"),
        ("gasnet_trace", "--help"),
        ("gasnetrun", "--help"),
    ] {
        let full = fs::File::options().write(true).open("/dev/full").map_err(|e| e.to_string())?;
        let mut command = Command::new(prefix()?.join("bin").join(tool));
        let ended = command.arg(option).stdout(full).output().map_err(|e| e.to_string())?;
        let output = String::from_utf8_lossy(&ended.stderr);
        let lines: Vec<&str> = output.lines().collect();
        if ended.status.code() != Some(1)
            || lines.len() != 2
            || !lines[0].contains("standard output")
        {
            return Err(format!("{tool} {option}: {}: {output}", ended.status));
        }
    }
    Ok(())
}

/// The output of --json is JSON.
fn gasnet_info_json() -> Result<(), Failure> {
    let mut info = Command::new(prefix()?.join("bin/gasnet_info"));
    info.arg("--json");
    let file = dir("info")?.join("info.json");
    fs::write(&file, succeed(info)?).map_err(|e| e.to_string())?;
    let mut python = Command::new("python3");
    let check = "import json, sys; d = json.load(open(sys.argv[1])); \
        assert set(d) == {'version', 'build', 'environment', 'networks', 'system'}, set(d)";
    python.args(["-c", check]).arg(&file);
    succeed(python).map(drop)
}

/// A program of this crate, next to the folder of this test's own program.
fn own_program(name: &str) -> Result<PathBuf, Failure> {
    let here = std::env::current_exe().map_err(|e| e.to_string())?;
    let program = here.ancestors().nth(2).map(|p| p.join(name)).filter(|p| p.exists());
    program.ok_or_else(|| format!("no {name} above {}", here.display()))
}

/// Parts of the soak that have a number of runs, with a terminal as standard error.
fn long_work_shows_its_progress() -> Result<(), Failure> {
    for part in ["killer", "scribbles"] {
        let (user, programs) = sys::terminal::open().map_err(|e| e.to_string())?;
        let mut soak = Command::new(own_program("soak")?);
        soak.args([part, "1"])
            .env("SOAK_FOLDER", dir("soak")?)
            .stdout(Stdio::piped())
            .stderr(programs);
        let child = soak.spawn().map_err(|e| e.to_string())?;
        drop(soak);
        let mut printed = Vec::new();
        // The end of the programs is an error of a terminal.
        let _ = fs::File::from(user).read_to_end(&mut printed);
        let ended = child.wait_with_output().map_err(|e| e.to_string())?;
        let printed = String::from_utf8_lossy(&printed);
        if !printed.contains("[1 of 1, ") {
            return Err(format!("soak {part} 1 shows no progress: {printed}"));
        }
        if !ended.status.success() {
            return Err(format!("soak {part} 1: {}", String::from_utf8_lossy(&ended.stdout)));
        }
    }
    Ok(())
}

/// `make check-programs` over a folder with one program per verdict, and over some programs of
/// ours.
fn check_programs() -> Result<(), Failure> {
    let dir = dir("check_programs")?;
    let main = |body: &str| {
        format!(
            "#include <gasnet.h>\nint helper(void);\nint main(int argc, char **argv) {{\n\
             if (gasnet_init(&argc, &argv) || gasnet_attach(NULL, 0, 65536, 0)) return 1;\n{body}\n}}\n"
        )
    };
    let files = [
        ("helper.c", "int helper(void) { return HELPED; }\n".to_string()),
        ("good.c", main("gasnet_exit(helper());")),
        (
            "good2.cc",
            "#include <gasnet.h>\n#include \"other.h\"\nint main() { return OTHER; }\n"
                .to_string(),
        ),
        ("other.h", "#define OTHER 0\n".to_string()),
        ("argued.c", main("gasnet_exit(argc == 3 && !strcmp(argv[1], \"a b\") ? 0 : 9);")),
        ("bad_code.c", main("gasnet_exit(5);")),
        ("bad_word.c", main("puts(\"ERROR: planned\"); fflush(stdout); gasnet_exit(0);")),
        ("bad_end.c", main("for (;;) sleep(1);")),
        ("bad_source.c", main("nothing_of_this_name();\n#error planned")),
        ("for_seq.c", main("gasnet_exit(6);")),
        ("left_out.c", main("gasnet_exit(7);")),
        (
            "table",
            "argued\t-\t\"a b\" c\nfor_seq\tmodes=seq\t\nleft_out\tskip\tplanned\n\
             helper\tflags=-DHELPED=0\t\n"
                .to_string(),
        ),
    ];
    for (name, text) in &files {
        fs::write(dir.join(name), text).map_err(|e| format!("{name}: {e}"))?;
    }
    let check = |folder: &Path, vars: &[(&str, &str)]| {
        let mut command = Command::new(own_program("check-programs")?);
        command.arg(folder).args(["2", "par"]).env("TREE", prefix()?);
        let out = command.envs(vars.iter().copied()).output().map_err(|e| e.to_string())?;
        Ok::<_, Failure>((out.status.code(), String::from_utf8_lossy(&out.stdout).into_owned()))
    };
    let table = dir.join("table").display().to_string();
    let (code, output) = check(&dir, &[("ARGS", &table), ("SECONDS", "20")])?;
    for (verdict, name, why) in [
        ("PASS", "good", "2 processes"),
        ("PASS", "good2", "2 processes"),
        ("PASS", "argued", "2 processes"),
        ("FAIL", "bad_code", "exit code 5"),
        ("FAIL", "bad_word", "printed ERROR"),
        ("FAIL", "bad_end", "watchdog"),
        ("NOT COMPILED", "bad_source", "error"),
        ("skipped", "for_seq", "seq only"),
        ("skipped", "left_out", "planned"),
    ] {
        let says = |l: &str| {
            l.starts_with(verdict) && l.split_whitespace().any(|w| w == name) && l.contains(why)
        };
        if !output.lines().any(says) {
            return Err(format!("no line {verdict} {name} {why}:\n{output}"));
        }
    }
    if code != Some(1) || !output.contains("3 passed, 3 failed, 1 not compiled, 2 skipped") {
        return Err(format!("exit code {code:?}:\n{output}"));
    }
    let (code, output) =
        check(&root().join("capi-tests"), &[("ONLY", "testhello testenv testexit testfirehose")])?;
    if code != Some(0) || !output.contains("4 passed, 0 failed, 0 not compiled, 0 skipped") {
        return Err(format!("exit code {code:?}:\n{output}"));
    }
    Ok(())
}
