//! The collectives: teams, movement, computation, sync, tuning.

use super::{code, ctx};
use crate::extended::coll::tree::Tree;
use crate::extended::coll::{
    Coll, CollCall, CollOperation, CollRequest, ImageBuffers, ReduceFn, Reduction, Team, search,
};
use crate::runtime::Ctx;
use crate::trace::{EventDetail, span};
use crate::{env, report};
use core::ffi::{CStr, c_char, c_int, c_uint, c_void};

/// Flags of the calls (`GASNET_COLL_*`).
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
/// `GASNET_COLL_NONCOMM`, a flag of a function.
const NONCOMM: c_uint = 1 << 1;
/// `GASNET_BARRIERFLAG_IMAGES`
const BARRIER_IMAGES: c_int = 4;

/// `gasnet_team_handle_t`: the number of a team, plus one.
type TeamHandle = *const c_void;
/// `gasnet_coll_handle_t`
type CollHandle = usize;
/// `void *const []`
type List = *const *mut c_void;

/// `gasnet_coll_fn_entry_t`
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct FnEntry {
    fnptr: Option<ReduceFn>,
    flags: c_uint,
}

/// `gasnet_coll_args_t`
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct CollArgs {
    dst: *mut *mut u8,
    src: *mut *mut u8,
    rootimg: u32,
    src_blksz: usize,
    src_offset: usize,
    elem_size: usize,
    nbytes: usize,
    dist: usize,
    func: i32,
    func_arg: c_int,
}

const _: () =
    assert!(size_of::<CollArgs>() == 72 && core::mem::offset_of!(CollArgs, nbytes) == 48);

fn team(c: Ctx, function: &str, handle: TeamHandle) -> &'static Team {
    let number = (handle as usize).wrapping_sub(1);
    match u32::try_from(number).ok().and_then(|id| Coll::of(c).team(id)) {
        Some(team) => team,
        None if number == 0 => report::fatal(
            format_args!("{function}() was called before gasnet_coll_init()"),
            format_args!("Call gasnet_coll_init in every image after gasnet_attach."),
        ),
        None => report::fatal(
            format_args!("{function}(): {handle:p} is no team of this process"),
            format_args!("Pass GASNET_TEAM_ALL or what gasnet_coll_team_split returned here."),
        ),
    }
}

/// `gasnet_coll_init`: every image calls it before anything else of the collectives.
///
/// # Safety
/// `images` must be null or hold the number of images of each process, `fn_tbl` `fn_count` functions.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gasnet_coll_init(
    images: *const u32,
    my_image: u32,
    fn_tbl: *mut FnEntry,
    fn_count: usize,
    _init_flags: c_int,
) {
    let _span = span!(W "gasnet_coll_init");
    let function = "gasnet_coll_init";
    let c = ctx(function);
    let counts = if images.is_null() {
        vec![1; c.job.nodes as usize]
    } else {
        // SAFETY: the caller's promise.
        unsafe { core::slice::from_raw_parts(images, c.job.nodes as usize) }.to_vec()
    };
    if let Some(node) = counts.iter().position(|&n| n == 0) {
        report::fatal(
            format_args!("{function}(): process {node} has no images"),
            format_args!("Each process has at least one image."),
        );
    }
    let table = if fn_tbl.is_null() || fn_count == 0 {
        &[]
    } else {
        // SAFETY: the caller's promise.
        unsafe { core::slice::from_raw_parts(fn_tbl, fn_count) }
    };
    let functions: Vec<(ReduceFn, c_int)> = table
        .iter()
        .enumerate()
        .map(|(i, e)| match e.fnptr {
            Some(f) => (f, (e.flags & NONCOMM) as c_int),
            None => report::fatal(
                format_args!("{function}(): row {i} of the function table is null"),
                format_args!("Pass the number of functions that the table has."),
            ),
        })
        .collect();
    let mine = if images.is_null() { c.job.mynode } else { my_image };
    let coll = Coll::of(c);
    let first = coll.team(0).is_none();
    coll.init(c, &counts, mine, &functions);
    if let (true, Some(name), Some(all)) = (first, env::COLL_TUNING_FILE.get(), coll.team(0))
        && std::path::Path::new(&name).exists()
    {
        load(function, &name, all);
    }
}

