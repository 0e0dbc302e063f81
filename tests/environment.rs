//! docs/ENVIRONMENT.md and the manual page docs/man/gasnet_environment.7 say what the table in `env` says. `UPDATE=1 cargo
//! test --test environment` writes them anew.

use gasnet::env::{Kind, TABLE};
use std::fmt::Write;
use std::path::Path;

fn size(bytes: u64) -> String {
    let units = [(40, "TB"), (30, "GB"), (20, "MB"), (10, "KB")];
    match units.iter().find(|(shift, _)| bytes >= 1 << shift && bytes.is_multiple_of(1 << shift)) {
        Some((shift, unit)) => format!("{}{unit}", bytes >> shift),
        None => format!("{bytes}B"),
    }
}

fn values(kind: Kind) -> String {
    match kind {
        Kind::Bool => "yes or no".to_string(),
        Kind::Int(lo, i64::MAX) => format!("number, at least {lo}"),
        Kind::Int(lo, hi) => format!("number, {lo} to {hi}"),
        Kind::Mem(lo, hi) => format!("size, {} to {}", size(lo), size(hi)),
        Kind::Seconds => "seconds, or a fraction a/b".to_string(),
        Kind::Word(words) => words.join(", "),
        Kind::Ranks => "ranks".to_string(),
        Kind::Signals => "signals".to_string(),
        Kind::Letters => "letters".to_string(),
        Kind::Text => "text".to_string(),
    }
}

fn page() -> String {
    let mut page = String::from(
        "# Environment variables\n\n\
         Written from the table in `src/env.rs`, which the library itself reads: `UPDATE=1 cargo test --test environment` \
         writes this page anew.\n\n\
         A value that cannot be parsed, or is out of range, ends the job with a line that names the variable, the value and \
         what is accepted. `yes or no` is Y, YES, 1, N, NO or 0; a size may carry a suffix B, KB, MB, GB or TB; \
         ranks look like 0,2-4 or *, signals like SEGV,INT or *.\n\n\
         | variable | values | default | meaning |\n|---|---|---|---|\n",
    );
    for v in TABLE {
        let default = if v.default.is_empty() { "-" } else { v.default };
        writeln!(page, "| `{}` | {} | {default} | {} |", v.name, values(v.kind), v.help)
            .expect("a string takes all");
    }
    page
}

/// Text for troff: what it would take for a request or an escape, it does not.
fn troff(text: &str) -> String {
    text.replace('\\', "\\e").replace('-', "\\-")
}

fn manual() -> String {
    let mut page = String::from(
        ".\\\" Written from the table in src/env.rs by: UPDATE=1 cargo test --test environment\n\
         .TH GASNET_ENVIRONMENT 7 \"\" libgasnet \"GASNet over Portals\"\n\
         .SH NAME\ngasnet_environment \\- environment variables of libgasnet\n\
         .SH DESCRIPTION\n\
         The library reads these variables in\n.BR gasnet_init ().\n\
         A value that cannot be parsed, or is out of range, ends the job with a line that names the variable, the value\n\
         and what is accepted.\n\
         .I Yes or no\nis Y, YES, 1, N, NO or 0; a size may carry a suffix B, KB, MB, GB or TB; ranks look like 0,2\\-4\n\
         or *, signals like SEGV,INT or *.\n\
         .B gasnet_info \\-c\nshows how they stand.\n\
         .SH VARIABLES\n",
    );
    for v in TABLE {
        writeln!(page, ".TP\n.B {}\n({}) {}.", v.name, troff(&values(v.kind)), troff(v.help))
            .expect("a string takes all");
        if !v.default.is_empty() {
            writeln!(page, "The default is {}.", troff(v.default)).expect("a string takes all");
        }
    }
    page.push_str(".SH SEE ALSO\n.BR gasnetrun (1),\n.BR gasnet_info (1)\n");
    page
}

fn compare(path: &str, wanted: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(path);
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(&path, wanted).expect("the page can be written");
    }
    let found = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        found == wanted,
        "{} is not what src/env.rs says: UPDATE=1 cargo test --test environment",
        path.display()
    );
}

#[test]
fn the_page_is_up_to_date() {
    compare("docs/ENVIRONMENT.md", &page());
}

#[test]
fn the_manual_page_is_up_to_date() {
    compare("docs/man/gasnet_environment.7", &manual());
}
