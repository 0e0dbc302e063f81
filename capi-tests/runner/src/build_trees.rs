//! The paths of the repository and of the build trees that the Makefile makes, and how a C
//! program is compiled against one of them. A build tree has the form of an installed prefix
//! (`include lib lib/pkgconfig bin`).

use crate::Failure;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

/// Thread mode of a client, and its segment mode if that is not FAST.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ClientMode {
    /// One thread.
    Seq,
    /// Many threads, any of which may call.
    Par,
    /// Many threads, one of which calls at a time.
    Parsync,
    /// As `Seq`, for LARGE.
    LargeSeq,
    /// As `Seq`, for EVERYTHING.
    EverythingSeq,
    /// As `Par`, for EVERYTHING.
    EverythingPar,
    /// As `Parsync`, for EVERYTHING.
    EverythingParsync,
}

impl ClientMode {
    /// Its name in case names and in the names of the pkg-config files.
    pub fn name(self) -> &'static str {
        match self {
            ClientMode::Seq => "seq",
            ClientMode::Par => "par",
            ClientMode::Parsync => "parsync",
            ClientMode::LargeSeq => "large-seq",
            ClientMode::EverythingSeq => "everything-seq",
            ClientMode::EverythingPar => "everything-par",
            ClientMode::EverythingParsync => "everything-parsync",
        }
    }

    /// The macros that a client defines.
    pub const fn defines(self) -> &'static [&'static str] {
        match self {
            ClientMode::Seq => &["-D_GNU_SOURCE=1", "-DGASNET_SEQ"],
            ClientMode::Par => &["-D_GNU_SOURCE=1", "-DGASNET_PAR", "-D_REENTRANT"],
            ClientMode::Parsync => &["-D_GNU_SOURCE=1", "-DGASNET_PARSYNC", "-D_REENTRANT"],
            ClientMode::LargeSeq => &["-D_GNU_SOURCE=1", "-DGASNET_SEQ", "-DGASNET_SEGMENT_LARGE"],
            ClientMode::EverythingSeq => {
                &["-D_GNU_SOURCE=1", "-DGASNET_SEQ", "-DGASNET_SEGMENT_EVERYTHING"]
            }
            ClientMode::EverythingPar => {
                &["-D_GNU_SOURCE=1", "-DGASNET_PAR", "-D_REENTRANT", "-DGASNET_SEGMENT_EVERYTHING"]
            }
            ClientMode::EverythingParsync => &[
                "-D_GNU_SOURCE=1",
                "-DGASNET_PARSYNC",
                "-D_REENTRANT",
                "-DGASNET_SEGMENT_EVERYTHING",
            ],
        }
    }
}

/// The top of the repository.
pub fn root() -> PathBuf {
    // Relative to this crate, so that a moved checkout works after a rebuild.
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../..")
        .canonicalize()
        .expect("the repository is there")
}

/// The ordinary build tree.
pub fn build() -> PathBuf {
    root().join("build")
}

/// The build tree whose library has planted faults.
pub fn build_faults() -> PathBuf {
    root().join("build-faults")
}

/// The build tree over our own libportals3, bound by its header, together with the emulation.
pub fn build_libportals() -> PathBuf {
    root().join("build-libportals")
}

/// The build tree over libportals-contrary.
pub fn build_contrary() -> PathBuf {
    root().join("build-contrary")
}

/// The build tree for a system without processes, sockets, mappings and threads.
pub fn build_lightweight() -> PathBuf {
    root().join("build-lightweight")
}

/// Fails if the tree has no library.
pub fn require(tree: &Path) -> Result<(), Failure> {
    let lib = tree.join("lib/libgasnet.a");
    if lib.exists() {
        Ok(())
    } else {
        Err(format!("{} is missing: run `make lib faults` first", lib.display()))
    }
}

/// Whether a program exists and is not older than what it was made from.
fn is_fresh<'a>(program: &Path, inputs: impl Iterator<Item = &'a PathBuf>) -> bool {
    program.exists() && modified(program) >= inputs.filter_map(|p| modified(p)).max()
}

/// A program compiled in `mode`, under `build/capi-tests/<mode>`. It is compiled again only if
/// it is older than its sources, the headers or the library.
pub fn compiled(source: &Path, mode: ClientMode) -> Result<PathBuf, Failure> {
    compiled_by(compiler(), source, mode)
}

/// The same, compiled at the lowest priority.
pub(crate) fn compiled_patiently(source: &Path, mode: ClientMode) -> Result<PathBuf, Failure> {
    let mut cc = Command::new("nice");
    cc.args(["-n", "19"]).arg(compiler().get_program());
    compiled_by(cc, source, mode)
}

