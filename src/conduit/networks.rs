//! Which networks this library can open, for people: what `gasnet_info -n` prints. A network is one implementation of
//! [`super::portals::Portals`]; the core room opens one of them at `gasnet_init`.

use alloc::vec::Vec;

/// A network.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Network {
    /// Its name.
    pub name: &'static str,
    /// What it is, in one line.
    pub what: &'static str,
    /// Whether `gasnet_init` opens this one.
    pub chosen: bool,
    /// What a user should know of it, as pairs of a name and a text.
    pub facts: Vec<(&'static str, &'static str)>,
}

/// All networks of this library, the preferred one first. `may_attach`: whether processes of one user may copy from and
/// to each other's memory (`process_vm_readv`).
pub fn networks(may_attach: bool) -> Vec<Network> {
    let private = if may_attach {
        "without a call of the target, since the system lets processes copy from each other's memory"
    } else {
        "at the target's next call, since the system does not let processes copy from each other's memory"
    };
    alloc::vec![Network {
        name: "shm",
        what: "Portals 3.3 in user space, in memory that the processes of a host share",
        chosen: true,
        facts: alloc::vec![
            ("reaches", "the processes of this host"),
            ("segments and buffers of the library", "a put or get completes without a call of the target"),
            ("other memory", private),
        ],
    }]
}
