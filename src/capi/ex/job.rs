//! The life of a job of GASNet-EX, and the queries about it.
//!
//! Called by clients. Invariant: `gex_Client_Init` and `gasnet_init` start a job by the same
//! steps, `gex_Segment_Attach` and `gasnet_attach` complete it by the same.

use super::misuse::outside_handlers;
use super::objects::{CLIENT_DATA, ClientRecord, ExObject, RECORD, has_all_memory};
use super::{Flags, Rank, write};
use crate::capi::client::{self, ABI, Client};
use crate::capi::{OK, early_job, init};
use crate::extended;
use crate::rank::JobRank;
use crate::report;
use crate::runtime::GasnetError;
use crate::runtime::client::{SegmentMode, ThreadMode};
use crate::trace::span;
use alloc::collections::BTreeMap;
use alloc::ffi::CString;
use core::ffi::{CStr, c_char, c_int, c_uint, c_void};
use core::fmt;
use core::sync::atomic::{AtomicBool, Ordering};
use once_cell::race::OnceBox;

/// `GEX_FLAG_USES_GASNET1`
const USES_GASNET1: Flags = 1;

unsafe extern "C" {
    /// In shim.c, or defined by the client: bound of the segment, bytes; 0 for none.
    static gasnet_max_segsize: u64;
}

/// What `gex_Client_Init` of the headers calls: [`gex_Client_Init`] for what the client was
/// compiled for.
///
/// - `object`: modes, interface number and segment bound of the client; read before the call
///   returns.
///
/// # Safety
/// As [`gex_Client_Init`]; `object` must point to a [`Client`], whose first field is right
/// whatever its interface.
#[unsafe(no_mangle)]
#[allow(clippy::too_many_arguments)]
pub unsafe extern "C" fn gasneti_Client_Init(
    client_p: *mut ExObject,
    ep_p: *mut ExObject,
    tm_p: *mut ExObject,
    client_name: *const c_char,
    _argc: *mut c_int,
    _argv: *mut *mut *mut c_char,
    flags: Flags,
    object: *const Client,
) -> c_int {
    // SAFETY: as this function requires.
    let object = unsafe { client::read(object) };
    let name = match client_name.is_null() {
        true => CString::default(),
        // SAFETY: the specification demands a NUL-terminated name.
        false => unsafe { CStr::from_ptr(client_name) }.to_owned(),
    };
    let Some(job) = init::start("gex_Client_Init", &object) else {
        return GasnetError::NotInit as c_int;
    };
    // The first call of the process.
    let _ = RECORD.set(Box::new(ClientRecord { name, flags }));
    // SAFETY: the specification demands places for the results; null is allowed too. A hook that
    // attaching calls finds them.
    unsafe {
        write(client_p, ExObject::THE_CLIENT);
        write(ep_p, ExObject::THE_ENDPOINT);
        write(tm_p, ExObject::ALL);
    }
    if has_all_memory(job) {
        init::attach_segment(job, "gex_Client_Init", 0).expect("nothing is attached yet");
        job.record_segment(0);
    } else {
        extended::open(job);
        init::admit(job);
    }
    job.meet();
    OK
}

