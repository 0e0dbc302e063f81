//! What all programs have in common: --help, --version, and two lines for wrong usage.
//!
//! Run by cargo. Invariant: no program starts a job here.

use command_line::{GASNET_INFO, GASNET_TRACE, GASNETRUN, ProgramTable};
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
