//! Which host starts which, and when a host answers those below it: the tree of the supervisors of
//! a job. Free of I/O.
//!
//! Called by the supervisor and by the simulator `launch-sim`. Invariants: every host but the root
//! has one host that starts it. The hosts below a host are neighbours in the
//! list, so that what they print and contribute comes in the order of their ranks.
//!
//! ```text
//! degree 2, eight hosts below the root        root
//!                                            /    \
//!                                          1        5
//!                                         / \      / \
//!                                        2   4    6   8
//!                                        3        7
//! ```

/// The hosts that one host starts, out of all below it. Each is the first of a slice, and starts
/// the rest of its slice in the same way. `degree`: the most that a host starts; 0 for any number.
///
/// The slices differ by one host at most, so the depth is the least that the degree allows.
pub fn branches<T>(below: &[T], degree: u32) -> impl Iterator<Item = &[T]> {
    let branches = match degree as usize {
        0 => below.len(),
        degree => degree.min(below.len()),
    };
    (0..branches).map(move |i| {
        let begin = |i| below.len() * i / branches;
        &below[begin(i)..begin(i + 1)]
    })
}

/// What a host does in a barrier or an exchange of the job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GateStep {
    /// It waits: for its ranks, for hosts below, or for the answer from above.
    Wait,
    /// It sends what has arrived up.
    Ask,
    /// All ranks of the job have arrived: it answers its ranks and the hosts below.
    Open,
}

/// A barrier or an exchange, as one host sees it.
#[derive(Debug, Default)]
pub struct TreeGate {
    is_asked: bool,
}

impl TreeGate {
    /// What to do when something has arrived. `all_here`: all ranks of this host and all hosts
    /// below it have.
    pub fn advance(&mut self, all_here: bool, is_root: bool) -> GateStep {
        match (self.is_asked || !all_here, is_root) {
            (true, _) => GateStep::Wait,
            (false, true) => GateStep::Open,
            (false, false) => {
                self.is_asked = true;
                GateStep::Ask
            }
        }
    }

    /// The answer has arrived from above, or this host is the root and gives it.
    pub fn open(&mut self) {
        self.is_asked = false;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Adds the hosts below one with their distance from the root.
    fn depths(below: &[u32], degree: u32, depth: u32, out: &mut Vec<(u32, u32)>) {
        let started: Vec<_> = branches(below, degree).collect();
        assert!(degree == 0 || started.len() <= degree as usize);
        for branch in started {
            out.push((branch[0], depth));
            depths(&branch[1..], degree, depth + 1, out);
        }
    }

    #[test]
    fn a_gate_asks_once() {
        let mut gate = TreeGate::default();
        for _ in 0..2 {
            assert_eq!(gate.advance(false, false), GateStep::Wait);
            assert_eq!(gate.advance(true, false), GateStep::Ask);
            assert_eq!(gate.advance(true, false), GateStep::Wait);
            gate.open();
        }
        assert_eq!(gate.advance(true, true), GateStep::Open);
    }

    #[test]
    fn every_host_is_started_once_and_soon() {
        for (hosts, degree, deepest) in [
            (0, 16, 0),
            (16, 16, 1),
            (17, 16, 2),
            (100, 0, 1),
            (272, 16, 2),
            (273, 16, 3),
            (4095, 16, 3),
            (8, 2, 3),
            (5, 1, 5),
        ] {
            let all: Vec<u32> = (1..=hosts).collect();
            let mut found = Vec::new();
            depths(&all, degree, 1, &mut found);
            assert!(found.iter().map(|(host, _)| *host).eq(1..=hosts), "in the order of the list");
            assert_eq!(found.iter().map(|(_, depth)| *depth).max().unwrap_or(0), deepest);
        }
    }
}
