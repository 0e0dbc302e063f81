//! What the vector, indexed and strided calls of both interfaces share: how their lists are read
//! and checked, and how a transfer begins.
//!
//! Called by [`super::vis`] and [`super::ex`]. Invariant: a notice that a thread has armed belongs
//! to its next put, of whichever interface.

use crate::client_memory::Src;
use crate::extended::transfers;
use crate::extended::vis::pieces::VisShape;
use crate::extended::vis::{self, CompletionForm, VisDirection};
use crate::rank::JobRank;
use crate::report;
use crate::runtime::GasnetJob;
use crate::runtime::checks;
use crate::runtime::ops::OpHandle;
use core::cell::Cell;
use core::ffi::c_void;

/// What the next put of a thread tells its target when it is complete.
#[derive(Clone, Copy, Debug)]
pub(super) struct PutNotice {
    pub(super) handler: u8,
    pub(super) addr: *const c_void,
    pub(super) len: usize,
}

thread_local! {
    static ARMED: Cell<Option<PutNotice>> = const { Cell::new(None) };
}

/// Has the next put of the calling thread give a notice, or none.
pub(super) fn arm(notice: Option<PutNotice>) {
    ARMED.set(notice);
}

/// Whether it is to give one.
pub(super) fn is_armed() -> bool {
    ARMED.get().is_some()
}

/// Begins a transfer. A put that is to give a notice is complete when this returns.
pub(super) fn begin(
    function: &'static str,
    job: &'static GasnetJob,
    form: CompletionForm,
    direction: VisDirection,
    rank: JobRank,
    shape: &impl VisShape,
) -> OpHandle {
    if checks::on() {
        vis::check_local_pieces(function, shape);
    }
    if direction == VisDirection::Put
        && let Some(notice) = ARMED.take()
    {
        if !vis::copy_mapped(function, job, direction, rank, shape) {
            let form = CompletionForm::Blocking;
            transfers(job).transfer(function, job, direction, form, rank, shape);
        }
        // SAFETY: the client keeps the payload until the put is complete.
        let payload = unsafe { Src::new(notice.addr.cast(), notice.len) };
        vis::notice::notify(job.ctx(), function, rank, notice.handler, payload);
        return OpHandle::INVALID;
    }
    match vis::copy_mapped(function, job, direction, rank, shape) {
        true => OpHandle::INVALID,
        false => transfers(job).transfer(function, job, direction, form, rank, shape),
    }
}

/// What a client gave as a list.
///
/// # Safety
/// `n` elements at `list` must be readable as long as the slice is used, unless `n` is 0.
pub(super) unsafe fn slice<'a, T>(list: *const T, n: usize) -> &'a [T] {
    if n == 0 {
        return &[];
    }
    // SAFETY: the specification has the caller pass a list of `n` readable elements.
    unsafe { core::slice::from_raw_parts(list, n) }
}

/// Elements and first element of a list or array.
pub(super) type ListArgument = (usize, *const c_void);

/// Ends the job if a list has elements, but no address. Called where calls are checked.
#[cold]
#[inline(never)]
pub(super) fn check_list(function: &str, name: &str, (n, list): ListArgument) {
    if n != 0 && list.is_null() {
        report::fatal(
            format_args!("{function}(): {name} is null, but has {n} elements"),
            format_args!("Pass the address of as many elements, or none."),
        );
    }
}

/// [`check_list`] of both sides; `names` are those of the destination and of the source.
#[cold]
#[inline(never)]
pub(super) fn check_lists(
    function: &str,
    direction: VisDirection,
    names: [&str; 2],
    remote: ListArgument,
    local: ListArgument,
) {
    let lists = if direction == VisDirection::Put { [remote, local] } else { [local, remote] };
    for (name, list) in names.into_iter().zip(lists) {
        check_list(function, name, list);
    }
}

/// Ends the job unless both sides have the same number of bytes.
pub(super) fn check_totals(function: &str, direction: VisDirection, remote: usize, local: usize) {
    if remote != local {
        let (dst, src) =
            if direction == VisDirection::Put { (remote, local) } else { (local, remote) };
        unequal(function, dst, src);
    }
}

fn unequal(function: &str, dst: usize, src: usize) -> ! {
    report::fatal(
        format_args!("{function}(): the destination has {dst} bytes in all, the source {src}"),
        format_args!("Pass lists with the same total on both sides."),
    )
}

/// Most levels of a strided transfer.
const MOST_LEVELS: usize = 65_535;

/// Ends the job if no section may have this number of levels.
pub(super) fn check_levels(function: &str, levels: usize) {
    if levels > MOST_LEVELS {
        report::fatal(
            format_args!(
                "{function}(): {levels} stride levels are out of range; the limit is {MOST_LEVELS}"
            ),
            format_args!("Pass the number of strides of each side as stridelevels."),
        );
    }
}

pub(super) fn too_large(function: &str, levels: usize) -> ! {
    report::fatal(
        format_args!(
            "{function}(): the counts and strides of {levels} levels make a section beyond 64 bits"
        ),
        format_args!(
            "{}",
            report::remedy_of(
                function,
                "Pass the number of bytes first, then a count for each stride; strides count bytes.",
                "Pass a count for each stride; strides count bytes."
            )
        ),
    )
}
