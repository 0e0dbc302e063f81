//! How the build finds, binds and rejects a libportals, and the archives of both libraries in
//! one program.

use super::{EVERY_HABIT, include, network, passes, place, with_habits, write};
use crate::build_trees::{self, ClientMode, compiler, succeed};
use crate::job_launcher::JobLauncher;
use crate::{Failure, TestCase, install, program};
use std::fmt::Write;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Cases of the build with both networks.
pub(super) fn cases() -> Vec<TestCase> {
    let mut all = Vec::new();
    let mut add = |name: &str, run: fn() -> Result<(), Failure>| {
        all.push(TestCase::new(format!("libportals::{name}"), true, run));
    };
    add("layouts_and_values_that_bindgen_sees", || {
        bindgen_sees_what_is_there(&build_trees::build_libportals(), "PTL_NO_ACK_REQ")
    });
    add("what_is_no_libportals_is_refused", what_is_no_libportals_is_refused);
    add("folders_that_no_program_finds_are_refused", folders_are_refused);
    add("objects_without_link_time_optimisation", objects_without_lto);
    add("both_archives_in_one_program", both_archives_in_one_program);
    add("libportals3_with_another_rust_archive", with_another_rust_archive);
    add("an_installed_libportals3_is_whole", an_installed_libportals3_is_whole);
    add("only_an_own_folder_is_a_run_path", only_an_own_folder_is_a_run_path);
    all
}

/// Cases of the build over libportals-contrary.
pub(super) fn cases_of_contrary() -> Vec<TestCase> {
    let layouts = || bindgen_sees_what_is_there(&build_trees::build_contrary(), "PTL_NOACK_REQ");
    vec![
        TestCase::new("contrary::layouts_and_values_that_bindgen_sees".into(), true, layouts),
        TestCase::new("contrary::both_archives_in_one_program".into(), true, archives_of_contrary),
    ]
}

/// Sizes, offsets and values in the binding equal those of the header; a test of portals3-c
/// compares its header with the crate.
fn bindgen_sees_what_is_there(tree: &Path, no_ack_req: &str) -> Result<(), Failure> {
    let path = tree.join("lib/.libportals.rs");
    let text = fs::read_to_string(&path).map_err(|e| format!("{}: {e}", path.display()))?;
    let mut c = "#include <portals/portals3.h>\n#include <stddef.h>\n".to_string();
    let (mut layouts, mut values) = (0, 0);
    // ["Size of ptl_md_t"][...- 56usize]; and ["Offset of field: ptl_md_t::start"][... - 0usize];
    for item in text.split("[\"").skip(1) {
        let (Some((what, _)), Some(number)) =
            (item.split_once("\"]"), number_before(item, "usize]"))
        else {
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
        let name = match name.trim() {
            "NO_ACK_REQ" => no_ack_req.to_string(),
            // Constants that the binding computes from other names, or from none.
            "MAX_TRANSFER" | "MD_AUTO_UNLINK" | "THREAD_SAFE" | "APPLICATION_BYPASS" => continue,
            name => format!("PTL_{name}"),
        };
        values += 1;
        let _ =
            writeln!(c, "typedef char value_{values}[(long long){name} == {value}LL ? 1 : -1];");
    }
    if layouts < 30 || values < 25 {
        return Err(format!("{}: only {layouts} layouts and {values} values", path.display()));
    }
    let source = write("layout.c", &c)?;
    let mut cc = compiler();
    cc.args(["-std=gnu99", "-fsyntax-only", "-I"]).arg(include(tree)).arg(&source);
    succeed(cc).map(|_| ())
}

/// The number that ends just before `end`.
fn number_before<'a>(text: &'a str, end: &str) -> Option<&'a str> {
    let head = &text[..text.find(end)?];
    let start = head.rfind(|c: char| !c.is_ascii_digit())? + 1;
    Some(&head[start..])
}

