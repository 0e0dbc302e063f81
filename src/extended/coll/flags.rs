//! The flags of a collective: which are legal together, and what they mean.
//!
//! Called by `capi` with what the client passed. Invariant: a [`CollFlags`] has exactly one
//! flag of each kind that its operation needs.

use super::request::CollOperation;
use crate::report;
use core::ffi::c_int;

/// `GASNET_COLL_*` flags of one call, checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CollFlags(c_int);

const IN_NOSYNC: c_int = 1;
const IN_MYSYNC: c_int = 1 << 1;
const IN_ALLSYNC: c_int = 1 << 2;
const OUT_NOSYNC: c_int = 1 << 3;
const OUT_MYSYNC: c_int = 1 << 4;
const OUT_ALLSYNC: c_int = 1 << 5;
const SINGLE: c_int = 1 << 6;
const LOCAL: c_int = 1 << 7;
const AGGREGATE: c_int = 1 << 8;
const INCLUSIVE_SCAN: c_int = 1 << 16;
const EXCLUSIVE_SCAN: c_int = 1 << 17;
const NO_IMAGES: c_int = 1 << 19;

/// Of each kind exactly one flag is passed.
const KINDS: [(c_int, &str); 3] = [
    (IN_NOSYNC | IN_MYSYNC | IN_ALLSYNC, "GASNET_COLL_IN_NOSYNC, IN_MYSYNC and IN_ALLSYNC"),
    (OUT_NOSYNC | OUT_MYSYNC | OUT_ALLSYNC, "GASNET_COLL_OUT_NOSYNC, OUT_MYSYNC and OUT_ALLSYNC"),
    (SINGLE | LOCAL, "GASNET_COLL_SINGLE and GASNET_COLL_LOCAL"),
];
/// The kind that only scans have.
const SCANS: (c_int, &str) =
    (INCLUSIVE_SCAN | EXCLUSIVE_SCAN, "GASNET_COLL_INCLUSIVE_SCAN and GASNET_COLL_EXCLUSIVE_SCAN");

/// The kind of which these flags do not hold exactly one.
fn lacking(flags: c_int, operation: CollOperation) -> Option<&'static str> {
    let one = |bits: c_int| (flags & bits).count_ones() == 1;
    let scan = || operation != CollOperation::Scan || one(SCANS.0);
    match KINDS.iter().find(|(bits, _)| !one(*bits)) {
        Some((_, names)) => Some(names),
        None if scan() => None,
        None => Some(SCANS.1),
    }
}

impl CollFlags {
    /// Checks the flags that `function` was given for this operation. Ends the job if one is
    /// missing or doubled.
    pub fn check(function: &str, flags: c_int, operation: CollOperation) -> CollFlags {
        if let Some(names) = lacking(flags, operation) {
            report::fatal(
                format_args!("{function}(): the flags {flags:#x} do not hold one of {names}"),
                format_args!("Pass exactly one flag of each kind."),
            );
        }
        CollFlags(flags)
    }

    fn has(self, flag: c_int) -> bool {
        self.0 & flag != 0
    }

    /// No data may move before all images have called.
    pub fn in_allsync(self) -> bool {
        self.has(IN_ALLSYNC)
    }

    /// The sources can be read before their images have called.
    pub fn in_nosync(self) -> bool {
        self.has(IN_NOSYNC)
    }

    /// The collective is over when it is over for all images.
    pub fn out_allsync(self) -> bool {
        self.has(OUT_ALLSYNC)
    }

    /// The client synchronises before it uses memory of the collective.
    pub fn out_nosync(self) -> bool {
        self.has(OUT_NOSYNC)
    }

    /// Lists of addresses have an entry per image of the team, not per image of the process.
    pub fn single(self) -> bool {
        self.has(SINGLE)
    }

    /// The next handle stands for this operation too.
    pub fn aggregate(self) -> bool {
        self.has(AGGREGATE)
    }

    /// A scan includes the operand of the image itself.
    pub fn inclusive(self) -> bool {
        self.has(INCLUSIVE_SCAN)
    }

    /// One call stands for all images of the process.
    pub fn by_process(self) -> bool {
        self.has(NO_IMAGES)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exactly_one_flag_of_each_kind() {
        let sound = IN_MYSYNC | OUT_ALLSYNC | LOCAL;
        assert_eq!(lacking(sound, CollOperation::Broadcast), None);
        assert_eq!(lacking(sound, CollOperation::Scan), Some(SCANS.1));
        assert_eq!(lacking(sound | INCLUSIVE_SCAN, CollOperation::Scan), None);
        assert_eq!(lacking(sound | IN_NOSYNC, CollOperation::Gather), Some(KINDS[0].1));
        assert_eq!(lacking(sound & !OUT_ALLSYNC, CollOperation::Gather), Some(KINDS[1].1));
        assert_eq!(lacking(sound | SINGLE, CollOperation::Gather), Some(KINDS[2].1));
    }
}
