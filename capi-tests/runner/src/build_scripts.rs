//! The scripts behind `make`, `make install` and `make cross`, and the checks of `ci/` themselves.
//! They run in a project with the scripts of this one, whose cargo is a script that compiles a few
//! lines of C. Called by the list of cases. Invariant: no case runs cargo, or writes into this
//! repository's own build trees.

use crate::build_trees::{self, root, succeed};
use crate::{Failure, TestCase, case_end};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// One entry per test.
pub fn cases() -> Vec<TestCase> {
    let case = |name: &str, run: fn() -> Result<(), Failure>| {
        TestCase::new(format!("build_scripts::{name}"), true, run)
    };
    vec![
        case("an_earlier_configuration_is_built_whole", earlier_configuration),
        case("other_flags_of_the_linker_link_anew", other_flags),
        case("a_full_disk_leaves_no_truncated_library", full_disk),
        case("a_removed_header_leaves_no_link", removed_header),
        case("the_environment_does_not_change_what_is_installed", environment),
        case("installs_without_compiler_and_objcopy", without_compiler),
        case("folders_may_end_with_slashes", slashes),
        case("a_destdir_has_any_name", any_destdir),
        case("what_a_cross_build_installs_is_removed", cross_files),
        case("cmake_of_a_library_for_seq_only", seq_only),
        case("the_cxx_compiler_next_to_the_c_compiler", cxx_compiler),
        case("checks_without_git_do_not_pass", without_git),
        case("a_signal_leaves_no_temporary_folder", signal),
        case("scripts_that_clean_up_do_it_at_signals", traps),
    ]
}

/// Stands for cargo. As cargo, it keeps what it has built for each set of features, with its time,
/// and gives it back as links.
const CARGO: &str = r#"#!/bin/sh
set -eu
features= target= before=
for word; do
    case $before in --features) features=$word ;; --target-dir) target=$word ;; esac
    before=$word
done
kept=$target/kept/${features:-none}
if [ ! -e "$kept" ]; then
    mkdir -p "$kept"
    echo "const char gasnet_made[] = \"made of <$features>\";" >"$kept/made.c"
    cc -g -fPIC -c "$kept/made.c" -o "$kept/made.o"
    ar crs "$kept/libgasnet.a" "$kept/made.o"
    echo 'extern const char gasnet_made[]; int puts(const char *); int main(void) { return puts(gasnet_made) < 0; }' >"$kept/main.c"
    cc -g "$kept/main.c" "$kept/libgasnet.a" -o "$kept/gasnetrun"
    ln "$kept/gasnetrun" "$kept/gasnet_info"
    ln "$kept/gasnetrun" "$kept/gasnet_trace"
fi
mkdir -p "$target/release"
for file in libgasnet.a gasnetrun gasnet_info gasnet_trace; do
    ln -f "$kept/$file" "$target/release/$file"
done
"#;

fn script(file: &Path, text: &str) -> Result<(), Failure> {
    fs::write(file, text)
        .and_then(|()| fs::set_permissions(file, fs::Permissions::from_mode(0o755)))
        .map_err(|e| format!("{}: {e}", file.display()))
}

/// A project that is built in a moment.
fn project(name: &str) -> Result<PathBuf, Failure> {
    build_trees::require(&build_trees::build())?;
    let dir = build_trees::build().join("capi-tests/build_scripts").join(name);
    let _ = fs::remove_dir_all(&dir);
    fs::create_dir_all(&dir).map_err(|e| format!("{}: {e}", dir.display()))?;
    let names = [
        "Makefile",
        "Cargo.toml",
        "ci",
        "cross",
        "include",
        "src",
        "docs",
        "examples",
        "completions",
        "capi-tests",
        "README.md",
        "LICENSE-MIT",
        "LICENSE-APACHE",
    ];
    for name in names {
        std::os::unix::fs::symlink(root().join(name), dir.join(name))
            .map_err(|e| format!("{name}: {e}"))?;
    }
    script(&dir.join("cargo"), CARGO)?;
    Ok(dir)
}

