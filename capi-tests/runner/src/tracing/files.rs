//! The lines of a trace whose texts have control characters; ranks that the job lacks.

use super::{compiled_from, folder, gasnet_trace, read, run};
use crate::Failure;
use crate::build_trees;
use crate::job_launcher::JobLauncher;
use crate::test_job::TestJob;
use std::path::Path;

/// Sets a line of a source file whose name has control characters, and puts.
const ODD_NAME: &str = r#"
#include <gasnet.h>
#include <gasnet_tools.h>
int main(int argc, char **argv) {
    gasnet_init(&argc, &argv);
    gasnet_attach(NULL, 0, GASNET_PAGESIZE, 0);
    GASNETT_TRACE_SETSOURCELINE("odd\nname\x1b.c", 7);
    GASNETT_TRACE_PRINTF("tab\tulator");
    gasnet_AMPoll();
    gasnet_exit(0);
}
"#;

/// Texts of the client and of the environment do not break the lines of a trace.
pub(super) fn lines_of_other_texts() -> Result<(), Failure> {
    let file = folder("texts")?.join("trace").display().to_string();
    let program = compiled_from(ODD_NAME, "odd", "SEQ")?;
    let ended = TestJob::new(&build_trees::build(), &program, &[], JobLauncher::Gasnetrun, 1)
        .env("GASNET_TRACEFILE", &file)
        .env("GASNET_SSH_OPTIONS", "a\nb")
        .run()?;
    let trace = read(&ended, Path::new(&file))?;
    for text in [
        "GASNET_SSH_OPTIONS=a\\nb\n",
        "[odd\\nname\\u{1b}.c:7] (X) AMPOLL: ",
        "(H) tab\\tulator\n",
    ] {
        if ended.code != Some(0) || !trace.contains(text) {
            return Err(ended.failure(format!("expected exit code 0 and {text:?}:\n{trace}")));
        }
    }
    let (code, text) = gasnet_trace(&["summary", &file])?;
    match code == Some(0) && !text.contains("left out") && text.contains("u{1b}.c:7") {
        true => Ok(()),
        false => Err(format!("gasnet_trace: {code:?}: {text}")),
    }
}

/// Rank 0 warns if the files are for ranks that the job lacks.
pub(super) fn no_rank_is_named() -> Result<(), Failure> {
    let dir = folder("nodes")?;
    let file = dir.join("x-%").display().to_string();
    for (which, other) in [("TRACE", "STATS"), ("STATS", "TRACE")] {
        let names = [format!("GASNET_{which}FILE"), format!("GASNET_{which}NODES")];
        let warning = format!(
            "{} names no rank of this job: no rank writes the file of {}\n\
             ***   Name ranks from 0 to 1, or unset it.\n",
            names[1], names[0]
        );
        let others = format!("GASNET_{other}NODES");
        for (more, wanted) in [
            ((names[1].as_str(), "2-5"), 1),
            ((names[1].as_str(), "1-5"), 0),
            ((others.as_str(), "2-5"), 0),
            (("GASNET_QUIET", "1"), 0),
        ] {
            let unnamed = (names[1].as_str(), "7");
            let quiet: &[_] = if more.0 == "GASNET_QUIET" { &[unnamed] } else { &[] };
            let vars = [&[(names[0].as_str(), file.as_str()), more][..], quiet].concat();
            let ended = run("SEQ", 2, "", &vars)?;
            if ended.code != Some(0) || ended.output.matches(&warning).count() != wanted {
                return Err(
                    ended.failure(format!("{vars:?}: expected {wanted} times {warning:?}"))
                );
            }
        }
    }
    Ok(())
}
