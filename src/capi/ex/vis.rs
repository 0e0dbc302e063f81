//! Vector, indexed and strided transfers of GASNet-EX.
//!
//! Called by clients. Invariant: lists, counts and strides are read before a call returns and not
//! kept. The event of the local side of a put ends with the operation.

use super::objects::{ExObject, job_rank, node};
use super::{Event, Flags, Rank, event};
use crate::capi::am::check_handler;
use crate::capi::rma::job;
use crate::capi::vis::gasnett_format_putsgets_bufsz;
use crate::capi::vis_transfer::{
    self, PutNotice, begin, check_levels, check_list, check_lists, check_totals, slice, too_large,
};
use crate::capi::{OK, check_empty_call, early_job};
use crate::client_memory::Dst;
use crate::extended::vis::indexed::{AddressList, IndexedTransfer};
use crate::extended::vis::pieces::VisShape;
use crate::extended::vis::strided::StridedTransfer;
use crate::extended::vis::vector::{self, MemVec, VectorTransfer};
use crate::extended::vis::{CompletionForm, VisDirection};
use crate::report;
use crate::runtime::checks::{self, check_local};
use crate::runtime::ops::OpHandle;
use crate::tools::list_text as text;
use crate::trace::{EventDetail, watch};
use core::ffi::{c_char, c_int, c_void};

fn start(
    function: &'static str,
    form: CompletionForm,
    direction: VisDirection,
    tm: ExObject,
    rank: Rank,
    shape: &impl VisShape,
) -> Event {
    let job = job(function);
    let rank = job_rank(job, function, tm, rank);
    event(begin(function, job, form, direction, rank, shape))
}

/// `GEX_FLAG_ENABLE_LEAF_LC`
const ENABLE_LEAF_LC: Flags = 1 << 11;
/// `GEX_VIS_MAX_PEERCOMPLETION`
const MAX_NOTICE: usize = 127;

/// Has the next vector, indexed or strided put of this thread run a handler at its target once
/// the data are there. That put completes before its call returns.
///
/// - `handler`: a Medium reply handler without arguments, which the target has registered; 0
///   takes an earlier call back.
/// - `source_addr`, `nbytes`: its payload, at most `GEX_VIS_MAX_PEERCOMPLETION` bytes; it must
///   stay until the put is complete.
/// - `flags`: 0.
/// - Context: after `gex_Segment_Attach`; not in a handler.
#[unsafe(no_mangle)]
pub extern "C" fn gex_VIS_SetPeerCompletionHandler(
    handler: u8,
    source_addr: *const c_void,
    nbytes: usize,
    _flags: Flags,
) {
    let function = "gex_VIS_SetPeerCompletionHandler";
    job(function);
    if handler == 0 {
        vis_transfer::arm(None);
        return;
    }
    check_handler(function, handler);
    if nbytes > MAX_NOTICE {
        report::fatal(
            format_args!(
                "{function}(): {nbytes} bytes are out of range; the limit is {MAX_NOTICE}"
            ),
            format_args!("Pass at most GEX_VIS_MAX_PEERCOMPLETION bytes."),
        );
    }
    if checks::on() {
        check_local(function, ("source_addr", source_addr.cast()), nbytes);
    }
    vis_transfer::arm(Some(PutNotice { handler, addr: source_addr, len: nbytes }));
}

/// A list of pieces and its length.
type Pieces = (usize, *const MemVec);

/// # Safety
/// The lists must be readable, the local pieces accessible until the operation is synced.
unsafe fn vector(
    function: &'static str,
    form: CompletionForm,
    direction: VisDirection,
    tm: ExObject,
    rank: Rank,
    remote: Pieces,
    local: Pieces,
) -> Event {
    if checks::on() {
        let (there, here) = ((remote.0, remote.1.cast()), (local.0, local.1.cast()));
        check_lists(function, direction, ["dstlist", "srclist"], there, here);
    }
    // SAFETY: by this function's condition.
    let (remote, local) = unsafe { (slice(remote.1, remote.0), slice(local.1, local.0)) };
    check_totals(function, direction, vector::total(remote), vector::total(local));
    // SAFETY: by this function's condition.
    let shape = unsafe { VectorTransfer::new(remote, local) };
    start(function, form, direction, tm, rank, &shape)
}

/// Number of pieces, their addresses, bytes of each.
type Addresses = (usize, *const *mut c_void, usize);

