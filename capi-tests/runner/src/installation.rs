//! What `make install` and `make uninstall` do: copy only, into the named folders, and remove
//! the same files again. Called by the list of cases; `clients` builds programs against the
//! result. Invariant: no case runs cargo.

use crate::build_trees::{self, compiler, has_static_libc, root, succeed};
use crate::{Failure, TestCase};
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::Command;

/// One entry per test.
pub fn cases() -> Vec<TestCase> {
    let case = |name: &str, run: fn() -> Result<(), Failure>| {
        TestCase::new(format!("installation::{name}"), true, run)
    };
    vec![
        case("copies_only_and_is_removed_again", copies_only),
        case("is_removed_without_a_build", removed_without_build),
        case("named_folders", named_folders),
        case("relative_folders_are_refused", relative_folders),
        case("folders_that_flags_cannot_hold_are_refused", folders_in_flags),
        case("a_compiler_with_options_is_found", compiler_with_options),
        case("examples_without_an_installation_name_prefix", examples_elsewhere),
        case("programs_are_stripped", stripped),
        case("all_users_may_read_it", readable_by_all),
        case("no_path_of_the_builder", no_paths),
        case("a_blank_in_the_builders_path_is_reported", blank_in_path),
        case("archive_by_pkg_config", archive),
        case("pages_without_broken_links", pages).needs("python3"),
    ]
}

fn dir(name: &str) -> Result<PathBuf, Failure> {
    build_trees::require(&build_trees::build())?;
    let dir = build_trees::build().join("capi-tests/installation").join(name);
    let _ = fs::remove_dir_all(&dir);
    fs::create_dir_all(&dir).map_err(|e| format!("{}: {e}", dir.display()))?;
    Ok(dir)
}

/// `make TARGET VARIABLE=VALUE...` on a machine without cargo.
fn make(target: &str, variables: &[&str]) -> Command {
    let mut make = Command::new("make");
    make.arg("--no-print-directory").arg("-C").arg(root()).arg(target).args(variables);
    make.arg("CARGO=false");
    for name in ["MAKEFLAGS", "MFLAGS", "MAKELEVEL", "RUSTUP_HOME", "CARGO_HOME"] {
        make.env_remove(name);
    }
    make
}

/// All files and symbolic links below a folder.
fn files(below: &Path, all: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(below).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() && !path.is_symlink() {
            files(&path, all);
        } else {
            all.push(path);
        }
    }
}

fn read(path: &Path) -> Result<Vec<u8>, Failure> {
    fs::read(path).map_err(|e| format!("{}: {e}", path.display()))
}

fn text(path: &Path) -> Result<String, Failure> {
    Ok(String::from_utf8_lossy(&read(path)?).into_owned())
}

/// A file of the user in each folder outlives the removal; nothing else does.
fn copies_only() -> Result<(), Failure> {
    let to = dir("removed")?;
    let destdir = format!("DESTDIR={}", to.display());
    let variables = [destdir.as_str(), "PREFIX=/opt/gasnet"];
    succeed(make("install", &variables))?;
    let tree = to.join("opt/gasnet");
    let mut installed = Vec::new();
    files(&tree, &mut installed);
    if let Some(broken) = installed.iter().find(|f| !f.exists()) {
        return Err(format!("{} leads to no file", broken.display()));
    }
    let mut own = ["lib/own", "include/own", "share/man/man3/own.3", "share/doc/GASNet/own"]
        .map(|name| tree.join(name));
    for file in &own {
        fs::write(file, "").map_err(|e| format!("{}: {e}", file.display()))?;
    }
    succeed(make("uninstall", &variables))?;
    let mut left = Vec::new();
    files(&tree, &mut left);
    left.sort();
    own.sort();
    if left != own {
        return Err(format!("after uninstall, {left:?} are left"));
    }
    let ours =
        ["include/portals-conduit", "lib/cmake/GASNet", "bin/.debug", "share/doc/GASNet/docs"];
    match ours.iter().find(|folder| tree.join(folder).exists()) {
        Some(folder) => Err(format!("uninstall left the folder {folder}")),
        None => Ok(()),
    }
}

