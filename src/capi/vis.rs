//! Vector, indexed and strided puts and gets, and their arguments as text.
//!
//! Called by clients. Invariant: the lists and arrays of a client are read before a call
//! returns and not kept.

use super::abi::{gasnet_handle_t, gasnet_node_t};
use super::vis_transfer::{
    begin, check_levels, check_list, check_lists, check_totals, slice, too_large,
};
use crate::client_memory::Dst;
use crate::extended::vis::indexed::{AddressList, IndexedTransfer};
use crate::extended::vis::pieces::VisShape;
use crate::extended::vis::strided::StridedTransfer;
use crate::extended::vis::vector::{self, MemVec, VectorTransfer};
use crate::extended::vis::{CompletionForm, VisDirection};
use crate::rank::JobRank;
use crate::runtime::{GasnetJob, checks};
use crate::tools::list_text as text;
use crate::trace::{EventDetail, Letter, Probe, Span};
use core::ffi::{c_char, c_void};
use core::mem::{offset_of, size_of};

const _: () = {
    assert!(size_of::<MemVec>() == 2 * size_of::<usize>());
    assert!(offset_of!(MemVec, len) == size_of::<usize>());
    assert!(size_of::<MemvecStats>() == 5 * size_of::<usize>());
    assert!(size_of::<AddrStats>() == 2 * size_of::<usize>());
};

/// The job; ends it if there is no such `node`.
fn target(function: &str, node: gasnet_node_t) -> &'static GasnetJob {
    let job = super::rma::job(function);
    job.team.check_rank(function, node);
    job
}

fn start(
    function: &'static str,
    form: CompletionForm,
    direction: VisDirection,
    job: &'static GasnetJob,
    node: gasnet_node_t,
    shape: &impl VisShape,
) -> gasnet_handle_t {
    let handle = begin(function, job, form, direction, JobRank(node), shape);
    if form == CompletionForm::Explicit {
        super::explicit(job, handle)
    } else {
        handle.0 as gasnet_handle_t
    }
}

/// # Safety
/// Both lists must be readable; the local pieces must be accessible until the operation is
/// synced.
unsafe fn vector(
    probe: &'static Probe,
    form: CompletionForm,
    direction: VisDirection,
    node: gasnet_node_t,
    (remote_count, remote): (usize, *const MemVec),
    (local_count, local): (usize, *const MemVec),
) -> gasnet_handle_t {
    let function = probe.function;
    let job = target(function, node);
    if checks::on() {
        let (there, here) = ((remote_count, remote.cast()), (local_count, local.cast()));
        check_lists(function, direction, ["dstlist", "srclist"], there, here);
    }
    // SAFETY: the specification demands lists of as many elements as their counts say.
    let (remote, local) = unsafe { (slice(remote, remote_count), slice(local, local_count)) };
    check_totals(function, direction, vector::total(remote), vector::total(local));
    let bytes = || vector::total(remote);
    let _span = Span::new(probe, || EventDetail::Pieces { node, bytes: bytes() });
    // SAFETY: the specification demands that local pieces are accessible until the sync.
    let shape = unsafe { VectorTransfer::new(remote, local) };
    start(function, form, direction, job, node, &shape)
}

/// Number of pieces, their addresses, bytes of each.
type List = (usize, *const *mut c_void, usize);

/// # Safety
/// Both lists must be readable; the local pieces must be accessible until the operation is
/// synced.
unsafe fn indexed(
    probe: &'static Probe,
    form: CompletionForm,
    direction: VisDirection,
    node: gasnet_node_t,
    remote: List,
    local: List,
) -> gasnet_handle_t {
    let function = probe.function;
    let job = target(function, node);
    if checks::on() {
        let (there, here) = ((remote.0, remote.1.cast()), (local.0, local.1.cast()));
        check_lists(function, direction, ["dstlist", "srclist"], there, here);
    }
    // SAFETY: the specification demands a list of `n` addresses.
    let index = |(n, list, len): List| AddressList { list: unsafe { slice(list.cast(), n) }, len };
    let (remote, local) = (index(remote), index(local));
    check_totals(function, direction, remote.total(), local.total());
    let bytes = || remote.total();
    let _span = Span::new(probe, || EventDetail::Pieces { node, bytes: bytes() });
    // SAFETY: the specification demands that local pieces are accessible until the sync.
    let shape = unsafe { IndexedTransfer::new(remote, local) };
    start(function, form, direction, job, node, &shape)
}

