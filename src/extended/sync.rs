//! Syncing: explicit handles one by one and in arrays, implicit operations, access regions.
//!
//! Called by `capi`; reads the counts of [`crate::runtime::ops`] and polls through the context.
//! A read that finds an operation complete is an Acquire, so what the operation wrote is seen
//! afterwards.

use crate::runtime::Ctx;
use crate::runtime::ops::{ImplicitKind, OpHandle};
use crate::{fault, report};

/// Which handles of an array a caller needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HandleNeed {
    /// At least one that is not INVALID, or none if all are.
    Some,
    /// All of them.
    All,
}

/// Which implicit operations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ImplicitSet {
    /// Puts and memsets.
    Puts,
    /// Gets.
    Gets,
    /// All of them.
    All,
}

impl Ctx {
    /// Whether an operation is complete; does not poll. The handle is dead afterwards if so.
    pub fn op_done(self, handle: OpHandle) -> bool {
        handle == OpHandle::INVALID || self.job.ops.sync(self.thread_index(), handle)
    }

    /// Waits for an operation that no client knows of: the blocking forms.
    pub fn wait_op(self, handle: OpHandle) {
        if !self.op_done(handle) {
            self.wait_until(&"a sync of a put or get", || self.op_done(handle));
        }
    }

    /// Looks at all handles of an array once, makes the complete ones INVALID, and says whether
    /// the need is met. Does not poll.
    pub fn ops_done(self, handles: &mut [OpHandle], need: HandleNeed) -> bool {
        let (mut valid, mut done) = (0usize, 0usize);
        for h in handles.iter_mut().filter(|h| **h != OpHandle::INVALID) {
            valid += 1;
            if self.op_done(*h) || fault::on("skip_sync") {
                *h = OpHandle::INVALID;
                done += 1;
            }
        }
        self.drop_synced_leaves(handles);
        match need {
            HandleNeed::Some => done > 0 || valid == 0,
            HandleNeed::All => done == valid,
        }
    }

    /// Waits until the need is met; the complete handles of the array are INVALID then.
    pub fn wait_ops(self, handles: &mut [OpHandle], need: HandleNeed) {
        if !self.ops_done(handles, need) {
            self.wait_until(&"a sync of several puts or gets", || self.ops_done(handles, need));
        }
    }

    /// Whether the implicit operations of this thread are complete; does not poll.
    pub fn implicit_done(self, which: ImplicitSet) -> bool {
        let ops = &self.job.ops;
        let puts = which == ImplicitSet::Gets
            || ops.implicit_done(self.thread_index(), ImplicitKind::Puts);
        let gets = which == ImplicitSet::Puts
            || ops.implicit_done(self.thread_index(), ImplicitKind::Gets);
        puts && gets || fault::on("skip_sync")
    }

    /// Whether the implicit operations of these kinds of this thread are complete; does not poll.
    pub fn kinds_done(self, mut kinds: impl Iterator<Item = ImplicitKind>) -> bool {
        let done = |kind| self.job.ops.implicit_done(self.thread_index(), kind);
        kinds.all(done) || fault::on("skip_sync")
    }

    /// Waits for the implicit operations of these kinds of this thread.
    pub fn wait_kinds(self, kinds: impl Iterator<Item = ImplicitKind> + Clone) {
        if !self.kinds_done(kinds.clone()) {
            self.wait_until(&"a sync of implicit operations", || self.kinds_done(kinds.clone()));
        }
    }

    /// Waits for the implicit operations of this thread.
    pub fn wait_implicit(self, which: ImplicitSet) {
        if !self.implicit_done(which) {
            self.wait_until(&"a sync of implicit puts or gets", || self.implicit_done(which));
        }
    }

    /// Ends the job if this thread has an access region open, in which implicit operations
    /// cannot be synced.
    pub fn check_outside_region(self, function: &str) {
        if self.job.ops.in_region(self.thread_index()) {
            report::fatal(
                format_args!("{function}(): an access region of this thread is open"),
                format_args!(
                    "Call gasnet_end_nbi_accessregion() or gex_NBI_EndAccessRegion() first, and sync what it returns."
                ),
            );
        }
    }

    /// Begins an access region of the calling thread. `function` names the caller in messages.
    pub fn begin_region(self, function: &str) {
        super::depart(self);
        if !self.job.ops.open_region(self.thread_index()) {
            report::fatal(
                format_args!("{function}(): an access region of this thread is open already"),
                format_args!(
                    "Access regions cannot be nested; end the first one before the next begins."
                ),
            );
        }
    }

    /// Ends the access region of the calling thread. `function` names the caller in messages.
    pub fn end_region(self, function: &str) -> OpHandle {
        super::depart(self);
        self.job.ops.close_region(self.thread_index()).unwrap_or_else(|| {
            report::fatal(
                format_args!("{function}(): this thread has no access region open"),
                format_args!(
                    "Call gasnet_begin_nbi_accessregion or gex_NBI_BeginAccessRegion first, from the same thread."
                ),
            )
        })
    }
}