/// `make` in a project, in an environment without variables of this build.
fn make(project: &Path, arguments: &[&str]) -> Command {
    let mut make = Command::new("timeout");
    make.args(["-k", "5", "120", "make", "--no-print-directory", "-C"]).arg(project);
    make.arg(format!("CARGO={}", project.join("cargo").display())).args(arguments);
    for name in ["MAKEFLAGS", "MFLAGS", "MAKELEVEL", "CC", "CXX", "LDFLAGS", "RUSTFLAGS"] {
        make.env_remove(name);
    }
    make
}

fn output(mut command: Command) -> Result<Output, Failure> {
    command.output().map_err(|e| format!("{command:?}: {e}"))
}

/// Whether a file contains a text.
fn holds(file: &Path, text: &str) -> Result<bool, Failure> {
    let bytes = fs::read(file).map_err(|e| format!("{}: {e}", file.display()))?;
    Ok(bytes.windows(text.len()).any(|w| w == text.as_bytes()))
}

/// What the tree has is made of these features.
fn made_of(project: &Path, features: &str) -> Result<(), Failure> {
    let text = format!("made of <{features}>");
    for file in ["lib/libgasnet.so.0", "lib/libgasnet.a", "bin/gasnetrun", "bin/gasnet_info"] {
        if !holds(&project.join("build").join(file), &text)? {
            return Err(format!("{file} is not {text}"));
        }
    }
    Ok(())
}

fn earlier_configuration() -> Result<(), Failure> {
    let project = project("earlier")?;
    for (portals, features) in
        [("emulation", ""), ("both", ",libportals"), ("emulation", ""), ("both", ",libportals")]
    {
        succeed(make(&project, &["lib", &format!("PORTALS={portals}")]))?;
        made_of(&project, features)?;
    }
    Ok(())
}

fn other_flags() -> Result<(), Failure> {
    let project = project("flags")?;
    for flags in ["", "-Wl,-z,origin", ""] {
        let mut make = make(&project, &["lib", "PORTALS=emulation"]);
        make.env("LDFLAGS", flags);
        succeed(make)?;
        let mut readelf = Command::new("readelf");
        readelf.arg("-dW").arg(project.join("build/lib/libgasnet.so.0"));
        if succeed(readelf)?.contains("ORIGIN") == flags.is_empty() {
            return Err(format!("libgasnet.so.0 is not linked with LDFLAGS={flags:?}"));
        }
    }
    Ok(())
}

/// A move to another file system that ends in the middle of a library: the next `make` writes the
/// library whole.
fn full_disk() -> Result<(), Failure> {
    for library in ["libgasnet.so.0", "libgasnet.a"] {
        let project = project("full")?;
        let folder = project.join("full");
        fs::create_dir_all(&folder).map_err(|e| e.to_string())?;
        let full = format!(
            "#!/bin/sh\ncase $2 in\n*/{library}) echo half >\"$2\"; exit 1 ;;\nesac\nexec /bin/mv \"$@\"\n"
        );
        script(&folder.join("mv"), &full)?;
        let path = std::env::var("PATH").unwrap_or_default();
        let mut first = make(&project, &["lib", "PORTALS=emulation"]);
        first.env("PATH", format!("{}:{path}", folder.display()));
        let out = output(first)?;
        if out.status.success() {
            return Err(format!("a build whose {library} is not written succeeds: {out:?}"));
        }
        succeed(make(&project, &["lib", "PORTALS=emulation"]))?;
        made_of(&project, "")?;
    }
    Ok(())
}

fn removed_header() -> Result<(), Failure> {
    let project = project("header")?;
    let include = project.join("build/include");
    fs::create_dir_all(&include).map_err(|e| e.to_string())?;
    std::os::unix::fs::symlink("../../include/removed.h", include.join("removed.h"))
        .map_err(|e| e.to_string())?;
    succeed(make(&project, &["lib", "PORTALS=emulation"]))?;
    if include.join("removed.h").is_symlink() {
        return Err("a link to a header that does not exist is left".to_string());
    }
    if include.join("gasnet.h").exists() { Ok(()) } else { Err("gasnet.h is missing".to_string()) }
}