/// `gasnet_coll_team_split`
#[unsafe(no_mangle)]
pub extern "C" fn gasnet_coll_team_split(
    parent_team: TeamHandle,
    color: u32,
    relrank: u32,
    _clientdata: *mut c_void,
) -> TeamHandle {
    let _span = span!(W "gasnet_coll_team_split");
    let function = "gasnet_coll_team_split";
    let c = ctx(function);
    (team(c, function, parent_team).split(c, function, color, relrank).id() as usize + 1)
        as TeamHandle
}

/// `gasnet_coll_team_size`
#[unsafe(no_mangle)]
pub extern "C" fn gasnet_coll_team_size(handle: TeamHandle) -> u32 {
    let function = "gasnet_coll_team_size";
    team(ctx(function), function, handle).size()
}

/// `gasnet_coll_team_rank2node`
#[unsafe(no_mangle)]
pub extern "C" fn gasnet_coll_team_rank2node(handle: TeamHandle, rank: c_int) -> u32 {
    let function = "gasnet_coll_team_rank2node";
    let team = team(ctx(function), function, handle);
    team.node(rank as u32).unwrap_or_else(|| {
        report::fatal(
            format_args!(
                "{function}(): rank {rank} is out of range; this team has {}, from 0",
                team.size()
            ),
            format_args!("Pass a rank below gasnet_coll_team_size()."),
        )
    })
}

/// `gasnet_coll_team_node2rank`
#[unsafe(no_mangle)]
pub extern "C" fn gasnet_coll_team_node2rank(handle: TeamHandle, node: u32) -> u32 {
    let function = "gasnet_coll_team_node2rank";
    team(ctx(function), function, handle).rank(node).unwrap_or_else(|| {
        report::fatal(
            format_args!("{function}(): node {node} is not in this team"),
            format_args!("Ask only for members of the team."),
        )
    })
}

/// `gasnet_coll_barrier_notify`
#[unsafe(no_mangle)]
pub extern "C" fn gasnet_coll_barrier_notify(handle: TeamHandle, id: c_int, flags: c_int) {
    let _span = span!(B "gasnet_coll_barrier_notify", EventDetail::Barrier { id, flags });
    let function = "gasnet_coll_barrier_notify";
    let c = ctx(function);
    team(c, function, handle).notify(c, function, id, flags, flags & BARRIER_IMAGES != 0);
}

/// `gasnet_coll_barrier_wait`: `GASNET_OK` or `GASNET_ERR_BARRIER_MISMATCH`.
#[unsafe(no_mangle)]
pub extern "C" fn gasnet_coll_barrier_wait(handle: TeamHandle, id: c_int, flags: c_int) -> c_int {
    let mut span = span!(B "gasnet_coll_barrier_wait", EventDetail::Barrier { id, flags });
    let function = "gasnet_coll_barrier_wait";
    let c = ctx(function);
    span.result(code(team(c, function, handle).wait(
        c,
        function,
        id,
        flags,
        flags & BARRIER_IMAGES != 0,
    )))
}

/// `gasnet_coll_barrier_try`: `GASNET_OK`, `GASNET_ERR_NOT_READY` or `GASNET_ERR_BARRIER_MISMATCH`.
#[unsafe(no_mangle)]
pub extern "C" fn gasnet_coll_barrier_try(handle: TeamHandle, id: c_int, flags: c_int) -> c_int {
    let mut span = span!(B "gasnet_coll_barrier_try", EventDetail::Barrier { id, flags });
    let function = "gasnet_coll_barrier_try";
    let c = ctx(function);
    span.result(code(team(c, function, handle).try_wait(
        c,
        function,
        id,
        flags,
        flags & BARRIER_IMAGES != 0,
    )))
}

