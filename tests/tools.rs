//! What all programs have in common: --help, --version, and two lines for wrong usage. What
//! gasnet_info refuses, and what gasnet_trace does with files that are not whole, or not given as
//! they should be.
//!
//! Run by cargo. Invariant: no program starts a job here.

use command_line::{GASNET_INFO, GASNET_TRACE, GASNETRUN, Operands, ProgramTable};
use std::fs;
use std::path::PathBuf;
use std::process::Command;

const PROGRAMS: [(&ProgramTable, &str); 3] = [
    (&GASNETRUN, env!("CARGO_BIN_EXE_gasnetrun")),
    (&GASNET_INFO, env!("CARGO_BIN_EXE_gasnet_info")),
    (&GASNET_TRACE, env!("CARGO_BIN_EXE_gasnet_trace")),
];

/// Exit code, standard output, standard error.
fn run(program: &str, options: &[&str]) -> (Option<i32>, String, String) {
    let o = Command::new(program).args(options).output().expect("the program runs");
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("text");
    (o.status.code(), text(o.stdout), text(o.stderr))
}

#[test]
fn help_and_version() {
    for (table, program) in PROGRAMS {
        for option in ["-h", "--help"] {
            assert_eq!(run(program, &[option]), (Some(0), table.usage(), String::new()));
        }
        let version = format!("{} {}\n", table.name, env!("CARGO_PKG_VERSION"));
        assert_eq!(run(program, &["--version"]), (Some(0), version, String::new()));
    }
}

/// The word of a section prints what its option prints.
#[test]
fn sections_of_gasnet_info() {
    let info = env!("CARGO_BIN_EXE_gasnet_info");
    let Operands::Words(_, words) = GASNET_INFO.operands else { panic!("it has sections") };
    for word in words {
        let (code, out, err) = run(info, &[word, "--json"]);
        assert_eq!((code, err.as_str()), (Some(0), ""), "{word}");
        // Free memory changes from one call to the next.
        let keys = |text: &str| text.matches("\":").count();
        assert_eq!(keys(&out), keys(&run(info, &[&format!("--{word}"), "--json"]).1), "{word}");
        assert!(out.starts_with(&format!("{{\"{}", word.trim_end_matches('s'))), "{out}");
    }
    let (code, _, err) = run(info, &["network"]);
    assert_eq!(code, Some(2));
    let line = "*** gasnet_info: network is no section; these are: versions, build, environment, networks, system\n";
    assert!(err.starts_with(line), "{err}");
    // The word of the heading, and a section that is named twice.
    let (code, out, _) = run(info, &["version", "build", "-v", "--json"]);
    assert_eq!((code, out.matches("\"version\":{").count()), (Some(0), 1), "{out}");
    assert!(out.starts_with("{\"version\":{"), "{out}");
}

#[test]
fn wrong_usage_gives_two_lines_and_2() {
    for (table, program) in PROGRAMS {
        let (code, out, err) = run(program, &["--no-such-option"]);
        assert_eq!((code, out.as_str()), (Some(2), ""));
        let lines: Vec<&str> = err.lines().collect();
        assert_eq!(lines.len(), 2, "{err}");
        assert!(lines[0].starts_with(&format!("*** {}: ", table.name)), "{err}");
        assert_eq!(lines[1], format!("***   {}", table.remedy()));
    }
}

/// The lines of gasnet_info about these variables, and its exit code, with them set.
fn environment(set: &[(&str, &str)]) -> (Option<i32>, String) {
    let mut info = Command::new(env!("CARGO_BIN_EXE_gasnet_info"));
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("GASNET_") {
            info.env_remove(name);
        }
    }
    let o = info.arg("-c").envs(set.iter().copied()).output().expect("the program runs");
    let text = String::from_utf8(o.stdout).expect("text");
    let is_about = |line: &&str| set.iter().any(|(n, _)| line.starts_with(&format!("  {n} = ")));
    (o.status.code(), text.lines().filter(is_about).map(|l| format!("{l}\n")).collect())
}

