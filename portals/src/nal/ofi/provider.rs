//! Which provider of libfabric carries the messages.
//!
//! Used by [`super::OfiWire`], and by the owner of an interface for lists. Invariant: a provider
//! that cannot reach other hosts, or lacks what the wire needs, is never taken.

use alloc::ffi::CString;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::net::IpAddr;

use super::bindings::*;
use super::library::{Libfabric, MemoryAccess, OfiError, ProviderInfo};
use super::limits::{CONTEXTS, FRAME, LEAD};

/// Providers of networks whose hardware moves messages between hosts.
const HARDWARE: [&str; 6] = ["cxi", "verbs", "psm2", "psm3", "efa", "opx"];
/// Those of plain networks, the preferred one first. A process that sleeps wakes late with `net`.
const SOFTWARE: [&str; 5] = ["tcp", "tcp;ofi_rxm", "net", "sockets", "udp;ofi_rxd"];
/// Those that put a message of any length straight into a TCP connection.
const STREAMS: [&str; 2] = ["tcp", "net"];

/// The providers that the user wants, by their names. `tcp` means all whose first part it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ProviderChoice {
    /// Any: hardware comes first.
    Any,
    /// One of these, in this order.
    Include(Vec<String>),
    /// None of these.
    Exclude(Vec<String>),
}

/// Whether puts and gets use remote access to the memory of peers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OfiRemoteAccess {
    /// All goes in frames.
    Never,
    /// With a provider of hardware that has it.
    Hardware,
    /// A provider without it is not taken.
    Always,
    /// As [`OfiRemoteAccess::Always`], with the registration of older networks: the provider
    /// chooses keys, and memory is named by its address. For tests, where software stands in for
    /// those.
    AlwaysBasic,
}

impl OfiRemoteAccess {
    /// What to look for, the best first.
    fn wanted(self) -> &'static [MemoryAccess] {
        match self {
            OfiRemoteAccess::Never => &[MemoryAccess::None],
            OfiRemoteAccess::Hardware => &[MemoryAccess::Any, MemoryAccess::None],
            OfiRemoteAccess::Always => &[MemoryAccess::Any],
            OfiRemoteAccess::AlwaysBasic => &[MemoryAccess::Basic],
        }
    }

    /// Whether it demands what a provider may lack.
    pub(super) fn is_demanded(self) -> bool {
        matches!(self, OfiRemoteAccess::Always | OfiRemoteAccess::AlwaysBasic)
    }
}

/// A provider, for people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OfiProvider {
    /// Its name, such as `tcp;ofi_rxm`.
    pub name: String,
    /// Its version.
    pub version: (u32, u32),
    /// The interfaces of this host that it reaches.
    pub interfaces: Vec<String>,
    /// It moves messages by hardware.
    pub is_hardware: bool,
    /// It has remote access to the memory of peers.
    pub has_remote_access: bool,
    /// Transmit and receive contexts of an endpoint, at most.
    pub contexts: usize,
    /// Why it cannot be taken, if so.
    pub lacks: Option<String>,
}

/// The version of libfabric and its file, and what it offers for messages between hosts.
///
/// # Errors
/// Why there is no libfabric, or what it answered.
pub fn providers() -> Result<(String, Vec<OfiProvider>), String> {
    let library = Libfabric::get()?;
    let find = |access, most| library.find(None, access, most).map_err(|e| e.to_string());
    let (found, remote) = (find(MemoryAccess::None, 1)?, find(MemoryAccess::Any, 1)?);
    let scalable = find(MemoryAccess::None, CONTEXTS)?;
    let contexts_of = |name: &str| {
        let these = scalable.iter().filter(|info| info.name() == name);
        these.map(ProviderInfo::contexts).max().unwrap_or(1)
    };
    let remote: Vec<String> = remote.iter().map(ProviderInfo::name).collect();
    let mut all: Vec<OfiProvider> = Vec::new();
    for info in &found {
        let (name, interface) = (info.name(), info.interface());
        match all.iter_mut().find(|known| known.name == name) {
            Some(known) if known.interfaces.contains(&interface) => {}
            Some(known) => known.interfaces.push(interface),
            None => all.push(OfiProvider {
                version: info.version(),
                interfaces: Vec::from([interface]),
                is_hardware: is_hardware(&name),
                has_remote_access: remote.contains(&name),
                contexts: contexts_of(&name),
                lacks: lacks(info),
                name,
            }),
        }
    }
    all.sort_by_key(|provider| preference(&provider.name));
    Ok((library.description(), all))
}

/// Whether libfabric has a provider of hardware that the wire can use, and the user wants it.
pub fn has_hardware(choice: &ProviderChoice) -> bool {
    let is_usable =
        |p: &OfiProvider| p.is_hardware && p.lacks.is_none() && choice.position(&p.name).is_some();
    providers().is_ok_and(|(_, all)| all.iter().any(is_usable))
}

fn first_part(name: &str) -> &str {
    name.split(';').next().unwrap_or(name)
}

/// Whether the hardware of a provider of this name carries out remote operations alone: an aligned
/// word is read and written whole. Others may copy bytes by software.
pub(super) fn carries_out_alone(name: &str) -> bool {
    ["cxi", "verbs"].contains(&first_part(name))
}

