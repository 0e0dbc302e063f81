//! What all programs have in common: --help, --version, and two lines for wrong usage.
//!
//! Run by cargo. Invariant: no program starts a job here.

use command_line::{GASNET_INFO, GASNET_TRACE, GASNETRUN, Operands, ProgramTable};
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
    assert!(err.starts_with("*** gasnet_info: network is no section\n"), "{err}");
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
