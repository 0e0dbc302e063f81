//! Data movement, reductions and scans: blocking and non-blocking functions, for one address or
//! a list of them.
//!
//! Called by clients; `tuning` makes calls as they do. Invariant: flags, root and function are
//! checked before the extended layer is called.

use super::{BlockList, CollHandle, TeamHandle, team_of};
use crate::capi::ctx;
use crate::client_memory::{Dst, Src};
use crate::extended::coll::flags::CollFlags;
use crate::extended::coll::{
    BlockCyclic, CollBuffers, CollCall, CollOperation, CollRequest, ReduceOperator, Reduction,
};
use crate::extended::collectives;
use crate::report;
use crate::runtime::Ctx;
use crate::runtime::activity::WaitReason;
use crate::trace::{EventDetail, span};
use core::ffi::{c_int, c_void};

/// Where the images of a call have their blocks.
#[derive(Clone, Copy)]
pub(super) enum Address {
    /// The caller's.
    One(*mut c_void),
    /// Those of all images of the team, or of this process.
    Many(BlockList),
}

impl Address {
    /// As [`CollRequest::common_src`] and [`CollRequest::common_dst`].
    fn common(self, flags: CollFlags) -> Option<usize> {
        let stays = flags.out_nosync() || flags.out_allsync();
        match self {
            Address::One(p) if flags.in_nosync() && flags.single() && stays => Some(p.addr()),
            _ => None,
        }
    }

    /// That of the caller: its place among the images of this process, and its number in the
    /// team.
    unsafe fn of(self, (place, number): (usize, u32), flags: CollFlags) -> *mut u8 {
        let i = if flags.single() { number as usize } else { place };
        match self {
            Address::One(p) => p.cast(),
            Address::Many(list) if list.is_null() => core::ptr::null_mut(),
            // SAFETY: the list has an entry for each image that the flags say.
            Address::Many(list) => unsafe { (*list.add(i)).cast() },
        }
    }
}

/// What a computing call names: elements, function and its argument.
#[derive(Clone, Copy)]
pub(super) struct Elements {
    pub(super) size: usize,
    pub(super) count: usize,
    pub(super) func: i32,
    pub(super) arg: c_int,
    /// Block size and offset of the source array.
    pub(super) src: (usize, usize),
    /// The same of a scan's destination array; those of the source in a reduction.
    pub(super) dst: (usize, usize),
}

impl Elements {
    fn bytes(self, function: &str) -> usize {
        let offset = self.src.1.max(self.dst.1);
        let most = self.count.checked_add(offset).and_then(|n| n.checked_mul(self.size));
        match most.filter(|&n| n <= isize::MAX as usize) {
            Some(_) => self.size * self.count,
            None => report::fatal(
                format_args!(
                    "{function}(): {} elements of {} bytes, from element {offset} on, are more than memory",
                    self.count, self.size
                ),
                format_args!("Pass a number of elements and an offset within the array."),
            ),
        }
    }

    /// The array of the operands and that of the results, unless each image has all elements.
    fn arrays(self, function: &str) -> (Option<BlockCyclic>, Option<BlockCyclic>) {
        let [src, dst] = [self.src, self.dst].map(|(block, offset)| {
            if block == 0 && offset != 0 {
                report::fatal(
                    format_args!("{function}(): offset {offset} with block size 0"),
                    format_args!(
                        "For an array that one image holds, pass a block size that is not smaller than the array, and as offset that size times the number of the image."
                    ),
                );
            }
            BlockCyclic::new(block, offset)
        });
        if src.is_some() != dst.is_some() {
            report::fatal(
                format_args!("{function}(): one of dst_blksz and src_blksz is 0"),
                format_args!(
                    "Pass 0 for both if each image has all elements, or the block sizes of two arrays."
                ),
            );
        }
        (src, dst)
    }

    fn reduction(self, function: &str, c: Ctx) -> Reduction {
        let Some((f, flags)) = collectives(c).function(self.func) else {
            report::fatal(
                format_args!("{function}(): there is no function {}", self.func),
                format_args!("Pass an index into the table that gasnet_coll_init was given."),
            );
        };
        Reduction {
            operator: ReduceOperator::Registered { function: f, flags, arg: self.arg },
            elem_size: self.size,
        }
    }
}

