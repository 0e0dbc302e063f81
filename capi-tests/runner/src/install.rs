//! The libraries of a tree. Tested are the shared library's name and exports, the bounds of
//! the static archive, and dlopen. Tested too are data that a client may define, and what
//! gasnetrun passes on. `clients` builds programs against an installed tree.

use crate::build_trees::{self, ClientMode, compiler, succeed};
use crate::job_launcher::JobLauncher;
use crate::outcome::JobOutcome;
use crate::test_job::TestJob;
use crate::{Failure, TestCase};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// One entry per test.
pub fn cases() -> Vec<TestCase> {
    let mut all = Vec::new();
    let mut add = |name: &str, run: fn() -> Result<(), Failure>| {
        all.push(TestCase::new(format!("install::{name}"), true, run));
    };
    add("exports", exports);
    add("soname_and_nodelete", soname);
    add("archive_in_bounds", archive_in_bounds);
    add("archive_with_another_rust_archive", with_another_rust_archive);
    add("dlopen", dlopen);
    for (name, flags) in [("pie", ["-fPIE", "-pie"]), ("no_pie", ["-fno-pie", "-no-pie"])] {
        for (of, with_archive) in [("shared", false), ("archive", true)] {
            all.push(TestCase::new(
                format!("install::client_data_{of}_{name}"),
                true,
                move || client_data(&flags, with_archive),
            ));
        }
    }
    let mut add = |name: &str, run: fn() -> Result<(), Failure>| {
        all.push(TestCase::new(format!("install::{name}"), true, run));
    };
    add("client_data_in_a_shared_object", client_data_in_a_shared_object);
    add("gasnetrun_arguments_and_stdin", gasnetrun_passes_all);
    all
}

fn dir(name: &str) -> Result<PathBuf, Failure> {
    build_trees::require(&build_trees::build())?;
    let dir = build_trees::build().join("capi-tests/install").join(name);
    fs::create_dir_all(&dir).map_err(|e| format!("{}: {e}", dir.display()))?;
    Ok(dir)
}

fn source(dir: &Path, text: &str) -> Result<PathBuf, Failure> {
    let path = dir.join("main.c");
    fs::write(&path, text).map_err(|e| format!("{}: {e}", path.display()))?;
    Ok(path)
}

fn ran(ended: &JobOutcome, word: &str) -> Result<(), Failure> {
    ended.tidy()?;
    if ended.code == Some(0) && ended.output.contains(word) {
        Ok(())
    } else {
        Err(ended.failure(format!("expected exit code 0 and {word:?}")))
    }
}

fn exported() -> Result<Vec<String>, Failure> {
    build_trees::require(&build_trees::build())?;
    let mut nm = Command::new("nm");
    nm.args(["-D", "--defined-only", "--without-symbol-versions"])
        .arg(build_trees::build().join("lib/libgasnet.so"));
    Ok(succeed(nm)?
        .lines()
        .filter_map(|l| l.split_whitespace().last())
        .map(str::to_string)
        .collect())
}

