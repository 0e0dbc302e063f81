//! This process: its host, pausing it for a debugger, raising its limits. Called by
//! `capi::tools`, and by fatal errors and signals.

use crate::env::{self, Variable, YesNo};
use crate::report;
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Component, Path, PathBuf};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicI32, Ordering};

/// Name of this host. Async-signal-safe after the first call.
pub fn hostname() -> &'static str {
    static NAME: OnceLock<String> = OnceLock::new();
    NAME.get_or_init(|| {
        std::fs::read_to_string("/proc/sys/kernel/hostname")
            .map_or_else(|_| "localhost".to_string(), |s| s.trim().to_string())
    })
}

/// The folder in which this process works, by the path that the user has given it: that of PWD, if
/// it leads there. It may have symbolic links, which lead elsewhere on other hosts.
///
/// # Errors
/// That of the system: the folder has no path.
pub fn working_folder() -> io::Result<PathBuf> {
    let named = std::env::var_os("PWD").map(PathBuf::from).filter(|path| path.is_absolute());
    let goes_up = |path: &Path| path.components().any(|part| part == Component::ParentDir);
    let identity = |path: &Path| fs::metadata(path).map(|m| (m.dev(), m.ino())).ok();
    match named.filter(|path| !goes_up(path) && identity(path) == identity(Path::new("."))) {
        Some(path) => Ok(path.components().collect()),
        None => std::env::current_dir(),
    }
}

/// Prints where this process runs and sleeps until a debugger sets the flag with this name to 0.
pub fn freeze(flag: &AtomicI32, name: &str) {
    flag.store(1, Ordering::SeqCst);
    report::note(format_args!(
        "process {} on {} is frozen for a debugger; attach to it and set {name} to 0 to go on",
        sys::process::pid(),
        hostname()
    ));
    while flag.load(Ordering::SeqCst) != 0 {
        sys::clock::sleep_ns(100_000_000);
    }
}

/// Whether the process pauses on fatal errors (GASNET_FREEZE_ON_ERROR).
pub fn freeze_on_error() -> bool {
    env::FREEZE_ON_ERROR.get()
}

/// Whether to raise each limit of `sys::limits::RAISABLE`.
const WANTED_LIMITS: [Variable<YesNo>; 6] = [
    env::MAXIMIZE_RLIMIT_CPU,
    env::MAXIMIZE_RLIMIT_FSIZE,
    env::MAXIMIZE_RLIMIT_DATA,
    env::MAXIMIZE_RLIMIT_STACK,
    env::MAXIMIZE_RLIMIT_RSS,
    env::MAXIMIZE_RLIMIT_AS,
];

/// Raises the limits of the system in `sys::limits::RAISABLE`, except those whose
/// `GASNET_MAXIMIZE_<limit>` is no. False if one could not be raised.
pub fn maximize_limits() -> bool {
    sys::limits::RAISABLE.iter().fold(true, |ok, &(resource, name)| {
        let wanted = WANTED_LIMITS.iter().find(|v| v.name().ends_with(name));
        (!wanted.is_none_or(Variable::get) || sys::limits::maximize(resource)) && ok
    })
}