/// `gasnet_coll_barrier`: notify and wait in one.
#[unsafe(no_mangle)]
pub extern "C" fn gasnet_coll_barrier(handle: TeamHandle, id: c_int, flags: c_int) -> c_int {
    let mut span = span!(B "gasnet_coll_barrier", EventDetail::Barrier { id, flags });
    let function = "gasnet_coll_barrier";
    let c = ctx(function);
    let (team, images) = (team(c, function, handle), flags & BARRIER_IMAGES != 0);
    team.notify(c, function, id, flags, images);
    span.result(code(team.wait(c, function, id, flags, images)))
}

/// `gasnet_coll_barrier_result`: 1 if the last barrier was anonymous for everybody; else 0, and its name in `*id`.
///
/// # Safety
/// `id` must be null or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gasnet_coll_barrier_result(handle: TeamHandle, id: *mut c_int) -> c_int {
    let function = "gasnet_coll_barrier_result";
    let c = ctx(function);
    match team(c, function, handle).result(c) {
        None => 1,
        Some(name) => {
            if !id.is_null() {
                // SAFETY: the caller's promise.
                unsafe { id.write(name) };
            }
            0
        }
    }
}

/// Where the images of a call have their blocks.
#[derive(Clone, Copy)]
enum Address {
    /// The caller's.
    One(*mut c_void),
    /// Those of all images of the team, or of this process.
    Many(List),
}