/// Joins the job and makes the client, its endpoint and the team of all ranks. Collective, and a
/// barrier.
///
/// On return handlers can be registered, messages without data sent, and collectives called.
/// Puts, gets and Longs need a segment (`gex_Segment_Attach`). In EVERYTHING they need none: all
/// memory is exposed already. A failure to start ends the process with a message.
///
/// In C and C++, gasnetex.h has a macro of this name that passes the modes that the client was
/// compiled for. The symbol means thread mode PAR and segment mode FAST.
///
/// - `client_p`, `ep_p`, `tm_p`: where the objects are stored.
/// - `clientName`: the name of the client; copied.
/// - `argc`, `argv`: not used; may be null.
/// - `flags`: `GEX_FLAG_USES_GASNET1` if the client calls `gasnet_*` functions too; accepted and
///   not needed.
/// - Returns `GASNET_OK`, or `GASNET_ERR_NOT_INIT` the second time, which changes nothing.
/// - Context: once, before any other function of GASNet.
///
/// # Safety
/// `client_p`, `ep_p` and `tm_p` must be null or writable, `clientName` null or NUL-terminated.
#[unsafe(no_mangle)]
#[allow(non_snake_case)]
pub unsafe extern "C" fn gex_Client_Init(
    client_p: *mut ExObject,
    ep_p: *mut ExObject,
    tm_p: *mut ExObject,
    clientName: *const c_char,
    argc: *mut c_int,
    argv: *mut *mut *mut c_char,
    flags: Flags,
) -> c_int {
    let object = Client {
        abi: ABI,
        thread_mode: ThreadMode::Par as u32,
        segment_mode: SegmentMode::Fast as u32,
        debug: 0,
        // SAFETY: a word that the client may set before this call, which is the first.
        max_segsize: unsafe { gasnet_max_segsize },
    };
    // SAFETY: the record is alive, and of our interface; the rest is as this function requires.
    unsafe { gasneti_Client_Init(client_p, ep_p, tm_p, clientName, argc, argv, flags, &object) }
}

/// Attaches a segment to the endpoint. Collective over the team of all ranks, and a barrier. In
/// EVERYTHING it is a barrier only, and may be called again.
///
/// - `segment_p`: where the segment is stored; `GEX_SEGMENT_INVALID` in EVERYTHING.
/// - `tm`: the team of `gex_Client_Init`.
/// - `size`: bytes of the segment of this rank, a multiple of `GASNET_PAGESIZE`, not 0, at most
///   `gasnet_getMaxLocalSegmentSize()`. Not used in EVERYTHING.
/// - Returns `GASNET_OK`; `GASNET_ERR_NOT_INIT` the second time, `GASNET_ERR_BAD_ARG` for an
///   invalid size, both after a message and not in EVERYTHING.
/// - Context: after `gex_Client_Init`; once, or in EVERYTHING any number of times.
///
/// # Safety
/// `segment_p` must be null or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gex_Segment_Attach(
    segment_p: *mut ExObject,
    tm: ExObject,
    size: usize,
) -> c_int {
    let function = &"gex_Segment_Attach";
    let job = outside_handlers(function);
    if tm != ExObject::ALL {
        report::warn(
            format_args!("{function}(): {tm:?} is not the team of all ranks"),
            format_args!("Pass the team that gex_Client_Init gave."),
        );
        return GasnetError::BadArg as c_int;
    }
    let mut span = span!(I "gex_Segment_Attach");
    if has_all_memory(job) {
        super::coll::meet(job.ctx(), function, tm);
        // SAFETY: the specification demands a place for the result.
        unsafe { write(segment_p, ExObject::INVALID) };
        return OK;
    }
    // GASNet-1 has segments without bytes.
    if size == 0 && job.endpoint.known_segments().is_none() {
        report::warn(
            format_args!("{function}(): a segment of 0 bytes was requested"),
            format_args!("Pass GASNET_PAGESIZE or a multiple of it."),
        );
        return GasnetError::BadArg as c_int;
    }
    if let Err(error) = init::attach_segment(job, function, size) {
        return span.result(error as c_int);
    }
    job.record_segment(0);
    // SAFETY: the specification demands a place for the result.
    unsafe { write(segment_p, ExObject::THE_SEGMENT) };
    OK
}

/// Reports the objects of a job that `gasnet_init` or `gex_Client_Init` started.
///
/// - `client_p`, `endpoint_p`, `tm_p`, `segment_p`: where they are stored; null for those that are
///   not wanted. The segment is `GEX_SEGMENT_INVALID` before one is bound.
/// - Context: after the job was started, in handlers too.
///
/// # Safety
/// Each must be null or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gasnet_QueryGexObjects(
    client_p: *mut ExObject,
    endpoint_p: *mut ExObject,
    tm_p: *mut ExObject,
    segment_p: *mut ExObject,
) {
    let job = early_job("gasnet_QueryGexObjects");
    let segment = super::objects::bound_object(job);
    // SAFETY: the specification demands places for what is wanted.
    unsafe {
        write(client_p, ExObject::THE_CLIENT);
        write(endpoint_p, ExObject::THE_ENDPOINT);
        write(tm_p, ExObject::ALL);
        write(segment_p, segment);
    }
}