/// What is removed does not depend on what is still built.
fn removed_without_build() -> Result<(), Failure> {
    let to = dir("unbuilt")?;
    let destdir = format!("DESTDIR={}", to.display());
    let variables = [destdir.as_str(), "PREFIX=/opt/gasnet"];
    succeed(make("install", &variables))?;
    // Where nothing was ever built.
    let unbuilt = format!("TREE={}", to.join("no/tree").display());
    let folders = ["BINDIR=", "LIBDIR=", "INCLUDEDIR=", "MANDIR=", "DOCDIR="];
    for script in ["install", "install-portals"] {
        let mut uninstall = Command::new(root().join("ci/uninstall.sh"));
        uninstall.args([script, &to.display().to_string(), "/opt/gasnet"]).args(folders);
        uninstall.arg(&unbuilt).env("CARGO_TARGET_DIR", to.join("no/target"));
        succeed(uninstall)?;
    }
    let mut left = Vec::new();
    files(&to, &mut left);
    if left.is_empty() { Ok(()) } else { Err(format!("after uninstall, {left:?} are left")) }
}

/// The folders of a distribution, by the GNU names. Programs that are linked with a library in a
/// system folder need no run path.
fn named_folders() -> Result<(), Failure> {
    let to = dir("named")?;
    let destdir = format!("DESTDIR={}", to.display());
    let lib = "usr/lib/x86_64-linux-gnu";
    let variables = [
        destdir.as_str(),
        "prefix=/usr",
        "LIBDIR=/usr/lib/x86_64-linux-gnu",
        "INCLUDEDIR=/usr/include/gasnet",
        "mandir=/usr/man",
        "DOCDIR=/usr/share/doc/libgasnet-dev",
        "BINDIR=/usr/libexec",
        "KEEP_DEBUG=1",
    ];
    succeed(make("install", &variables))?;
    let expected = [
        format!("{lib}/libgasnet.so.0"),
        format!("{lib}/pkgconfig/gasnet-portals-par.pc"),
        format!("{lib}/cmake/GASNet/GASNetConfig.cmake"),
        "usr/include/gasnet/portals-conduit/portals-par.mak".to_string(),
        "usr/man/man3/gasnet_put.3".to_string(),
        "usr/share/doc/libgasnet-dev/README.md".to_string(),
        "usr/libexec/gasnetrun".to_string(),
        "usr/share/bash-completion/completions/gasnetrun_portals".to_string(),
    ];
    if let Some(missing) = expected.iter().find(|f| !to.join(f).exists()) {
        return Err(format!("{missing} was not installed"));
    }
    let mut all = Vec::new();
    files(&to, &mut all);
    let named =
        [lib, "usr/include/gasnet", "usr/man", "usr/share/doc/libgasnet-dev", "usr/libexec"];
    // Where shells look for completion, below the prefix.
    let fixed = [
        "usr/share/bash-completion/completions",
        "usr/share/zsh/site-functions",
        "usr/share/fish/vendor_completions.d",
    ];
    let roots = [&named[..], &fixed].concat();
    if let Some(stray) = all.iter().find(|f| !roots.iter().any(|r| f.starts_with(to.join(r)))) {
        return Err(format!("{} is in none of the named folders", stray.display()));
    }
    for file in all
        .iter()
        .filter(|f| f.extension().is_some_and(|x| x == "pc" || x == "mak" || x == "cmake"))
    {
        let text = text(file)?;
        let spoken = text.contains(&to.display().to_string());
        if text.contains("rpath") || text.contains('@') || spoken {
            return Err(format!("{} has a run path or a gap:\n{text}", file.display()));
        }
    }
    let mut pkg_config = Command::new("pkg-config");
    pkg_config.env("PKG_CONFIG_PATH", to.join(lib).join("pkgconfig"));
    pkg_config.args(["--variable=libdir", "gasnet-portals-par"]);
    let output = succeed(pkg_config)?;
    if output.trim() != "/usr/lib/x86_64-linux-gnu" {
        return Err(format!("pkg-config names {output} as the folder of the library"));
    }
    let cmake = text(&to.join(lib).join("cmake/GASNet/GASNetConfig.cmake"))?;
    if !cmake.contains("{_gasnet_here}/../../../..\"") {
        return Err(format!("the CMake package does not find its prefix:\n{cmake}"));
    }
    Ok(())
}