fn exports() -> Result<(), Failure> {
    let names = exported()?;
    let foreign: Vec<&String> = names
        .iter()
        .filter(|n| {
            !["gasnet_", "gasnett_", "gasneti_", "gex_", "LIBGASNET_"]
                .iter()
                .any(|p| n.starts_with(p))
        })
        .collect();
    if !foreign.is_empty() {
        return Err(format!("foreign names are exported: {foreign:?}"));
    }
    let families = [
        "AMRequestShort",
        "AMRequestMedium",
        "AMRequestLong",
        "AMRequestLongAsync",
        "AMReplyShort",
        "AMReplyMedium",
        "AMReplyLong",
    ];
    for family in families {
        for n in 0..=16 {
            let name = format!("gasnet_{family}{n}");
            if !names.contains(&name) {
                return Err(format!("{name} is not exported"));
            }
        }
    }
    let others = "init attach exit mynode nodes getenv getSegmentInfo getNodeInfo getMaxLocalSegmentSize \
        getMaxGlobalSegmentSize ErrorName ErrorDesc set_waitmode AMPoll AMGetMsgSource AMMaxArgs AMMaxMedium \
        AMMaxLongRequest AMMaxLongReply hold_interrupts resume_interrupts hsl_init hsl_destroy hsl_lock hsl_unlock \
        hsl_trylock get put get_bulk put_bulk memset get_nb put_nb get_nb_bulk put_nb_bulk memset_nb wait_syncnb \
        try_syncnb wait_syncnb_all wait_syncnb_some try_syncnb_all try_syncnb_some try_syncnb_nopoll \
        try_syncnb_some_nopoll try_syncnb_all_nopoll get_nbi put_nbi get_nbi_bulk put_nbi_bulk memset_nbi \
        wait_syncnbi_gets wait_syncnbi_puts wait_syncnbi_all try_syncnbi_gets try_syncnbi_puts try_syncnbi_all \
        begin_nbi_accessregion end_nbi_accessregion put_val put_nb_val put_nbi_val get_val get_nb_val \
        wait_syncnb_valget barrier_notify barrier_wait barrier_try barrier barrier_result max_segsize \
        client_attach_hook \
        coll_broadcast coll_broadcast_nb coll_broadcastM coll_broadcastM_nb coll_scatter coll_scatter_nb \
        coll_scatterM coll_scatterM_nb coll_gather coll_gather_nb coll_gatherM coll_gatherM_nb \
        coll_gather_all coll_gather_all_nb coll_gather_allM coll_gather_allM_nb coll_exchange \
        coll_exchange_nb coll_exchangeM coll_exchangeM_nb coll_reduce coll_reduce_nb coll_reduceM \
        coll_reduceM_nb coll_scan coll_scan_nb coll_scanM coll_scanM_nb coll_init coll_team_split \
        coll_team_size coll_team_rank2node coll_team_node2rank coll_barrier coll_barrier_notify \
        coll_barrier_try coll_barrier_wait coll_barrier_result coll_try_sync coll_try_sync_some \
        coll_try_sync_all coll_wait_sync coll_wait_sync_some coll_wait_sync_all coll_loadTuningState \
        coll_dumpTuningState coll_dumpProfile coll_tune_generic_op coll_get_num_tree_classes \
        coll_set_tree_kind coll_set_dissem_limit";
    let missing: Vec<String> = others
        .split_whitespace()
        .map(|n| format!("gasnet_{n}"))
        .filter(|n| !names.contains(n))
        .collect();
    if missing.is_empty() { Ok(()) } else { Err(format!("not exported: {}", missing.join(" "))) }
}

fn soname() -> Result<(), Failure> {
    build_trees::require(&build_trees::build())?;
    let mut readelf = Command::new("readelf");
    readelf.arg("-d").arg(build_trees::build().join("lib/libgasnet.so"));
    let dynamic = succeed(readelf)?;
    for wanted in ["[libgasnet.so.0]", "NODELETE"] {
        if !dynamic.contains(wanted) {
            return Err(format!("{wanted} is not in the dynamic section:\n{dynamic}"));
        }
    }
    Ok(())
}

fn archive(cc: &mut Command) {
    cc.arg(build_trees::build().join("lib/libgasnet.a")).args([
        "-lgcc_s",
        "-lpthread",
        "-lm",
        "-ldl",
    ]);
}

/// The archive is small, and its global definitions are exactly the exports of the shared
/// library.
fn archive_in_bounds() -> Result<(), Failure> {
    const MOST: u64 = 8 << 20;
    build_trees::require(&build_trees::build())?;
    let path = build_trees::build().join("lib/libgasnet.a");
    let bytes = fs::metadata(&path).map_err(|e| format!("{}: {e}", path.display()))?.len();
    if bytes > MOST {
        return Err(format!("libgasnet.a has {bytes} bytes, more than {MOST}"));
    }
    let mut nm = Command::new("nm");
    nm.args(["-g", "--defined-only"]).arg(path);
    let text = succeed(nm)?;
    let mut defined: Vec<&str> =
        text.lines().filter_map(|l| l.split_whitespace().nth(2)).collect();
    defined.sort_unstable();
    let mut wanted = exported()?;
    wanted.retain(|n| !n.starts_with("LIBGASNET_"));
    wanted.sort_unstable();
    if defined == wanted {
        return Ok(());
    }
    let foreign: Vec<_> = defined.iter().filter(|n| !wanted.iter().any(|w| w == *n)).collect();
    let missing: Vec<_> = wanted.iter().filter(|w| !defined.contains(&w.as_str())).collect();
    Err(format!("the archive defines {foreign:?} in addition, and lacks {missing:?}"))
}

