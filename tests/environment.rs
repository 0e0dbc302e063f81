//! The pages of the environment variables contain what the table in `src/env` declares.
//! `UPDATE=1 cargo test --test environment` rewrites both.

use gasnet::env::{RANK_VARIABLES, SUBJECTS, all};
use std::fmt::Write;
use std::path::Path;

const PAGE: &str = "docs/ENVIRONMENT.md";
const MANUAL: &str = "docs/man/gasnet_environment.7";

fn page() -> String {
    let mut page = String::from(
        "# Environment variables\n\n\
         The library reads these variables in `gasnet_init`. `gasnet_info -c` prints their values.\n\n\
         - An empty value counts as not set, except that of GASNET_VERBOSEENV.\n\
         - `gasnet_init` checks all of them, also those that this program does not use. Values that\n  \
           exclude each other are invalid too.\n\
         - An invalid value ends the job with a line that names the variable, the value and what is\n  \
           accepted.\n\
         - Yes or no is written Y, YES, 1, N, NO or 0.\n\
         - A size has decimal digits, possibly with a fraction, or hexadecimal ones after 0x. It may\n  \
           have a suffix: B, KB, MB, GB or TB, or K, M, G or T. Without one it counts bytes. A size with\n  \
           an exponent, as in 1e6, is invalid.\n\
         - [Traces and statistics](guide/tracing.md#types-of-events) lists the letters of events.\n\
         - Ranks are written as 0,2-4 or *, signals as SEGV,INT.\n\
         - Rank 0 reports a GASNET_ name that is probably misspelt. GASNET_QUIET=1 silences that.\n  \
           GASNET_VERBOSEENV=1 reports every GASNET_ name that the library does not read.\n\n\
         This page is generated from `src/env/table` by `UPDATE=1 cargo test --test environment`.\n",
    );
    for subject in SUBJECTS {
        write!(
            page,
            "\n## {}\n\n| variable | values | default | meaning |\n|---|---|---|---|\n",
            subject.title
        )
        .expect("a string takes all");
        for v in subject.variables {
            let default = v.default().unwrap_or_else(|| "-".to_string());
            writeln!(page, "| `{}` | {} | {default} | {} |", v.name(), v.values(), v.help())
                .expect("a string takes all");
        }
    }
    page += &format!(
        "\n## {SET_TITLE}\n\n{SET_TEXT} gasnetrun sets them for each process that\nit \
         starts, so that a script in front of the program has them. `gasnet_init` sets them \
         under\nevery launcher.\n\n| variable | meaning |\n|---|---|\n"
    );
    for v in RANK_VARIABLES {
        writeln!(page, "| `{}` | {} |", v.name.to_string_lossy(), v.help)
            .expect("a string takes all");
    }
    page
}

const SET_TITLE: &str = "Set by the library";
const SET_TEXT: &str = "The library does not read these variables.";

/// Text in which troff sees no escapes.
fn troff(text: &str) -> String {
    text.replace('\\', "\\e").replace('-', "\\-")
}

fn manual() -> String {
    let mut page = String::from(
        ".\\\" Generated from src/env/table by: UPDATE=1 cargo test --test environment\n\
         .TH GASNET_ENVIRONMENT 7 \"\" libgasnet \"GASNet over Portals\"\n\
         .SH NAME\ngasnet_environment \\- environment variables of libgasnet\n\
         .SH DESCRIPTION\n\
         The library reads these variables in\n.BR gasnet_init ().\n\
         .B gasnet_info \\-c\nprints their values.\n\
         An empty value counts as not set, except that of GASNET_VERBOSEENV.\n\
         .BR gasnet_init ()\nchecks all of them, also those that this program does not use.\n\
         Values that exclude each other are invalid too.\n\
         An invalid value ends the job with a line that names the variable, the value and what is accepted.\n\
         .P\n\
         .I Yes or no\nis written Y, YES, 1, N, NO or 0.\n\
         A size has decimal digits, possibly with a fraction, or hexadecimal ones after 0x.\n\
         It may have a suffix: B, KB, MB, GB or TB, or K, M, G or T. Without one it counts bytes.\n\
         A size with an exponent, as in 1e6, is invalid.\n\
         Ranks are written as 0,2\\-4 or *, signals as SEGV,INT.\n\
         Rank 0 reports a GASNET_ name that is probably misspelt, unless GASNET_QUIET is set.\n",
    );
    for subject in SUBJECTS {
        writeln!(page, ".SH {}", subject.title.to_uppercase()).expect("a string takes all");
        for v in subject.variables {
            writeln!(page, ".TP\n.B {}\n({}) {}", v.name(), troff(&v.values()), troff(v.help()))
                .expect("a string takes all");
            if let Some(default) = v.default() {
                writeln!(page, "The default is {}.", troff(&default)).expect("a string takes all");
            }
        }
    }
    writeln!(
        page,
        ".SH {}\n{SET_TEXT}\n.BR gasnetrun (1)\nsets them for each process that it starts,\n\
         .BR gasnet_init ()\nunder every launcher.",
        SET_TITLE.to_uppercase()
    )
    .expect("a string takes all");
    for v in RANK_VARIABLES {
        writeln!(page, ".TP\n.B {}\n{}", v.name.to_string_lossy(), troff(v.help))
            .expect("a string takes all");
    }
    page.push_str(".SH SEE ALSO\n.BR gasnetrun (1),\n.BR gasnet_info (1)\n");
    page
}

/// The text of a page of the repository, after `UPDATE` has rewritten it.
fn stored(path: &str, wanted: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(path);
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(&path, wanted).expect("the page can be written");
    }
    std::fs::read_to_string(&path).unwrap_or_default()
}

fn compare(path: &str, wanted: &str) {
    assert!(
        stored(path, wanted) == wanted,
        "{path} is not what src/env/table says: UPDATE=1 cargo test --test environment"
    );
}

#[test]
fn the_page_is_up_to_date() {
    compare(PAGE, &page());
}

#[test]
fn the_manual_page_is_up_to_date() {
    compare(MANUAL, &manual());
}

#[test]
fn every_variable_is_on_both_pages_once() {
    let (page, manual) = (stored(PAGE, &page()), stored(MANUAL, &manual()));
    for v in all() {
        let (row, entry) = (format!("\n| `{}` |", v.name()), format!("\n.B {}\n", v.name()));
        assert_eq!(page.matches(&row).count(), 1, "{}", v.name());
        assert_eq!(manual.matches(&entry).count(), 1, "{}", v.name());
    }
}