/// All files and links below a folder, with their texts where they are not binary.
fn tree(below: &Path) -> Result<String, Failure> {
    let mut find = Command::new("sh");
    find.args(["-c", "cd \"$1\" && find . ! -type d | LC_ALL=C sort && cat include/portals-conduit/*.mak lib/pkgconfig/*.pc lib/cmake/GASNet/*", "sh"]);
    find.arg(below);
    succeed(find)
}

/// Variables with the names of the scripts' own, and another compiler at the installation.
fn environment() -> Result<(), Failure> {
    let project = project("environment")?;
    succeed(make(&project, &["lib", "PORTALS=emulation", "CC=cc -pipe"]))?;
    let to = project.join("to");
    let prefix = format!("PREFIX={}", to.display());
    succeed(make(&project, &["install", &prefix]))?;
    let plain = tree(&to)?;
    if !plain.contains("GASNET_CC = cc -pipe\n") {
        return Err(format!("GASNET_CC is not the compiler of the build:\n{plain}"));
    }
    for step in ["lib", "install"] {
        let own = [
            ("HOSTED", "1"),
            ("SHARED", "1"),
            ("MODES", "debug"),
            ("CROSS_TARGET", "arm"),
            ("HOST", "alpha"),
        ];
        let more: &[&str] =
            if step == "lib" { &["PORTALS=emulation", "CC=cc -pipe"] } else { &[&prefix] };
        let _ = fs::remove_dir_all(&to);
        let mut named = make(&project, &[&[step], more].concat());
        named.envs(own);
        succeed(named)?;
        if step == "lib" {
            succeed(make(&project, &["install", &prefix]))?;
        }
        let now = tree(&to)?;
        if now != plain {
            return Err(format!("the environment of make {step} changes:\n{plain}\nto:\n{now}"));
        }
    }
    Ok(())
}

/// Programs that are there stay there; a plain objcopy serves where the compiler names none.
fn without_compiler() -> Result<(), Failure> {
    let project = project("compiler")?;
    succeed(make(&project, &["lib", "PORTALS=emulation"]))?;
    let to = project.join("to");
    let prefix = format!("PREFIX={}", to.display());
    let lacking = project.join("lacking");
    fs::create_dir_all(&lacking).map_err(|e| e.to_string())?;
    let path = format!("{}:{}", lacking.display(), std::env::var("PATH").unwrap_or_default());
    for (missing, stripped) in [("", true), ("cc", true), ("objcopy", false)] {
        if !missing.is_empty() {
            script(&lacking.join(missing), "#!/bin/sh\nexit 127\n")?;
        }
        let mut install = make(&project, &["install", &prefix]);
        install.env("PATH", &path).env_remove("OBJCOPY");
        let out = output(install)?;
        let said = String::from_utf8_lossy(&out.stderr).into_owned();
        if !out.status.success() || said.contains("keeps its debug information") == stripped {
            return Err(format!("without {missing:?}: {out:?}"));
        }
        let debug = to.join("bin/.debug/gasnetrun.debug").exists();
        let inside = holds(&to.join("bin/gasnetrun"), ".debug_info")?;
        if debug != stripped || inside == stripped {
            return Err(format!("without {missing:?}: .debug {debug}, in the program {inside}"));
        }
        succeed(Command::new(to.join("bin/gasnetrun")))?;
    }
    Ok(())
}