fn relative_folders() -> Result<(), Failure> {
    let folders = ["PREFIX=opt", "PREFIX=./opt", "LIBDIR=lib64", "docdir=doc"];
    refused("relative", &folders, "is not an absolute path")
}

fn folders_in_flags() -> Result<(), Failure> {
    let folders = [
        "PREFIX=/opt/a b",
        "PREFIX=/opt/a&b",
        "PREFIX=/opt/a|b",
        "PREFIX=/opt/a,b",
        "PREFIX=/opt/a]b",
        "LIBDIR=/opt/a\tb",
        "includedir=/opt/a;b",
    ];
    refused("flags", &folders, "has a character that make fragments")
}

/// Each of these variables is refused with these words, and nothing is written.
fn refused(name: &str, folders: &[&str], words: &str) -> Result<(), Failure> {
    let to = dir(name)?;
    let destdir = format!("DESTDIR={}/", to.display());
    for folder in folders {
        for target in ["install", "install-portals", "uninstall"] {
            let mut make = make(target, &[&destdir, folder]);
            let out = make.output().map_err(|e| e.to_string())?;
            let output = String::from_utf8_lossy(&out.stderr);
            if out.status.success() || !output.contains(words) {
                return Err(format!("make {target} {folder} was not refused: {output}"));
            }
        }
    }
    let mut written = Vec::new();
    files(&to, &mut written);
    if written.is_empty() { Ok(()) } else { Err(format!("files were written: {written:?}")) }
}

/// CC may be a compiler with options. Not as root, which would install a missing tool.
fn compiler_with_options() -> Result<(), Failure> {
    let to = dir("compiler")?;
    let id = to.join("id");
    fs::write(&id, "#!/bin/sh\necho 1\n")
        .and_then(|()| fs::set_permissions(&id, fs::Permissions::from_mode(0o755)))
        .map_err(|e| format!("{}: {e}", id.display()))?;
    let path = format!("{}:{}", to.display(), std::env::var("PATH").unwrap_or_default());
    for (cc, found) in [("cc -pipe", true), (" env  cc", true), ("no-such-cc -pipe", false)] {
        let mut tools = Command::new(root().join("ci/tools.sh"));
        tools.env("PATH", &path).env("CC", cc).env("CARGO", "true");
        let out = tools.output().map_err(|e| e.to_string())?;
        let said = String::from_utf8_lossy(&out.stderr);
        if out.status.success() != found
            || said.contains("no-such-cc, the compiler that CC names") == found
        {
            return Err(format!("CC={cc:?}: {out:?}"));
        }
    }
    Ok(())
}

/// Examples that were copied elsewhere say which variable they need.
fn examples_elsewhere() -> Result<(), Failure> {
    let to = dir("examples")?;
    let copy = to.join("Makefile");
    fs::copy(root().join("examples/Makefile"), &copy)
        .map_err(|e| format!("{}: {e}", copy.display()))?;
    let mut make = Command::new("make");
    make.arg("-C").arg(&to).arg("hello").env_remove("PREFIX");
    let out = make.output().map_err(|e| e.to_string())?;
    let said = String::from_utf8_lossy(&out.stderr);
    if out.status.success() || !said.contains("make PREFIX=/opt/gasnet") {
        return Err(format!("{out:?}"));
    }
    Ok(())
}

