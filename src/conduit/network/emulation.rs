//! The name, error remedy and description of the emulation network; for messages and
//! `gasnet_info`.
//!
//! Used by [`super`]. The implementation of the network is `conduit::portals::emulation`.

#[cfg(feature = "emulation")]
use super::info::NetworkInfo;

/// Its value of `GASNET_NETWORK`, in lower case.
pub(super) const NAME: &str = "emulation";

/// What to do when a build lacks it.
pub(super) const NOT_BUILT: &str = "Unset it; this library has libportals alone.";

/// Whether this build has it.
pub(super) const BUILT: bool = cfg!(feature = "emulation");

/// What `gasnet_info -n` prints.
#[cfg(feature = "emulation")]
pub(super) fn info(chosen: bool, may_attach: bool) -> NetworkInfo {
    let other_memory = match may_attach {
        true => "without a call of the target, by cross-memory attach".into(),
        false => {
            let reason = sys::attach::denial();
            alloc::format!(
                "at the target's next call, since there is no cross-memory attach: {reason}"
            )
        }
    };
    NetworkInfo {
        name: NAME,
        what: "Portals 3.3 in user space, in memory that the processes of a host share",
        chosen,
        facts: alloc::vec![
            ("reaches", "the processes of this host".into()),
            (
                "segments and buffers of the library",
                "a put or get completes without a call of the target".into(),
            ),
            ("other memory (GASNET_SEGMENT_EVERYTHING)", other_memory),
        ],
    }
}