/// First byte and strides.
type Side = (*mut c_void, *const usize);

/// # Safety
/// `levels` strides of each side and `levels + 1` counts must be readable; the local elements
/// must be accessible until the operation is synced.
#[allow(clippy::too_many_arguments)]
unsafe fn strided(
    probe: &'static Probe,
    form: CompletionForm,
    direction: VisDirection,
    node: gasnet_node_t,
    remote: Side,
    local: Side,
    count: *const usize,
    levels: usize,
) -> gasnet_handle_t {
    let function = probe.function;
    let job = target(function, node);
    check_levels(function, levels);
    if checks::on() {
        check_list(function, "count", (levels + 1, count.cast()));
        let (there, here) = ((levels, remote.1.cast()), (levels, local.1.cast()));
        check_lists(function, direction, ["dststrides", "srcstrides"], there, here);
    }
    // SAFETY: the specification demands one stride for each level, and one count more.
    let (count, strides, local_strides) =
        unsafe { (slice(count, levels + 1), slice(remote.1, levels), slice(local.1, levels)) };
    let n = count[0];
    // SAFETY: the specification demands that the local section is accessible until the sync.
    let shape = unsafe {
        let (remote, local, count) = (remote.0.cast(), local.0.cast(), &count[1..]);
        StridedTransfer::new(remote, strides, local, local_strides, n, count)
    };
    let Some(shape) = shape else { too_large(function, levels) };
    let bytes = || count.iter().fold(1, |all: usize, n| all.wrapping_mul(*n));
    let _span = Span::new(probe, || EventDetail::Pieces { node, bytes: bytes() });
    start(function, form, direction, job, node, &shape)
}

/// The probe of a function, by its name.
macro_rules! probe {
    ($name:ident) => {{
        static PROBE: Probe = {
            let name = stringify!($name);
            Probe::new(
                if name.as_bytes()["gasnet_".len()] == b'p' { Letter::P } else { Letter::G },
                name,
            )
        };
        &PROBE
    }};
}

