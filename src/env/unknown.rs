//! Variables that look like the library's but are not, and the ones that were probably meant.
//! Called by GASNET_VERBOSEENV and `gasnet_info`.

use super::environ::is_launcher_entry;
use super::table::all;

/// Prefix of the variables that `gasnett_maximize_rlimits` reads, one per limit of the system.
const LIMITS: &str = "GASNET_MAXIMIZE_";

/// The names in the environment that begin with GASNET_ and that the library neither reads nor
/// sets, sorted, each with the declared name that resembles it.
pub fn unknown() -> Vec<(String, Option<&'static str>)> {
    let mut names: Vec<String> = std::env::vars_os()
        .filter_map(|(name, _)| name.into_string().ok())
        .filter(|n| n.starts_with("GASNET_") && !n.starts_with(LIMITS))
        .filter(|n| !is_launcher_entry(format!("{n}=").as_bytes()))
        .filter(|n| all().all(|v| v.name() != n))
        .collect();
    names.sort();
    names
        .into_iter()
        .map(|n| {
            let near = resembling(&n);
            (n, near)
        })
        .collect()
}

/// The declared name that takes the fewest changes of a letter, at most a third of the letters
/// after GASNET_.
fn resembling(name: &str) -> Option<&'static str> {
    let tail = |n: &str| n.trim_start_matches("GASNET_").len();
    all()
        .map(|v| (changes(name, v.name()), v.name()))
        .filter(|(n, known)| *n <= (tail(name).min(tail(known)) / 3).max(1))
        .min()
        .map(|(_, known)| known)
}

/// How many letters must be inserted, removed or replaced to turn `a` into `b` (Levenshtein 1966).
fn changes(a: &str, b: &str) -> usize {
    let b = b.as_bytes();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.bytes().enumerate() {
        let mut corner = row[0];
        row[0] = i + 1;
        for (j, y) in b.iter().enumerate() {
            let replaced = corner + usize::from(x != *y);
            corner = row[j + 1];
            row[j + 1] = replaced.min(row[j] + 1).min(corner + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn misspelt_names() {
        assert_eq!(resembling("GASNET_PORTALS_MSG_LIMIT"), Some("GASNET_PORTAL_MSG_LIMIT"));
        assert_eq!(resembling("GASNET_MAXSEGSIZE"), Some("GASNET_MAX_SEGSIZE"));
        assert_eq!(resembling("GASNET_QUEIT"), None);
        assert_eq!(resembling("GASNET_QUIT"), Some("GASNET_QUIET"));
        assert_eq!(resembling("GASNET_SPAWNER"), None);
        assert_eq!(resembling("GASNET_PHYSMEM_MAX"), None);
    }

    #[test]
    fn changes_of_letters() {
        assert_eq!(changes("", "abc"), 3);
        assert_eq!(changes("kitten", "sitting"), 3);
        assert_eq!(changes("same", "same"), 0);
    }
}
