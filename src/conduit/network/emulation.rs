//! The name, error remedy and description of the emulation network and of its wires between
//! hosts; for messages and `gasnet_info`.
//!
//! Used by [`super`]. The implementation of the network is `conduit::portals::emulation`.

#[cfg(feature = "emulation")]
use {
    super::info::NetworkInfo,
    crate::conduit::config::access_to_registered,
    crate::conduit::portals::wire_choice,
    crate::env::{self, NetworkChoice, RmaChoice, WireKind},
    alloc::string::String,
    alloc::vec::Vec,
    alloc::{format, vec},
    portals3::nal::ofi::{self, OfiProvider},
};

/// Its value of `GASNET_NETWORK`, in lower case.
pub(super) const NAME: &str = "emulation";

/// What to do when a build lacks it.
pub(super) const NOT_BUILT: &str = "Unset it; this library has libportals alone.";

/// Whether this build has it.
pub(super) const BUILT: bool = cfg!(feature = "emulation");

/// How puts and gets end that reach memory which needs no registration.
#[cfg(feature = "emulation")]
const AT_ONCE: &str = "a put or get completes without a call of the target";

/// What `gasnet_info -n` prints. `choice`: the user's, if this network is chosen.
#[cfg(feature = "emulation")]
pub(super) fn infos(choice: Option<NetworkChoice>, may_attach: bool) -> [NetworkInfo; 3] {
    let other_memory = match may_attach {
        _ if env::PORTAL_PIN.get() => access_to_registered(env::USE_FIREHOSE.get()).into(),
        true => "without a call of the target, by cross-memory attach".into(),
        false => {
            let reason = sys::attach::denial();
            format!("at the target's next call, since there is no cross-memory attach: {reason}")
        }
    };
    // In LARGE, segments are registered whole without the firehose.
    let segments = match env::PORTAL_PIN.get() && env::USE_FIREHOSE.get() {
        true => format!("{AT_ONCE}; in LARGE {}", access_to_registered(true)),
        false => AT_ONCE.into(),
    };
    let (tcp, mut ofi) = (wire_reason(choice, WireKind::Tcp), libfabric());
    let (ofi_is_chosen, why) = wire_reason(choice, WireKind::Ofi);
    ofi.insert(0, ("between hosts", why));
    let wire = |name, what, chosen, facts| NetworkInfo { name, what, chosen, facts };
    [
        wire(
            "shm",
            "Portals 3.3 in user space, in memory that the processes of a host share",
            choice.is_some(),
            vec![
                ("reaches", "the processes of this host".into()),
                ("segments and buffers of the library", segments),
                ("other memory (GASNET_SEGMENT_EVERYTHING)", other_memory),
            ],
        ),
        wire("tcp", "frames of the same Portals over TCP", tcp.0, vec![("between hosts", tcp.1)]),
        wire("ofi", "frames of the same Portals over libfabric", ofi_is_chosen, ofi),
    ]
}

/// Whether a job of several hosts uses this wire, and why or why not.
#[cfg(feature = "emulation")]
fn wire_reason(choice: Option<NetworkChoice>, wire: WireKind) -> (bool, String) {
    use NetworkChoice::*;
    let Some(choice) = choice else {
        return (false, "not used: GASNET_NETWORK or the build names another network".into());
    };
    let hardware = wire_choice::hardware();
    let yes = |why: &str| (true, format!("used: {why}"));
    let no = |why: &str| (false, format!("not used: {why}"));
    let none = "libfabric has no provider of hardware that may be used (cxi, verbs, psm2, psm3, \
                efa, opx)";
    match (choice, wire) {
        (Shm, _) => no("GASNET_NETWORK=SHM is for one host"),
        (Tcp, WireKind::Tcp) => yes("GASNET_NETWORK=TCP"),
        (Ofi, WireKind::Ofi) => yes("GASNET_NETWORK=OFI"),
        (Tcp | Ofi, _) => no("GASNET_NETWORK names another"),
        (Auto | Emulation | Libportals, _) => match (hardware, wire) {
            (Err(e), _) => no(&e.cause),
            (Ok(true), WireKind::Ofi) => yes("libfabric has a provider of hardware"),
            (Ok(true), WireKind::Tcp) => no("libfabric has a provider of hardware"),
            (Ok(false), WireKind::Ofi) => no(none),
            (Ok(false), WireKind::Tcp) => yes(none),
        },
    }
}

/// What libfabric there is, and its providers.
#[cfg(feature = "emulation")]
fn libfabric() -> Vec<(&'static str, String)> {
    let (version, providers) = match ofi::providers() {
        Ok(found) => found,
        Err(why) => return vec![("libfabric", format!("none: {why}"))],
    };
    let shown = |provider: OfiProvider| {
        let OfiProvider {
            name,
            version: (major, minor),
            interfaces,
            is_hardware,
            has_remote_access,
            contexts,
            lacks,
        } = provider;
        let kind = if is_hardware { "hardware" } else { "software" };
        let lacks = lacks.map(|why| format!("; cannot be used: {why}")).unwrap_or_default();
        let remote = if has_remote_access { "" } else { "out" };
        let contexts = match contexts {
            1 => String::new(),
            n => format!(", {n} contexts"),
        };
        format!(
            "{name} {major}.{minor} ({kind}, with{remote} remote memory access{contexts}, at \
             {}{lacks})",
            interfaces.join(" ")
        )
    };
    let providers: Vec<String> = providers.into_iter().map(shown).collect();
    let remote = match env::OFI_RMA.get().unwrap_or(RmaChoice::Auto) {
        RmaChoice::Auto => "used with a provider of hardware that has it (GASNET_OFI_RMA=AUTO)",
        RmaChoice::Yes => "used (GASNET_OFI_RMA=YES)",
        RmaChoice::No => "not used (GASNET_OFI_RMA=NO)",
    };
    let contexts = match env::OFI_THREAD_GROUPING.get() {
        true => "several, where the provider has them (GASNET_OFI_THREAD_GROUPING=YES)",
        false => "one (GASNET_OFI_THREAD_GROUPING=NO)",
    };
    vec![
        ("libfabric", version),
        ("providers", providers.join(", ")),
        ("remote memory access", format!("{remote}; it trusts the network")),
        ("contexts", contexts.into()),
    ]
}