/// Returns the rank of this process in the job.
///
/// - Context: after `gex_Client_Init`, in handlers too.
#[unsafe(no_mangle)]
pub extern "C" fn gex_System_QueryJobRank() -> Rank {
    early_job("gex_System_QueryJobRank").endpoint.rank.0
}

/// Returns the number of ranks of the job.
///
/// - Context: after `gex_Client_Init`, in handlers too.
#[unsafe(no_mangle)]
pub extern "C" fn gex_System_QueryJobSize() -> Rank {
    early_job("gex_System_QueryJobSize").team.size()
}

/// Returns how many threads of the client may use the library at a time; 1 in SEQ.
///
/// - Context: after `gex_Client_Init`, in handlers too.
#[unsafe(no_mangle)]
pub extern "C" fn gex_System_QueryMaxThreads() -> u64 {
    early_job("gex_System_QueryMaxThreads").max_threads() as u64
}

/// How many threads of the library may run handlers outside calls of the client: 0.
///
/// - Context: anywhere.
#[unsafe(no_mangle)]
pub extern "C" fn gex_System_QueryHiddenAMConcurrencyLevel() -> c_int {
    0
}

static VERBOSE: AtomicBool = AtomicBool::new(true);

/// Prints why a call returns an error, unless the client wants no such messages.
pub(super) fn complain(cause: fmt::Arguments<'_>, remedy: fmt::Arguments<'_>) {
    if VERBOSE.load(Ordering::Relaxed) {
        report::warn(cause, remedy);
    }
}

/// Returns what `gex_System_SetVerboseErrors` has set; 1 at first.
///
/// - Context: anywhere.
#[unsafe(no_mangle)]
pub extern "C" fn gex_System_GetVerboseErrors() -> c_int {
    c_int::from(VERBOSE.load(Ordering::Relaxed))
}

/// Chooses whether calls that return an error for lack of something print why. Errors in
/// arguments of `gex_Segment_Attach` and `gex_EP_RegisterHandlers` are always printed.
///
/// - `enable`: 0 for silence.
/// - Context: anywhere.
#[unsafe(no_mangle)]
pub extern "C" fn gex_System_SetVerboseErrors(enable: c_int) {
    VERBOSE.store(enable != 0, Ordering::Relaxed);
}

/// Reports the progress threads that the client is to run itself. There are none.
///
/// - `client`: the client.
/// - `count_p`, `info_p`: where their number and a list are stored.
/// - `flags`: 0.
/// - Returns `GASNET_OK` if the client was made with `GEX_FLAG_DEFER_THREADS`;
///   `GASNET_ERR_RESOURCE` otherwise. `GASNET_ERR_BAD_ARG` if a place is null or flags are not 0.
/// - Context: after `gex_Client_Init`.
///
/// # Safety
/// `count_p` and `info_p` must be null or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gex_System_QueryProgressThreads(
    client: ExObject,
    count_p: *mut c_uint,
    info_p: *mut *const c_void,
    flags: Flags,
) -> c_int {
    let function = "gex_System_QueryProgressThreads";
    outside_handlers(function);
    client.check_client(function);
    const DEFER_THREADS: u32 = 1 << 1;
    if RECORD.get().is_none_or(|record| record.flags & DEFER_THREADS == 0) {
        return GasnetError::Resource as c_int;
    }
    if count_p.is_null() || info_p.is_null() || flags != 0 {
        return GasnetError::BadArg as c_int;
    }
    // SAFETY: the specification demands places for the results.
    unsafe {
        write(count_p, 0);
        write(info_p, core::ptr::null());
    }
    OK
}

/// The ranks that are near, and this rank's index among them.
#[derive(Debug)]
struct NearRanks {
    ranks: Box<[u32]>,
    me: u32,
    /// How many such sets the job has, and which of them this one is.
    sets: u32,
    number: u32,
}

