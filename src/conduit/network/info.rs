//! The networks of this library for a reader: what `gasnet_info -n` prints.
//!
//! Called by the program `gasnet_info`. Invariant: one entry for each implementation of
//! `conduit::portals::Portals` in this build.

use crate::env::{self, NetworkKind};
use alloc::string::String;
use alloc::vec::Vec;

/// A network.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NetworkInfo {
    /// Its name.
    pub name: &'static str,
    /// What it is, in one line.
    pub what: &'static str,
    /// Whether `gasnet_init` opens this one.
    pub chosen: bool,
    /// What a user should know of it, as pairs of a name and a text.
    pub facts: Vec<(&'static str, String)>,
}

/// All networks of this library, the preferred one first. `may_attach`: whether processes of one
/// user may copy from and to each other's memory (`process_vm_readv`).
pub fn networks(may_attach: bool) -> Vec<NetworkInfo> {
    let wish = env::NETWORK.read().map(|kind| kind.unwrap_or(NetworkKind::DEFAULT));
    let chosen = |kind: NetworkKind| wish.as_ref() == Ok(&kind);
    #[cfg(not(feature = "emulation"))]
    let _ = may_attach;
    Vec::from([
        #[cfg(feature = "libportals")]
        super::libportals::info(chosen(NetworkKind::Libportals)),
        #[cfg(feature = "emulation")]
        super::emulation::info(chosen(NetworkKind::Emulation), may_attach),
    ])
}