/// # Safety
/// The lists must be readable, the local pieces accessible until the operation is synced.
unsafe fn indexed(
    function: &'static str,
    form: CompletionForm,
    direction: VisDirection,
    tm: ExObject,
    rank: Rank,
    remote: Addresses,
    local: Addresses,
) -> Event {
    if checks::on() {
        let (there, here) = ((remote.0, remote.1.cast()), (local.0, local.1.cast()));
        check_lists(function, direction, ["dstlist", "srclist"], there, here);
    }
    let index = |(n, list, len): Addresses| {
        // SAFETY: by this function's condition.
        AddressList { list: unsafe { slice(list.cast(), n) }, len }
    };
    let (remote, local) = (index(remote), index(local));
    check_totals(function, direction, remote.total(), local.total());
    // SAFETY: by this function's condition.
    let shape = unsafe { IndexedTransfer::new(remote, local) };
    start(function, form, direction, tm, rank, &shape)
}

/// First byte and strides.
type Side = (*mut c_void, *const isize);

/// # Safety
/// `levels` strides of each side and counts must be readable, the local section accessible until
/// the operation is synced.
unsafe fn strided(
    function: &'static str,
    (form, direction): (CompletionForm, VisDirection),
    (tm, rank): (ExObject, Rank),
    remote: Side,
    local: Side,
    elemsz: usize,
    (count, levels): (*const usize, usize),
) -> Event {
    // Without bytes the lists do not count.
    // SAFETY: by this function's condition.
    let (elemsz, levels) = match unsafe { is_empty(function, elemsz, count, levels) } {
        true => (0, 0),
        false => (elemsz, levels),
    };
    if checks::on() {
        let (there, here) = ((levels, remote.1.cast()), (levels, local.1.cast()));
        check_lists(function, direction, ["dststrides", "srcstrides"], there, here);
    }
    // SAFETY: by this function's condition.
    let (count, there, here) =
        unsafe { (slice(count, levels), slice(remote.1, levels), slice(local.1, levels)) };
    let (remote, local) = (remote.0.cast(), local.0.cast());
    // SAFETY: by this function's condition.
    let shape = unsafe { StridedTransfer::signed(remote, there, local, here, elemsz, count) };
    let Some(shape) = shape else { too_large(function, levels) };
    start(function, form, direction, tm, rank, &shape)
}

/// Whether a section has no bytes, so that nothing else of a call counts, and the other arguments
/// need not be valid. A put that is to run a handler needs its target nevertheless. Where `elemsz`
/// is not 0, a number of levels beyond the limit ends the job.
///
/// # Safety
/// `levels` counts must be readable, unless `elemsz` is 0.
unsafe fn is_empty(function: &str, elemsz: usize, count: *const usize, levels: usize) -> bool {
    if elemsz == 0 {
        return true;
    }
    check_levels(function, levels);
    if checks::on() {
        check_list(function, "count", (levels, count.cast()));
    }
    // SAFETY: by this function's condition.
    unsafe { slice(count, levels) }.contains(&0)
}

/// The event of a transfer without bytes.
fn no_bytes(function: &str) -> Event {
    check_empty_call(function);
    event(OpHandle::INVALID)
}

/// The counts of a section whose contiguous bytes are its first count.
fn all_counts(elemsz: usize, count: &[usize]) -> Vec<usize> {
    let mut counts = Vec::with_capacity(count.len() + 1);
    counts.push(elemsz);
    counts.extend_from_slice(count);
    counts
}

/// Bytes of a list of pieces, for traces; 0 of a list that is null, which debug checks report.
///
/// # Safety
/// `n` pieces at `list` must be readable, or it is null.
unsafe fn vector_bytes(n: usize, list: *const MemVec) -> usize {
    let n = if list.is_null() { 0 } else { n };
    // SAFETY: by this function's condition.
    let list = unsafe { slice(list, n) };
    list.iter().fold(0, |sum: usize, piece| sum.saturating_add(piece.len))
}

/// Bytes of a section, for traces.
///
/// # Safety
/// `levels` counts must be readable.
unsafe fn strided_bytes(elemsz: usize, count: *const usize, levels: usize) -> usize {
    // SAFETY: by this function's condition.
    let count = unsafe { slice(count, if elemsz == 0 { 0 } else { levels }) };
    count.iter().fold(elemsz, |bytes, &n| bytes.saturating_mul(n))
}

/// How a put with these flags completes: one whose local side may be reused with the category
/// `GEX_EC_LC` is complete when its call returns.
fn put_form(form: CompletionForm, flags: Flags) -> CompletionForm {
    match form {
        CompletionForm::Implicit if flags & ENABLE_LEAF_LC != 0 => CompletionForm::Blocking,
        form => form,
    }
}