impl Address {
    /// That of the caller: its place among the images of this process, and its number in the team.
    unsafe fn of(self, (place, number): (usize, u32), flags: c_int) -> *mut u8 {
        let i = if flags & SINGLE != 0 { number as usize } else { place };
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
struct Elements {
    size: usize,
    count: usize,
    func: i32,
    arg: c_int,
    /// Block sizes and offsets together, which are 0.
    layout: usize,
}

impl Elements {
    fn bytes(self, function: &str) -> usize {
        self.size.checked_mul(self.count).unwrap_or_else(|| {
            report::fatal(
                format_args!(
                    "{function}(): {} elements of {} bytes are more than memory",
                    self.count, self.size
                ),
                format_args!("Pass the number of elements of one image."),
            )
        })
    }

    fn fold(self, function: &str, c: Ctx) -> Reduction {
        if self.layout != 0 {
            report::fatal(
                format_args!(
                    "{function}(): block sizes and offsets other than 0 are not supported"
                ),
                format_args!("Pass 0: every image has elem_count elements from its address on."),
            );
        }
        let Some((f, flags)) = Coll::of(c).function(self.func) else {
            report::fatal(
                format_args!("{function}(): there is no function {}", self.func),
                format_args!("Pass an index into the table that gasnet_coll_init was given."),
            );
        };
        Reduction {
            function: f,
            flags,
            arg: self.arg,
            elem_size: self.size,
            elem_count: self.count,
        }
    }
}

/// Checks the flags and puts a call together.
#[allow(clippy::too_many_arguments)]
unsafe fn call(
    function: &'static str,
    handle: TeamHandle,
    operation: CollOperation,
    root: u32,
    dst: Address,
    src: Address,
    nbytes: usize,
    elements: Option<Elements>,
    flags: c_int,
) -> (Ctx, CollCall) {
    let c = ctx(function);
    let team = team(c, function, handle);
    let by_process = flags & NO_IMAGES != 0;
    let one_of = |bits: c_int| (flags & bits).count_ones() == 1;
    let refuse = |what: &str| -> ! {
        report::fatal(
            format_args!("{function}(): the flags {flags:#x} do not hold one of {what}"),
            format_args!("Pass exactly one flag of each kind."),
        )
    };
    if !one_of(IN_NOSYNC | IN_MYSYNC | IN_ALLSYNC) {
        refuse("GASNET_COLL_IN_NOSYNC, IN_MYSYNC and IN_ALLSYNC");
    }
    if !one_of(OUT_NOSYNC | OUT_MYSYNC | OUT_ALLSYNC) {
        refuse("GASNET_COLL_OUT_NOSYNC, OUT_MYSYNC and OUT_ALLSYNC");
    }
    if !one_of(SINGLE | LOCAL) {
        refuse("GASNET_COLL_SINGLE and GASNET_COLL_LOCAL");
    }
    if operation == CollOperation::Scan && !one_of(INCLUSIVE_SCAN | EXCLUSIVE_SCAN) {
        refuse("GASNET_COLL_INCLUSIVE_SCAN and GASNET_COLL_EXCLUSIVE_SCAN");
    }
    let images = team.images(by_process);
    if root >= images {
        report::fatal(
            format_args!(
                "{function}(): image {root} is out of range; this team has {images}, numbered from 0"
            ),
            format_args!("Pass an image below the number of images of the team."),
        );
    }
    let caller = team.caller(c, function, by_process);
    let request = CollRequest {
        root,
        in_allsync: flags & IN_ALLSYNC != 0,
        out_allsync: flags & OUT_ALLSYNC != 0,
        fold: elements.map(|e| e.fold(function, c)),
        inclusive: flags & INCLUSIVE_SCAN != 0,
        ..CollRequest::new(operation, elements.map_or(nbytes, |e| e.bytes(function)))
    };
    // SAFETY: the caller's promise.
    let places =
        unsafe { ImageBuffers { dst: dst.of(caller, flags), src: src.of(caller, flags) } };
    (c, CollCall { function, team, by_process, request, places })
}

/// What is told of a collective.
fn what(handle: TeamHandle, root: u32, nbytes: usize, elements: Option<Elements>) -> EventDetail {
    let bytes = elements.map_or(nbytes, |e| e.size.saturating_mul(e.count));
    EventDetail::Collective { team: (handle as usize).wrapping_sub(1) as u32, root, bytes }
}

/// The blocking and the non-blocking form of a collective.
macro_rules! collective {
    ($name:ident, $nb:ident, $operation:ident, ($($arg:ident: $ty:ty),*),
     root: $root:expr, dst: $dst:expr, src: $src:expr, nbytes: $nbytes:expr, elements: $elements:expr) => {
        #[doc = concat!("`", stringify!($name), "`")]
        ///
        /// # Safety
        /// The addresses, and those in lists, must be accessible for as many bytes as the operation reads or writes there.
        #[unsafe(no_mangle)]
        #[allow(clippy::too_many_arguments)]
        pub unsafe extern "C" fn $name(team: TeamHandle, $($arg: $ty,)* flags: c_int) {
            let (op, function) = (CollOperation::$operation, stringify!($name));
            let _span = span!(W stringify!($name), what(team, $root, $nbytes, $elements));
            // SAFETY: the caller's promise.
            unsafe {
                let (c, call) = call(function, team, op, $root, $dst, $src, $nbytes, $elements, flags);
                Coll::of(c).wait_for(c, call);
            }
        }

        #[doc = concat!("`", stringify!($nb), "`")]
        ///
        /// # Safety
        /// As the blocking form, until the handle is synced.
        #[unsafe(no_mangle)]
        #[allow(clippy::too_many_arguments)]
        pub unsafe extern "C" fn $nb(team: TeamHandle, $($arg: $ty,)* flags: c_int) -> CollHandle {
            let (op, function) = (CollOperation::$operation, stringify!($nb));
            let _span = span!(W stringify!($nb), what(team, $root, $nbytes, $elements));
            // SAFETY: the caller's promise.
            unsafe {
                let (c, call) = call(function, team, op, $root, $dst, $src, $nbytes, $elements, flags);
                Coll::of(c).initiate(c, call, flags & AGGREGATE != 0)
            }
        }
    };
}

/// A collective that moves blocks.
macro_rules! movement {
    ($name:ident, $nb:ident, $operation:ident, ($($arg:ident: $ty:ty),*), root: $root:expr, dst: $dst:expr, src: $src:expr) => {
        collective!($name, $nb, $operation, ($($arg: $ty,)* nbytes: usize), root: $root, dst: $dst, src: $src,
            nbytes: nbytes, elements: None);
    };
}

use Address::{Many, One};

movement!(gasnet_coll_broadcast, gasnet_coll_broadcast_nb, Broadcast,
    (dst: *mut c_void, srcimage: u32, src: *mut c_void), root: srcimage, dst: One(dst), src: One(src));
movement!(gasnet_coll_broadcastM, gasnet_coll_broadcastM_nb, Broadcast,
    (dst: List, srcimage: u32, src: *mut c_void), root: srcimage, dst: Many(dst), src: One(src));
movement!(gasnet_coll_scatter, gasnet_coll_scatter_nb, Scatter,
    (dst: *mut c_void, srcimage: u32, src: *mut c_void), root: srcimage, dst: One(dst), src: One(src));
movement!(gasnet_coll_scatterM, gasnet_coll_scatterM_nb, Scatter,
    (dst: List, srcimage: u32, src: *mut c_void), root: srcimage, dst: Many(dst), src: One(src));
movement!(gasnet_coll_gather, gasnet_coll_gather_nb, Gather,
    (dstimage: u32, dst: *mut c_void, src: *mut c_void), root: dstimage, dst: One(dst), src: One(src));
movement!(gasnet_coll_gatherM, gasnet_coll_gatherM_nb, Gather,
    (dstimage: u32, dst: *mut c_void, src: List), root: dstimage, dst: One(dst), src: Many(src));
movement!(gasnet_coll_gather_all, gasnet_coll_gather_all_nb, GatherAll,
    (dst: *mut c_void, src: *mut c_void), root: 0, dst: One(dst), src: One(src));
movement!(gasnet_coll_gather_allM, gasnet_coll_gather_allM_nb, GatherAll,
    (dst: List, src: List), root: 0, dst: Many(dst), src: Many(src));
movement!(gasnet_coll_exchange, gasnet_coll_exchange_nb, Exchange,
    (dst: *mut c_void, src: *mut c_void), root: 0, dst: One(dst), src: One(src));
movement!(gasnet_coll_exchangeM, gasnet_coll_exchangeM_nb, Exchange,
    (dst: List, src: List), root: 0, dst: Many(dst), src: Many(src));

/// A reduction.
macro_rules! reduce {
    ($name:ident, $nb:ident, $list:ty, $src:ident) => {
        collective!($name, $nb, Reduce,
            (dstimage: u32, dst: *mut c_void, src: $list, src_blksz: usize, src_offset: usize, elem_size: usize,
             elem_count: usize, func: i32, func_arg: c_int),
            root: dstimage, dst: One(dst), src: $src(src), nbytes: 0,
            elements: Some(Elements {
                size: elem_size,
                count: elem_count,
                func,
                arg: func_arg,
                layout: src_blksz | src_offset,
            }));
    };
}

reduce!(gasnet_coll_reduce, gasnet_coll_reduce_nb, *mut c_void, One);
reduce!(gasnet_coll_reduceM, gasnet_coll_reduceM_nb, List, Many);

/// A scan.
macro_rules! scan {
    ($name:ident, $nb:ident, $list:ty, $address:ident) => {
        collective!($name, $nb, Scan,
            (dst: $list, dst_blksz: usize, dst_offset: usize, src: $list, src_blksz: usize, src_offset: usize,
             elem_size: usize, elem_count: usize, func: i32, func_arg: c_int),
            root: 0, dst: $address(dst), src: $address(src), nbytes: 0,
            elements: Some(Elements {
                size: elem_size,
                count: elem_count,
                func,
                arg: func_arg,
                layout: dst_blksz | dst_offset | src_blksz | src_offset,
            }));
    };
}

scan!(gasnet_coll_scan, gasnet_coll_scan_nb, *mut c_void, One);
scan!(gasnet_coll_scanM, gasnet_coll_scanM_nb, List, Many);

/// `GASNET_ERR_NOT_READY`
const NOT_READY: c_int = crate::runtime::GasnetError::NotReady as c_int;

/// `gasnet_coll_try_sync`
#[unsafe(no_mangle)]
pub extern "C" fn gasnet_coll_try_sync(handle: CollHandle) -> c_int {
    let mut span = span!(W "gasnet_coll_try_sync", EventDetail::Sync(1));
    let c = ctx("gasnet_coll_try_sync");
    if handle == 0 {
        return span.result(super::OK);
    }
    c.poll();
    span.result(if Coll::of(c).sync(handle) { super::OK } else { NOT_READY })
}

/// `gasnet_coll_wait_sync`
#[unsafe(no_mangle)]
pub extern "C" fn gasnet_coll_wait_sync(handle: CollHandle) {
    let _span = span!(W "gasnet_coll_wait_sync", EventDetail::Sync(1));
    let c = ctx("gasnet_coll_wait_sync");
    let coll = Coll::of(c);
    if !coll.sync(handle) {
        c.wait_until(&"gasnet_coll_wait_sync", || coll.sync(handle));
    }
}

/// Syncs what is done in an array and makes it 0; whether all is done, or, with `some`, whether anything was or nothing is left.
///
/// # Safety
/// `list` must hold `n` handles.
unsafe fn sync_list(c: Ctx, list: *mut CollHandle, n: usize, some: bool) -> bool {
    if n == 0 || list.is_null() {
        return true;
    }
    let (mut before, mut done) = (0, 0);
    // SAFETY: the caller's promise.
    for handle in
        unsafe { core::slice::from_raw_parts_mut(list, n) }.iter_mut().filter(|h| **h != 0)
    {
        before += 1;
        if Coll::of(c).sync(*handle) {
            *handle = 0;
            done += 1;
        }
    }
    done == before || (some && done > 0)
}

/// `gasnet_coll_try_sync_some`
///
/// # Safety
/// `phandle` must hold `numhandles` handles.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gasnet_coll_try_sync_some(
    phandle: *mut CollHandle,
    numhandles: usize,
) -> c_int {
    let mut span = span!(W "gasnet_coll_try_sync_some", EventDetail::Sync(numhandles));
    let c = ctx("gasnet_coll_try_sync_some");
    c.poll();
    // SAFETY: the caller's promise.
    span.result(if unsafe { sync_list(c, phandle, numhandles, true) } {
        super::OK
    } else {
        NOT_READY
    })
}

/// `gasnet_coll_try_sync_all`
///
/// # Safety
/// `phandle` must hold `numhandles` handles.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gasnet_coll_try_sync_all(
    phandle: *mut CollHandle,
    numhandles: usize,
) -> c_int {
    let mut span = span!(W "gasnet_coll_try_sync_all", EventDetail::Sync(numhandles));
    let c = ctx("gasnet_coll_try_sync_all");
    c.poll();
    // SAFETY: the caller's promise.
    span.result(if unsafe { sync_list(c, phandle, numhandles, false) } {
        super::OK
    } else {
        NOT_READY
    })
}