/// Whether a provider of this name moves messages by hardware.
fn is_hardware(name: &str) -> bool {
    HARDWARE.contains(&first_part(name))
}

/// Its position among all: the smaller, the better.
fn preference(name: &str) -> usize {
    let known = SOFTWARE.iter().position(|known| *known == name);
    match (is_hardware(name), known) {
        (true, _) => 0,
        (false, Some(position)) => 1 + position,
        (false, None) => 1 + SOFTWARE.len(),
    }
}

impl ProviderChoice {
    fn names(wanted: &str, name: &str) -> bool {
        wanted.eq_ignore_ascii_case(name) || wanted.eq_ignore_ascii_case(first_part(name))
    }

    /// Its position among all; `None`: it is not wanted.
    fn position(&self, name: &str) -> Option<usize> {
        match self {
            ProviderChoice::Any => Some(preference(name)),
            ProviderChoice::Include(wanted) => wanted.iter().position(|w| Self::names(w, name)),
            ProviderChoice::Exclude(unwanted) => {
                (!unwanted.iter().any(|w| Self::names(w, name))).then(|| preference(name))
            }
        }
    }
}

/// Whether it announces long messages to their receiver before it sends them.
pub(super) fn announces(info: &ProviderInfo) -> bool {
    !STREAMS.contains(&info.name().as_str())
}

/// What the wire needs and a provider lacks.
pub(super) fn lacks(info: &ProviderInfo) -> Option<String> {
    let endpoint = info.endpoint();
    if endpoint.max_msg_size < FRAME + LEAD {
        return Some(format!("its messages have at most {} bytes", endpoint.max_msg_size));
    }
    if endpoint.msg_prefix_size != 0 {
        return Some("its messages have a prefix".to_string());
    }
    let unknown = info.raw().mode & !(FI_CONTEXT | FI_CONTEXT2);
    if unknown != 0 {
        return Some(format!("it demands the modes {unknown:#x}"));
    }
    None
}

/// Where the wire is to be, and what it is to have.
#[derive(Clone, Copy, Debug)]
pub(super) struct WireSite {
    pub(super) address: IpAddr,
    /// 0: any.
    pub(super) port: u16,
    pub(super) remote: OfiRemoteAccess,
    /// Most contexts of the endpoint.
    pub(super) contexts: usize,
}

/// What the user wants that there is, the best first.
///
/// # Errors
/// That of libfabric.
pub(super) fn candidates(
    library: &'static Libfabric,
    choice: &ProviderChoice,
    site: WireSite,
) -> Result<Vec<ProviderInfo>, OfiError> {
    // Texts without NUL.
    let node = CString::new(site.address.to_string()).unwrap_or_default();
    let port = CString::new(site.port.to_string()).unwrap_or_default();
    let port = (site.port != 0).then_some(&*port);
    let mut found = Vec::new();
    let contexts: &[usize] = if site.contexts > 1 { &[site.contexts, 1] } else { &[1] };
    for &access in site.remote.wanted() {
        for &most in contexts {
            let mut these = library.find(Some((&node, port)), access, most)?;
            // Others do not know addresses of IP.
            let others = library.find(None, access, most)?;
            these.extend(others.into_iter().filter(|info| !info.is_ip()));
            let is_wanted = |info: &ProviderInfo| {
                let has_access = site.remote != OfiRemoteAccess::Hardware
                    || access == MemoryAccess::None
                    || is_hardware(&info.name());
                has_access && (most == 1 || info.contexts() > 1)
            };
            found.extend(these.into_iter().filter(is_wanted));
        }
    }
    // Those with remote access stay before those without, and those with several contexts before
    // those with one.
    let mut found: Vec<(usize, ProviderInfo)> = found
        .into_iter()
        .filter(|info| lacks(info).is_none())
        .filter_map(|info| Some((choice.position(&info.name())?, info)))
        .collect();
    found.sort_by_key(|(position, _)| *position);
    Ok(found.into_iter().map(|(_, info)| info).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_provider_is_named_whole_or_by_its_first_part() {
        let list = |names: &[&str]| names.iter().map(ToString::to_string).collect();
        let include = ProviderChoice::Include(list(&["TCP", "sockets"]));
        let position = |name| include.position(name);
        assert_eq!(position("tcp"), Some(0));
        assert_eq!(position("tcp;ofi_rxm"), Some(0));
        assert_eq!(position("sockets"), Some(1));
        assert_eq!(position("net"), None);
        let whole = ProviderChoice::Include(list(&["tcp;ofi_rxm"]));
        assert_eq!((whole.position("tcp;ofi_rxm"), whole.position("tcp")), (Some(0), None));
        let exclude = ProviderChoice::Exclude(list(&["verbs"]));
        assert_eq!(exclude.position("verbs;ofi_rxm"), None);
        assert!(exclude.position("tcp") < exclude.position("sockets"));
        let any = |name| ProviderChoice::Any.position(name);
        assert!(any("cxi") < any("tcp") && any("unheard of") > any("udp;ofi_rxd"));
    }
}