/// gasnet_info refuses what gasnet_init refuses in every job.
#[test]
fn gasnet_info_refuses_what_no_job_takes() {
    let providers = [("GASNET_OFI_PROVIDER_INCLUDE", "a"), ("GASNET_OFI_PROVIDER_EXCLUDE", "b")];
    let signals = [("GASNET_BACKTRACE_SIGNAL", "USR1,USR2"), ("GASNET_FREEZE_SIGNAL", "12")];
    let credits = [("GASNET_PORTAL_CRED_PER_NODE", "401")];
    let wrong: &[(&[(&str, &str)], &str)] = &[
        (
            &[("GASNET_BACKTRACE_TYPE", "FOO")],
            "FOO is not a method to print a stack. Give ADDR2LINE",
        ),
        (&[("GASNET_BACKTRACE_TYPE", ",")], "give one or more of ADDR2LINE"),
        (&[("GASNET_FREEZE_SIGNAL", "KILL")], "give names or numbers of signals"),
        (&[("GASNET_FREEZE_SIGNAL", "*")], "give names or numbers of signals"),
        (&[("GASNET_BACKTRACE_SIGNAL", "USR1,STOP")], "give names or numbers of signals"),
        (&[("GASNET_BACKTRACE_SIGNAL", "33")], "give names or numbers of signals"),
        (
            &credits,
            "GASNET_PORTAL_CRED_PER_NODE=401 is more than GASNET_PORTAL_MAX_CRED_PER_NODE=400",
        ),
        (&providers, "GASNET_OFI_PROVIDER_EXCLUDE are both set. Unset one of them."),
        (&signals, "GASNET_FREEZE_SIGNAL both name SIGUSR2(12)"),
    ];
    let libportals: &[(&[(&str, &str)], &str)] = match cfg!(feature = "libportals") {
        true => &[],
        false => {
            &[(&[("GASNET_NETWORK", "LIBPORTALS")], "was built without that network. Unset it")]
        }
    };
    for (set, why) in wrong.iter().chain(libportals) {
        let (code, text) = environment(set);
        assert_eq!((code, text.matches("  REFUSED: ").count()), (Some(1), 1), "{set:?}: {text}");
        assert!(text.contains(why), "{set:?}: {text}");
    }
    let right: &[&[(&str, &str)]] = &[
        &[("GASNET_BACKTRACE_TYPE", "gdb, EXECINFO")],
        &[("GASNET_BACKTRACE_SIGNAL", "USR1"), ("GASNET_FREEZE_SIGNAL", "USR2,40")],
        &[("GASNET_PORTAL_CRED_PER_NODE", "401"), ("GASNET_PORTAL_DYNAMIC_CREDITS", "0")],
        &[("GASNET_PORTAL_CRED_PER_NODE", "401"), ("GASNET_PORTAL_MAX_CRED_PER_NODE", "500")],
        &[("GASNET_OFI_PROVIDER_INCLUDE", "a"), ("GASNET_OFI_PROVIDER_EXCLUDE", "")],
        &[("GASNET_NO_CATCH_SIGNAL", "*")],
    ];
    for set in right {
        let (code, text) = environment(set);
        assert_eq!((code, text.contains("REFUSED")), (Some(0), false), "{set:?}: {text}");
    }
}

/// A value stays on its line.
#[test]
fn gasnet_info_escapes_control_characters() {
    let (code, text) = environment(&[("GASNET_SSH_OPTIONS", "a\nb\u{1b}")]);
    let line = "  GASNET_SSH_OPTIONS = a\\nb\\u{1b}  (environment)\n";
    assert_eq!((code, text.as_str()), (Some(0), line));
}

const START: &str = "0(0) 1.000000000> (I) START: nodes=1 us=5 host=x\n";
const PUT: &str = "0(0) 1.000000100> (P) PUT: node=0 bytes=8 took=31ns\n";

/// Files in a folder of their own, which is removed at the end.
struct TraceFolder(PathBuf);

impl TraceFolder {
    fn new(name: &str) -> TraceFolder {
        let path = std::env::temp_dir().join(format!("gasnet-{name}-{}", std::process::id()));
        fs::create_dir_all(&path).expect("a folder");
        TraceFolder(path)
    }

    fn file(&self, name: &str, content: &[u8]) -> String {
        let path = self.0.join(name);
        fs::write(&path, content).expect("a file");
        path.display().to_string()
    }
}

impl Drop for TraceFolder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn trace(args: &[&str]) -> (Option<i32>, String, String) {
    run(env!("CARGO_BIN_EXE_gasnet_trace"), args)
}