/// Checks the flags and puts a call together.
///
/// # Safety
/// Lists must be readable; the caller's blocks must be accessible, for as many bytes as the
/// operation reads or writes there, until it is complete.
#[allow(clippy::too_many_arguments)]
pub(super) unsafe fn call(
    function: WaitReason,
    handle: TeamHandle,
    operation: CollOperation,
    root: u32,
    dst: Address,
    src: Address,
    nbytes: usize,
    elements: Option<Elements>,
    flags: c_int,
) -> (Ctx, CollCall, CollFlags) {
    let c = ctx(function);
    let team = team_of(c, function, handle);
    let flags = CollFlags::check(function, flags, operation);
    let by_process = flags.by_process();
    let images = team.images(by_process);
    if root >= images {
        report::fatal(
            format_args!(
                "{function}(): image {root} is out of range; this team has {images}, numbered from 0"
            ),
            format_args!("Pass an image below the number of images of the team."),
        );
    }
    let caller = collectives(c).caller(c, function, &team, by_process);
    let (src_array, dst_array) = elements.map_or((None, None), |e| e.arrays(function));
    let request = CollRequest {
        root,
        in_allsync: flags.in_allsync(),
        out_allsync: flags.out_allsync(),
        out_nosync: flags.out_nosync(),
        common_src: src.common(flags),
        common_dst: dst.common(flags),
        reduction: elements.map(|e| e.reduction(function, c)),
        inclusive: flags.inclusive(),
        src_array,
        dst_array: dst_array.filter(|_| operation == CollOperation::Scan),
        ..CollRequest::new(operation, elements.map_or(nbytes, |e| e.bytes(function)))
    };
    let (written, read) = request.extents(caller.1, images);
    // SAFETY: the specification demands an address for each image in the list of an M form.
    let (dst, src) = unsafe { (dst.of(caller, flags), src.of(caller, flags)) };
    // SAFETY: the client lends the bytes that the operation writes until it is complete.
    let dst = unsafe { Dst::new(dst.wrapping_add(written.start), written.len()) };
    // SAFETY: the same for the bytes that the operation reads.
    let src = unsafe { Src::new(src.wrapping_add(read.start), read.len()) };
    let buffers = CollBuffers { dst, src };
    (c, CollCall { function, team, by_process, request, buffers }, flags)
}

/// What a trace records of a collective.
fn detail(
    handle: TeamHandle,
    root: u32,
    nbytes: usize,
    elements: Option<Elements>,
) -> EventDetail {
    let bytes = elements.map_or(nbytes, |e| e.size.saturating_mul(e.count));
    EventDetail::Collective { team: (handle as usize).wrapping_sub(1) as u32, root, bytes }
}