/// Programs are small, and a debugger finds the lines of their sources.
fn stripped() -> Result<(), Failure> {
    let to = dir("stripped")?;
    succeed(make("install", &[&format!("PREFIX={}", to.display())]))?;
    let mut names = vec!["gasnetrun", "gasnet_info", "gasnet_trace"];
    if has_portals() {
        succeed(make("install-portals", &[&format!("PREFIX={}", to.display())]))?;
        names.push("ptlrun");
    }
    for name in names {
        let sections = |path: PathBuf| -> Result<String, Failure> {
            let mut readelf = Command::new("readelf");
            readelf.arg("-SW").arg(path);
            succeed(readelf)
        };
        let program = sections(to.join("bin").join(name))?;
        if program.contains(".debug_line") || !program.contains(".gnu_debuglink") {
            return Err(format!("{name} is not stripped, or names no debug file:\n{program}"));
        }
        if !sections(to.join(format!("bin/.debug/{name}.debug")))?.contains(".debug_line") {
            return Err(format!("bin/.debug/{name}.debug has no lines of sources"));
        }
        let mut help = Command::new(to.join("bin").join(name));
        help.arg("--help");
        succeed(help)?;
    }
    Ok(())
}

/// A user whose own files are private can install it for all.
fn readable_by_all() -> Result<(), Failure> {
    let to = dir("readable")?.join("prefix");
    let mut install = Command::new("sh");
    install.args(["-c", "umask 077 && exec \"$@\"", "sh"]);
    let make = make("install", &[&format!("PREFIX={}", to.display())]);
    install.arg(make.get_program()).args(make.get_args());
    make.get_envs().for_each(|(name, _)| _ = install.env_remove(name));
    succeed(install)?;
    let mut all = Vec::new();
    files(&to, &mut all);
    if all.is_empty() {
        return Err("nothing was installed".into());
    }
    let folders = all.iter().flat_map(|f| f.ancestors().skip(1)).filter(|f| f.starts_with(&to));
    let wanted = all.iter().map(|f| (f.as_path(), 0o4)).chain(folders.map(|f| (f, 0o5)));
    for (path, bits) in wanted {
        let mode = fs::metadata(path).map_err(|e| format!("{}: {e}", path.display()))?.mode();
        if mode & bits != bits {
            return Err(format!("{} has mode {:o}", path.display(), mode & 0o777));
        }
    }
    Ok(())
}

/// Neither the folder of the build nor that of cargo's sources is in what users get.
fn no_paths() -> Result<(), Failure> {
    build_trees::require(&build_trees::build())?;
    let cargo = std::env::var("CARGO_HOME")
        .or_else(|_| std::env::var("HOME").map(|home| format!("{home}/.cargo")))
        .map_err(|e| e.to_string())?;
    let paths = [root().display().to_string(), format!("{cargo}/registry")];
    let names = [
        "lib/libgasnet.so.0",
        "lib/libgasnet.a",
        "bin/gasnetrun",
        "bin/gasnet_info",
        "bin/gasnet_trace",
    ];
    let mut all: Vec<PathBuf> = names.iter().map(|name| build_trees::build().join(name)).collect();
    if has_portals() {
        all.extend(PORTALS.iter().map(|name| released().join(name)));
    }
    for file in all {
        let bytes = read(&file)?;
        for path in &paths {
            if bytes.windows(path.len()).any(|w| w == path.as_bytes()) {
                return Err(format!("{} contains {path}", file.display()));
            }
        }
    }
    Ok(())
}

