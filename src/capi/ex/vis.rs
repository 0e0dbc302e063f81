//! Vector, indexed and strided transfers of GASNet-EX.
//!
//! Called by clients. Invariant: lists, counts and strides are read before a call returns and not
//! kept. The event of the local side of a put is that of the operation.

use super::objects::{ExObject, job_rank};
use super::{Event, Flags, Rank, event};
use crate::capi::OK;
use crate::capi::rma::job;
use crate::capi::vis::{check_totals, slice, too_large};
use crate::extended::transfers;
use crate::extended::vis::indexed::{AddressList, IndexedTransfer};
use crate::extended::vis::pieces::VisShape;
use crate::extended::vis::strided::StridedTransfer;
use crate::extended::vis::vector::{self, MemVec, VectorTransfer};
use crate::extended::vis::{self, CompletionForm, VisDirection};
use core::ffi::{c_int, c_void};

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
    if vis::copy_mapped(function, job, direction, rank, shape) {
        return core::ptr::null_mut();
    }
    event(transfers(job).transfer(function, job, direction, form, rank, shape))
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
    // SAFETY: by this function's condition.
    let (count, there, here) =
        unsafe { (slice(count, levels), slice(remote.1, levels), slice(local.1, levels)) };
    let mut counts = Vec::with_capacity(levels + 1);
    counts.push(elemsz);
    counts.extend_from_slice(count);
    // SAFETY: by this function's condition.
    let shape =
        unsafe { StridedTransfer::signed(remote.0.cast(), there, local.0.cast(), here, &counts) };
    let Some(shape) = shape else { too_large(function, levels) };
    start(function, form, direction, tm, rank, &shape)
}

/// The result of the three forms of a call.
macro_rules! done {
    (Explicit, $call:expr) => {
        $call
    };
    ($form:ident, $call:expr) => {{
        $call;
        OK
    }};
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
        /// - `flags`: `GEX_FLAG_ENABLE_LEAF_LC` is accepted, as all are.
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
            _flags: Flags,
        ) -> $result {
            let (form, direction) = (CompletionForm::$form, VisDirection::Put);
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
            _flags: Flags,
        ) -> $result {
            let (form, direction) = (CompletionForm::$form, VisDirection::Put);
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
        /// - `count`, `stridelevels`: elements in each dimension, and how many dimensions.
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
        /// - `count`, `stridelevels`: elements in each dimension, and how many dimensions.
        /// - `flags`: `GEX_FLAG_ENABLE_LEAF_LC` is accepted, as all are.
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
            _flags: Flags,
        ) -> $result {
            let (form, direction) = (CompletionForm::$form, VisDirection::Put);
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
