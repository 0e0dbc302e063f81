//! What an installed tree offers to users: the commands of the README, pkg-config, the shared library's name and exports, the
//! static archive, dlopen, and data that a client may define.

use crate::job::{Ended, Job, Launcher};
use crate::layout::{self, Mode, compiler, succeed};
use crate::program;
use crate::{Case, Trouble};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// One entry each.
pub fn cases() -> Vec<Case> {
    let mut all = Vec::new();
    let mut add = |name: &str, run: fn() -> Result<(), Trouble>| {
        all.push(Case::new(format!("install::{name}"), true, run));
    };
    add("pkg_config_of_the_build_tree", || with_pkg_config(&layout::build()));
    add("make_install", make_install);
    add("plain_flags", plain_flags);
    add("exports", exports);
    add("soname_and_nodelete", soname);
    add("static_archive", static_archive);
    add("dlopen", dlopen);
    add("client_data_pie", || client_data(&["-fPIE", "-pie"], false));
    add("client_data_no_pie", || client_data(&["-fno-pie", "-no-pie"], false));
    add("client_data_static", || client_data(&[], true));
    add("gasnetrun_arguments_and_stdin", gasnetrun_passes_all);
    all
}

fn dir(name: &str) -> Result<PathBuf, Trouble> {
    layout::require(&layout::build())?;
    let dir = layout::build().join("capi-tests/install").join(name);
    fs::create_dir_all(&dir).map_err(|e| format!("{}: {e}", dir.display()))?;
    Ok(dir)
}

fn source(dir: &Path, text: &str) -> Result<PathBuf, Trouble> {
    let path = dir.join("main.c");
    fs::write(&path, text).map_err(|e| format!("{}: {e}", path.display()))?;
    Ok(path)
}

fn hello() -> Result<PathBuf, Trouble> {
    program::named("testhello").map(|p| p.source).ok_or_else(|| "testhello.c is missing".to_string())
}

fn ran(ended: &Ended, word: &str) -> Result<(), Trouble> {
    ended.tidy()?;
    if ended.code == Some(0) && ended.output.contains(word) {
        Ok(())
    } else {
        Err(ended.trouble(format!("expected exit code 0 and {word:?}")))
    }
}

/// Runs a program in the three ways of starting it, without LD_LIBRARY_PATH.
fn three_ways(tree: &Path, program: &Path) -> Result<(), Trouble> {
    for (launcher, nodes) in [(Launcher::Gasnetrun, 2), (Launcher::PshmNodes, 2), (Launcher::Alone, 1)] {
        let job = Job::new(tree, program, &[], launcher, nodes).without_library_path();
        ran(&job.watchdog(Duration::from_secs(60)).run()?, "PASS")?;
    }
    Ok(())
}

fn with_pkg_config(tree: &Path) -> Result<(), Trouble> {
    let dir = dir("pkg_config")?;
    for mode in [Mode::Seq, Mode::Par, Mode::Parsync] {
        let mut pkg = Command::new("pkg-config");
        pkg.env("PKG_CONFIG_PATH", tree.join("lib/pkgconfig"));
        pkg.args(["--cflags", "--libs", &format!("gasnet-portals-{}", mode.name())]);
        let flags = succeed(pkg)?;
        let program = dir.join(mode.name());
        let mut cc = compiler();
        cc.arg(hello()?).args(flags.split_whitespace()).arg("-o").arg(&program);
        cc.arg("-I").arg(layout::root().join("capi-tests"));
        succeed(cc)?;
        three_ways(tree, &program)?;
    }
    Ok(())
}

fn make_install() -> Result<(), Trouble> {
    let to = dir("prefix")?;
    fs::remove_dir_all(&to).map_err(|e| e.to_string())?;
    let mut install = Command::new(layout::root().join("ci/install.sh"));
    install.arg("").arg(&to);
    succeed(install)?;
    for file in [
        "include/gasnet.h",
        "lib/libgasnet.so.0",
        "lib/libgasnet-portals-par.so",
        "lib/libgasnet.a",
        "bin/gasnetrun_portals",
    ] {
        if !to.join(file).exists() {
            return Err(format!("{file} was not installed"));
        }
    }
    with_pkg_config(&to)
}

fn plain_flags() -> Result<(), Trouble> {
    let program = dir("plain")?.join("program");
    let mut cc = compiler();
    cc.arg("-DGASNET_PAR").arg("-I").arg(layout::build().join("include")).arg("-I");
    cc.arg(layout::root().join("capi-tests")).arg(hello()?).arg("-o").arg(&program);
    cc.arg("-L").arg(layout::build().join("lib")).arg("-lgasnet");
    succeed(cc)?;
    let ended = Job::new(&layout::build(), &program, &[], Launcher::Gasnetrun, 2);
    ran(&ended.watchdog(Duration::from_secs(60)).run()?, "PASS")
}