/// testam, linked with the archive of our library and with these.
fn linked_with(tree: &Path, archives: &[&Path], name: &str) -> Result<PathBuf, Failure> {
    let p = program::named("testam").ok_or("testam.c is missing")?;
    let binary = place()?.join(name);
    let mut cc = compiler();
    cc.args(["-std=gnu99", "-O2"])
        .args(ClientMode::Seq.defines())
        .arg("-I")
        .arg(tree.join("include"));
    cc.arg("-I").arg(build_trees::root().join("capi-tests")).arg(p.source).arg("-o").arg(&binary);
    cc.arg(tree.join("lib/libgasnet.a")).args(archives);
    cc.args(["-lgcc_s", "-lutil", "-lrt", "-lpthread", "-lm", "-ldl", "-lc"]);
    succeed(cc)?;
    let mut needed = Command::new("readelf");
    needed.arg("-d").arg(&binary);
    let text = succeed(needed)?;
    if text.contains("libportals") || text.contains("libgasnet") {
        return Err(format!("{}: it needs a shared library of ours:\n{text}", binary.display()));
    }
    Ok(binary)
}

/// libgasnet.a and libportals3.a each contain a Portals and a Rust runtime, and names that are
/// equal.
fn both_archives_in_one_program() -> Result<(), Failure> {
    let tree = build_trees::build_libportals();
    let binary = linked_with(&tree, &[&tree.join("portals/lib/libportals3.a")], "archives")?;
    for name in ["libportals", "emulation"] {
        let job = network(name).job(&binary, &["10".into()], JobLauncher::Gasnetrun, 3)?;
        passes(&job.env("GASNET_SUPERNODE_MAXSIZE", "1").run()?, "testam")?;
    }
    Ok(())
}

/// A C program that contains libportals3.a and another Rust archive, in either order.
fn with_another_rust_archive() -> Result<(), Failure> {
    let dir = place()?.join("two-archives");
    fs::create_dir_all(&dir).map_err(|e| format!("{}: {e}", dir.display()))?;
    let other = install::other_rust_archive(&dir)?;
    let text = "#include <portals3.h>\nint other(void);\n\
        int main(void) { int n; return PtlInit(&n) == PTL_OK ? other() - 1 : 2; }\n";
    let source = dir.join("main.c");
    fs::write(&source, text).map_err(|e| format!("{}: {e}", source.display()))?;
    let tree = build_trees::build_libportals();
    let ours = tree.join("portals/lib/libportals3.a");
    for (name, archives) in [("ours_first", [&ours, &other]), ("ours_last", [&other, &ours])] {
        let program = dir.join(name);
        let mut cc = compiler();
        cc.arg("-I").arg(include(&tree)).arg(&source).arg("-o").arg(&program).args(archives);
        cc.args(["-lgcc_s", "-lutil", "-lrt", "-lpthread", "-lm", "-ldl", "-lc"]);
        succeed(cc)?;
        succeed(Command::new(program))?;
    }
    Ok(())
}

/// `both_archives_in_one_program` with a libportals only.
fn archives_of_contrary() -> Result<(), Failure> {
    let tree = build_trees::build_contrary();
    let sources = build_trees::root().join("capi-tests/contrary");
    let mut objects = Vec::new();
    for name in ["contrary", "below", "connect"] {
        let object = place()?.join(name).with_extension("o");
        let mut cc = compiler();
        cc.args(["-std=gnu99", "-O2", "-c", "-I"]).arg(sources.join("include"));
        cc.arg("-I").arg(tree.join("below/include")).arg(sources.join(name).with_extension("c"));
        cc.arg("-o").arg(&object);
        succeed(cc)?;
        objects.push(object);
    }
    let archive = place()?.join("libcontrary.a");
    let mut ar = Command::new("ar");
    ar.arg("crs").arg(&archive).args(&objects);
    succeed(ar)?;
    // It loads libportals3 when it is initialised.
    let below = format!("-Wl,-rpath,{}", tree.join("below/lib").display());
    let binary = linked_with(&tree, &[&archive, Path::new(&below)], "archives-contrary")?;
    let job = with_habits(EVERY_HABIT).job(&binary, &["10".into()], JobLauncher::Gasnetrun, 3)?;
    passes(&job.run()?, "testam")
}