/// `gasnet_coll_wait_sync_some`
///
/// # Safety
/// `phandle` must hold `numhandles` handles.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gasnet_coll_wait_sync_some(phandle: *mut CollHandle, numhandles: usize) {
    let _span = span!(W "gasnet_coll_wait_sync_some", EventDetail::Sync(numhandles));
    let c = ctx("gasnet_coll_wait_sync_some");
    // SAFETY: the caller's promise.
    c.wait_until(&"gasnet_coll_wait_sync_some", || unsafe {
        sync_list(c, phandle, numhandles, true)
    });
}

/// `gasnet_coll_wait_sync_all`
///
/// # Safety
/// `phandle` must hold `numhandles` handles.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gasnet_coll_wait_sync_all(phandle: *mut CollHandle, numhandles: usize) {
    let _span = span!(W "gasnet_coll_wait_sync_all", EventDetail::Sync(numhandles));
    let c = ctx("gasnet_coll_wait_sync_all");
    // SAFETY: the caller's promise.
    c.wait_until(&"gasnet_coll_wait_sync_all", || unsafe {
        sync_list(c, phandle, numhandles, false)
    });
}

/// The operation of a `gasnet_coll_optype_t`, whose odd numbers are the M forms.
fn operation(function: &str, optype: c_uint) -> CollOperation {
    match optype / 2 {
        0 => CollOperation::Broadcast,
        1 => CollOperation::Scatter,
        2 => CollOperation::Gather,
        3 => CollOperation::GatherAll,
        4 => CollOperation::Exchange,
        5 => CollOperation::Reduce,
        _ => report::fatal(
            format_args!("{function}(): {optype} is no operation"),
            format_args!("Pass one of gasnet_coll_optype_t below GASNET_COLL_NUM_COLL_OPTYPES."),
        ),
    }
}

