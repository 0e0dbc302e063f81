//! The C test programs over a real libportals: that of this repository, bound by its header alone (`build-libportals`, which
//! has the emulation too), and one that does everything else than ours does (`build-contrary`, which has nothing else). And that the
//! build, and `gasnet_init`, refuse what cannot be a libportals.
//!
//! Only where these trees have been made: they need libclang.

use crate::job::{Ended, Job, Launcher};
use crate::layout::{self, Mode, compiler, succeed};
use crate::matrix::{self, Setting, Way};
use crate::program::{self, Program};
use crate::sample::Random;
use crate::{Case, Trouble};
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Settings of a network in a short run.
const SAMPLE: usize = 7;

/// Habits of libportals-contrary that the library must live with, alone and all together.
const HABITS: &[&str] = &[
    "",
    "send_end",
    "mute",
    "negated",
    "dup",
    "eq_in_use",
    "md_in_use",
    "in_calls",
    "send_end,mute,negated,dup,eq_in_use,md_in_use,in_calls",
];

fn built(tree: &Path) -> bool {
    tree.join("lib/libgasnet.so").exists()
}

/// One case per program, setting and network; per program and habits of libportals-contrary; and the refusals.
pub fn cases(seed: u64) -> Vec<Case> {
    let mut all = Vec::new();
    if built(&layout::build_libportals()) {
        over(&mut all, seed, "libportals", SAMPLE);
        over(&mut all, seed, "emulation", 2);
        let mut add = |name: &str, run: fn() -> Result<(), Trouble>| {
            all.push(Case::new(format!("libportals::{name}"), true, run));
        };
        add("a_put_that_fails", a_put_that_fails);
        add("gasnet_info_names_the_file", gasnet_info_names_the_file);
        add("ranks_of_another_launcher", ranks_of_another_launcher);
        add("layouts_and_values_that_bindgen_sees", bindgen_sees_what_is_there);
        add("what_is_no_libportals_is_refused", what_is_no_libportals_is_refused);
    }
    if built(&layout::build_contrary()) {
        contrary(&mut all, seed);
    }
    all
}

/// The programs that run in settings of their own.
fn programs() -> Vec<Program> {
    program::all().into_iter().filter(matrix::has_settings).collect()
}

fn over(all: &mut Vec<Case>, seed: u64, network: &'static str, sample: usize) {
    let mut runs: Vec<(Program, Setting)> = Vec::new();
    for p in programs() {
        // The emulation has a table of its own; here it only must not mind its neighbour.
        let settings = matrix::settings(&p).into_iter().filter(|s| network == "libportals" || s.nodes == 2);
        runs.extend(settings.map(|s| (p.clone(), s)));
    }
    // A sample of few: each program at most once, and none of the many processes that spin.
    let mut order: Vec<usize> = (0..runs.len()).collect();
    Random::new(seed, network).shuffle(&mut order);
    let mut taken: Vec<usize> = Vec::new();
    for i in order {
        let other = |j: &usize| runs[*j].0.name != runs[i].0.name;
        if taken.len() < sample && runs[i].1.nodes <= 4 && taken.iter().all(other) {
            taken.push(i);
        }
    }
    for (i, (p, s)) in runs.into_iter().enumerate() {
        let name = format!("both::{network}::{}::{}", p.name, s.name());
        let env = vec![("GASNET_NETWORK".to_string(), network.to_string())];
        let tree = layout::build_libportals();
        all.push(Case::new(name, taken.contains(&i), move || matrix::sound_on(&tree, &p, s, &env)));
    }
}