/// The same as without them, for the run path and for the removal.
fn slashes() -> Result<(), Failure> {
    let project = project("slashes")?;
    succeed(make(&project, &["lib", "PORTALS=emulation"]))?;
    let to = project.join("to");
    let destdir = format!("DESTDIR={}", to.display());
    let folders = [
        &destdir,
        "PREFIX=/usr/",
        "BINDIR=/usr/bin/",
        "LIBDIR=/usr//lib64/",
        "INCLUDEDIR=/usr/include/gasnet/",
        "MANDIR=/usr/share/man/",
        "DOCDIR=/usr/share/doc/gasnet/",
    ];
    succeed(make(&project, &[&["install"], &folders[..]].concat()))?;
    let config = to.join("usr/lib64/pkgconfig/gasnet-portals-par.pc");
    if holds(&config, "rpath")? || !holds(&config, "${prefix}/lib64\n")? {
        return Err(format!("{} does not know /usr/lib64", config.display()));
    }
    succeed(make(&project, &[&["uninstall"], &folders[..]].concat()))?;
    for folder in [
        "usr/share/doc/gasnet",
        "usr/include/gasnet/portals-conduit",
        "usr/lib64/cmake/GASNet",
        "usr/bin/.debug",
    ] {
        if to.join(folder).exists() {
            return Err(format!("uninstall left {folder}"));
        }
    }
    Ok(())
}

fn any_destdir() -> Result<(), Failure> {
    let project = project("destdir")?;
    succeed(make(&project, &["lib", "PORTALS=emulation"]))?;
    // Make itself reads two dollars as one.
    let destdir = format!("DESTDIR={}/a \"b`c'd$$e&|\\", project.display());
    let to = project.join("a \"b`c'd$e&|\\");
    for (step, exists) in [("install", true), ("uninstall", false)] {
        succeed(make(&project, &[step, &destdir, "PREFIX=/opt"]))?;
        if to.join("opt/bin/gasnetrun").exists() != exists {
            return Err(format!("make {step}: {}: {exists} is wrong", to.display()));
        }
    }
    Ok(())
}

/// A tree as `make cross` makes it, of which `make uninstall` knows no target.
fn cross_files() -> Result<(), Failure> {
    let project = project("cross")?;
    succeed(make(&project, &["lib", "PORTALS=emulation"]))?;
    let to = project.join("to");
    let set_up = "cd \"$1\" && sed -i 's/^CROSS_TARGET=.*/CROSS_TARGET=some/' build/lib/.built &&
        echo C >build/bin/some-cc && echo C >build/bin/some-c++ && ci/install.sh '' \"$1/to\"";
    let mut install = Command::new("sh");
    install.args(["-c", set_up, "sh"]).arg(&project);
    succeed(install)?;
    let files = [
        "bin/some-cc",
        "bin/some-c++",
        "include/portals-conduit/cross-configure-some",
        "lib/cmake/GASNet/toolchain.cmake",
    ];
    if let Some(missing) = files.iter().find(|file| !to.join(file).exists()) {
        return Err(format!("{missing} is not installed"));
    }
    succeed(make(&project, &["uninstall", &format!("PREFIX={}", to.display())]))?;
    match files.iter().find(|file| to.join(file).exists()) {
        Some(left) => Err(format!("uninstall left {left}")),
        None => Ok(()),
    }
}

fn seq_only() -> Result<(), Failure> {
    let project = project("seq")?;
    succeed(make(&project, &["lib", "PORTALS=emulation"]))?;
    let set_up = "cd \"$1\" && sed -i 's/^MODES=.*/MODES=seq/' build/lib/.built &&
        ci/install.sh '' \"$1/to\"";
    let mut install = Command::new("sh");
    install.args(["-c", set_up, "sh"]).arg(&project);
    succeed(install)?;
    let config = project.join("to/lib/cmake/GASNet/GASNetConfig.cmake");
    for text in ["set(GASNet_THREADING_OPTS seq)", "set(GASNet_THREADING seq)"] {
        if !holds(&config, text)? {
            return Err(format!("{} has no {text}", config.display()));
        }
    }
    Ok(())
}

