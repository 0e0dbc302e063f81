//! The wire between hosts: the user's choice by `GASNET_NETWORK`, `GASNET_OFI_*` and
//! `FI_PROVIDER`.
//!
//! Called by `remote_ranks` when a job of several hosts starts, and for `gasnet_info -n`.
//! Invariant: libfabric is loaded only if it may be used.

use super::OpenError;
use crate::env::{self, NetworkChoice, RmaChoice, TagModeChoice, WireKind};
use crate::{fault, report};
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::net::IpAddr;
use portals3::nal::ofi::{self, NoOfi, OfiRemoteAccess, OfiTagMode, OfiWire, ProviderChoice};

/// The wire that this process is to use.
///
/// # Errors
/// The user wants none, or two things that exclude each other.
pub(super) fn chosen() -> Result<WireKind, OpenError> {
    use NetworkChoice::*;
    match env::NETWORK.get().unwrap_or(Auto) {
        Shm => Err(OpenError::new(
            "GASNET_NETWORK=SHM, but the job has ranks on several hosts",
            "Set GASNET_NETWORK to AUTO, TCP or OFI, or start all ranks on one host.",
        )),
        Tcp => Ok(WireKind::Tcp),
        Ofi => Ok(WireKind::Ofi),
        Auto | Emulation | Libportals => Ok(match hardware()? {
            true => WireKind::Ofi,
            false => WireKind::Tcp,
        }),
    }
}

/// Whether libfabric has a provider of hardware that the user allows.
///
/// # Errors
/// The user wants two things that exclude each other.
pub(in crate::conduit) fn hardware() -> Result<bool, OpenError> {
    Ok(ofi::has_hardware(&providers()?))
}

fn names(list: &str) -> Vec<String> {
    let names = list.split(',').map(str::trim).filter(|name| !name.is_empty());
    names.map(String::from).collect()
}

/// The providers that the user wants.
///
/// # Errors
/// Both variables are set.
pub(in crate::conduit) fn providers() -> Result<ProviderChoice, OpenError> {
    if let Some(both) = env::both_provider_lists() {
        return Err(OpenError::new(both.cause, both.remedy));
    }
    Ok(match (env::OFI_PROVIDER_INCLUDE.get(), env::OFI_PROVIDER_EXCLUDE.get()) {
        (Some(list), _) => ProviderChoice::Include(names(&list)),
        (None, Some(list)) => ProviderChoice::Exclude(names(&list)),
        (None, None) => ProviderChoice::Any,
    })
}

/// The mode that the user wants.
pub(super) fn tag_mode() -> Option<OfiTagMode> {
    match env::OFI_TAG_MODE.get().unwrap_or(TagModeChoice::Auto) {
        TagModeChoice::Auto => None,
        TagModeChoice::Full => Some(OfiTagMode::Full),
        TagModeChoice::One => Some(OfiTagMode::One),
        TagModeChoice::Two => Some(OfiTagMode::Two),
    }
}

/// Whether the user wants remote access to memory.
pub(super) fn remote_access() -> OfiRemoteAccess {
    if fault::on("ofi_basic") {
        return OfiRemoteAccess::AlwaysBasic;
    }
    match env::OFI_RMA.get().unwrap_or(RmaChoice::Auto) {
        RmaChoice::Auto => OfiRemoteAccess::Hardware,
        RmaChoice::Yes => OfiRemoteAccess::Always,
        RmaChoice::No => OfiRemoteAccess::Never,
    }
}

/// Says how ranks of different hosts talk over libfabric. Where the user has not chosen a part of
/// that, a line always says so.
pub(super) fn announce(wire: &OfiWire) {
    let (provider, interface) = wire.provider();
    let (is_remote, rma) = (wire.has_remote_access(), env::OFI_RMA.get());
    let is_asked_for = env::NETWORK.get() == Some(NetworkChoice::Ofi)
        && (!is_remote || rma == Some(RmaChoice::Yes));
    if report::rank() != Some(0) || is_asked_for && !env::VERBOSEENV.is_present() {
        return;
    }
    let how = match is_remote {
        true => {
            "puts and gets in segments of FAST and LARGE by remote memory access, which trusts \
             the network (GASNET_OFI_RMA)"
        }
        false => "all messages in frames",
    };
    let contexts = match wire.contexts() {
        1 => String::new(),
        n => format!(" in {n} contexts"),
    };
    report::note(format_args!(
        "ranks of different hosts use libfabric's provider {provider} at {interface}{contexts}: \
         {how}"
    ));
}

/// Says, if GASNET_VERBOSEENV is set, where rank 0 listens for those of other hosts, and why.
pub(super) fn announce_tcp(address: IpAddr) {
    if report::rank() != Some(0) || !env::VERBOSEENV.is_present() {
        return;
    }
    let why = match env::NETWORK_INTERFACE.is_present() {
        true => "which GASNET_NETWORK_INTERFACE names",
        false => "from which packets to the hosts of the job leave",
    };
    report::note(format_args!("ranks of different hosts use TCP; rank 0 is at {address}, {why}"));
}

/// Over TCP there is no remote access: warns if the user demands it.
pub(super) fn no_remote_access_over_tcp() {
    if env::OFI_RMA.get() == Some(RmaChoice::Yes) && report::rank() == Some(0) {
        report::warn(
            format_args!("GASNET_OFI_RMA=YES has no effect: ranks of different hosts use TCP"),
            format_args!("Set GASNET_NETWORK=OFI, or unset GASNET_OFI_RMA."),
        );
    }
}

/// The provider does not register the segment. Ends the job if the user demands remote access.
#[cold]
pub(super) fn not_registered(why: &str) {
    let remedy =
        format_args!("Raise the limit of locked memory (ulimit -l), or set GASNET_OFI_RMA=NO.");
    match env::OFI_RMA.get() {
        Some(RmaChoice::Yes) => report::fatal(
            format_args!("GASNET_OFI_RMA=YES: libfabric does not register the segment: {why}"),
            remedy,
        ),
        _ => report::warn(
            format_args!(
                "libfabric does not register the segment, so that puts and gets of other hosts \
                 go in frames: {why}"
            ),
            remedy,
        ),
    }
}

/// The message where there is no wire over libfabric.
pub(super) fn no_ofi(why: &NoOfi) -> OpenError {
    let remedy = match why {
        NoOfi::NoLibrary(_) => {
            "Install libfabric 1.17 or later (Debian: libfabric1) on each host, or set \
             GASNET_NETWORK=TCP."
        }
        NoOfi::NoProvider => {
            "`gasnet_info -n` lists the providers. Check GASNET_OFI_PROVIDER_INCLUDE, \
             GASNET_OFI_PROVIDER_EXCLUDE and FI_PROVIDER, or set GASNET_NETWORK=TCP."
        }
        NoOfi::NoTagMode(_) => "Unset GASNET_OFI_TAG_MODE.",
        NoOfi::NoRemoteAccess(_) => {
            "Unset GASNET_OFI_RMA, or name another provider in GASNET_OFI_PROVIDER_INCLUDE; \
             `gasnet_info -n` says which have it."
        }
        NoOfi::Failed(_) => {
            "Name another provider in GASNET_OFI_PROVIDER_INCLUDE, or set GASNET_NETWORK=TCP."
        }
    };
    OpenError::new(format!("GASNET_NETWORK=OFI: {why}"), remedy)
}