/// The name that a client passed, or that of GASNET_COLL_TUNING_FILE.
unsafe fn file_name(name: *const c_char) -> Option<String> {
    if name.is_null() {
        return env::COLL_TUNING_FILE.get();
    }
    // SAFETY: a client's string.
    Some(unsafe { CStr::from_ptr(name) }.to_string_lossy().into_owned())
}

fn unusable(function: &str, name: &str, why: &dyn core::fmt::Display) -> ! {
    report::fatal(
        format_args!("{function}(): {name}: {why}"),
        format_args!(
            "Pass the name of a file that gasnet_coll_dumpTuningState wrote, or may write."
        ),
    )
}

fn load(function: &str, name: &str, team: &Team) {
    let text = std::fs::read_to_string(name).unwrap_or_else(|e| unusable(function, name, &e));
    if let Err(line) = team.tuning().lock().take_text(&text) {
        unusable(function, name, &format_args!("the line '{line}' makes no sense"));
    }
}

/// `gasnet_coll_loadTuningState`
///
/// # Safety
/// `filename` must be null or a string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gasnet_coll_loadTuningState(filename: *const c_char, handle: TeamHandle) {
    let function = "gasnet_coll_loadTuningState";
    let team = team(ctx(function), function, handle);
    // SAFETY: the caller's promise.
    if let Some(name) = unsafe { file_name(filename) } {
        load(function, &name, team);
    }
}

