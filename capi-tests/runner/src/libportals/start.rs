//! What `gasnet_init` rejects of a libportals, and that jobs run on the named library.

use super::{fails, hello, include, network, passes, place, shared_library, with_habits, write};
use crate::build_trees::{self, ClientMode, compiler, succeed};
use crate::job_launcher::JobLauncher;
use crate::outcome::JobOutcome;
use crate::test_library::TestLibrary;
use crate::{Failure, TestCase, program};
use std::fs;
use std::process::Command;

/// Cases of the build with both networks.
pub(super) fn cases() -> Vec<TestCase> {
    vec![
        TestCase::new("libportals::a_put_that_fails".into(), true, a_put_that_fails),
        TestCase::new(
            "libportals::gasnet_info_names_the_file".into(),
            true,
            gasnet_info_names_the_file,
        ),
        TestCase::new(
            "libportals::segments_within_registered_memory".into(),
            true,
            segments_within_registered_memory,
        ),
        TestCase::new("libportals::portal_table_entries".into(), true, || {
            table_entries(&network("libportals"), &[("0", "63"), ("63", "0"), ("255", "254")])
        }),
    ]
}

/// Cases of the build over libportals-contrary.
pub(super) fn cases_of_contrary() -> Vec<TestCase> {
    let refusals: [(&'static str, &'static [&'static str]); 3] = [
        (
            "twins",
            &["ranks 0 and 1 have the same address, nid 0 and pid 0", "PTL_NIDMAP and PTL_PIDMAP"],
        ),
        ("lies", &["libportals.so", "a trial of Portals", "that no operation caused"]),
        (
            "renamed",
            &["libportals.so", "2 is PTL_NO_SPACE in the header and PTL_ME_IN_USE in the library"],
        ),
    ];
    let mut all: Vec<TestCase> = refusals
        .into_iter()
        .map(|(habit, lines)| {
            let name = format!("contrary::refused::{habit}");
            TestCase::new(name, true, move || {
                let refused = |ranks| fails(&hello(&with_habits(habit), ranks)?.run()?, lines);
                [2, 3, 4].into_iter().try_for_each(refused)
            })
        })
        .collect();
    all.push(TestCase::new("contrary::small_table".into(), true, || {
        table_entries(&with_habits("small"), &[("0", "7"), ("7", "0"), ("6", "7"), ("3", "3")])
    }));
    all.push(TestCase::new("contrary::refused::entry_beyond_the_table".into(), true, || {
        let ended = hello(&with_habits("small"), 2)?.env("GASNET_PORTAL_PTE_AM", "39").run()?;
        fails(
            &ended,
            &[
                "libportals.so: its portal table ends at 7, but GASNET_PORTAL_PTE_AM=39",
                "Set GASNET_PORTAL_PTE_AM to a free entry up to 7, or unset it.",
            ],
        )?;
        is_silent_of_loading(&ended)
    }));
    for (i, header) in OTHER_HEADERS.iter().enumerate() {
        let name = format!("contrary::another_header::{}", header.name);
        all.push(TestCase::new(name, i < QUICK, move || another_header(header)));
    }
    all
}

/// A libportals-contrary compiled with a slightly different header than the library above it.
struct OtherHeader {
    name: &'static str,
    /// The change of its header.
    was: &'static str,
    is: &'static str,
    /// What the message contains, besides the file.
    says: &'static [&'static str],
}

/// The sample of a short run.
const QUICK: usize = 5;
const CRASH: &[&str] =
    &["Caught a fatal signal", "it crashed when it was tried", "portals3.h", "LD_LIBRARY_PATH"];

const OTHER_HEADERS: &[OtherHeader] = &[
    OtherHeader {
        name: "a_function_less",
        was: "int PtlGetRegion(",
        is: "#define PtlGetRegion PtlGetAnotherRegion\nint PtlGetRegion(",
        says: &["undefined symbol: PtlGetRegion"],
    },
    OtherHeader {
        name: "md_in_another_order",
        was: "    ptl_size_t max_size;\n    ptl_size_t length;\n",
        is: "    ptl_size_t length;\n    ptl_size_t max_size;\n",
        says: &[
            "with PTL_MD_MAX_SIZE and PTL_UNLINK, before another by PTL_INS_BEFORE: PtlPutRegion failed: PTL_MD_ILLEGAL",
        ],
    },
    OtherHeader {
        name: "event_in_another_order",
        was: "    ptl_size_t offset;\n    ptl_size_t mlength;\n",
        is: "    ptl_size_t mlength;\n    ptl_size_t offset;\n",
        says: &["a trial of Portals", "mlength of an event PutEnd is 0x0 where 0x8 was due"],
    },
    OtherHeader {
        name: "another_bit_for_manage_remote",
        was: "PTL_MD_MANAGE_REMOTE (1 << 2)",
        is: "PTL_MD_MANAGE_REMOTE (1 << 3)",
        says: &[
            "with PTL_MD_OP_PUT and PTL_MD_MANAGE_REMOTE: offset of an event PutEnd is 0x0 where 0x10 was due",
        ],
    },
    OtherHeader {
        name: "handles_of_another_width",
        was: "typedef uint64_t ptl_handle_any_t;",
        is: "typedef uint32_t ptl_handle_any_t;",
        says: CRASH,
    },
    OtherHeader {
        name: "md_with_a_member_less",
        was: "    void *bulk_handle;\n",
        is: "",
        says: &["a trial of Portals", "PTL_NI_FAIL"],
    },
    OtherHeader {
        name: "another_eq_none",
        was: "PTL_EQ_NONE ((ptl_handle_eq_t)-3)",
        is: "PTL_EQ_NONE ((ptl_handle_eq_t)-4)",
        says: CRASH,
    },
    OtherHeader {
        name: "another_bit_for_end_disable",
        was: "PTL_MD_EVENT_END_DISABLE (1 << 0)",
        is: "PTL_MD_EVENT_END_DISABLE (1 << 15)",
        says: &["with PTL_MD_EVENT_END_DISABLE: an event PutEnd came that no operation caused"],
    },
    OtherHeader {
        name: "another_bit_for_ack_disable",
        was: "PTL_MD_ACK_DISABLE (1 << 5)",
        is: "PTL_MD_ACK_DISABLE (1 << 15)",
        says: &["PTL_MD_ACK_DISABLE: an event Ack came that no operation caused"],
    },
    OtherHeader {
        name: "another_bit_for_truncate",
        was: "PTL_MD_TRUNCATE (1 << 4)",
        is: "PTL_MD_TRUNCATE (1 << 14)",
        says: &["with PTL_MD_TRUNCATE and", "no event PutEnd came"],
    },
    OtherHeader {
        name: "another_bit_for_max_size",
        was: "PTL_MD_MAX_SIZE (1 << 7)",
        is: "PTL_MD_MAX_SIZE (1 << 14)",
        says: &["with PTL_MD_MAX_SIZE and PTL_UNLINK", "no event Unlink came"],
    },
    OtherHeader {
        name: "another_bit_for_puts",
        was: "PTL_MD_OP_PUT (1 << 8)",
        is: "PTL_MD_OP_PUT (1 << 10)",
        says: &["a trial of Portals", "no event PutEnd came"],
    },
    OtherHeader {
        name: "another_order_of_insertion",
        was: "{ PTL_INS_AFTER = 0, PTL_INS_BEFORE }",
        is: "{ PTL_INS_BEFORE = 0, PTL_INS_AFTER }",
        says: &["with PTL_MD_MAX_SIZE and PTL_UNLINK", "PtlMEInsert failed"],
    },
    OtherHeader {
        name: "another_value_of_unlink",
        was: "{ PTL_UNLINK = 3, PTL_RETAIN = 5 }",
        is: "{ PTL_UNLINK = 5, PTL_RETAIN = 3 }",
        says: &["PTL_UNLINK", "no event Unlink came"],
    },
];

/// Rejected at start, by a line that names the file.
fn another_header(header: &OtherHeader) -> Result<(), Failure> {
    let tree = build_trees::build_contrary();
    let dir = place()?.join("another_header").join(header.name);
    let (include, lib) = (dir.join("portals"), dir.join("lib"));
    let io = |e: std::io::Error| format!("{}: {e}", dir.display());
    fs::create_dir_all(&include).map_err(io)?;
    fs::create_dir_all(&lib).map_err(io)?;
    let sources = build_trees::root().join("capi-tests/contrary");
    let text = fs::read_to_string(sources.join("include/portals/portals3.h")).map_err(io)?;
    if !text.contains(header.was) {
        return Err(format!("the header of libportals-contrary has no {:?}", header.was));
    }
    fs::write(include.join("portals3.h"), text.replacen(header.was, header.is, 1)).map_err(io)?;
    let library = lib.join("libportals.so");
    let mut cc = compiler();
    // The compiler rejects handles that are too narrow.
    cc.args(["-std=gnu99", "-O2", "-shared", "-fPIC", "-w", "-I"]).arg(&dir);
    cc.arg("-I").arg(sources.join("include")).arg("-I").arg(tree.join("below/include"));
    cc.args(["contrary.c", "below.c", "connect.c"].map(|file| sources.join(file)));
    cc.arg("-o").arg(&library);
    cc.arg(format!("-Wl,-rpath,{}", tree.join("below/lib").display())).arg("-ldl");
    succeed(cc)?;
    let path = format!("{}:{}", lib.display(), tree.join("lib").display());
    let ended = hello(&with_habits(""), 2)?.env("LD_LIBRARY_PATH", path).run()?;
    fails(&ended, header.says)?;
    // The loader reports a missing function, in the name of the library that needs it.
    let file = if header.name == "a_function_less" { "libgasnet.so" } else { "lib/libportals.so" };
    fails(&ended, &[file])
}

/// The message has nothing to do with loading, and does not lead there.
fn is_silent_of_loading(ended: &JobOutcome) -> Result<(), Failure> {
    match ended.output.contains("LD_LIBRARY_PATH") {
        true => Err(ended.failure("it names LD_LIBRARY_PATH")),
        false => Ok(()),
    }
}

/// Jobs with these portal indices for puts and gets, and for active messages; the two may be
/// equal.
fn table_entries(library: &TestLibrary, pairs: &[(&str, &str)]) -> Result<(), Failure> {
    let p = program::named("testgasnet").ok_or("testgasnet.c is missing")?;
    let binary = build_trees::compiled(&p.source, ClientMode::Seq)?;
    for (rar, am) in pairs {
        let ended = library
            .job(&binary, &p.args, JobLauncher::Gasnetrun, 2)?
            .env("GASNET_SUPERNODE_MAXSIZE", "1")
            .env("GASNET_PORTAL_PTE_RAR", rar)
            .env("GASNET_PORTAL_PTE_AM", am)
            .run()?;
        passes(&ended, "testgasnet")?;
    }
    Ok(())
}

/// The library's PtlPut and PtlPutRegion, replaced by functions that return PTL_FAIL: a job
/// fails if it really uses that library.
fn a_put_that_fails() -> Result<(), Failure> {
    let source = build_trees::root().join("portals/capi-tests/plant.c");
    let plant = shared_library(&source, &include(&build_trees::build_libportals()), "plant.so")?;
    let job = |name: &str, fault: &str| -> Result<JobOutcome, Failure> {
        hello(&network(name), 2)?
            .env("GASNET_SUPERNODE_MAXSIZE", "1")
            .env("LD_PRELOAD", &plant)
            .env("PLANT", fault)
            .run()
    };
    passes(&job("libportals", "none")?, "testhello")?;
    passes(&job("emulation", "put_fails")?, "testhello")?;
    fails(&job("libportals", "put_fails")?, &["PTL_FAIL"])
}

/// A libportals registers segments of FAST whole: GASNET_PHYSMEM_MAX bounds those of a host.
fn segments_within_registered_memory() -> Result<(), Failure> {
    const LARGEST: &str = "\
#include <gasnet.h>
#include <stdio.h>
int main(int argc, char **argv) {
    if (gasnet_init(&argc, &argv)) return 99;
    if (gasnet_attach(0, 0, GASNET_PAGESIZE, 0)) return 98;
    printf(\"at most %lu KB\\n\", (unsigned long)gasnet_getMaxLocalSegmentSize() >> 10);
    gasnet_barrier_notify(0, GASNET_BARRIERFLAG_ANONYMOUS);
    gasnet_barrier_wait(0, GASNET_BARRIERFLAG_ANONYMOUS);
    return 0;
}
";
    let binary = build_trees::compiled(&write("largest.c", LARGEST)?, ClientMode::Seq)?;
    for (name, is_bounded) in [("libportals", true), ("emulation", false)] {
        let job = network(name).job(&binary, &[], JobLauncher::Gasnetrun, 2)?;
        let ended = job.env("GASNET_PHYSMEM_MAX", "16MB").run()?;
        ended.tidy()?;
        // An eighth is for what is not a segment.
        if ended.code != Some(0) || ended.says("at most 7168 KB") != is_bounded {
            return Err(ended.failure(format!("{name}: expected 7168 KB: {is_bounded}")));
        }
    }
    Ok(())
}

fn gasnet_info_names_the_file() -> Result<(), Failure> {
    let tree = build_trees::build_libportals();
    let mut info = Command::new(tree.join("bin/gasnet_info"));
    info.arg("-n");
    let text = succeed(info)?;
    let file = tree.join("portals/lib/libportals3.so.0");
    let file = file.canonicalize().map_err(|e| format!("{}: {e}", file.display()))?;
    let wanted = ["name: libportals", "name: shm", &file.display().to_string()];
    match wanted.iter().find(|w| !text.contains(**w)) {
        None => Ok(()),
        Some(w) => Err(format!("gasnet_info -n does not say {w:?}:\n{text}")),
    }
}