/// A Rust archive with its own std, whose function `other` returns 1.
pub(crate) fn other_rust_archive(dir: &Path) -> Result<PathBuf, Failure> {
    let other = dir.join("other.rs");
    let text = "#[unsafe(no_mangle)]\npub extern \"C\" fn other() -> i32 {\n\
        \x20   let t = std::thread::spawn(|| format!(\"{:?}\", std::env::args().count()).len() as i32);\n\
        \x20   std::panic::catch_unwind(|| if std::process::id() > 0 { panic!(\"planned\") }).unwrap_err();\n\
        \x20   t.join().unwrap()\n}\n";
    fs::write(&other, text).map_err(|e| format!("{}: {e}", other.display()))?;
    let mut rustc = Command::new(std::env::var("RUSTC").unwrap_or_else(|_| "rustc".to_string()));
    rustc
        .args(["--edition", "2024", "--crate-type", "staticlib", "-O", "--out-dir"])
        .arg(dir)
        .arg(&other);
    succeed(rustc)?;
    Ok(dir.join("libother.a"))
}

/// A C program that contains this archive and another Rust archive, each with its own std.
fn with_another_rust_archive() -> Result<(), Failure> {
    let dir = dir("two_archives")?;
    let other = other_rust_archive(&dir)?;
    let main = "#include <gasnet.h>\n#include <stdio.h>\nint other(void);\n\
        int main(int argc, char **argv) {\n\
        \x20   if (gasnet_init(&argc, &argv) || gasnet_attach(NULL, 0, 65536, 0)) return 1;\n\
        \x20   if (other() != 1) gasnet_exit(2);\n\
        \x20   puts(\"both\");\n\
        \x20   gasnet_exit(0);\n}\n";
    let main = source(&dir, main)?;
    for (name, ours_first) in [("ours_first", true), ("ours_last", false)] {
        let program = dir.join(name);
        let mut cc = compiler();
        cc.args(ClientMode::Par.defines()).arg("-I").arg(build_trees::build().join("include"));
        cc.arg(&main).arg("-o").arg(&program);
        if !ours_first {
            cc.arg(&other);
        }
        archive(&mut cc);
        if ours_first {
            cc.arg(&other);
        }
        cc.args(["-lgcc_s", "-lutil", "-lrt", "-lpthread", "-lm", "-ldl", "-lc"]);
        succeed(cc)?;
        let job = TestJob::new(&build_trees::build(), &program, &[], JobLauncher::PshmNodes, 2);
        ran(&job.watchdog(Duration::from_secs(60)).run()?, "both")?;
    }
    Ok(())
}