macro_rules! transfers {
    ($($form:ident $result:ty: $vget:ident $vput:ident $iget:ident $iput:ident $sget:ident $sput:ident;)*) => { $(
        /// Copies pieces of the segment of a rank to pieces of memory of the caller. The form of
        /// the name says how it completes: `NB` by an event, `NBI` implicitly, `Blocking` at once.
        ///
        /// - `tm`, `srcrank`: the rank that owns the source.
        /// - `dstcount`, `dstlist`; `srccount`, `srclist`: the pieces, with the same total.
        /// - `flags`: accepted.
        /// - Returns the event, or 0.
        /// - Context: after `gex_Segment_Attach`; not in a handler.
        ///
        /// # Safety
        /// The lists must be readable, the local pieces accessible until the operation is synced.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $vget(
            tm: ExObject,
            dstcount: usize,
            dstlist: *const MemVec,
            srcrank: Rank,
            srccount: usize,
            srclist: *const MemVec,
            _flags: Flags,
        ) -> $result {
            watch!(
                G stringify!($vget),
                EventDetail::Pieces {
                    node: node(stringify!($vget), tm, srcrank),
                    // SAFETY: as this function requires.
                    bytes: unsafe { vector_bytes(dstcount, dstlist) },
                },
                $vget(tm, dstcount, dstlist, srcrank, srccount, srclist, _flags)
            );
            let (form, direction) = (CompletionForm::$form, VisDirection::Get);
            let (remote, local) = ((srccount, srclist), (dstcount, dstlist));
            // SAFETY: as this function requires.
            done!($form, unsafe {
                vector(stringify!($vget), form, direction, tm, srcrank, remote, local)
            })
        }

        /// Copies pieces of memory of the caller to pieces of the segment of a rank. The form of
        /// the name says how it completes: `NB` by an event, `NBI` implicitly, `Blocking` at once.
        ///
        /// - `tm`, `dstrank`: the target.
        /// - `dstcount`, `dstlist`; `srccount`, `srclist`: the pieces, with the same total.
        /// - `flags`: with `GEX_FLAG_ENABLE_LEAF_LC`, `NBI` completes at once; others are valid.
        /// - Returns the event, or 0.
        /// - Context: after `gex_Segment_Attach`; not in a handler.
        ///
        /// # Safety
        /// The lists must be readable, the local pieces accessible until the operation is synced.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $vput(
            tm: ExObject,
            dstrank: Rank,
            dstcount: usize,
            dstlist: *const MemVec,
            srccount: usize,
            srclist: *const MemVec,
            flags: Flags,
        ) -> $result {
            watch!(
                P stringify!($vput),
                EventDetail::Pieces {
                    node: node(stringify!($vput), tm, dstrank),
                    // SAFETY: as this function requires.
                    bytes: unsafe { vector_bytes(srccount, srclist) },
                },
                $vput(tm, dstrank, dstcount, dstlist, srccount, srclist, flags)
            );
            let form = put_form(CompletionForm::$form, flags);
            let direction = VisDirection::Put;
            let (remote, local) = ((dstcount, dstlist), (srccount, srclist));
            // SAFETY: as this function requires.
            done!($form, unsafe {
                vector(stringify!($vput), form, direction, tm, dstrank, remote, local)
            })
        }

        /// As the vector form, for pieces of one length on each side.
        ///
        /// - `tm`, `srcrank`: the rank that owns the source.
        /// - `dstcount`, `dstlist`, `dstlen`; `srccount`, `srclist`, `srclen`: the pieces.
        /// - `flags`: accepted.
        /// - Returns the event, or 0.
        /// - Context: after `gex_Segment_Attach`; not in a handler.
        ///
        /// # Safety
        /// The lists must be readable, the local pieces accessible until the operation is synced.
        #[unsafe(no_mangle)]
        #[allow(clippy::too_many_arguments)]
        pub unsafe extern "C" fn $iget(
            tm: ExObject,
            dstcount: usize,
            dstlist: *const *mut c_void,
            dstlen: usize,
            srcrank: Rank,
            srccount: usize,
            srclist: *const *mut c_void,
            srclen: usize,
            _flags: Flags,
        ) -> $result {
            watch!(
                G stringify!($iget),
                EventDetail::Pieces {
                    node: node(stringify!($iget), tm, srcrank),
                    bytes: dstcount.saturating_mul(dstlen),
                },
                $iget(tm, dstcount, dstlist, dstlen, srcrank, srccount, srclist, srclen, _flags)
            );
            let (form, direction) = (CompletionForm::$form, VisDirection::Get);
            let (remote, local) = ((srccount, srclist, srclen), (dstcount, dstlist, dstlen));
            // SAFETY: as this function requires.
            done!($form, unsafe {
                indexed(stringify!($iget), form, direction, tm, srcrank, remote, local)
            })
        }

        /// As the vector form, for pieces of one length on each side.
        ///
        /// - `tm`, `dstrank`: the target.
        /// - `dstcount`, `dstlist`, `dstlen`; `srccount`, `srclist`, `srclen`: the pieces.
        /// - `flags`: accepted.
        /// - Returns the event, or 0.
        /// - Context: after `gex_Segment_Attach`; not in a handler.
        ///
        /// # Safety
        /// The lists must be readable, the local pieces accessible until the operation is synced.
        #[unsafe(no_mangle)]
        #[allow(clippy::too_many_arguments)]
        pub unsafe extern "C" fn $iput(
            tm: ExObject,
            dstrank: Rank,
            dstcount: usize,
            dstlist: *const *mut c_void,
            dstlen: usize,
            srccount: usize,
            srclist: *const *mut c_void,
            srclen: usize,
            flags: Flags,
        ) -> $result {
            watch!(
                P stringify!($iput),
                EventDetail::Pieces {
                    node: node(stringify!($iput), tm, dstrank),
                    bytes: srccount.saturating_mul(srclen),
                },
                $iput(tm, dstrank, dstcount, dstlist, dstlen, srccount, srclist, srclen, flags)
            );
            let form = put_form(CompletionForm::$form, flags);
            let direction = VisDirection::Put;
            let (remote, local) = ((dstcount, dstlist, dstlen), (srccount, srclist, srclen));
            // SAFETY: as this function requires.
            done!($form, unsafe {
                indexed(stringify!($iput), form, direction, tm, dstrank, remote, local)
            })
        }

        /// Copies a section of an array in the segment of a rank to a section of an array of the
        /// caller.
        ///
        /// - `tm`, `srcrank`: the rank that owns the source.
        /// - `dstaddr`, `dststrides`; `srcaddr`, `srcstrides`: first element, and bytes from one
        ///   element to the next, in each dimension; they may be negative.
        /// - `elemsz`: bytes of an element.
        /// - `count`, `stridelevels`: elements in each dimension, and how many dimensions. If a
        ///   count is 0, nothing is done, and the ranks and addresses do not count. If `elemsz` is
        ///   0, no other argument counts.
        /// - `flags`: accepted.
        /// - Returns the event, or 0.
        /// - Context: after `gex_Segment_Attach`; not in a handler.
        ///
        /// # Safety
        /// The strides and counts must be readable, the local section accessible until the
        /// operation is synced.
        #[unsafe(no_mangle)]
        #[allow(clippy::too_many_arguments)]
        pub unsafe extern "C" fn $sget(
            tm: ExObject,
            dstaddr: *mut c_void,
            dststrides: *const isize,
            srcrank: Rank,
            srcaddr: *mut c_void,
            srcstrides: *const isize,
            elemsz: usize,
            count: *const usize,
            stridelevels: usize,
            _flags: Flags,
        ) -> $result {
            // SAFETY: as this function requires.
            if unsafe { is_empty(stringify!($sget), elemsz, count, stridelevels) } {
                return done!($form, no_bytes(stringify!($sget)));
            }
            watch!(
                G stringify!($sget),
                EventDetail::Pieces {
                    node: node(stringify!($sget), tm, srcrank),
                    // SAFETY: as this function requires.
                    bytes: unsafe { strided_bytes(elemsz, count, stridelevels) },
                },
                $sget(tm, dstaddr, dststrides, srcrank, srcaddr, srcstrides, elemsz, count, stridelevels, _flags)
            );
            let (form, direction) = (CompletionForm::$form, VisDirection::Get);
            let (remote, local) = ((srcaddr, srcstrides), (dstaddr, dststrides));
            let (to, counts) = ((tm, srcrank), (count, stridelevels));
            // SAFETY: as this function requires.
            done!($form, unsafe {
                strided(stringify!($sget), (form, direction), to, remote, local, elemsz, counts)
            })
        }

        /// Copies a section of an array of the caller to a section of an array in the segment of a
        /// rank.
        ///
        /// - `tm`, `dstrank`: the target.
        /// - `dstaddr`, `dststrides`; `srcaddr`, `srcstrides`: first element, and bytes from one
        ///   element to the next, in each dimension; they may be negative.
        /// - `elemsz`: bytes of an element.
        /// - `count`, `stridelevels`: elements in each dimension, and how many dimensions. If a
        ///   count is 0, nothing is done, and the ranks and addresses do not count. If `elemsz` is
        ///   0, no other argument counts.
        /// - `flags`: with `GEX_FLAG_ENABLE_LEAF_LC`, `NBI` completes at once; others are valid.
        /// - Returns the event, or 0.
        /// - Context: after `gex_Segment_Attach`; not in a handler.
        ///
        /// # Safety
        /// The strides and counts must be readable, the local section accessible until the
        /// operation is synced.
        #[unsafe(no_mangle)]
        #[allow(clippy::too_many_arguments)]
        pub unsafe extern "C" fn $sput(
            tm: ExObject,
            dstrank: Rank,
            dstaddr: *mut c_void,
            dststrides: *const isize,
            srcaddr: *mut c_void,
            srcstrides: *const isize,
            elemsz: usize,
            count: *const usize,
            stridelevels: usize,
            flags: Flags,
        ) -> $result {
            // SAFETY: as this function requires.
            let empty = unsafe { is_empty(stringify!($sput), elemsz, count, stridelevels) };
            if empty && !vis_transfer::is_armed() {
                return done!($form, no_bytes(stringify!($sput)));
            }
            watch!(
                P stringify!($sput),
                EventDetail::Pieces {
                    node: node(stringify!($sput), tm, dstrank),
                    // SAFETY: as this function requires.
                    bytes: unsafe { strided_bytes(elemsz, count, stridelevels) },
                },
                $sput(tm, dstrank, dstaddr, dststrides, srcaddr, srcstrides, elemsz, count, stridelevels, flags)
            );
            let form = put_form(CompletionForm::$form, flags);
            let direction = VisDirection::Put;
            let (remote, local) = ((dstaddr, dststrides), (srcaddr, srcstrides));
            let (to, counts) = ((tm, dstrank), (count, stridelevels));
            // SAFETY: as this function requires.
            done!($form, unsafe {
                strided(stringify!($sput), (form, direction), to, remote, local, elemsz, counts)
            })
        }
    )* };
}