/// `gasnet_coll_dumpTuningState`
///
/// # Safety
/// `filename` must be null or a string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gasnet_coll_dumpTuningState(filename: *const c_char, handle: TeamHandle) {
    let function = "gasnet_coll_dumpTuningState";
    let c = ctx(function);
    let team = team(c, function, handle);
    // SAFETY: the caller's promise.
    let name = unsafe { file_name(filename) };
    if let Some(name) = name.filter(|_| team.caller(c, function, false).1 == 0) {
        let text = team.tuning().lock().to_text();
        std::fs::write(&name, text).unwrap_or_else(|e| unusable(function, &name, &e));
    }
}

/// `gasnet_coll_dumpProfile`
///
/// # Safety
/// `filename` must be null or a string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gasnet_coll_dumpProfile(filename: *const c_char, handle: TeamHandle) {
    let function = "gasnet_coll_dumpProfile";
    let c = ctx(function);
    let team = team(c, function, handle);
    if team.caller(c, function, false).1 != 0 {
        return;
    }
    let Some(text) = Coll::of(c).profile(team) else { return };
    if filename.is_null() {
        print!("{text}");
        return;
    }
    // SAFETY: the caller's promise.
    let name = unsafe { CStr::from_ptr(filename) }.to_string_lossy();
    std::fs::write(&*name, text).unwrap_or_else(|e| unusable(function, &name, &e));
}

/// `gasnet_coll_get_num_tree_classes`
#[unsafe(no_mangle)]
pub extern "C" fn gasnet_coll_get_num_tree_classes(handle: TeamHandle, optype: c_uint) -> c_int {
    let function = "gasnet_coll_get_num_tree_classes";
    team(ctx(function), function, handle);
    operation(function, optype);
    Tree::KINDS as c_int
}

/// `gasnet_coll_set_tree_kind`
#[unsafe(no_mangle)]
pub extern "C" fn gasnet_coll_set_tree_kind(
    handle: TeamHandle,
    tree_type: c_int,
    fanout: c_int,
    optype: c_uint,
) {
    let function = "gasnet_coll_set_tree_kind";
    let team = team(ctx(function), function, handle);
    let tree = Tree::new(tree_type as u32, usize::try_from(fanout).unwrap_or(0));
    if tree.is_none() {
        report::fatal(
            format_args!(
                "{function}(): there is no tree of kind {tree_type} and fan-out {fanout}"
            ),
            format_args!(
                "Kinds are 0 (flat), 1 (n-ary, fan-out from 1) and 2 (k-nomial, fan-out from 2)."
            ),
        );
    }
    team.tuning().lock().set_tree(operation(function, optype), tree);
}

