//! Which processes may copy from and to the memory of this rank, where the system lets a process
//! trace its descendants alone (Yama's ptrace_scope 1).
//!
//! Called by `start` in EVERYTHING, when it is known which ranks are on this host. Invariant: no
//! more processes are admitted than the descendants of the nearest common ancestor of those ranks,
//! unless none is among those that they name.

use crate::boot::bootstrap::Bootstrap;
use sys::attach::{self, Tracers};
use sys::process;

/// Most ancestors that a rank names to the others.
const NAMED: usize = 16;

/// Admits the other ranks of this host. Collective.
pub(super) fn admit(boot: &Bootstrap) {
    let mut own = [0u32; NAMED];
    let mut next = process::parent();
    for ancestor in &mut own {
        *ancestor = next;
        next = process::parent_of(next).unwrap_or(0);
        if next == 0 {
            break;
        }
    }
    let all = boot.exchange.exchange(&own.map(u32::to_ne_bytes).concat());
    let local = all.ranked().filter(|(rank, _)| boot.placement.local_rank_of(*rank).is_some());
    let chains: Vec<[u32; NAMED]> = local.map(|(_, b)| chain(b)).collect();
    attach::admit(match common_ancestor(&own, &chains) {
        Some(ancestor) => Tracers::Descendants(ancestor),
        None => Tracers::All,
    });
}

fn chain(bytes: &[u8]) -> [u32; NAMED] {
    let word = |i: usize| bytes[i * 4..i * 4 + 4].try_into().unwrap_or_default();
    core::array::from_fn(|i| u32::from_ne_bytes(word(i)))
}

/// The nearest process of `own` that all chains have.
fn common_ancestor(own: &[u32], chains: &[[u32; NAMED]]) -> Option<u32> {
    let mut ancestors = own.iter().copied().filter(|&pid| pid != 0);
    ancestors.find(|pid| chains.iter().all(|chain| chain.contains(pid)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chain_of(pids: &[u32]) -> [u32; NAMED] {
        core::array::from_fn(|i| pids.get(i).copied().unwrap_or(0))
    }

    #[test]
    fn the_nearest_common_ancestor_is_named() {
        let (a, b) = (chain_of(&[7, 5, 3, 1]), chain_of(&[9, 3, 1]));
        assert_eq!(common_ancestor(&a, &[a, b]), Some(3));
        assert_eq!(common_ancestor(&a, &[a, a]), Some(7));
        assert_eq!(common_ancestor(&a, &[a, chain_of(&[8, 2])]), None);
    }
}