/// All subcommands agree on files without a trace.
#[test]
fn gasnet_trace_refuses_files_without_a_trace() {
    let folder = TraceFolder::new("no-trace");
    let (empty, zeros) = (folder.file("empty", b""), folder.file("zeros", &[0; 1000]));
    let out = folder.file("out", b"");
    for words in [&["summary"][..], &["perfetto", "-o", &out], &["firehose", "-o", &out]] {
        for (file, why) in [
            (empty.as_str(), "*** gasnet_trace: these files hold no trace\n"),
            ("/dev/null", "*** gasnet_trace: these files hold no trace\n"),
            (&zeros, ":1: this is no line of a trace or of statistics: \\0\\0"),
        ] {
            let (code, printed, err) = trace(&[words, &[file]].concat());
            assert_eq!((code, printed.as_str()), (Some(1), ""), "{words:?} {file}: {err}");
            assert!(err.contains(why) && err.lines().count() == 2, "{words:?} {file}: {err}");
        }
    }
    let idle = folder.file("idle", START.as_bytes());
    let (code, printed, err) = trace(&["summary", &idle]);
    let line = "these files have no calls that are timed or counted; see GASNET_TRACEMASK\n";
    assert_eq!((code, printed.as_str(), err.as_str()), (Some(0), line, ""));
    let (code, printed, err) = trace(&["perfetto", &idle, "-o", &out]);
    assert_eq!((code, printed.as_str(), err), (Some(0), "", format!("gasnet_trace: {line}")));
    // A rank that was killed leaves an empty file.
    let (code, _, err) = trace(&["summary", &idle, &empty]);
    assert_eq!((code, err), (Some(0), format!("gasnet_trace: {empty} is empty\n")));
}

#[test]
fn gasnet_trace_leaves_lines_out_that_are_none() {
    let folder = TraceFolder::new("strange");
    let file = folder.file("trace", format!("{START}a\nb\n{PUT}0(0) 1.0").as_bytes());
    let (code, printed, err) = trace(&["summary", &file]);
    let lines = format!(
        "gasnet_trace: {file}: 2 lines that are none of a trace or of statistics left out, first \
         line 2: a\ngasnet_trace: {file}:5: the last line is cut off; it is left out\n"
    );
    assert_eq!((code, err), (Some(0), lines));
    assert!(printed.starts_with("2 events of 1 ranks "), "{printed}");
}

/// No input is overwritten or read twice, whatever its name.
#[test]
fn gasnet_trace_takes_each_file_once() {
    let folder = TraceFolder::new("once");
    let file = folder.file("trace", PUT.as_bytes());
    let link = folder.0.join("link");
    std::os::unix::fs::symlink(&file, &link).expect("a link");
    let link = link.display().to_string();
    for out in [&file, &link] {
        for subcommand in ["perfetto", "firehose", "credits"] {
            let (code, printed, err) = trace(&[subcommand, &file, "-o", out]);
            assert_eq!((code, printed.as_str()), (Some(1), ""));
            assert!(
                err.contains(&format!("-o {out} would overwrite the input {file}\n")),
                "{err}"
            );
            assert_eq!(fs::read_to_string(&file).expect("a file"), PUT);
        }
    }
    let once = trace(&["summary", &file]);
    for other in [&file, &link] {
        let (code, printed, err) = trace(&["summary", &file, other]);
        assert_eq!((code, printed), (Some(0), once.1.clone()));
        assert!(err.contains("; it is read once\n") && err.lines().count() == 1, "{err}");
    }
    let out = folder.file("out", b"");
    let (written, printed) =
        (trace(&["perfetto", &file, "-o", &out]), trace(&["perfetto", &file, "-o", "-"]));
    assert_eq!((written.0, printed.0), (Some(0), Some(0)));
    assert_eq!(fs::read_to_string(&out).expect("a file"), printed.1);
}

#[test]
fn gasnet_trace_says_where_a_file_of_credits_is_cut_off() {
    let folder = TraceFolder::new("credits");
    let out = folder.file("out", b"");
    let whole = "process 0 2 8 100\n0.000100 0 lent 1 7 15 8\n# 0 movements left out\n";
    let within = "the last line is cut off; it is left out";
    let behind = "the file is cut off behind this line";
    for (end, notice) in [
        (whole.len(), None),
        (whole.len() - 1, Some((3, within))),
        (whole.find('#').expect("its last line"), Some((2, behind))),
        (whole.find(" 15").expect("its second line"), Some((2, within))),
    ] {
        let file = folder.file("file", &whole.as_bytes()[..end]);
        let (code, printed, err) = trace(&["credits", &file, "-o", &out]);
        let wanted = notice.map(|(line, what)| format!("gasnet_trace: {file}:{line}: {what}\n"));
        assert_eq!((code, printed.as_str(), err), (Some(0), "", wanted.unwrap_or_default()));
    }
    let file = folder.file("full", whole.replace("# 0", "# 70").as_bytes());
    let line = format!(
        "gasnet_trace: {file}: the rank kept its first 1 movements; 70 later ones are not drawn\n"
    );
    assert_eq!(trace(&["credits", &file, "-o", &out]), (Some(0), String::new(), line));
}