/// Exports the three forms of a function; `$call` is given the name and the form.
macro_rules! forms {
    ($(#[$doc:meta])* $blocking:ident $nb:ident $nbi:ident
     ($($arg:ident: $type:ty),*) $call:expr) => {
        forms!(@one [$(#[$doc])*] $blocking CompletionForm::Blocking, ($($arg: $type),*) $call);
        forms!(@one [$(#[$doc])*] $nb CompletionForm::Explicit, ($($arg: $type),*) -> gasnet_handle_t, $call);
        forms!(@one [$(#[$doc])*] $nbi CompletionForm::Implicit, ($($arg: $type),*) $call);
    };
    (@one [$(#[$doc:meta])*] $name:ident $form:expr, ($($arg:ident: $type:ty),*) $call:expr) => {
        $(#[$doc])*
        ///
        /// Returns when the operation is complete (no suffix) or initiated. `_nb` returns a handle
        /// for `gasnet_wait_syncnb` and its like; `_nbi` belongs to the implicit operations of the
        /// thread. An address outside the segment, or sides that differ in their number of bytes,
        /// end the job with a message.
        ///
        /// - Lists, strides and counts may be reused when the call returns; the local data must
        ///   stay until the operation is complete. The pieces of a destination must not
        ///   overlap.
        /// - Context: after `gasnet_attach`; not in a handler or a no-interrupt section, and
        ///   not while a handler-safe lock is held.
        ///
        /// # Safety
        /// Lists and arrays must be readable as long as they say. The local side must be
        /// accessible until the operation is complete. The pieces of the destination must not
        /// overlap.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name($($arg: $type),*) {
            // SAFETY: the specification of vector, indexed and strided transfers demands
            // readable lists, accessible local pieces until the call returns, and no overlap.
            unsafe { $call(probe!($name), $form) };
        }
    };
    (@one [$(#[$doc:meta])*] $name:ident $form:expr, ($($arg:ident: $type:ty),*) -> $result:ty, $call:expr) => {
        $(#[$doc])*
        ///
        /// Returns when the operation is complete (no suffix) or initiated. `_nb` returns a handle
        /// for `gasnet_wait_syncnb` and its like; `_nbi` belongs to the implicit operations of the
        /// thread. An address outside the segment, or sides that differ in their number of bytes,
        /// end the job with a message.
        ///
        /// - Lists, strides and counts may be reused when the call returns; the local data must
        ///   stay until the operation is complete. The pieces of a destination must not
        ///   overlap.
        /// - Context: after `gasnet_attach`; not in a handler or a no-interrupt section, and
        ///   not while a handler-safe lock is held.
        ///
        /// # Safety
        /// Lists and arrays must be readable as long as they say. The local side must be
        /// accessible until the operation is synced. The pieces of the destination must not
        /// overlap.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name($($arg: $type),*) -> $result {
            // SAFETY: the specification of vector, indexed and strided transfers demands
            // readable lists, accessible local pieces until the sync, and no overlap.
            unsafe { $call(probe!($name), $form) }
        }
    };
}

forms! {
    /// Copies a list of pieces of the caller's memory to a list of pieces of a rank's segment.
    ///
    /// - `dstnode`: the target, a rank below `gasnet_nodes()`; this process is one.
    /// - `dstcount`, `dstlist`: the pieces of the destination; each has its address and its bytes.
    /// - `srccount`, `srclist`: the pieces of the source, in the same total number of bytes.
    gasnet_putv_bulk gasnet_putv_nb_bulk gasnet_putv_nbi_bulk
    (dstnode: gasnet_node_t, dstcount: usize, dstlist: *const MemVec, srccount: usize, srclist: *const MemVec)
    |probe, form| vector(probe, form, VisDirection::Put, dstnode, (dstcount, dstlist), (srccount, srclist))
}

forms! {
    /// Copies a list of pieces of a rank's segment to a list of pieces of the caller's memory.
    ///
    /// - `dstcount`, `dstlist`: the pieces of the destination; each has its address and its bytes.
    /// - `srcnode`: the rank that owns the source, below `gasnet_nodes()`; this process is one.
    /// - `srccount`, `srclist`: the pieces of the source, in the same total number of bytes.
    gasnet_getv_bulk gasnet_getv_nb_bulk gasnet_getv_nbi_bulk
    (dstcount: usize, dstlist: *const MemVec, srcnode: gasnet_node_t, srccount: usize, srclist: *const MemVec)
    |probe, form| vector(probe, form, VisDirection::Get, srcnode, (srccount, srclist), (dstcount, dstlist))
}

forms! {
    /// As `gasnet_putv_bulk`, with pieces of one length on each side.
    ///
    /// - `dstnode`: the target, a rank below `gasnet_nodes()`; this process is one.
    /// - `dstcount`, `dstlist`, `dstlen`: number, addresses and bytes of the pieces of the
    ///   destination.
    /// - `srccount`, `srclist`, `srclen`: the same of the source, in the same total number of
    ///   bytes.
    gasnet_puti_bulk gasnet_puti_nb_bulk gasnet_puti_nbi_bulk
    (dstnode: gasnet_node_t, dstcount: usize, dstlist: *const *mut c_void, dstlen: usize,
     srccount: usize, srclist: *const *mut c_void, srclen: usize)
    |probe, form| indexed(
        probe, form, VisDirection::Put, dstnode, (dstcount, dstlist, dstlen), (srccount, srclist, srclen)
    )
}

forms! {
    /// As `gasnet_getv_bulk`, with pieces of one length on each side.
    ///
    /// - `dstcount`, `dstlist`, `dstlen`: number, addresses and bytes of the pieces of the
    ///   destination.
    /// - `srcnode`: the rank that owns the source, below `gasnet_nodes()`; this process is one.
    /// - `srccount`, `srclist`, `srclen`: the same of the source, in the same total number of
    ///   bytes.
    gasnet_geti_bulk gasnet_geti_nb_bulk gasnet_geti_nbi_bulk
    (dstcount: usize, dstlist: *const *mut c_void, dstlen: usize,
     srcnode: gasnet_node_t, srccount: usize, srclist: *const *mut c_void, srclen: usize)
    |probe, form| indexed(
        probe, form, VisDirection::Get, srcnode, (srccount, srclist, srclen), (dstcount, dstlist, dstlen)
    )
}

forms! {
    /// Copies a section of an array of the caller to a section of an array in a rank's segment.
    ///
    /// - `dstnode`: the target, a rank below `gasnet_nodes()`; this process is one.
    /// - `dstaddr`, `dststrides`: first byte of the destination, and the bytes between its
    ///   elements at each level.
    /// - `srcaddr`, `srcstrides`: the same of the source.
    /// - `count`: `count[0]` contiguous bytes, then `count[i + 1]` elements that are
    ///   `strides[i]` bytes apart, `stridelevels` + 1 numbers in all; a 0 makes the section
    ///   empty.
    /// - `stridelevels`: number of strides.
    gasnet_puts_bulk gasnet_puts_nb_bulk gasnet_puts_nbi_bulk
    (dstnode: gasnet_node_t, dstaddr: *mut c_void, dststrides: *const usize,
     srcaddr: *mut c_void, srcstrides: *const usize, count: *const usize, stridelevels: usize)
    |probe, form| strided(
        probe, form, VisDirection::Put, dstnode, (dstaddr, dststrides), (srcaddr, srcstrides), count, stridelevels
    )
}

forms! {
    /// Copies a section of an array in a rank's segment to a section of an array of the caller.
    ///
    /// - `dstaddr`, `dststrides`: first byte of the destination, and the bytes between its
    ///   elements at each level.
    /// - `srcnode`: the rank that owns the source, below `gasnet_nodes()`; this process is one.
    /// - `srcaddr`, `srcstrides`: the same of the source.
    /// - `count`: `count[0]` contiguous bytes, then `count[i + 1]` elements that are
    ///   `strides[i]` bytes apart, `stridelevels` + 1 numbers in all; a 0 makes the section
    ///   empty.
    /// - `stridelevels`: number of strides.
    gasnet_gets_bulk gasnet_gets_nb_bulk gasnet_gets_nbi_bulk
    (dstaddr: *mut c_void, dststrides: *const usize, srcnode: gasnet_node_t,
     srcaddr: *mut c_void, srcstrides: *const usize, count: *const usize, stridelevels: usize)
    |probe, form| strided(
        probe, form, VisDirection::Get, srcnode, (srcaddr, srcstrides), (dstaddr, dststrides), count, stridelevels
    )
}

/// `gasneti_memveclist_stats_t`
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct MemvecStats {
    /// Bytes of the shortest piece.
    minsz: usize,
    /// Bytes of the longest piece.
    maxsz: usize,
    /// Bytes of all pieces.
    totalsz: usize,
    /// Lowest address.
    minaddr: *mut c_void,
    /// Highest address of a last byte.
    maxaddr: *mut c_void,
}

/// `gasneti_addrlist_stats_t`
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct AddrStats {
    /// Lowest address.
    minaddr: *mut c_void,
    /// Highest address of a last byte.
    maxaddr: *mut c_void,
}

/// Returns the bytes that [`gasnett_format_memveclist`] may write.
///
/// - Context: anywhere, before `gasnet_init` too.
#[unsafe(no_mangle)]
pub extern "C" fn gasnett_format_memveclist_bufsz(count: usize) -> usize {
    text::room(count)
}

/// Writes a list of pieces as text.
///
/// - `buf`: where the text goes, `gasnett_format_memveclist_bufsz(count)` bytes.
/// - `count`, `list`: the pieces.
/// - Returns the shortest and the longest piece, the bytes of all, the lowest address, and the
///   highest address of a last byte.
/// - Context: anywhere, before `gasnet_init` too.
///
/// # Safety
/// `count` elements of `list` must be readable, and [`gasnett_format_memveclist_bufsz`] bytes
/// at `buf` writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gasnett_format_memveclist(
    buf: *mut c_char,
    count: usize,
    list: *const MemVec,
) -> MemvecStats {
    // SAFETY: gasnet_vis.h demands a list of `count` elements.
    let list = unsafe { slice(list, count) };
    // SAFETY: gasnet_vis.h demands a buffer of the size that its bufsz function says.
    let mut buffer = text::TextBuffer::new(unsafe { Dst::new(buf.cast(), text::room(count)) });
    let s = buffer.list(vector::pieces(list));
    MemvecStats {
        minsz: s.shortest,
        maxsz: s.longest,
        totalsz: s.total,
        minaddr: s.lowest as *mut c_void,
        maxaddr: s.highest as *mut c_void,
    }
}

/// Returns the bytes that [`gasnett_format_putvgetv`] may write.
///
/// - Context: anywhere, before `gasnet_init` too.
#[unsafe(no_mangle)]
pub extern "C" fn gasnett_format_putvgetv_bufsz(dstcount: usize, srccount: usize) -> usize {
    text::room(dstcount) + text::room(srccount)
}

/// Writes the arguments of a vector operation as text.
///
/// - `buf`: where the text goes, `gasnett_format_putvgetv_bufsz(dstcount, srccount)` bytes.
/// - Other parameters: as those of `gasnet_putv_bulk`.
/// - Returns the bytes that the operation moves.
/// - Context: anywhere, before `gasnet_init` too.
///
/// # Safety
/// Both lists must be readable, and [`gasnett_format_putvgetv_bufsz`] bytes at `buf` writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gasnett_format_putvgetv(
    buf: *mut c_char,
    node: gasnet_node_t,
    dstcount: usize,
    dstlist: *const MemVec,
    srccount: usize,
    srclist: *const MemVec,
) -> usize {
    // SAFETY: gasnet_vis.h demands lists of as many elements as their counts say.
    let (dst, src) = unsafe { (slice(dstlist, dstcount), slice(srclist, srccount)) };
    let room = gasnett_format_putvgetv_bufsz(dstcount, srccount);
    // SAFETY: gasnet_vis.h demands a buffer of the size that its bufsz function says.
    let mut buffer = text::TextBuffer::new(unsafe { Dst::new(buf.cast(), room) });
    buffer.both(node, vector::pieces(dst), vector::pieces(src))
}

/// Returns the bytes that [`gasnett_format_addrlist`] may write.
///
/// - Context: anywhere, before `gasnet_init` too.
#[unsafe(no_mangle)]
pub extern "C" fn gasnett_format_addrlist_bufsz(count: usize) -> usize {
    text::room(count)
}

/// Writes a list of addresses as text.
///
/// - `buf`: where the text goes, `gasnett_format_addrlist_bufsz(count)` bytes.
/// - `count`, `list`: the addresses; `len`: the bytes at each.
/// - Returns the lowest address, and the highest address of a last byte.
/// - Context: anywhere, before `gasnet_init` too.
///
/// # Safety
/// `count` elements of `list` must be readable, and [`gasnett_format_addrlist_bufsz`] bytes at
/// `buf` writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gasnett_format_addrlist(
    buf: *mut c_char,
    count: usize,
    list: *const *mut c_void,
    len: usize,
) -> AddrStats {
    // SAFETY: gasnet_vis.h demands a list of `count` addresses.
    let index = AddressList { list: unsafe { slice(list.cast(), count) }, len };
    // SAFETY: gasnet_vis.h demands a buffer of the size that its bufsz function says.
    let mut buffer = text::TextBuffer::new(unsafe { Dst::new(buf.cast(), text::room(count)) });
    let s = buffer.list(index.pieces());
    AddrStats { minaddr: s.lowest as *mut c_void, maxaddr: s.highest as *mut c_void }
}

/// Returns the bytes that [`gasnett_format_putigeti`] may write.
///
/// - Context: anywhere, before `gasnet_init` too.
#[unsafe(no_mangle)]
pub extern "C" fn gasnett_format_putigeti_bufsz(dstcount: usize, srccount: usize) -> usize {
    text::room(dstcount) + text::room(srccount)
}

/// Writes the arguments of an indexed operation as text.
///
/// - `buf`: where the text goes, `gasnett_format_putigeti_bufsz(dstcount, srccount)` bytes.
/// - Other parameters: as those of `gasnet_puti_bulk`.
/// - Returns the bytes that the operation moves.
/// - Context: anywhere, before `gasnet_init` too.
///
/// # Safety
/// Both lists must be readable, and [`gasnett_format_putigeti_bufsz`] bytes at `buf` writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gasnett_format_putigeti(
    buf: *mut c_char,
    node: gasnet_node_t,
    dstcount: usize,
    dstlist: *const *mut c_void,
    dstlen: usize,
    srccount: usize,
    srclist: *const *mut c_void,
    srclen: usize,
) -> usize {
    // SAFETY: gasnet_vis.h demands lists of as many addresses as their counts say.
    let dst = AddressList { list: unsafe { slice(dstlist.cast(), dstcount) }, len: dstlen };
    // SAFETY: gasnet_vis.h demands lists of as many addresses as their counts say.
    let src = AddressList { list: unsafe { slice(srclist.cast(), srccount) }, len: srclen };
    let room = gasnett_format_putigeti_bufsz(dstcount, srccount);
    // SAFETY: gasnet_vis.h demands a buffer of the size that its bufsz function says.
    let mut buffer = text::TextBuffer::new(unsafe { Dst::new(buf.cast(), room) });
    buffer.both(node, dst.pieces(), src.pieces())
}

/// Returns the bytes that [`gasnett_format_strides`] may write.
///
/// - Context: anywhere, before `gasnet_init` too.
#[unsafe(no_mangle)]
pub extern "C" fn gasnett_format_strides_bufsz(count: usize) -> usize {
    text::room(count)
}

/// Writes a list of strides as text.
///
/// - `buf`: where the text goes, `gasnett_format_strides_bufsz(count)` bytes.
/// - `count`, `list`: the strides.
/// - Context: anywhere, before `gasnet_init` too.
///
/// # Safety
/// `count` elements of `list` must be readable, and [`gasnett_format_strides_bufsz`] bytes at
/// `buf` writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gasnett_format_strides(
    buf: *mut c_char,
    count: usize,
    list: *const usize,
) {
    // SAFETY: gasnet_vis.h demands an array of `count` strides.
    let strides = unsafe { slice(list, count) };
    // SAFETY: gasnet_vis.h demands a buffer of the size that its bufsz function says.
    text::TextBuffer::new(unsafe { Dst::new(buf.cast(), text::room(count)) }).numbers(strides);
}

/// Returns the bytes that [`gasnett_format_putsgets`] may write.
///
/// - Context: anywhere, before `gasnet_init` too.
#[unsafe(no_mangle)]
pub extern "C" fn gasnett_format_putsgets_bufsz(stridelevels: usize) -> usize {
    3usize.saturating_mul(text::room(stridelevels.saturating_add(1)))
}

/// Writes the arguments of a strided operation as text.
///
/// - `buf`: where the text goes, `gasnett_format_putsgets_bufsz(stridelevels)` bytes.
/// - `stats`: not used.
/// - Other parameters: as those of `gasnet_puts_bulk`.
/// - Returns the bytes that the operation moves.
/// - Context: anywhere, before `gasnet_init` too.
///
/// # Safety
/// `stridelevels` strides of each side and one more count must be readable, and
/// [`gasnett_format_putsgets_bufsz`] bytes at `buf` writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gasnett_format_putsgets(
    buf: *mut c_char,
    _stats: *mut c_void,
    node: gasnet_node_t,
    dstaddr: *mut c_void,
    dststrides: *const usize,
    srcaddr: *mut c_void,
    srcstrides: *const usize,
    count: *const usize,
    stridelevels: usize,
) -> usize {
    // SAFETY: gasnet_vis.h demands `stridelevels` strides of each side, and one count more.
    let (dst, src, count) = unsafe {
        (
            slice(dststrides, stridelevels),
            slice(srcstrides, stridelevels),
            slice(count, stridelevels + 1),
        )
    };
    let room = gasnett_format_putsgets_bufsz(stridelevels);
    // SAFETY: gasnet_vis.h demands a buffer of the size that its bufsz function says.
    let mut buffer = text::TextBuffer::new(unsafe { Dst::new(buf.cast(), room) });
    buffer.section(node, (dstaddr as usize, dst), (srcaddr as usize, src), count)
}
