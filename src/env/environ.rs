//! Reading the environment: that of this process, or the one that all ranks of the job agreed on.
//! Called by the declarations, and directly for variables of launchers and clients.
//!
//! Invariant: [`adopt`] is called at most once, by `runtime::agreed_environment`, before the job
//! is visible to the client. Variables that launchers set per process, and those of one host, are
//! always read from the process's own.

use super::rank_variables::is_rank_entry;
use core::ffi::c_char;
use std::ffi::CStr;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::sync::OnceLock;

/// The environment of all ranks, in the form of [`snapshot`], if those of the processes differ.
static ADOPTED: OnceLock<Vec<u8>> = OnceLock::new();
/// Prefixes of the variables by which launchers, and those of a libportals, distinguish processes.
const LAUNCHER_PREFIXES: &[&str] = &[
    "GASNETI_",
    "GASNET_SPAWN_FDS=",
    "HYDI_",
    "HYDRA_",
    "MPIR_",
    "MPI_LOCAL",
    "OMPI_",
    "OPAL_",
    "ORTE_",
    "PMIX_",
    "PMI_",
    "PRTE_",
    "PTL_",
    "SLURM",
    "SRUN_",
    "_=",
];

/// Variables that say something of one host or of one login, not of the job; and so do those that
/// begin with [`OF_LOGIN`].
const OF_HOST: &[&str] = &[
    "DBUS_SESSION_BUS_ADDRESS",
    "DISPLAY",
    "HOST",
    "HOSTNAME",
    "KRB5CCNAME",
    "MAIL",
    "XAUTHORITY",
    "XDG_RUNTIME_DIR",
    "XDG_SESSION_ID",
];

const OF_LOGIN: &[u8] = b"SSH_";

/// Whether a variable belongs to one host or one login.
pub fn is_of_host(name: &[u8]) -> bool {
    OF_HOST.iter().any(|known| known.as_bytes() == name) || name.starts_with(OF_LOGIN)
}

/// Whether an entry `name=...` may differ between ranks: a launcher or the library sets it, or it
/// belongs to a host.
pub(super) fn is_launcher_entry(entry: &[u8]) -> bool {
    let name = entry.split(|&b| b == b'=').next().unwrap_or_default();
    LAUNCHER_PREFIXES.iter().any(|prefix| entry.starts_with(prefix.as_bytes()))
        || is_rank_entry(entry)
        || is_of_host(name)
}

/// The environment that all ranks agreed on, unless a launcher sets this variable per process, it
/// belongs to a host, or it is one of the client that this process alone has: it may have been set
/// meanwhile.
fn adopted_for(name: &[u8]) -> Option<&'static [u8]> {
    let block = ADOPTED.get()?;
    let is_own = name.starts_with(b"GASNET_") || name.starts_with(b"GEX_");
    let is_agreed = !is_launcher_entry(&[name, b"="].concat());
    (is_agreed && (is_own || find(block, name).is_some())).then_some(block)
}

/// The value of a variable as text, possibly empty; `None` if it is not set.
pub fn lookup(name: &str) -> Option<String> {
    lookup_bytes(name).map(|value| String::from_utf8_lossy(&value).into_owned())
}

/// The value of a variable as it is set: names of files need not be UTF-8.
pub(super) fn lookup_bytes(name: &str) -> Option<Vec<u8>> {
    match adopted_for(name.as_bytes()) {
        Some(block) => find(block, name.as_bytes()).map(|v| v.to_bytes().to_vec()),
        None => std::env::var_os(name).map(OsStringExt::into_vec),
    }
}

/// The value of a variable as a C string, or null. Valid until this process changes its
/// environment.
pub fn raw(name: &CStr) -> *mut c_char {
    match adopted_for(name.to_bytes()) {
        Some(block) => {
            find(block, name.to_bytes()).map_or(core::ptr::null_mut(), |v| v.as_ptr().cast_mut())
        }
        None => sys::environment::get(name),
    }
}

/// The environment of this process without the variables of launchers and of hosts: `name=value`
/// entries, sorted, each with a final NUL.
pub fn snapshot() -> Vec<u8> {
    let mut all: Vec<Vec<u8>> = std::env::vars_os()
        .map(|(name, value)| [name.as_bytes(), b"=", value.as_bytes(), b"\0"].concat())
        .filter(|entry| !is_launcher_entry(entry))
        .collect();
    all.sort();
    all.concat()
}

/// Replaces the environment of this process by another rank's [`snapshot`], for all later
/// look-ups.
pub fn adopt(block: Vec<u8>) {
    let _ = ADOPTED.set(block);
}

/// The value of a variable in a [`snapshot`].
fn find<'a>(block: &'a [u8], name: &[u8]) -> Option<&'a CStr> {
    let entries =
        block.split_inclusive(|&b| b == 0).filter_map(|e| CStr::from_bytes_with_nul(e).ok());
    entries.filter(|e| e.to_bytes().starts_with(name)).find_map(|e| {
        let at = name.len();
        (e.to_bytes().get(at) == Some(&b'=')).then(|| &e[at + 1..])
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_of_a_snapshot() {
        let block = b"AB=1\0ABC=2=3\0EMPTY=\0";
        let value = |name: &str| find(block, name.as_bytes()).map(CStr::to_bytes);
        assert_eq!(value("AB"), Some(&b"1"[..]));
        assert_eq!(value("ABC"), Some(&b"2=3"[..]));
        assert_eq!(value("EMPTY"), Some(&b""[..]));
        assert_eq!(value("A"), None);
    }

    #[test]
    fn variables_of_launchers() {
        assert!(is_launcher_entry(b"GASNET_RANK=3"));
        assert!(is_launcher_entry(b"PMI_RANK=3") && is_launcher_entry(b"_=/bin/true"));
        assert!(!is_launcher_entry(b"GASNET_QUIET=1") && !is_launcher_entry(b"PATH=/bin"));
        assert!(is_launcher_entry(b"SSH_TTY=/dev/pts/0") && is_launcher_entry(b"HOSTNAME=a=b"));
        assert!(!is_launcher_entry(b"HOSTNAMES=a") && !is_launcher_entry(b"A=HOSTNAME"));
    }

    /// Any bytes are a snapshot; a value is what stands between its name and the next NUL.
    fn any_snapshot(block: &[u8]) {
        let mut reader = fuzz::InputReader::new(block);
        let length = usize::from(reader.byte() % 8);
        let name = reader.bytes(length);
        if let Some(value) = find(block, name) {
            let entry = [name, b"=", value.to_bytes_with_nul()].concat();
            assert!(block.windows(entry.len()).any(|part| part == entry));
        }
        is_launcher_entry(block);
    }

    #[test]
    fn fuzz_snapshot() {
        fuzz::check("snapshot", 10_000, any_snapshot);
    }
}