impl NearRanks {
    /// Those whose number, by rank, is this rank's.
    fn of<N: Copy + Ord>(numbers: &[N], me: JobRank) -> NearRanks {
        let own = numbers[me.index()];
        let ranks = (0u32..).zip(numbers).filter(|&(_, n)| *n == own).map(|(rank, _)| rank);
        let ranks: Box<[u32]> = ranks.collect();
        // Sets count from 0 in the order of their first ranks.
        let mut sets = BTreeMap::new();
        for &n in numbers {
            let next = sets.len() as u32;
            sets.entry(n).or_insert(next);
        }
        let below = ranks.partition_point(|&rank| rank < me.0);
        NearRanks { ranks, me: below as u32, sets: sets.len() as u32, number: sets[&own] }
    }

    /// # Safety
    /// Each must be null or writable.
    unsafe fn report(&self, info_p: *mut *const u32, count_p: *mut Rank, index_p: *mut Rank) {
        // SAFETY: as this function requires. The list lives as long as the process.
        unsafe {
            write(info_p, self.ranks.as_ptr());
            write(count_p, self.ranks.len() as u32);
            write(index_p, self.me);
        }
    }
}

/// The ranks that map each other's memory, and those of a host.
fn neighbours() -> &'static [NearRanks; 2] {
    static NEIGHBOURS: OnceBox<[NearRanks; 2]> = OnceBox::new();
    NEIGHBOURS.get_or_init(|| {
        let job = early_job("gex_System_QueryNbrhdInfo");
        let (placement, me) = (job.placement(), job.endpoint.rank);
        let supernodes = placement.supernodes();
        let supernodes: Vec<u32> = job.team.ranks().map(|rank| supernodes[rank]).collect();
        let hosts: Vec<u32> = job.team.ranks().map(|rank| placement.place_of(rank).host).collect();
        Box::new([NearRanks::of(&supernodes, me), NearRanks::of(&hosts, me)])
    })
}

/// Reports the ranks that map each other's segments, this rank among them.
///
/// - `info_p`: where a list is stored, sorted by rank; it is the library's.
/// - `info_count_p`: where their number is stored.
/// - `my_info_index_p`: where this rank's index in the list is stored. Each may be null.
/// - Context: after `gex_Client_Init`, in handlers too.
///
/// # Safety
/// Each must be null or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gex_System_QueryNbrhdInfo(
    info_p: *mut *const u32,
    info_count_p: *mut Rank,
    my_info_index_p: *mut Rank,
) {
    // SAFETY: as this function requires.
    unsafe { neighbours()[0].report(info_p, info_count_p, my_info_index_p) };
}

/// Reports the ranks of this host.
///
/// - `info_p`: where a list is stored, sorted by rank; it is the library's.
/// - `info_count_p`: where their number is stored.
/// - `my_info_index_p`: where this rank's index in the list is stored. Each may be null.
/// - Context: after `gex_Client_Init`, in handlers too.
///
/// # Safety
/// Each must be null or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gex_System_QueryHostInfo(
    info_p: *mut *const u32,
    info_count_p: *mut Rank,
    my_info_index_p: *mut Rank,
) {
    // SAFETY: as this function requires.
    unsafe { neighbours()[1].report(info_p, info_count_p, my_info_index_p) };
}

/// Reports how many neighbourhoods and hosts the job has, and which are those of this rank.
///
/// - `nbrhd_set_size_p`, `host_set_size_p`: where the numbers of neighbourhoods and hosts are
///   stored.
/// - `nbrhd_set_rank_p`, `host_set_rank_p`: where those of this rank are stored, from 0. Each may
///   be null.
/// - Context: after `gex_Client_Init`, in handlers too.
///
/// # Safety
/// Each must be null or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gex_System_QueryMyPosition(
    nbrhd_set_size_p: *mut Rank,
    nbrhd_set_rank_p: *mut Rank,
    host_set_size_p: *mut Rank,
    host_set_rank_p: *mut Rank,
) {
    let [neighbourhood, host] = neighbours();
    // SAFETY: as this function requires.
    unsafe {
        write(nbrhd_set_size_p, neighbourhood.sets);
        write(nbrhd_set_rank_p, neighbourhood.number);
        write(host_set_size_p, host.sets);
        write(host_set_rank_p, host.number);
    }
}