/// `gasnet_coll_set_dissem_limit`
#[unsafe(no_mangle)]
pub extern "C" fn gasnet_coll_set_dissem_limit(
    handle: TeamHandle,
    dissemlimit: usize,
    optype: c_uint,
) {
    let function = "gasnet_coll_set_dissem_limit";
    let team = team(ctx(function), function, handle);
    team.tuning().lock().set_limit(operation(function, optype), dissemlimit);
}

/// `gasnet_coll_tune_generic_op`
///
/// # Safety
/// The addresses in `coll_args` must be accessible as those of the operation; the last four must each be null or writable.
#[unsafe(no_mangle)]
#[allow(clippy::too_many_arguments)]
pub unsafe extern "C" fn gasnet_coll_tune_generic_op(
    handle: TeamHandle,
    op: c_uint,
    coll_args: CollArgs,
    flags: c_int,
    fnptr: Option<unsafe extern "C" fn(*mut c_void)>,
    sample_work_arg: *mut c_void,
    best_algidx: *mut u32,
    num_params: *mut u32,
    best_param: *mut *mut u32,
    best_tree: *mut *mut c_char,
) {
    let _span = span!(W "gasnet_coll_tune_generic_op");
    let function = "gasnet_coll_tune_generic_op";
    let (operation, many) = (operation(function, op), op % 2 == 1);
    let address = |list: *mut *mut u8, many: bool| {
        if many || list.is_null() {
            Many(list.cast_const().cast())
        } else {
            // SAFETY: the caller's promise: a pointer to one address.
            One(unsafe { *list }.cast())
        }
    };
    // Of the rooted operations the root's side is one address also in the M form.
    let (dst_many, src_many) = match operation {
        CollOperation::Broadcast | CollOperation::Scatter => (many, false),
        CollOperation::Gather | CollOperation::Reduce => (false, many),
        _ => (many, many),
    };
    let (dst, src) = (address(coll_args.dst, dst_many), address(coll_args.src, src_many));
    let elements = (operation == CollOperation::Reduce).then(|| Elements {
        size: coll_args.elem_size,
        count: coll_args.nbytes / coll_args.elem_size.max(1),
        func: coll_args.func,
        arg: coll_args.func_arg,
        layout: 0,
    });
    let root = if matches!(operation, CollOperation::GatherAll | CollOperation::Exchange) {
        0
    } else {
        coll_args.rootimg
    };
    let flags = flags & !AGGREGATE;
    // SAFETY: the caller's promise, here and below.
    let best = unsafe {
        let (c, call) =
            call(function, handle, operation, root, dst, src, coll_args.nbytes, elements, flags);
        let warm = env::COLL_AUTOTUNE_WARM_ITERS.get().into();
        let times = env::COLL_AUTOTUNE_PERF_ITERS.get().into();
        search::search(c, call, warm, times, || {
            if let Some(work) = fnptr {
                work(sample_work_arg);
            }
        })
    };
    // SAFETY: null or writable, as the caller promises; what is returned is the caller's to free.
    unsafe {
        if !best_algidx.is_null() {
            *best_algidx = best.number();
        }
        if !num_params.is_null() {
            *num_params = 1;
        }
        if !best_param.is_null() {
            let memory = sys::heap::allocate(size_of::<u32>()).map(|m| m.cast::<u32>());
            if let Some(memory) = memory {
                memory.write(best.fanout() as u32);
            }
            *best_param = memory.map_or(core::ptr::null_mut(), |m| m.as_ptr());
        }
        if !best_tree.is_null() {
            let name = std::ffi::CString::new(best.name()).unwrap_or_default();
            *best_tree = sys::heap::copy_of(&name);
        }
    }
}
