//! What `gasnet_init` refuses of a libportals, and that jobs run on the library that is named.

use super::{fails, hello, include, network, passes, shared_library, with_habits};
use crate::job::Ended;
use crate::layout::{self, succeed};
use crate::{Case, Trouble};
use std::process::Command;

/// Cases of the build with both networks.
pub(super) fn cases() -> Vec<Case> {
    vec![
        Case::new("libportals::a_put_that_fails".into(), true, a_put_that_fails),
        Case::new("libportals::gasnet_info_names_the_file".into(), true, gasnet_info_names_the_file),
    ]
}

/// Cases of the build over libportals-contrary.
pub(super) fn cases_of_contrary() -> Vec<Case> {
    let refusals: [(&'static str, &'static [&'static str]); 3] = [
        (
            "small",
            &["libportals.so", "portal table ends at 15, but entry 39 is wanted", "GASNET_PORTAL_PTE_RAR"],
        ),
        ("lies", &["libportals.so", "a trial of Portals", "that nobody caused"]),
        ("renamed", &["libportals.so", "2 is PTL_NO_SPACE in the header and PTL_ME_IN_USE in the library"]),
    ];
    let mut all: Vec<Case> = refusals
        .into_iter()
        .map(|(habit, lines)| {
            let name = format!("contrary::refused::{habit}");
            Case::new(name, true, move || fails(&hello(&with_habits(habit), 2)?.run()?, lines))
        })
        .collect();
    all.push(Case::new("contrary::small_table".into(), true, small_table));
    all
}

/// A portal table of 16 entries, with our indices in it.
fn small_table() -> Result<(), Trouble> {
    let job = hello(&with_habits("small"), 2)?
        .env("GASNET_SUPERNODE_MAXSIZE", "1")
        .env("GASNET_PORTAL_PTE_RAR", "14")
        .env("GASNET_PORTAL_PTE_AM", "15");
    passes(&job.run()?)
}

/// The library's PtlPut and PtlPutRegion, replaced by functions that return PTL_FAIL: a job fails if it really runs there.
fn a_put_that_fails() -> Result<(), Trouble> {
    let source = layout::root().join("portals/capi-tests/plant.c");
    let plant = shared_library(&source, &include(&layout::build_libportals()), "plant.so")?;
    let job = |name: &str, fault: &str| -> Result<Ended, Trouble> {
        hello(&network(name), 2)?
            .env("GASNET_SUPERNODE_MAXSIZE", "1")
            .env("LD_PRELOAD", &plant)
            .env("PLANT", fault)
            .run()
    };
    passes(&job("libportals", "none")?)?;
    passes(&job("emulation", "put_fails")?)?;
    fails(&job("libportals", "put_fails")?, &["PTL_FAIL"])
}

fn gasnet_info_names_the_file() -> Result<(), Trouble> {
    let tree = layout::build_libportals();
    let mut info = Command::new(tree.join("bin/gasnet_info"));
    info.arg("-n");
    let text = succeed(info)?;
    let file = tree.join("portals/lib/libportals3.so.0");
    let file = file.canonicalize().map_err(|e| format!("{}: {e}", file.display()))?;
    let wanted = ["libportals", "emulation", &file.display().to_string()];
    match wanted.iter().find(|w| !text.contains(**w)) {
        None => Ok(()),
        Some(w) => Err(format!("gasnet_info -n does not say {w:?}:\n{text}")),
    }
}