/// Keeps a pointer with the client.
///
/// - `client`: the client.
/// - `val`: the pointer, which the library does not follow.
/// - Context: after `gex_Client_Init`, in handlers too.
#[unsafe(no_mangle)]
pub extern "C" fn gex_Client_SetCData(client: ExObject, val: *const c_void) {
    client.check_client("gex_Client_SetCData");
    CLIENT_DATA.set(val);
}

/// Returns the pointer that `gex_Client_SetCData` has kept; null at first.
///
/// - `client`: the client.
/// - Context: after `gex_Client_Init`, in handlers too.
#[unsafe(no_mangle)]
pub extern "C" fn gex_Client_QueryCData(client: ExObject) -> *mut c_void {
    client.check_client("gex_Client_QueryCData");
    CLIENT_DATA.get()
}

/// Returns the flags that `gex_Client_Init` was given; `GEX_FLAG_USES_GASNET1` in a job of
/// `gasnet_init`.
///
/// - `client`: the client.
/// - Context: after `gex_Client_Init`, in handlers too.
#[unsafe(no_mangle)]
pub extern "C" fn gex_Client_QueryFlags(client: ExObject) -> Flags {
    client.check_client("gex_Client_QueryFlags");
    RECORD.get().map_or(USES_GASNET1, |record| record.flags)
}

/// Returns the name that `gex_Client_Init` was given.
///
/// - `client`: the client.
/// - Returns a string of the library; `GASNET1` in a job of `gasnet_init`.
/// - Context: after `gex_Client_Init`, in handlers too.
#[unsafe(no_mangle)]
pub extern "C" fn gex_Client_QueryName(client: ExObject) -> *const c_char {
    client.check_client("gex_Client_QueryName");
    RECORD.get().map_or(c"GASNET1".as_ptr(), |record| record.name.as_ptr())
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::cell::Cell;
    use core::cmp;

    #[test]
    fn sets_count_in_the_order_of_their_first_ranks() {
        let near = |me| NearRanks::of(&[7, 3, 7, 9, 3], JobRank(me));
        let found =
            [near(2), near(4), near(3)].map(|n| (n.ranks.to_vec(), n.me, n.sets, n.number));
        assert_eq!(found, [(vec![0, 2], 1, 3, 0), (vec![1, 4], 1, 3, 1), (vec![3], 0, 3, 2)]);
    }

    std::thread_local! {
        static COMPARISONS: Cell<usize> = const { Cell::new(0) };
    }

    /// A number that counts how often any is compared.
    #[derive(Clone, Copy)]
    struct Counted(u32);

    impl Ord for Counted {
        fn cmp(&self, other: &Counted) -> cmp::Ordering {
            COMPARISONS.set(COMPARISONS.get() + 1);
            self.0.cmp(&other.0)
        }
    }

    impl PartialOrd for Counted {
        fn partial_cmp(&self, other: &Counted) -> Option<cmp::Ordering> {
            Some(self.cmp(other))
        }
    }

    impl PartialEq for Counted {
        fn eq(&self, other: &Counted) -> bool {
            self.cmp(other).is_eq()
        }
    }

    impl Eq for Counted {}

    #[test]
    fn the_work_does_not_grow_with_the_square_of_the_ranks() {
        const RANKS: u32 = 1 << 16;
        // One rank on each host, 64 on each, all on one.
        for on_host in [1, 64, RANKS] {
            // Hosts are not numbered in the order of their ranks.
            let host = |rank: u32| Counted((rank / on_host).wrapping_mul(0x9e37_79b1));
            let numbers: Vec<Counted> = (0..RANKS).map(host).collect();
            COMPARISONS.set(0);
            let near = NearRanks::of(&numbers, JobRank(RANKS - 1));
            let found = (near.ranks.len() as u32, near.me, near.sets, near.number);
            let sets = RANKS / on_host;
            assert_eq!(found, (on_host, on_host - 1, sets, sets - 1));
            // A search in the map of sets compares with up to 11 keys on each of its levels.
            let most = RANKS as usize * (1 + 11 * 6);
            assert!(COMPARISONS.get() <= most, "{} comparisons", COMPARISONS.get());
        }
    }
}