fn compiled_by(mut cc: Command, source: &Path, mode: ClientMode) -> Result<PathBuf, Failure> {
    // Overlapping cases may want the same program.
    static TURNS: Mutex<BTreeMap<PathBuf, Arc<Mutex<()>>>> = Mutex::new(BTreeMap::new());
    require(&build())?;
    let stem = source.file_stem().expect("a source file has a name");
    let dir = build().join("capi-tests").join(mode.name());
    fs::create_dir_all(&dir).map_err(|e| format!("{}: {e}", dir.display()))?;
    let program = dir.join(stem);
    let mut turns = TURNS.lock().unwrap_or_else(PoisonError::into_inner);
    let turn = Arc::clone(turns.entry(program.clone()).or_default());
    drop(turns);
    let _turn = turn.lock().unwrap_or_else(PoisonError::into_inner);
    let inputs =
        [source.to_path_buf(), root().join("capi-tests"), build().join("lib/libgasnet.so")];
    if is_fresh(&program, inputs.iter().chain(&headers())) {
        return Ok(program);
    }
    cc.args(["-std=gnu99", "-O2", "-g", "-Wall", "-Wextra", "-Werror"])
        .args(mode.defines())
        .arg("-I")
        .arg(build().join("include"))
        .arg("-I")
        .arg(root().join("capi-tests"))
        .arg(source)
        .arg("-o")
        .arg(&program)
        .arg("-L")
        .arg(build().join("lib"))
        .arg(format!("-Wl,-rpath,{}", build().join("lib").display()))
        .args(["-lgasnet", "-lpthread", "-lm"]);
    succeed(cc)?;
    Ok(program)
}

/// The program that runs a command as on an older kernel.
pub fn underkernel() -> Result<PathBuf, Failure> {
    compiled(&root().join("capi-tests/underkernel.c"), ClientMode::Seq)
}

/// The program that runs a static program as on a lightweight kernel.
pub fn underlightweight() -> Result<PathBuf, Failure> {
    compiled(&root().join("capi-tests/underlightweight.c"), ClientMode::Seq)
}

/// The functions by which a static program learns of its job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StartFunctions {
    /// Those of libcnos.
    Cnos,
    /// Those of `capi-tests/contrary/pmi.c`.
    Pmi,
}

/// A static program, compiled in `mode` with the archives of this tree and of libportals3, and
/// with these functions: what a program of a Cray XT is. It is linked again only if it is older
/// than its source or what it is linked with.
pub fn compiled_static(
    tree: &Path,
    source: &Path,
    mode: ClientMode,
    functions: StartFunctions,
) -> Result<PathBuf, Failure> {
    static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
    let _turn = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    let portals = tree.join("portals/lib");
    let (with, folder) = match functions {
        StartFunctions::Cnos => (portals.join("libcnos.a"), "static"),
        StartFunctions::Pmi => (root().join("capi-tests/contrary/pmi.c"), "static-pmi"),
    };
    let linked = [tree.join("lib/libgasnet.a"), with, portals.join("libportals3.a")];
    let stem = source.file_stem().expect("a source file has a name");
    let dir = tree.join(folder).join(mode.name());
    fs::create_dir_all(&dir).map_err(|e| format!("{}: {e}", dir.display()))?;
    let program = dir.join(stem);
    if is_fresh(&program, linked.iter().chain([&source.to_path_buf()])) {
        return Ok(program);
    }
    let mut cc = compiler();
    cc.args(["-static", "-std=gnu99", "-O2", "-g", "-Wall", "-Wextra"]).args(mode.defines());
    cc.arg("-I").arg(tree.join("include")).arg("-I").arg(tree.join("portals/include"));
    cc.arg("-I").arg(root().join("capi-tests")).arg(source).arg("-o").arg(&program);
    if functions == StartFunctions::Cnos {
        // A weak reference alone takes nothing out of an archive.
        cc.arg("-Wl,-u,cnos_get_rank");
    }
    cc.args(&linked);
    cc.args(["-lutil", "-lrt", "-lpthread", "-lm", "-ldl", "-lc"]);
    succeed(cc)?;
    Ok(program)
}

/// Whether the compiler can link static programs.
pub fn has_static_libc() -> bool {
    let mut cc = compiler();
    cc.arg("-print-file-name=libc.a");
    succeed(cc).is_ok_and(|name| Path::new(name.trim()).is_absolute())
}

/// The C compiler: `$CC`, else `cc`.
pub fn compiler() -> Command {
    Command::new(std::env::var("CC").unwrap_or_else(|_| "cc".to_string()))
}

/// Runs a tool to its end. Returns its output, or a failure with the command line.
pub fn succeed(mut command: Command) -> Result<String, Failure> {
    let line = format!("{command:?}");
    let out = command.output().map_err(|e| format!("{line}: {e}"))?;
    if out.status.success() {
        Ok(String::from_utf8_lossy(&out.stdout).into_owned())
    } else {
        let text = String::from_utf8_lossy(&out.stderr);
        Err(format!("{line}\n{}: {text}", out.status))
    }
}

fn modified(path: &Path) -> Option<SystemTime> {
    fs::metadata(path).and_then(|m| m.modified()).ok()
}

fn headers() -> Vec<PathBuf> {
    let folders = ["include", "capi-tests"].map(|folder| fs::read_dir(root().join(folder)));
    let files = folders.into_iter().flatten().flatten().flatten().map(|e| e.path());
    files.filter(|p| p.extension().is_some_and(|x| x == "h")).collect()
}