fn dlopen() -> Result<(), Failure> {
    let dir = dir("dlopen")?;
    let text = "#include <dlfcn.h>\n#include <stdio.h>\n\
        int main(int argc, char **argv) {\n\
        \x20   void *lib = dlopen(\"libgasnet.so.0\", RTLD_NOW | RTLD_LOCAL);\n\
        \x20   if (!lib) { puts(dlerror()); return 1; }\n\
        \x20   int (*init)(int *, char ***) = (int (*)(int *, char ***))dlsym(lib, \"gasnet_init\");\n\
        \x20   int (*attach)(void *, int, unsigned long, unsigned long) =\n\
        \x20       (int (*)(void *, int, unsigned long, unsigned long))dlsym(lib, \"gasnet_attach\");\n\
        \x20   unsigned (*nodes)(void) = (unsigned (*)(void))dlsym(lib, \"gasnet_nodes\");\n\
        \x20   void (*leave)(int) = (void (*)(int))dlsym(lib, \"gasnet_exit\");\n\
        \x20   if (init(&argc, &argv) || attach(0, 0, 65536, 0) || nodes() != 2) return 2;\n\
        \x20   dlclose(lib);\n\
        \x20   puts(\"loaded\");\n\
        \x20   leave(0);\n\
        \x20   return 3;\n\
        }\n";
    let program = dir.join("program");
    let mut cc = compiler();
    cc.arg(source(&dir, text)?).arg("-o").arg(&program).arg("-ldl");
    succeed(cc)?;
    let ended = TestJob::new(&build_trees::build(), &program, &[], JobLauncher::Gasnetrun, 2)
        .watchdog(Duration::from_secs(60));
    ran(&ended.run()?, "loaded")
}

/// Defines and assigns all data that a client may: `gasnet_max_segsize`,
/// `gasnett_backtrace_user`, `gasnet_client_attach_hook`, `gasnett_print_backtrace_ifenabled`.
const DATA: &str = "#include <gasnet.h>\n#include <gasnet_tools.h>\n\
    uint64_t gasnet_max_segsize = 1 << 20;\n\
    static int users, assigned;\n\
    static uintptr_t hooked;\n\
    static int user(int fd) { (void)fd; users++; return 0; }\n\
    static int assign(int fd) { (void)fd; assigned++; return 0; }\n\
    gasnett_backtrace_type_t gasnett_backtrace_user = { \"OURS\", user, 1 };\n\
    static void hook(void *base, uintptr_t size) { hooked = base ? size : 0; }\n\
    int data(int *argc, char ***argv);\n\
    int data(int *argc, char ***argv) {\n\
    \x20   gasnet_client_attach_hook = hook;\n\
    \x20   if (gasnet_init(argc, argv)) return 1;\n\
    \x20   if (gasnet_getMaxLocalSegmentSize() != 1 << 20) { puts(\"max_segsize is not seen\"); return 2; }\n\
    \x20   if (gasnet_attach(NULL, 0, 1 << 16, 0)) return 3;\n\
    \x20   if (hooked != 1 << 16) { puts(\"the attach hook was not called\"); return 4; }\n\
    \x20   if (gasnett_print_backtrace(2) || users != 1) { puts(\"backtrace_user is not seen\"); return 5; }\n\
    \x20   gasnett_print_backtrace_ifenabled(2);\n\
    \x20   if (users != 2) { puts(\"GASNET_BACKTRACE does not reach backtrace_user\"); return 6; }\n\
    \x20   gasnett_print_backtrace_ifenabled = assign;\n\
    \x20   puts(\"seen\");\n\
    \x20   return 0;\n\
    }\n";
/// Ends by a fatal error of the library, which first calls the assigned function.
const DATA_MAIN: &str = "#include <gasnet.h>\n#include <gasnet_tools.h>\n\
    int data(int *argc, char ***argv);\n\
    static int last(int fd) { (void)fd; _exit(77); }\n\
    int main(int argc, char **argv) {\n\
    \x20   int rc = data(&argc, &argv);\n\
    \x20   gasnett_flush_streams();\n\
    \x20   if (rc) gasnet_exit(rc);\n\
    \x20   gasnett_print_backtrace_ifenabled = last;\n\
    \x20   gasnett_fatalerror(\"planned\");\n\
    }\n";

/// 77 is the exit code of the function assigned last.
fn all_data_seen(program: &Path) -> Result<(), Failure> {
    let job = TestJob::new(&build_trees::build(), program, &[], JobLauncher::Alone, 1)
        .env("GASNET_BACKTRACE", "1");
    let ended = job.watchdog(Duration::from_secs(30)).run()?;
    ended.tidy()?;
    if ended.code == Some(77) && ended.output.contains("seen\n") {
        return Ok(());
    }
    Err(ended.failure("expected exit code 77 and \"seen\"".to_string()))
}