/// `make install-portals` of what ci/build.sh built, below `stage`. Installing only copies.
fn install_portals(stage: &Path, prefix: &str) -> Result<(), Failure> {
    let _ = fs::remove_dir_all(stage);
    let mut make = Command::new("make");
    make.arg("--no-print-directory").arg("-C").arg(build_trees::root()).arg("install-portals");
    make.arg(format!("DESTDIR={}", stage.display())).arg(format!("PREFIX={prefix}"));
    make.env("CARGO_TARGET_DIR", build_trees::root().join("target/libportals"));
    make.env("CARGO", "false");
    succeed(make).map(drop)
}

/// libcnos finds libportals3 next to itself. In a folder of the system the dynamic linker does so.
/// Both are executable, as rpmbuild wants it.
fn only_an_own_folder_is_a_run_path() -> Result<(), Failure> {
    let stage = place()?.join("run-path");
    for (prefix, wanted) in [("/usr", false), ("/opt/portals3", true)] {
        install_portals(&stage, prefix)?;
        let lib = stage.join(prefix.trim_start_matches('/')).join("lib");
        for (name, wanted) in [("libcnos.so.0", wanted), ("libportals3.so.0", false)] {
            let file = lib.join(name);
            let mut readelf = Command::new("readelf");
            readelf.arg("-dW").arg(&file);
            let dynamic = succeed(readelf)?;
            if dynamic.contains("PATH)") != wanted {
                return Err(format!(
                    "{name} under {prefix} has, or lacks, a run path:\n{dynamic}"
                ));
            }
            let mode = fs::metadata(&file).map_err(|e| e.to_string())?.permissions().mode();
            if mode & 0o777 != 0o755 {
                return Err(format!("{name} has mode {mode:o}"));
            }
        }
    }
    Ok(())
}

/// `make install-portals` installs everything that a program needs under the named prefix.
fn an_installed_libportals3_is_whole() -> Result<(), Failure> {
    let stage = place()?.join("stage");
    install_portals(&stage, "/opt/portals3")?;
    let prefix = stage.join("opt/portals3");
    let ask = |what: &[&str]| -> Result<Vec<String>, Failure> {
        let mut pkg_config = Command::new("pkg-config");
        pkg_config.args(what).arg("portals3").env("PKG_CONFIG_PATH", prefix.join("lib/pkgconfig"));
        let text = succeed(pkg_config)?;
        Ok(text
            .split_whitespace()
            .map(|w| w.replace("/opt/portals3", &prefix.display().to_string()))
            .collect())
    };
    if ask(&["--variable=prefix"])? != [prefix.display().to_string()] {
        return Err("portals3.pc names another prefix than /opt/portals3".into());
    }
    // The next `make` builds what it built before.
    let mut networks = Command::new(build_trees::root().join("ci/networks.sh"));
    networks.env("PKG_CONFIG_PATH", prefix.join("lib/pkgconfig"));
    for name in ["PORTALS", "PORTALS_PREFIX", "PORTALS_INCLUDE", "PORTALS_LIBS"] {
        networks.env_remove(name);
    }
    let networks = succeed(networks)?;
    if networks.trim() != "emulation" {
        return Err(format!("with our portals3.pc, make would build {networks}"));
    }
    // Shared, as a program that states all libraries, and static.
    let mut links: Vec<(&[&str], &str)> =
        vec![(&["--libs"], ""), (&["--static", "--libs"], "-Wl,--no-copy-dt-needed-entries")];
    if build_trees::has_static_libc() {
        links.push((&["--static", "--libs"], "-static"));
    }
    for (libraries, linked) in links {
        let binary = place()?.join(format!("ring-installed{linked}"));
        let mut cc = compiler();
        cc.args(["-std=c99", "-D_POSIX_C_SOURCE=200809L"]).args(ask(&["--cflags"])?);
        cc.args(linked.split_whitespace());
        cc.arg(build_trees::root().join("portals/capi-tests/ring.c")).arg("-o").arg(&binary);
        cc.args(ask(libraries)?);
        succeed(cc)?;
        let mut job = Command::new(prefix.join("bin/ptlrun"));
        job.args(["-n", "3"]).arg(&binary);
        let text = succeed(job)?;
        if !text.contains("ring: PASS") {
            return Err(format!("the ring over the installed library, {linked}: {text}"));
        }
    }
    Ok(())
}

