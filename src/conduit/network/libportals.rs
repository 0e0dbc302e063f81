//! The name, error remedy and description of the libportals network; for messages and
//! `gasnet_info`.
//!
//! Used by [`super`]. The implementation of the network is `conduit::portals::binding`.

#[cfg(feature = "libportals")]
use super::info::NetworkInfo;
#[cfg(feature = "libportals")]
use crate::conduit::portals::binding;

/// Its value of `GASNET_NETWORK`, in lower case.
pub(super) const NAME: &str = "libportals";

/// What to do when a build lacks it.
pub(super) const NOT_BUILT: &str =
    "Unset it, or build the library with a libportals: make PORTALS_PREFIX=/where/it/is";

/// Whether this build has it.
pub(super) const BUILT: bool = cfg!(feature = "libportals");

/// What `gasnet_info -n` prints.
#[cfg(feature = "libportals")]
pub(super) fn info(chosen: bool) -> NetworkInfo {
    NetworkInfo {
        name: NAME,
        what: "a libportals that was found when this library was built",
        chosen,
        facts: alloc::vec![
            ("loaded from", binding::loaded_file()),
            ("built with", binding::header().into()),
            ("reaches", "what that library reaches".into()),
            (
                "starts jobs",
                "by every launcher; by CNOS or PMI functions in programs that have them".into(),
            ),
        ],
    }
}