/// The blocking and the non-blocking form of a collective, with the documentation of what it
/// does.
macro_rules! collective {
    ($(#[$doc:meta])* $name:ident, $nb:ident, $operation:ident, ($($arg:ident: $ty:ty),*),
     root: $root:expr, dst: $dst:expr, src: $src:expr, nbytes: $nbytes:expr,
     elements: $elements:expr) => {
        $(#[$doc])*
        ///
        /// Returns when the caller's part is over, which `flags` define.
        ///
        /// - `team`: `GASNET_TEAM_ALL` or a team that this process is a member of.
        /// - `flags`: one of `GASNET_COLL_IN_NOSYNC`, `_IN_MYSYNC` and `_IN_ALLSYNC`. Also one of
        ///   `GASNET_COLL_OUT_NOSYNC`, `_OUT_MYSYNC` and `_OUT_ALLSYNC`, and one of
        ///   `GASNET_COLL_SINGLE` and `_LOCAL`. `GASNET_COLL_NO_IMAGES` if a call covers all
        ///   images of its process.
        /// - Context: by every image of the team, in the same order. Not in a handler or a
        ///   no-interrupt section, and not while a handler-safe lock is held.
        ///
        /// # Safety
        /// The addresses, and those in lists, must be accessible for as many bytes as the
        /// operation reads or writes there.
        #[unsafe(no_mangle)]
        #[allow(clippy::too_many_arguments)]
        pub unsafe extern "C" fn $name(team: TeamHandle, $($arg: $ty,)* flags: c_int) {
            let (op, function) = (CollOperation::$operation, &stringify!($name));
            let _span = span!(W stringify!($name), detail(team, $root, $nbytes, $elements));
            // SAFETY: the specification of the collectives demands readable lists, and blocks of
            // `nbytes` bytes that are accessible until the operation is complete.
            let (c, call, _) = unsafe {
                call(function, team, op, $root, $dst, $src, $nbytes, $elements, flags)
            };
            collectives(c).wait_for(c, &call);
        }

        $(#[$doc])*
        ///
        /// Initiates the operation: as the function without `_nb`, but the memory is in use
        /// until the handle is synced. With the flag `GASNET_COLL_AGGREGATE` the operation is
        /// collected. The handle of the next call without the flag, by the same image in the
        /// same team, covers it too.
        ///
        /// - Returns a handle for `gasnet_coll_wait_sync` and its like, or
        ///   `GASNET_COLL_INVALID_HANDLE` if the operation is complete or collected.
        ///
        /// # Safety
        /// As the blocking form, until the handle is synced.
        #[unsafe(no_mangle)]
        #[allow(clippy::too_many_arguments)]
        pub unsafe extern "C" fn $nb(team: TeamHandle, $($arg: $ty,)* flags: c_int) -> CollHandle {
            let (op, function) = (CollOperation::$operation, &stringify!($nb));
            let _span = span!(W stringify!($nb), detail(team, $root, $nbytes, $elements));
            // SAFETY: the specification of the collectives demands readable lists, and blocks of
            // `nbytes` bytes that are accessible until the sync.
            let (c, call, flags) = unsafe {
                call(function, team, op, $root, $dst, $src, $nbytes, $elements, flags)
            };
            collectives(c).initiate(c, &call, flags.aggregate())
        }
    };
}

/// A collective that moves blocks.
macro_rules! movement {
    ($(#[$doc:meta])* $name:ident, $nb:ident, $operation:ident, ($($arg:ident: $ty:ty),*),
     root: $root:expr, dst: $dst:expr, src: $src:expr) => {
        collective!($(#[$doc])* $name, $nb, $operation, ($($arg: $ty,)* nbytes: usize),
            root: $root, dst: $dst, src: $src, nbytes: nbytes, elements: None);
    };
}

use Address::{Many, One};

movement!(
    /// Copies the block at `src` of one image to `dst` of all images.
    ///
    /// - `dst`: destination.
    /// - `srcimage`: number of the image in the team whose `src` is used.
    /// - `src`: source.
    /// - `nbytes`: bytes of a block.
    gasnet_coll_broadcast, gasnet_coll_broadcast_nb, Broadcast,
    (dst: *mut c_void, srcimage: u32, src: *mut c_void),
    root: srcimage, dst: One(dst), src: One(src));
movement!(
    /// Copies the block at `src` of one image to `dst` of all images.
    ///
    /// - `dstlist`: addresses of the destinations: an array with an entry per image of the team
    ///   (`GASNET_COLL_SINGLE`) or of this process (`GASNET_COLL_LOCAL`).
    /// - `srcimage`: number of the image in the team whose `src` is used.
    /// - `src`: source.
    /// - `nbytes`: bytes of a block.
    gasnet_coll_broadcastM, gasnet_coll_broadcastM_nb, Broadcast,
    (dstlist: BlockList, srcimage: u32, src: *mut c_void),
    root: srcimage, dst: Many(dstlist), src: One(src));
movement!(
    /// Copies block i of the blocks at `src` of one image to `dst` of image i.
    ///
    /// - `dst`: destination.
    /// - `srcimage`: number of the image in the team whose `src` is used.
    /// - `src`: source.
    /// - `nbytes`: bytes of a block.
    gasnet_coll_scatter, gasnet_coll_scatter_nb, Scatter,
    (dst: *mut c_void, srcimage: u32, src: *mut c_void),
    root: srcimage, dst: One(dst), src: One(src));
movement!(
    /// Copies block i of the blocks at `src` of one image to `dst` of image i.
    ///
    /// - `dstlist`: addresses of the destinations: an array with an entry per image of the team
    ///   (`GASNET_COLL_SINGLE`) or of this process (`GASNET_COLL_LOCAL`).
    /// - `srcimage`: number of the image in the team whose `src` is used.
    /// - `src`: source.
    /// - `nbytes`: bytes of a block.
    gasnet_coll_scatterM, gasnet_coll_scatterM_nb, Scatter,
    (dstlist: BlockList, srcimage: u32, src: *mut c_void),
    root: srcimage, dst: Many(dstlist), src: One(src));
movement!(
    /// Copies the block at `src` of image i to block i at `dst` of one image.
    ///
    /// - `dst`: destination.
    /// - `dstimage`: number of the image in the team whose `dst` is used.
    /// - `src`: source.
    /// - `nbytes`: bytes of a block.
    gasnet_coll_gather, gasnet_coll_gather_nb, Gather,
    (dstimage: u32, dst: *mut c_void, src: *mut c_void),
    root: dstimage, dst: One(dst), src: One(src));
movement!(
    /// Copies the block at `src` of image i to block i at `dst` of one image.
    ///
    /// - `dst`: destination.
    /// - `dstimage`: number of the image in the team whose `dst` is used.
    /// - `srclist`: addresses of the sources: an array with an entry per image of the team
    ///   (`GASNET_COLL_SINGLE`) or of this process (`GASNET_COLL_LOCAL`).
    /// - `nbytes`: bytes of a block.
    gasnet_coll_gatherM, gasnet_coll_gatherM_nb, Gather,
    (dstimage: u32, dst: *mut c_void, srclist: BlockList),
    root: dstimage, dst: One(dst), src: Many(srclist));
movement!(
    /// Copies the block at `src` of image i to block i at `dst` of all images.
    ///
    /// - `dst`: destination.
    /// - `src`: source.
    /// - `nbytes`: bytes of a block.
    gasnet_coll_gather_all, gasnet_coll_gather_all_nb, GatherAll,
    (dst: *mut c_void, src: *mut c_void),
    root: 0, dst: One(dst), src: One(src));
movement!(
    /// Copies the block at `src` of image i to block i at `dst` of all images.
    ///
    /// - `dstlist`: addresses of the destinations: an array with an entry per image of the team
    ///   (`GASNET_COLL_SINGLE`) or of this process (`GASNET_COLL_LOCAL`).
    /// - `srclist`: addresses of the sources: an array with an entry per image of the team
    ///   (`GASNET_COLL_SINGLE`) or of this process (`GASNET_COLL_LOCAL`).
    /// - `nbytes`: bytes of a block.
    gasnet_coll_gather_allM, gasnet_coll_gather_allM_nb, GatherAll,
    (dstlist: BlockList, srclist: BlockList),
    root: 0, dst: Many(dstlist), src: Many(srclist));
movement!(
    /// Copies block j at `src` of image i to block i at `dst` of image j.
    ///
    /// - `dst`: destination.
    /// - `src`: source.
    /// - `nbytes`: bytes of a block.
    gasnet_coll_exchange, gasnet_coll_exchange_nb, Exchange,
    (dst: *mut c_void, src: *mut c_void),
    root: 0, dst: One(dst), src: One(src));
movement!(
    /// Copies block j at `src` of image i to block i at `dst` of image j.
    ///
    /// - `dstlist`: addresses of the destinations: an array with an entry per image of the team
    ///   (`GASNET_COLL_SINGLE`) or of this process (`GASNET_COLL_LOCAL`).
    /// - `srclist`: addresses of the sources: an array with an entry per image of the team
    ///   (`GASNET_COLL_SINGLE`) or of this process (`GASNET_COLL_LOCAL`).
    /// - `nbytes`: bytes of a block.
    gasnet_coll_exchangeM, gasnet_coll_exchangeM_nb, Exchange,
    (dstlist: BlockList, srclist: BlockList),
    root: 0, dst: Many(dstlist), src: Many(srclist));

/// A reduction.
macro_rules! reduce {
    ($(#[$doc:meta])* $name:ident, $nb:ident, $list:ty, $src:ident) => {
        collective!($(#[$doc])* $name, $nb, Reduce,
            (dstimage: u32, dst: *mut c_void, src: $list, src_blksz: usize, src_offset: usize,
             elem_size: usize, elem_count: usize, func: i32, func_arg: c_int),
            root: dstimage, dst: One(dst), src: $src(src), nbytes: 0,
            elements: Some(Elements {
                size: elem_size,
                count: elem_count,
                func,
                arg: func_arg,
                src: (src_blksz, src_offset),
                dst: (src_blksz, src_offset),
            }));
    };
}

reduce!(
    /// Combines the elements at `src` of all images, in the order of the images, into those at
    /// `dst` of one image.
    ///
    /// - `dstimage`: number of the image in the team whose `dst` is used.
    /// - `dst`: destination.
    /// - `src`: source.
    /// - `src_blksz`, `src_offset`: 0 if each image has all elements. Otherwise the elements are
    ///   those of one array, from element `src_offset` on. The images hold it in turn, in blocks
    ///   of `src_blksz` elements, and `dst` receives one element: the combination of all. If there
    ///   are none, it is not written. An offset with block size 0 ends the job.
    /// - `elem_size`: bytes of an element.
    /// - `elem_count`: elements of each image, or of the array.
    /// - `func`: index of the function in the table that `gasnet_coll_init` was given. It
    ///   combines arrays of elements.
    /// - `func_arg`: passed to the function.
    gasnet_coll_reduce, gasnet_coll_reduce_nb, *mut c_void, One);
reduce!(
    /// Combines the elements at `src` of all images, in the order of the images, into those at
    /// `dst` of one image.
    ///
    /// - `dstimage`: number of the image in the team whose `dst` is used.
    /// - `dst`: destination.
    /// - `srclist`: addresses of the sources: an array with an entry per image of the team
    ///   (`GASNET_COLL_SINGLE`) or of this process (`GASNET_COLL_LOCAL`).
    /// - `src_blksz`, `src_offset`: 0 if each image has all elements. Otherwise the elements are
    ///   those of one array, from element `src_offset` on. The images hold it in turn, in blocks
    ///   of `src_blksz` elements, and `dst` receives one element: the combination of all. If there
    ///   are none, it is not written. An offset with block size 0 ends the job.
    /// - `elem_size`: bytes of an element.
    /// - `elem_count`: elements of each image, or of the array.
    /// - `func`: index of the function in the table that `gasnet_coll_init` was given. It
    ///   combines arrays of elements.
    /// - `func_arg`: passed to the function.
    gasnet_coll_reduceM, gasnet_coll_reduceM_nb, BlockList, Many);

/// A scan.
macro_rules! scan {
    ($(#[$doc:meta])* $name:ident, $nb:ident, $list:ty, $address:ident) => {
        collective!($(#[$doc])* $name, $nb, Scan,
            (dst: $list, dst_blksz: usize, dst_offset: usize, src: $list, src_blksz: usize,
             src_offset: usize, elem_size: usize, elem_count: usize, func: i32, func_arg: c_int),
            root: 0, dst: $address(dst), src: $address(src), nbytes: 0,
            elements: Some(Elements {
                size: elem_size,
                count: elem_count,
                func,
                arg: func_arg,
                src: (src_blksz, src_offset),
                dst: (dst_blksz, dst_offset),
            }));
    };
}

scan!(
    /// Combines the elements at `src` of the images before each image, in their order, into
    /// those at its `dst`. With `GASNET_COLL_INCLUSIVE_SCAN` its own elements are included,
    /// with `GASNET_COLL_EXCLUSIVE_SCAN` they are not. One of these two flags has to be
    /// passed.
    ///
    /// - `dst`: destination.
    /// - `src`: source.
    /// - `dst_blksz`, `dst_offset`, `src_blksz`, `src_offset`: 0 if each image has all elements.
    ///   Otherwise source and destination are arrays that the images hold in turn, in blocks of
    ///   `src_blksz` and `dst_blksz` elements. They are used from the elements `src_offset` and
    ///   `dst_offset` on. Result i is the combination of the elements up to i, with or without it.
    ///   Without it, the first result is not written. Only one block size of 0, or an offset with
    ///   block size 0, ends the job.
    /// - `elem_size`: bytes of an element.
    /// - `elem_count`: elements of each image, or of the array.
    /// - `func`: index of the function in the table that `gasnet_coll_init` was given. It
    ///   combines arrays of elements.
    /// - `func_arg`: passed to the function.
    gasnet_coll_scan, gasnet_coll_scan_nb, *mut c_void, One);
scan!(
    /// Combines the elements at `src` of the images before each image, in their order, into
    /// those at its `dst`. With `GASNET_COLL_INCLUSIVE_SCAN` its own elements are included,
    /// with `GASNET_COLL_EXCLUSIVE_SCAN` they are not. One of these two flags has to be
    /// passed.
    ///
    /// - `dstlist`: addresses of the destinations: an array with an entry per image of the team
    ///   (`GASNET_COLL_SINGLE`) or of this process (`GASNET_COLL_LOCAL`).
    /// - `srclist`: addresses of the sources: as `dstlist`.
    /// - `dst_blksz`, `dst_offset`, `src_blksz`, `src_offset`: 0 if each image has all elements.
    ///   Otherwise source and destination are arrays that the images hold in turn, in blocks of
    ///   `src_blksz` and `dst_blksz` elements. They are used from the elements `src_offset` and
    ///   `dst_offset` on. Result i is the combination of the elements up to i, with or without it.
    ///   Without it, the first result is not written. Only one block size of 0, or an offset with
    ///   block size 0, ends the job.
    /// - `elem_size`: bytes of an element.
    /// - `elem_count`: elements of each image, or of the array.
    /// - `func`: index of the function in the table that `gasnet_coll_init` was given. It
    ///   combines arrays of elements.
    /// - `func_arg`: passed to the function.
    gasnet_coll_scanM, gasnet_coll_scanM_nb, BlockList, Many);