/// The build's messages for folders without a libportals. Only the build script runs; the
/// library is not compiled.
fn what_is_no_libportals_is_refused() -> Result<(), Failure> {
    let dir = place()?.join("refused");
    let _ = fs::remove_dir_all(&dir);
    let prefix = |name: &str, header: Option<(&str, &str)>| -> Result<PathBuf, Failure> {
        let p = dir.join(name);
        let write = |file: PathBuf, text: &str| {
            fs::create_dir_all(file.parent().expect("a directory"))
                .and_then(|()| fs::write(&file, text))
        };
        let done = write(p.join("lib/libportals.so"), "").and_then(|()| match header {
            Some((file, text)) => write(p.join("include").join(file), text),
            None => Ok(()),
        });
        done.map_err(|e| format!("{}: {e}", p.display()))?;
        Ok(p)
    };
    let ours = build_trees::root().join("portals/capi/include/portals3.h");
    let header = fs::read_to_string(&ours).map_err(|e| format!("{}: {e}", ours.display()))?;
    let less = header.replace("int PtlMEInsert(", "int PtlMEInsertNot(");
    let no_ack = header.replace("PTL_NO_ACK_REQ", "PTL_ACK_NEVER");
    // A library without symbols: an object file serves.
    let lacking = prefix("lacking", Some(("portals3.h", &header)))?;
    let functions: String = header
        .lines()
        .filter_map(|l| l.strip_prefix("int Ptl").and_then(|l| l.split('(').next()))
        .filter(|f| *f != "GetRegion")
        .fold(String::new(), |all, f| all + &format!("int Ptl{f}(void) {{ return 0; }}\n"));
    let source = dir.join("lacking.c");
    fs::write(&source, functions).map_err(|e| format!("{}: {e}", source.display()))?;
    let mut cc = compiler();
    cc.args(["-shared", "-fPIC", "-w"])
        .arg(&source)
        .arg("-o")
        .arg(lacking.join("lib/libportals.so"));
    succeed(cc)?;

    let faceless = header.replace("PTL_IFACE_DEFAULT", "PTL_IFACE_OTHER");
    let cases: [(PathBuf, &[&str]); 7] = [
        (dir.join("nothing"), &["nothing", "neither libportals3 nor libportals"]),
        (prefix("headless", None)?, &["headless", "neither portals/portals3.h nor portals3.h"]),
        (
            prefix("four", Some(("portals4.h", "#define PTL_LE_OP_PUT 1\n")))?,
            &["four/include/portals4.h", "Portals 4", "PtlMEInsert"],
        ),
        (
            prefix("less", Some(("portals3.h", &less)))?,
            &["less/include/portals3.h", "no PtlMEInsert,"],
        ),
        (
            prefix("no_ack", Some(("portals3.h", &no_ack)))?,
            &["no_ack/include/portals3.h", "PTL_NO_ACK_REQ or PTL_NOACK_REQ"],
        ),
        (
            prefix("faceless", Some(("portals3.h", &faceless)))?,
            &["faceless/include/portals3.h", "PTL_IFACE_DEFAULT", "PORTALS_INCLUDE=", "-include"],
        ),
        (lacking, &["lacking/lib/libportals.so", "the library has no PtlGetRegion"]),
    ];
    for (path, lines) in cases {
        let text = build_script(&[("PORTALS_PREFIX", &path.display().to_string())])?;
        let said: Vec<&str> =
            text.lines().filter_map(|l| l.strip_prefix("cargo::error=")).collect();
        if said.len() != 1 || lines.iter().any(|line| !said[0].contains(line)) {
            return Err(format!(
                "{}: expected one line with {lines:?}, got {said:?}",
                path.display()
            ));
        }
    }
    let prefix = build_trees::build_libportals().join("portals").display().to_string();
    let text = build_script(&[("PORTALS_PREFIX", &prefix), ("LIBCLANG_PATH", "/nowhere")])?;
    if !text.contains("cargo::error=libclang is missing") || !text.contains("libclang-dev") {
        return Err(format!("without libclang: {text}"));
    }
    found_in_three_ways()?;
    let default = dir.join("default.h");
    fs::write(&default, "#define PTL_IFACE_DEFAULT PTL_IFACE_OTHER\n")
        .map_err(|e| format!("{}: {e}", default.display()))?;
    options_supply_an_interface(&dir.join("faceless/include"), &default)?;
    let text = build_script(&[("PORTALS_INCLUDE", "/usr/include")])?;
    if !text.contains("cargo::error=PORTALS_INCLUDE is set without PORTALS_LIBS") {
        return Err(format!("PORTALS_INCLUDE alone: {text}"));
    }
    Ok(())
}

