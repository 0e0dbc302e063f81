//! docs/ENVIRONMENT.md says what the table in `env` says. `UPDATE=1 cargo test --test environment` writes it anew.

use gasnet::env::{Kind, TABLE};
use std::fmt::Write;
use std::path::Path;

fn size(bytes: u64) -> String {
    let units = [(40, "TB"), (30, "GB"), (20, "MB"), (10, "KB")];
    match units.iter().find(|(shift, _)| bytes >= 1 << shift && bytes % (1 << shift) == 0) {
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
        Kind::Text => "text".to_string(),
    }
}

fn page() -> String {
    let mut page = String::from(
        "# Environment variables\n\n\
         Written from the table in `src/env.rs`, which the library itself reads: `UPDATE=1 cargo test --test environment` \
         writes this page anew.\n\n\
         A value that cannot be parsed, or is out of range, ends the job with a line that names the variable, the value and \
         what is accepted. `yes or no` is Y, YES, 1, N, NO or 0; a size may carry a suffix B, KB, MB, GB or TB.\n\n\
         | variable | values | default | meaning |\n|---|---|---|---|\n",
    );
    for v in TABLE {
        let default = if v.default.is_empty() { "-" } else { v.default };
        writeln!(page, "| `{}` | {} | {default} | {} |", v.name, values(v.kind), v.help)
            .expect("a string takes all");
    }
    page
}

#[test]
fn the_page_is_up_to_date() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/ENVIRONMENT.md");
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(&path, page()).expect("the page can be written");
    }
    let found = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        found == page(),
        "docs/ENVIRONMENT.md is not what src/env.rs says: UPDATE=1 cargo test --test environment"
    );
}
