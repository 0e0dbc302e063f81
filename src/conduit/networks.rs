//! Which networks this library can open, for people: what `gasnet_info -n` prints. A network is one implementation of
//! [`super::portals::Portals`]; the core room opens one of them at `gasnet_init`.

use super::network::NetworkKind;
#[cfg(feature = "libportals")]
use super::portals::binding;
use crate::env;
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

/// All networks of this library, the preferred one first. `may_attach`: whether processes of one user may copy from and
/// to each other's memory (`process_vm_readv`).
pub fn networks(may_attach: bool) -> Vec<NetworkInfo> {
    let wish = env::text("GASNET_NETWORK");
    let chosen = |kind: NetworkKind| match &wish {
        Some(name) => name.trim().eq_ignore_ascii_case(kind.name()),
        None => kind == NetworkKind::DEFAULT,
    };
    #[cfg(not(feature = "emulation"))]
    let _ = may_attach;
    Vec::from([
        #[cfg(feature = "libportals")]
        NetworkInfo {
            name: NetworkKind::Libportals.name(),
            what: "a libportals that was found when this library was built",
            chosen: chosen(NetworkKind::Libportals),
            facts: alloc::vec![
                ("loaded from", binding::loaded_file()),
                ("built with", binding::header().into()),
                ("reaches", "what that library reaches".into()),
            ],
        },
        #[cfg(feature = "emulation")]
        NetworkInfo {
            name: NetworkKind::Emulation.name(),
            what: "Portals 3.3 in user space, in memory that the processes of a host share",
            chosen: chosen(NetworkKind::Emulation),
            facts: alloc::vec![
                ("reaches", "the processes of this host".into()),
                (
                    "segments and buffers of the library",
                    "a put or get completes without a call of the target".into()
                ),
                ("other memory", private(may_attach).into()),
            ],
        },
    ])
}

#[cfg(feature = "emulation")]
fn private(may_attach: bool) -> &'static str {
    if may_attach {
        "without a call of the target, since the system lets processes copy from each other's memory"
    } else {
        "at the target's next call, since the system does not let processes copy from each other's memory"
    }
}