/// Relative folders, and those that flags cannot hold, are refused before anything is compiled.
fn folders_are_refused() -> Result<(), Failure> {
    let lib = build_trees::build_libportals().join("portals/lib").display().to_string();
    let libs = format!("-L{lib} -lportals3");
    let cases: [(&[(&str, &str)], &str); 6] = [
        (&[("PORTALS_PREFIX", "build-libportals/portals")], "is no absolute path"),
        (&[("PORTALS_PREFIX", "/opt/my portals")], "' ' cannot be in this path"),
        (&[("PORTALS_PREFIX", "/opt/a&b")], "'&' cannot be in this path"),
        (&[("PORTALS_INCLUDE", "include"), ("PORTALS_LIBS", &libs)], "is no absolute path"),
        (
            &[("PORTALS_INCLUDE", "/usr/include"), ("PORTALS_LIBS", "-L../lib -lportals3")],
            "../lib is no absolute path",
        ),
        (
            &[("PORTALS_INCLUDE", "/usr/include"), ("PORTALS_LIBS", "lib/libportals3.a")],
            "lib/libportals3.a is no absolute path",
        ),
    ];
    for (variables, wanted) in cases {
        let text = build_script(variables)?;
        let said: Vec<&str> =
            text.lines().filter_map(|l| l.strip_prefix("cargo::error=")).collect();
        if said.len() != 1 || !said[0].contains(wanted) {
            return Err(format!("{variables:?}: expected one line with {wanted:?}, got {text}"));
        }
    }
    Ok(())
}

/// No flag of the user makes objects for a linker plugin, which would take them for all that the
/// archive has.
fn objects_without_lto() -> Result<(), Failure> {
    let target = format!("CFLAGS_{}-unknown-linux-gnu", std::env::consts::ARCH);
    let prefix = build_trees::build_libportals().join("portals").display().to_string();
    for name in ["CFLAGS", "HOST_CFLAGS", &target] {
        let out = build_script(&[("PORTALS_PREFIX", &prefix), (name, "-O2 -flto")])?;
        for archive in ["libgasnet_shim.a", "libgasnet_portals_shim.a"] {
            let mut readelf = Command::new("readelf");
            readelf.arg("-SW").arg(place()?.join("out").join(archive));
            let sections = succeed(readelf)?;
            if !sections.contains(".text") || sections.contains(".gnu.lto_") {
                return Err(format!("{name}: sections of {archive}: {sections}\n{out}"));
            }
        }
    }
    Ok(())
}