transfers! {
    Explicit Event: gex_VIS_VectorGetNB gex_VIS_VectorPutNB gex_VIS_IndexedGetNB
        gex_VIS_IndexedPutNB gex_VIS_StridedGetNB gex_VIS_StridedPutNB;
    Implicit c_int: gex_VIS_VectorGetNBI gex_VIS_VectorPutNBI gex_VIS_IndexedGetNBI
        gex_VIS_IndexedPutNBI gex_VIS_StridedGetNBI gex_VIS_StridedPutNBI;
    Blocking c_int: gex_VIS_VectorGetBlocking gex_VIS_VectorPutBlocking gex_VIS_IndexedGetBlocking
        gex_VIS_IndexedPutBlocking gex_VIS_StridedGetBlocking gex_VIS_StridedPutBlocking;
}

/// `gasnett_format_strides` for signed strides, as gasnet_vis.h calls it after gasnetex.h.
///
/// # Safety
/// `count` elements of `list` must be readable, and `gasnett_format_strides_bufsz(count)` bytes at
/// `buf` writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gasneti_format_strides(
    buf: *mut c_char,
    count: usize,
    list: *const isize,
) {
    // SAFETY: as this function requires.
    let (strides, memory) =
        unsafe { (slice(list, count), Dst::new(buf.cast(), text::room(count))) };
    text::TextBuffer::new(memory).numbers(strides);
}