fn contrary(all: &mut Vec<Case>, seed: u64) {
    let mut random = Random::new(seed, "contrary");
    for p in programs() {
        let mut settings = matrix::settings(&p);
        random.shuffle(&mut settings);
        // All habits in both ways, with numbers of processes and modes that the seed chooses.
        for way in [Way::Cross, Way::Portals] {
            for (habits, s) in
                HABITS.iter().zip(settings.iter().filter(|s| s.path == way && s.nodes <= 4).cycle())
            {
                let (p, s, name) = (p.clone(), *s, if habits.is_empty() { "none" } else { habits });
                let name = format!("contrary::{}::{name}::{}", p.name, s.name());
                let mut env = vec![("CONTRARY".to_string(), habits.to_string())];
                if habits.contains("in_calls") {
                    env.push(("PTL_ATTACH".into(), "0".into()));
                }
                all.push(Case::new(name, false, move || {
                    matrix::sound_on(&layout::build_contrary(), &p, s, &env)
                }));
            }
        }
    }
    let refusals: [(&'static str, &'static [&'static str]); 3] = [
        (
            "small",
            &["libportals.so", "portal table ends at 15, but entry 39 is wanted", "GASNET_PORTAL_PTE_RAR"],
        ),
        ("lies", &["libportals.so", "a trial of Portals", "that nobody caused"]),
        ("renamed", &["libportals.so", "2 is PTL_NO_SPACE in the header and PTL_ME_IN_USE in the library"]),
    ];
    for (habit, lines) in refusals {
        all.push(Case::new(format!("contrary::refused::{habit}"), true, move || refused(habit, lines)));
    }
    all.push(Case::new("contrary::small_table".into(), true, small_table));
}

fn hello(tree: &Path, nodes: u32) -> Result<Job, Trouble> {
    let p = program::named("testhello").ok_or("testhello.c is missing")?;
    let binary = layout::compiled(&p.source, Mode::Seq)?;
    Ok(Job::new(tree, &binary, &p.args, Launcher::Gasnetrun, nodes))
}

fn passes(ended: &Ended) -> Result<(), Trouble> {
    ended.tidy()?;
    if ended.code == Some(0) && ended.says("testhello: PASS") {
        Ok(())
    } else {
        Err(ended.trouble("it did not pass"))
    }
}

fn fails(ended: &Ended, lines: &[&str]) -> Result<(), Trouble> {
    ended.tidy()?;
    if ended.code == Some(0) {
        return Err(ended.trouble("it passed"));
    }
    match lines.iter().find(|line| !ended.output.contains(**line)) {
        Some(line) => Err(ended.trouble(format!("it does not say {line:?}"))),
        None => Ok(()),
    }
}

fn refused(habit: &str, lines: &[&str]) -> Result<(), Trouble> {
    fails(&hello(&layout::build_contrary(), 2)?.env("CONTRARY", habit).run()?, lines)
}

/// A portal table of 16 entries, with our indices in it.
fn small_table() -> Result<(), Trouble> {
    let job = hello(&layout::build_contrary(), 2)?
        .env("CONTRARY", "small")
        .env("GASNET_SUPERNODE_MAXSIZE", "1")
        .env("GASNET_PORTAL_PTE_RAR", "14")
        .env("GASNET_PORTAL_PTE_AM", "15");
    passes(&job.run()?)
}

/// Where tests of this file build.
fn place() -> Result<PathBuf, Trouble> {
    let dir = layout::build_libportals().join("tests");
    fs::create_dir_all(&dir).map_err(|e| format!("{}: {e}", dir.display()))?;
    Ok(dir)
}

/// The library's PtlPut and PtlPutRegion, replaced by functions that return PTL_FAIL: a job fails if it really runs there.
fn a_put_that_fails() -> Result<(), Trouble> {
    let plant = place()?.join("plant.so");
    let mut cc = compiler();
    cc.args(["-shared", "-fPIC", "-std=c99", "-I"])
        .arg(layout::root().join("portals/capi/include"))
        .arg(layout::root().join("portals/capi-tests/plant.c"))
        .arg("-o")
        .arg(&plant)
        .arg("-ldl");
    succeed(cc)?;
    let tree = layout::build_libportals();
    let job = |network: &str, fault: &str| -> Result<Ended, Trouble> {
        hello(&tree, 2)?
            .env("GASNET_NETWORK", network)
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

/// The map of a launcher or of the system is used: one in which we are somebody else is refused.
fn ranks_of_another_launcher() -> Result<(), Trouble> {
    let tree = layout::build_libportals();
    let map = hello(&tree, 1)?.env("PTL_MY_RID", "0").env("PTL_NIDMAP", "0").env("PTL_PIDMAP", "0");
    passes(&map.run()?)?;
    let source = place()?.join("cnos.c");
    let text = "#include <portals3.h>\n#include <stdlib.h>\n\
        int cnos_get_nidpid_map(ptl_process_id_t **map);\n\
        int cnos_get_nidpid_map(ptl_process_id_t **map) {\n\
            static ptl_process_id_t all[2] = {{0, 0}, {0, 1}};\n\
            all[1].pid += getenv(\"CNOS_LIES\") != NULL;\n\
            *map = all;\n\
            return 2;\n\
        }\n";
    fs::write(&source, text).map_err(|e| format!("{}: {e}", source.display()))?;
    let cnos = place()?.join("cnos.so");
    let mut cc = compiler();
    cc.args(["-shared", "-fPIC", "-std=c99", "-I"]).arg(layout::root().join("portals/capi/include"));
    cc.arg(&source).arg("-o").arg(&cnos);
    succeed(cc)?;
    passes(&hello(&tree, 2)?.env("LD_PRELOAD", &cnos).run()?)?;
    fails(
        &hello(&tree, 2)?.env("LD_PRELOAD", &cnos).env("CNOS_LIES", "1").run()?,
        &["cnos_get_nidpid_map: rank 1 is", "but PtlGetId says"],
    )?;
    fails(&hello(&tree, 3)?.env("LD_PRELOAD", &cnos).run()?, &["cnos_get_nidpid_map tells of 2 processes"])?;
    fails(&hello(&tree, 2)?.env("PTL_MY_RID", "7").run()?, &["PTL_MY_RID=7", "start the job with gasnetrun"])
}

/// The binding that bindgen made.
fn binding() -> Result<PathBuf, Trouble> {
    let dir = layout::root().join("target/libportals/release/build");
    let found = fs::read_dir(&dir)
        .map_err(|e| format!("{}: {e}", dir.display()))?
        .flatten()
        .map(|e| e.path().join("out/portals3.rs"))
        .filter(|p| p.exists())
        .max_by_key(|p| fs::metadata(p).and_then(|m| m.modified()).ok());
    found.ok_or_else(|| format!("{}: no portals3.rs", dir.display()))
}

/// Sizes, offsets and values in the binding are those of the header; a test of portals3-c compares the header with the crate.
fn bindgen_sees_what_is_there() -> Result<(), Trouble> {
    let path = binding()?;
    let text = fs::read_to_string(&path).map_err(|e| format!("{}: {e}", path.display()))?;
    let mut c = "#include <portals3.h>\n#include <stddef.h>\n".to_string();
    let (mut layouts, mut values) = (0, 0);
    // ["Size of ptl_md_t"][...- 56usize]; and ["Offset of field: ptl_md_t::start"][... - 0usize];
    for item in text.split("[\"").skip(1) {
        let (Some((what, _)), Some(number)) = (item.split_once("\"]"), number_before(item, "usize]")) else {
            continue;
        };
        let check = if let Some(name) = what.strip_prefix("Size of ") {
            format!("sizeof({name})")
        } else if let Some(field) = what.strip_prefix("Offset of field: ") {
            let (name, member) = field.split_once("::").ok_or("an offset without a member")?;
            format!("offsetof({name}, {})", member.strip_suffix('_').unwrap_or(member))
        } else {
            continue;
        };
        if check.contains("ptl_") && !check.contains("gasneti") {
            layouts += 1;
            let _ = writeln!(c, "typedef char layout_{layouts}[{check} == {number} ? 1 : -1];");
        }
    }
    for item in text.split("pub const GASNETI_PTL_").skip(1) {
        let Some((name, rest)) = item.split_once(':') else { continue };
        let Some((_, value)) = rest.split_once('=') else { continue };
        let value = value.split(';').next().unwrap_or_default().trim();
        let name = name.trim();
        if name.starts_with("MAX_TRANSFER") || name.ends_with("AUTO_UNLINK") {
            continue;
        }
        values += 1;
        let _ = writeln!(c, "typedef char value_{values}[(long long)PTL_{name} == {value}LL ? 1 : -1];");
    }
    if layouts < 30 || values < 25 {
        return Err(format!("{}: only {layouts} layouts and {values} values", path.display()));
    }
    let source = place()?.join("layout.c");
    fs::write(&source, c).map_err(|e| format!("{}: {e}", source.display()))?;
    let mut cc = compiler();
    cc.args(["-std=gnu99", "-fsyntax-only", "-I"])
        .arg(layout::root().join("portals/capi/include"))
        .arg(&source);
    succeed(cc).map(|_| ())
}

/// The number that ends just before `end`.
fn number_before<'a>(text: &'a str, end: &str) -> Option<&'a str> {
    let head = &text[..text.find(end)?];
    let start = head.rfind(|c: char| !c.is_ascii_digit())? + 1;
    Some(&head[start..])
}

/// What the build says to places that have no libportals. It is asked alone, without compiling the library again.
fn what_is_no_libportals_is_refused() -> Result<(), Trouble> {
    let dir = place()?.join("refused");
    let _ = fs::remove_dir_all(&dir);
    let prefix = |name: &str, header: Option<(&str, &str)>| -> Result<PathBuf, Trouble> {
        let p = dir.join(name);
        let write = |file: PathBuf, text: &str| {
            fs::create_dir_all(file.parent().expect("a directory")).and_then(|()| fs::write(&file, text))
        };
        let done = write(p.join("lib/libportals.so"), "").and_then(|()| match header {
            Some((file, text)) => write(p.join("include").join(file), text),
            None => Ok(()),
        });
        done.map_err(|e| format!("{}: {e}", p.display()))?;
        Ok(p)
    };
    let ours = layout::root().join("portals/capi/include/portals3.h");
    let header = fs::read_to_string(&ours).map_err(|e| format!("{}: {e}", ours.display()))?;
    let less = header.replace("int PtlMEInsert(", "int PtlMEInsertNot(");
    let no_ack = header.replace("PTL_NO_ACK_REQ", "PTL_ACK_NEVER");
    // A library without a symbol: an object file in its place will do.
    let lacking = prefix("lacking", Some(("portals3.h", &header)))?;
    let functions: String = header
        .lines()
        .filter_map(|l| l.strip_prefix("int Ptl").and_then(|l| l.split('(').next()))
        .filter(|f| *f != "GetRegion")
        .fold(String::new(), |all, f| all + &format!("int Ptl{f}(void) {{ return 0; }}\n"));
    let source = dir.join("lacking.c");
    fs::write(&source, functions).map_err(|e| format!("{}: {e}", source.display()))?;
    let mut cc = compiler();
    cc.args(["-shared", "-fPIC", "-w"]).arg(&source).arg("-o").arg(lacking.join("lib/libportals.so"));
    succeed(cc)?;

    let cases: [(PathBuf, &[&str]); 6] = [
        (dir.join("nothing"), &["nothing", "neither libportals3 nor libportals"]),
        (prefix("headless", None)?, &["headless", "neither portals/portals3.h nor portals3.h"]),
        (
            prefix("four", Some(("portals4.h", "#define PTL_LE_OP_PUT 1\n")))?,
            &["four/include/portals4.h", "Portals 4", "PtlMEInsert"],
        ),
        (prefix("less", Some(("portals3.h", &less)))?, &["less/include/portals3.h", "no PtlMEInsert,"]),
        (
            prefix("no_ack", Some(("portals3.h", &no_ack)))?,
            &["no_ack/include/portals3.h", "PTL_NO_ACK_REQ or PTL_NOACK_REQ"],
        ),
        (lacking, &["lacking/lib/libportals.so", "the library has no PtlGetRegion"]),
    ];
    for (path, lines) in cases {
        let text = build_script(&[("PORTALS_PREFIX", &path.display().to_string())])?;
        let said: Vec<&str> = text.lines().filter_map(|l| l.strip_prefix("cargo::error=")).collect();
        if said.len() != 1 || lines.iter().any(|line| !said[0].contains(line)) {
            return Err(format!("{}: expected one line with {lines:?}, got {said:?}", path.display()));
        }
    }
    let prefix = layout::build_libportals().join("portals").display().to_string();
    let text = build_script(&[("PORTALS_PREFIX", &prefix), ("LIBCLANG_PATH", "/nowhere")])?;
    if !text.contains("cargo::error=libclang is missing") || !text.contains("libclang-dev") {
        return Err(format!("without libclang: {text}"));
    }
    found_in_three_ways()?;
    let text = build_script(&[("PORTALS_INCLUDE", "/usr/include")])?;
    if !text.contains("cargo::error=PORTALS_INCLUDE is set without PORTALS_LIBS") {
        return Err(format!("PORTALS_INCLUDE alone: {text}"));
    }
    Ok(())
}

/// By prefix, by flags, by pkg-config.
fn found_in_three_ways() -> Result<(), Trouble> {
    let prefix = layout::build_libportals().join("portals");
    let (include, lib) =
        (prefix.join("include").display().to_string(), prefix.join("lib").display().to_string());
    let flags = format!("-L{lib} -lportals3");
    let ways: [&[(&str, &str)]; 3] = [
        &[("PORTALS_PREFIX", &prefix.display().to_string())],
        &[("PORTALS_INCLUDE", &include), ("PORTALS_LIBS", &flags)],
        &[("PKG_CONFIG_PATH", &format!("{lib}/pkgconfig"))],
    ];
    for way in ways {
        let text = build_script(way)?;
        let found = format!("cargo::rustc-link-search=native={lib}");
        if text.contains("cargo::error") || !text.contains(&found) {
            return Err(format!("{way:?}: {text}"));
        }
    }
    Ok(())
}

/// What build.rs prints with these variables.
fn build_script(variables: &[(&str, &str)]) -> Result<String, Trouble> {
    let dir = layout::root().join("target/libportals/release/build");
    let script = fs::read_dir(&dir)
        .map_err(|e| format!("{}: {e}", dir.display()))?
        .flatten()
        .filter(|e| e.file_name().to_string_lossy().starts_with("gasnet-"))
        .map(|e| e.path().join("build-script-build"))
        .filter(|p| p.exists())
        .max_by_key(|p| fs::metadata(p).and_then(|m| m.modified()).ok())
        .ok_or_else(|| format!("{}: no build script of gasnet", dir.display()))?;
    let out = place()?.join("out");
    fs::create_dir_all(&out).map_err(|e| format!("{}: {e}", out.display()))?;
    let target = format!("{}-unknown-linux-gnu", std::env::consts::ARCH);
    let mut command = Command::new(script);
    command.current_dir(layout::root()).env_remove("PORTALS_PREFIX").env_remove("PORTALS_INCLUDE");
    command.env_remove("PORTALS_LIBS").env("OUT_DIR", out).env("TARGET", &target).env("HOST", &target);
    command.env("OPT_LEVEL", "1").env("PROFILE", "release").env("DEBUG", "false");
    command.env("CARGO_CFG_TARGET_ARCH", std::env::consts::ARCH).env("CARGO_CFG_TARGET_OS", "linux");
    command.env("CARGO_CFG_TARGET_ENV", "gnu").env("CARGO_CFG_TARGET_FEATURE", "");
    command.env("CARGO_MANIFEST_DIR", layout::root()).envs(variables.iter().copied());
    let output = command.output().map_err(|e| format!("build script: {e}"))?;
    Ok(String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr))
}