fn client_data(flags: &[&str], with_archive: bool) -> Result<(), Failure> {
    let dir =
        dir(&format!("data{}{}", flags.concat(), if with_archive { "_static" } else { "" }))?;
    let program = dir.join("program");
    let other = dir.join("data.c");
    fs::write(&other, DATA).map_err(|e| format!("{}: {e}", other.display()))?;
    let mut cc = compiler();
    cc.args(ClientMode::Seq.defines())
        .args(flags)
        .arg("-I")
        .arg(build_trees::build().join("include"));
    cc.arg(source(&dir, DATA_MAIN)?).arg(other).arg("-o").arg(&program);
    if with_archive {
        archive(&mut cc);
    } else {
        cc.arg("-L").arg(build_trees::build().join("lib")).arg("-lgasnet");
    }
    succeed(cc)?;
    all_data_seen(&program)
}

/// The data are defined in a shared object of the client: a language runtime.
fn client_data_in_a_shared_object() -> Result<(), Failure> {
    let dir = dir("data_in_object")?;
    let (object, program) = (dir.join("libdata.so"), dir.join("program"));
    let other = dir.join("data.c");
    fs::write(&other, DATA).map_err(|e| format!("{}: {e}", other.display()))?;
    for (file, to, flags) in [
        (other, &object, ["-shared", "-fPIC"]),
        (source(&dir, DATA_MAIN)?, &program, ["-fPIE", "-pie"]),
    ] {
        let mut cc = compiler();
        cc.args(ClientMode::Seq.defines())
            .args(flags)
            .arg("-I")
            .arg(build_trees::build().join("include"));
        cc.arg(file).arg("-o").arg(to);
        if *to == program {
            cc.arg(&object).arg(format!("-Wl,-rpath,{}", dir.display()));
        }
        cc.arg("-L").arg(build_trees::build().join("lib")).arg("-lgasnet");
        succeed(cc)?;
    }
    all_data_seen(&program)
}

/// gasnetrun passes on arguments with blanks and quotes, the environment, and standard input to
/// rank 0.
fn gasnetrun_passes_all() -> Result<(), Failure> {
    let dir = dir("gasnetrun")?;
    let text = "#include <gasnet.h>\n#include <stdio.h>\n\
        int main(int argc, char **argv) {\n\
        \x20   char line[80] = \"\";\n\
        \x20   if (gasnet_init(&argc, &argv) || gasnet_attach(NULL, 0, 65536, 0)) return 1;\n\
        \x20   if (gasnet_mynode() == 0) {\n\
        \x20       if (!fgets(line, sizeof line, stdin)) gasnet_exit(2);\n\
        \x20       printf(\"%d [%s] [%s] [%s] %s\", argc, argv[1], argv[2], getenv(\"NOT_OURS\"), line);\n\
        \x20   }\n\
        \x20   gasnet_barrier_notify(0, GASNET_BARRIERFLAG_ANONYMOUS);\n\
        \x20   gasnet_barrier_wait(0, GASNET_BARRIERFLAG_ANONYMOUS);\n\
        \x20   gasnet_exit(0);\n\
        }\n";
    let program = dir.join("program");
    let mut cc = compiler();
    cc.args(ClientMode::Seq.defines()).arg("-I").arg(build_trees::build().join("include"));
    cc.arg(source(&dir, text)?)
        .arg("-o")
        .arg(&program)
        .arg("-L")
        .arg(build_trees::build().join("lib"))
        .arg("-lgasnet");
    succeed(cc)?;
    let args = ["a b".to_string(), "\"q\" $x %0hh".to_string()];
    let job = TestJob::new(&build_trees::build(), &program, &args, JobLauncher::Gasnetrun, 3)
        .env("NOT_OURS", "x  y")
        .stdin("from the console\n")
        .watchdog(Duration::from_secs(60));
    ran(&job.run()?, "3 [a b] [\"q\" $x %0hh] [x  y] from the console\n")
}