/// `gasnett_format_putsgets` for a rank of a team, signed strides and the size of an element, as
/// gasnet_vis.h calls it after gasnetex.h.
///
/// # Safety
/// `stridelevels` strides of each side and counts must be readable, and
/// `gasnett_format_putsgets_bufsz(stridelevels)` bytes at `buf` writable.
#[unsafe(no_mangle)]
#[allow(clippy::too_many_arguments)]
pub unsafe extern "C" fn gasneti_format_putsgets(
    buf: *mut c_char,
    _stats: *mut c_void,
    tm: ExObject,
    rank: Rank,
    dstaddr: *mut c_void,
    dststrides: *const isize,
    srcaddr: *mut c_void,
    srcstrides: *const isize,
    elemsz: usize,
    count: *const usize,
    stridelevels: usize,
) -> usize {
    let function = "gasnett_format_putsgets";
    let node = job_rank(early_job(function), function, tm, rank);
    // SAFETY: as this function requires.
    let (dst, src, count, memory) = unsafe {
        (
            slice(dststrides, stridelevels),
            slice(srcstrides, stridelevels),
            slice(count, stridelevels),
            Dst::new(buf.cast(), gasnett_format_putsgets_bufsz(stridelevels)),
        )
    };
    let counts = all_counts(elemsz, count);
    text::TextBuffer::new(memory).section(
        node.0,
        (dstaddr.addr(), dst),
        (srcaddr.addr(), src),
        &counts,
    )
}