fn exported() -> Result<Vec<String>, Trouble> {
    layout::require(&layout::build())?;
    let mut nm = Command::new("nm");
    nm.args(["-D", "--defined-only", "--without-symbol-versions"])
        .arg(layout::build().join("lib/libgasnet.so"));
    Ok(succeed(nm)?.lines().filter_map(|l| l.split_whitespace().last()).map(str::to_string).collect())
}

fn exports() -> Result<(), Trouble> {
    let names = exported()?;
    let foreign: Vec<&String> = names
        .iter()
        .filter(|n| !["gasnet_", "gasnett_", "gasneti_", "LIBGASNET_"].iter().any(|p| n.starts_with(p)))
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
        client_attach_hook";
    let missing: Vec<String> =
        others.split_whitespace().map(|n| format!("gasnet_{n}")).filter(|n| !names.contains(n)).collect();
    if missing.is_empty() { Ok(()) } else { Err(format!("not exported: {}", missing.join(" "))) }
}

fn soname() -> Result<(), Trouble> {
    layout::require(&layout::build())?;
    let mut readelf = Command::new("readelf");
    readelf.arg("-d").arg(layout::build().join("lib/libgasnet.so"));
    let dynamic = succeed(readelf)?;
    for wanted in ["[libgasnet.so.0]", "NODELETE"] {
        if !dynamic.contains(wanted) {
            return Err(format!("{wanted} is not in the dynamic section:\n{dynamic}"));
        }
    }
    Ok(())
}

fn archive(cc: &mut Command) {
    cc.arg(layout::build().join("lib/libgasnet.a")).args(["-lpthread", "-lgcc_s", "-lm"]);
}

fn static_archive() -> Result<(), Trouble> {
    let program = dir("static")?.join("program");
    let mut cc = compiler();
    cc.args(Mode::Par.defines()).arg("-I").arg(layout::build().join("include")).arg("-I");
    cc.arg(layout::root().join("capi-tests")).arg(hello()?).arg("-o").arg(&program);
    archive(&mut cc);
    succeed(cc)?;
    three_ways(&layout::build(), &program)
}

fn dlopen() -> Result<(), Trouble> {
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
    let ended =
        Job::new(&layout::build(), &program, &[], Launcher::Gasnetrun, 2).watchdog(Duration::from_secs(60));
    ran(&ended.run()?, "loaded")
}

/// A client that defines `gasnet_max_segsize` and assigns `gasnet_client_attach_hook`.
fn client_data(flags: &[&str], with_archive: bool) -> Result<(), Trouble> {
    let dir = dir(&format!("data{}{}", flags.concat(), if with_archive { "_static" } else { "" }))?;
    let text = "#include <gasnet.h>\n#include <stdio.h>\n\
        uint64_t gasnet_max_segsize = 1 << 20;\n\
        static uintptr_t hooked;\n\
        static void hook(void *base, uintptr_t size) { hooked = base ? size : 0; }\n\
        int main(int argc, char **argv) {\n\
        \x20   gasnet_client_attach_hook = hook;\n\
        \x20   if (gasnet_init(&argc, &argv)) return 1;\n\
        \x20   if (gasnet_getMaxLocalSegmentSize() != 1 << 20) { puts(\"max_segsize is not seen\"); gasnet_exit(2); }\n\
        \x20   if (gasnet_attach(NULL, 0, 1 << 16, 0)) gasnet_exit(3);\n\
        \x20   if (hooked != 1 << 16) { puts(\"the attach hook was not called\"); gasnet_exit(4); }\n\
        \x20   puts(\"seen\");\n\
        \x20   gasnet_exit(0);\n\
        }\n";
    let program = dir.join("program");
    let mut cc = compiler();
    cc.args(Mode::Seq.defines()).args(flags).arg("-I").arg(layout::build().join("include"));
    cc.arg(source(&dir, text)?).arg("-o").arg(&program);
    if with_archive {
        archive(&mut cc);
    } else {
        cc.arg("-L").arg(layout::build().join("lib")).arg("-lgasnet");
    }
    succeed(cc)?;
    let ended =
        Job::new(&layout::build(), &program, &[], Launcher::Alone, 1).watchdog(Duration::from_secs(30));
    ran(&ended.run()?, "seen")
}

/// gasnetrun hands on arguments with blanks and quotes, the environment, and standard input to rank 0.
fn gasnetrun_passes_all() -> Result<(), Trouble> {
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
    cc.args(Mode::Seq.defines()).arg("-I").arg(layout::build().join("include"));
    cc.arg(source(&dir, text)?)
        .arg("-o")
        .arg(&program)
        .arg("-L")
        .arg(layout::build().join("lib"))
        .arg("-lgasnet");
    succeed(cc)?;
    let args = ["a b".to_string(), "\"q\" $x %0hh".to_string()];
    let job = Job::new(&layout::build(), &program, &args, Launcher::Gasnetrun, 3)
        .env("NOT_OURS", "x  y")
        .stdin("from the console\n")
        .watchdog(Duration::from_secs(60));
    ran(&job.run()?, "3 [a b] [\"q\" $x %0hh] [x  y] from the console\n")
}