/// A compiler in a folder with a compiler's name. Without its C++ compiler, a line says so.
fn cxx_compiler() -> Result<(), Failure> {
    let project = project("cxx")?;
    let folder = project.join("gcc/bin");
    fs::create_dir_all(&folder).map_err(|e| e.to_string())?;
    script(&folder.join("gcc"), "#!/bin/sh\nexec cc \"$@\"\n")?;
    for exists in [false, true] {
        let cxx = folder.join("g++");
        if exists {
            script(&cxx, "#!/bin/sh\nexec c++ \"$@\"\n")?;
        }
        let mut command = Command::new("timeout");
        command.args(["-k", "5", "60", "ci/cross/compiler.sh", "cray-linux"]);
        command.current_dir(&project).env("CROSS_CC", folder.join("gcc")).env_remove("CROSS_CXX");
        command.env_remove("CRAYPE_VERSION");
        let out = output(command)?;
        let said = String::from_utf8_lossy(&out.stderr).into_owned();
        if !out.status.success() {
            return case_end::skip(said.lines().next().unwrap_or("no compiler for cray-linux"));
        }
        if said.contains("there is no C++ compiler") == exists {
            return Err(format!("a C++ compiler exists: {exists}; {said}"));
        }
        let written = project.join("build-cray-linux/bin/cray-linux-c++");
        if !holds(&written, &format!("exec {} ", cxx.display()))? {
            return Err(format!("{} does not run {}", written.display(), cxx.display()));
        }
    }
    Ok(())
}

/// A release is skipped; a checkout in which git fails is a failure.
fn without_git() -> Result<(), Failure> {
    let project = project("git")?;
    for (checkout, code, text) in
        [(false, 77, "no git checkout"), (true, 1, "git does not answer")]
    {
        if checkout {
            fs::write(project.join(".git"), "gitdir: /no/such/folder\n")
                .map_err(|e| e.to_string())?;
        }
        for check in ["layers", "links", "names-once", "words"] {
            let mut command = Command::new("timeout");
            command.args(["-k", "5", "60", &format!("ci/{check}.sh")]).current_dir(&project);
            let out = output(command)?;
            let said = String::from_utf8_lossy(&out.stdout).into_owned();
            let skipped = said.contains("python3 is not installed");
            if !skipped && (out.status.code() != Some(code) || !said.contains(text)) {
                return Err(format!("ci/{check}.sh, a checkout {checkout}: {out:?}"));
            }
        }
    }
    Ok(())
}

/// The first command of a script sends it SIGTERM.
fn signal() -> Result<(), Failure> {
    let project = project("signal")?;
    succeed(make(&project, &["lib", "PORTALS=emulation"]))?;
    let scratch = project.join("scratch");
    fs::create_dir_all(&scratch).map_err(|e| e.to_string())?;
    let readelf = project.join("readelf");
    script(&readelf, "#!/bin/sh\nls \"$TMPDIR\" >\"$TMPDIR.seen\"\nkill -TERM $PPID\n")?;
    let mut command = Command::new("timeout");
    command.args(["-k", "5", "60", "ci/archive.sh", "build/lib/libgasnet.a", "to.a", "^gasnet"]);
    command.current_dir(&project).env("TMPDIR", &scratch).env("READELF", &readelf);
    let out = output(command)?;
    let seen = fs::read_to_string(project.join("scratch.seen")).map_err(|e| e.to_string())?;
    let left = fs::read_dir(&scratch).map_err(|e| e.to_string())?.count();
    if out.status.code() == Some(130) && !seen.is_empty() && left == 0 {
        return Ok(());
    }
    Err(format!("{out:?}: {left} folders are left of {seen:?}"))
}

/// A shell that a signal ends does not run what it has for its exit.
fn traps() -> Result<(), Failure> {
    let mut found = 0;
    for folder in ["ci", "ci/cross", "packaging"] {
        for entry in fs::read_dir(root().join(folder)).map_err(|e| e.to_string())?.flatten() {
            let path = entry.path();
            if path.extension().is_none_or(|extension| extension != "sh") {
                continue;
            }
            let text = fs::read_to_string(&path).map_err(|e| e.to_string())?;
            let traps =
                |word: &str| text.lines().any(|l| l.starts_with("trap ") && l.contains(word));
            if traps(" EXIT") {
                found += 1;
                if ["INT", "TERM", "HUP"].iter().any(|signal| !traps(signal)) {
                    return Err(format!("{} has no trap for signals", path.display()));
                }
            }
        }
    }
    if found > 0 { Ok(()) } else { Err("no script has a trap".to_string()) }
}
