//! Variables that look like the library's but are not, and the ones that were probably meant.
//! Called by `gasnet_init` and `gasnet_info`.

use super::environ::is_launcher_entry;
use super::table::all;
use super::upstream_names::is_upstream;

/// A name in the environment that begins with GASNET_ and that the library neither reads nor sets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownVariable {
    /// The name.
    pub name: String,
    /// What it may be.
    pub likeness: Likeness,
}

/// What an unknown name may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Likeness {
    /// This one, misspelt.
    Misspelt(&'static str),
    /// A variable of other implementations of GASNet.
    Upstream,
    /// None that is known.
    None,
}

/// All unknown names, sorted.
pub fn unknown() -> Vec<UnknownVariable> {
    let mut names: Vec<String> = std::env::vars_os()
        .filter_map(|(name, _)| name.into_string().ok())
        .filter(|n| n.starts_with("GASNET_"))
        .filter(|n| !is_launcher_entry(format!("{n}=").as_bytes()))
        .filter(|n| all().all(|v| v.name() != n))
        .collect();
    names.sort();
    let unknown = |name: String| UnknownVariable { likeness: likeness(&name), name };
    names.into_iter().map(unknown).collect()
}

fn likeness(name: &str) -> Likeness {
    if is_upstream(name) {
        return Likeness::Upstream;
    }
    resembling(name).map_or(Likeness::None, Likeness::Misspelt)
}

/// The declared name that takes the fewest changes of a letter, at most a third of the letters
/// after GASNET_. A change is to insert, remove, or replace a letter, or to swap it with the
/// next.
fn resembling(name: &str) -> Option<&'static str> {
    let tail = |n: &str| n.trim_start_matches("GASNET_").len();
    all()
        .map(|v| (strsim::osa_distance(name, v.name()), v.name()))
        .filter(|(n, known)| *n <= (tail(name).min(tail(known)) / 3).max(1))
        .min()
        .map(|(_, known)| known)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn misspelt_names() {
        let meant = |name| match likeness(name) {
            Likeness::Misspelt(known) => known,
            _ => "",
        };
        assert_eq!(meant("GASNET_PORTALS_MSG_LIMIT"), "GASNET_PORTAL_MSG_LIMIT");
        assert_eq!(meant("GASNET_MAXSEGSIZE"), "GASNET_MAX_SEGSIZE");
        assert_eq!(meant("GASNET_QUEIT"), "GASNET_QUIET");
        assert_eq!(meant("GASNET_QUIT"), "GASNET_QUIET");
    }

    /// Names that others read, and folders of installations, are not taken for misspelt ones.
    #[test]
    fn names_of_others() {
        for name in [
            "GASNET_SPAWNER",
            "GASNET_NUM_QPS",
            "GASNET_SPAWN_CONDUIT",
            "GASNET_BACKTRACE_MT",
            "GASNET_VIS_PUT_MAXCHUNK",
            "GASNET_CONNECT_DYNAMIC",
        ] {
            assert_eq!(likeness(name), Likeness::Upstream, "{name}");
        }
        for name in ["GASNET_PREFIX", "GASNET_ROOT", "GASNET_DIR", "GASNET_HOME", "GASNET_LIBS"] {
            assert_eq!(likeness(name), Likeness::None, "{name}");
        }
        // A variable of ours is none of others.
        assert!(all().all(|v| !is_upstream(v.name()) || is_shared(v.name())));
    }

    /// Ours, though its name begins as those of others do.
    fn is_shared(name: &str) -> bool {
        [
            "GASNET_SSH_",
            "GASNET_TEST_",
            "GASNET_FIREHOSE_",
            "GASNET_PHYSMEM_",
            "GASNET_OFI_",
            "GASNET_AM_",
        ]
        .iter()
        .any(|prefix| name.starts_with(prefix))
    }
}