/// A script that builds says that paths stay in what it builds; one that copies does not.
fn blank_in_path() -> Result<(), Failure> {
    let to = dir("with a blank")?;
    for (script, wanted) in [("build.sh", true), ("install.sh", false)] {
        let script = to.join(script);
        let source = format!(". {}\n", root().join("ci/target.sh").display());
        fs::write(&script, source).map_err(|e| format!("{}: {e}", script.display()))?;
        let mut command = Command::new("sh");
        let out = command.arg(&script).current_dir(&to).output().map_err(|e| e.to_string())?;
        let said = String::from_utf8_lossy(&out.stderr).contains("contains these paths");
        if !out.status.success() || said != wanted {
            return Err(format!("{}: {out:?}", script.display()));
        }
        let text = String::from_utf8_lossy(&out.stderr);
        if text.contains("programs cannot be compiled against") != wanted {
            return Err(format!("{}: {out:?}", script.display()));
        }
    }
    // What compiles programs there refuses it.
    for name in ["ci/demo.sh", "ci/cross.sh"] {
        let script = to.join(name);
        fs::create_dir_all(to.join("ci"))
            .and_then(|()| fs::copy(root().join(name), &script))
            .map_err(|e| format!("{}: {e}", script.display()))?;
        let out = Command::new(&script).output().map_err(|e| e.to_string())?;
        let said = String::from_utf8_lossy(&out.stderr);
        if out.status.code() != Some(2) || !said.contains("has a blank, so no program can be") {
            return Err(format!("{}: {out:?}", script.display()));
        }
    }
    Ok(())
}

/// What `make portals` builds.
const PORTALS: [&str; 6] = [
    "libportals3_c.so",
    "libportals3.a",
    "ptlrun",
    "libcnos.so",
    "libcnos-system.so",
    "libcnos.a",
];

/// The folder of cargo's output.
fn released() -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR")
        .map_or(root().join("target"), PathBuf::from)
        .join("release")
}

/// Whether libportals3 has been built; it is optional.
fn has_portals() -> bool {
    PORTALS.iter().all(|name| released().join(name).exists())
}

/// `pkg-config --static` has all libraries that a link with the archive needs, in a program that
/// is static and in one that is not.
fn archive() -> Result<(), Failure> {
    let to = dir("archive")?;
    succeed(make("install", &[&format!("PREFIX={}", to.display())]))?;
    // The linker takes an archive where there is no shared library.
    for entry in fs::read_dir(to.join("lib")).map_err(|e| e.to_string())?.flatten() {
        if entry.file_name().to_string_lossy().contains(".so") {
            fs::remove_file(entry.path()).map_err(|e| e.to_string())?;
        }
    }
    for package in ["gasnet-portals-seq", "gasnet-portals-par"] {
        let mut pkg_config = Command::new("pkg-config");
        pkg_config.env("PKG_CONFIG_PATH", to.join("lib/pkgconfig"));
        pkg_config.args(["--static", "--cflags", "--libs", package]);
        let flags = succeed(pkg_config)?;
        let linked: &[&str] = if has_static_libc() { &["", "-static"] } else { &[""] };
        for &linked in linked {
            let mut cc = compiler();
            // A linker that does not search the libraries that another library needs.
            cc.arg("-Wl,--no-copy-dt-needed-entries");
            cc.args(linked.split_whitespace()).arg(root().join("capi-tests/clients/hello.c"));
            let program = to.join(format!("{package}{linked}"));
            cc.args(flags.split_whitespace()).arg("-o").arg(&program);
            succeed(cc)?;
            succeed(Command::new(program))?;
        }
        if !flags.split_whitespace().any(|flag| flag == "-ldl") {
            return Err(format!("{package} names no libraries of the archive: {flags}"));
        }
    }
    Ok(())
}

fn pages() -> Result<(), Failure> {
    let to = dir("pages")?;
    succeed(make("install", &[&format!("PREFIX={}", to.display())]))?;
    let mut links = Command::new(root().join("ci/links.sh"));
    links.arg(to.join("share/doc/GASNet"));
    let out = links.output().map_err(|e| e.to_string())?;
    let output = String::from_utf8_lossy(&out.stdout);
    if out.status.success() && !output.starts_with("0 links") {
        Ok(())
    } else {
        Err(output.into_owned())
    }
}