/// The words of PORTALS_INCLUDE that are options of the compiler, and their arguments.
fn options_supply_an_interface(include: &Path, default: &Path) -> Result<(), Failure> {
    let lib = build_trees::build_libportals().join("portals/lib").display().to_string();
    let (include, default) = (include.display(), default.display());
    for option in [
        format!("-include {default}"),
        "-DPTL_IFACE_DEFAULT=PTL_IFACE_OTHER".into(),
        "-D PTL_IFACE_DEFAULT=PTL_IFACE_OTHER".into(),
    ] {
        let words = format!("{option} {include}");
        let libs = format!("-L{lib} -lportals3");
        let text = build_script(&[("PORTALS_INCLUDE", &words), ("PORTALS_LIBS", &libs)])?;
        if text.contains("cargo::error") || !text.contains(&lib) {
            return Err(format!("PORTALS_INCLUDE={words}: {text}"));
        }
    }
    Ok(())
}

/// By prefix, by flags, by pkg-config.
fn found_in_three_ways() -> Result<(), Failure> {
    let prefix = build_trees::build_libportals().join("portals");
    let (include, lib) =
        (prefix.join("include").display().to_string(), prefix.join("lib").display().to_string());
    let flags = format!("-L{lib} -lportals3");
    let ways: [&[(&str, &str)]; 3] = [
        &[("PORTALS_PREFIX", &prefix.display().to_string())],
        &[("PORTALS_INCLUDE", &include), ("PORTALS_LIBS", &flags)],
        &[("PKG_CONFIG_PATH", &format!("{lib}/pkgconfig"))],
    ];
    // Without a shared library no run path is passed on.
    let static_only = place()?.join("static-only");
    let _ = fs::remove_dir_all(&static_only);
    let archive = static_only.join("lib/libportals3.a");
    fs::create_dir_all(static_only.join("lib"))
        .and_then(|()| fs::copy(prefix.join("lib/libportals3.a"), &archive))
        .and_then(|_| {
            std::os::unix::fs::symlink(prefix.join("include"), static_only.join("include"))
        })
        .map_err(|e| format!("{}: {e}", archive.display()))?;
    let text = build_script(&[("PORTALS_PREFIX", &static_only.display().to_string())])?;
    if text.contains("cargo::error") || text.contains("rpath") || !text.contains("=portals3\n") {
        return Err(format!("{}: {text}", archive.display()));
    }
    for way in ways {
        let text = build_script(way)?;
        let found = format!("cargo::rustc-link-search=native={lib}");
        if text.contains("cargo::error") || !text.contains(&found) {
            return Err(format!("{way:?}: {text}"));
        }
    }
    Ok(())
}

/// The output of build.rs with these variables.
pub(super) fn build_script(variables: &[(&str, &str)]) -> Result<String, Failure> {
    let dir = build_trees::root().join("target/libportals/release/build");
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
    command
        .current_dir(build_trees::root())
        .env_remove("PORTALS_PREFIX")
        .env_remove("PORTALS_INCLUDE");
    command
        .env_remove("PORTALS_LIBS")
        .env("OUT_DIR", out)
        .env("TARGET", &target)
        .env("HOST", &target);
    command.env("OPT_LEVEL", "1").env("PROFILE", "release").env("DEBUG", "false");
    command
        .env("CARGO_CFG_TARGET_ARCH", std::env::consts::ARCH)
        .env("CARGO_CFG_TARGET_OS", "linux");
    command.env("CARGO_CFG_TARGET_ENV", "gnu").env("CARGO_CFG_TARGET_FEATURE", "");
    command.env("CARGO_MANIFEST_DIR", build_trees::root()).envs(variables.iter().copied());
    let output = command.output().map_err(|e| format!("build script: {e}"))?;
    Ok(String::from_utf8_lossy(&output.stdout).into_owned()
        + &String::from_utf8_lossy(&output.stderr))
}
