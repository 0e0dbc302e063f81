//! Choices of algorithms: trees, limits, searches, and the files that keep them.
//!
//! Called by clients. Invariant: what is returned for the client to free comes from the C
//! library's heap.

use super::movement::Address::{Many, One};
use super::movement::{Elements, call};
use super::{TeamHandle, team_of};
use crate::capi::ctx;
use crate::extended::coll::tree::Tree;
use crate::extended::coll::tuning::BY_SIZE;
use crate::extended::coll::{CollOperation, search};
use crate::extended::collectives;
use crate::trace::span;
use crate::{env, report};
use core::ffi::{CStr, c_char, c_int, c_uint, c_void};

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

/// The name of a file that a client passed; `None` for null.
///
/// # Safety
/// `name` must be null or NUL-terminated.
unsafe fn file_name(name: *const c_char) -> Option<String> {
    // SAFETY: not null, so a string, as the headers of the collectives demand.
    (!name.is_null()).then(|| unsafe { CStr::from_ptr(name) }.to_string_lossy().into_owned())
}

/// Loads choices of algorithms for a team. A file that cannot be used ends the job.
///
/// - `filename`: name of the file, NUL-terminated; null for that of the variable
///   `GASNET_COLL_TUNING_FILE`, without which nothing happens.
/// - `team`: `GASNET_TEAM_ALL` or a team that this process is a member of.
/// - Context: after `gasnet_coll_init`; not in a handler or a no-interrupt section, and not while
///   a handler-safe lock is held.
///
/// # Safety
/// `filename` must be null or a string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gasnet_coll_loadTuningState(filename: *const c_char, team: TeamHandle) {
    let function = "gasnet_coll_loadTuningState";
    let team = team_of(ctx(function), function, team);
    // SAFETY: gasnet_coll.h demands the name of a file as a string, or null.
    team.load_tuning(function, unsafe { file_name(filename) });
}

/// Writes the choices of algorithms of a team to a file. Every image may call; only the first
/// one of the team writes.
///
/// - `filename`: name of the file, NUL-terminated; null for that of the variable
///   `GASNET_COLL_TUNING_FILE`, without which nothing happens.
/// - `team`: `GASNET_TEAM_ALL` or a team that this process is a member of.
/// - Context: after `gasnet_coll_init`; not in a handler or a no-interrupt section, and not while
///   a handler-safe lock is held.
///
/// # Safety
/// `filename` must be null or a string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gasnet_coll_dumpTuningState(filename: *const c_char, team: TeamHandle) {
    let function = "gasnet_coll_dumpTuningState";
    let c = ctx(function);
    let team = team_of(c, function, team);
    // SAFETY: gasnet_coll.h demands the name of a file as a string, or null.
    let name = unsafe { file_name(filename) };
    collectives(c).dump_tuning(c, function, &team, name);
}

/// Writes how often a team moved which blocks, if GASNET_COLL_ENABLE_PROFILE requests it.
/// Every image may call; only the first one of the team writes.
///
/// - `filename`: name of the file, NUL-terminated; null for stdout.
/// - `team`: `GASNET_TEAM_ALL` or a team that this process is a member of.
/// - Context: after `gasnet_coll_init`; not in a handler or a no-interrupt section, and not while
///   a handler-safe lock is held.
///
/// # Safety
/// `filename` must be null or a string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gasnet_coll_dumpProfile(filename: *const c_char, team: TeamHandle) {
    let function = "gasnet_coll_dumpProfile";
    let c = ctx(function);
    let team = team_of(c, function, team);
    // SAFETY: gasnet_coll.h demands the name of a file as a string, or null.
    let name = unsafe { file_name(filename) };
    collectives(c).dump_profile(c, function, &team, name);
}

/// Returns the number of kinds of trees.
///
/// - `team`: `GASNET_TEAM_ALL` or a team that this process is a member of.
/// - `optype`: the operation, a `gasnet_coll_optype_t`; the M forms count as the others.
/// - Context: after `gasnet_coll_init`; not in a handler or a no-interrupt section, and not while
///   a handler-safe lock is held.
#[unsafe(no_mangle)]
pub extern "C" fn gasnet_coll_get_num_tree_classes(team: TeamHandle, optype: c_uint) -> c_int {
    let function = "gasnet_coll_get_num_tree_classes";
    team_of(ctx(function), function, team);
    operation(function, optype);
    Tree::KINDS as c_int
}

/// Chooses the tree of an operation in a team. All members choose the same.
///
/// - `team`: `GASNET_TEAM_ALL` or a team that this process is a member of.
/// - `tree_type`: 0 (flat), 1 (n-ary) or 2 (k-nomial); another one ends the job.
/// - `fanout`: its fan-out: from 1 for n-ary, from 2 for k-nomial trees.
/// - `optype`: the operation, a `gasnet_coll_optype_t`; the M forms count as the others.
/// - Context: after `gasnet_coll_init`; not in a handler or a no-interrupt section, and not while
///   a handler-safe lock is held.
#[unsafe(no_mangle)]
pub extern "C" fn gasnet_coll_set_tree_kind(
    team: TeamHandle,
    tree_type: c_int,
    fanout: c_int,
    optype: c_uint,
) {
    let function = "gasnet_coll_set_tree_kind";
    let team = team_of(ctx(function), function, team);
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
    let operation = operation(function, optype);
    team.tuning().change(|t| t.set_tree(operation, tree));
}

/// Sets up to how many bytes an operation of a team uses dissemination. All members choose the
/// same.
///
/// - `team`: `GASNET_TEAM_ALL` or a team that this process is a member of.
/// - `dissemlimit`: bytes.
/// - `optype`: the operation, a `gasnet_coll_optype_t`; the M forms count as the others.
/// - Context: after `gasnet_coll_init`; not in a handler or a no-interrupt section, and not while
///   a handler-safe lock is held.
#[unsafe(no_mangle)]
pub extern "C" fn gasnet_coll_set_dissem_limit(
    team: TeamHandle,
    dissemlimit: usize,
    optype: c_uint,
) {
    let function = "gasnet_coll_set_dissem_limit";
    let team = team_of(ctx(function), function, team);
    let operation = operation(function, optype);
    team.tuning().change(|t| t.set_limit(operation, dissemlimit));
}

/// Measures the algorithms for a collective and keeps the fastest for the team. Collective over
/// the images of the team.
///
/// - `team`: `GASNET_TEAM_ALL` or a team that this process is a member of.
/// - `op`: the operation, a `gasnet_coll_optype_t`.
/// - `coll_args`: its arguments; `dst` and `src` point to lists of addresses, of one entry
///   where the form takes one address.
/// - `flags`: as of the operation.
/// - `fnptr`: called between the calls that are measured, with `sample_work_arg`; null for
///   none.
/// - `best_algidx`, `num_params`, `best_param`, `best_tree`: where the result is stored. It is
///   the number of the algorithm, the number of its parameters, the parameters and the name of
///   the tree. `BY_SIZE` without parameters is what the library does without tuning. Each may be
///   null. The client frees the last two with `free`.
/// - Context: by every image of the team, in the same order as its other collectives. Not in a
///   handler or a no-interrupt section, and not while a handler-safe lock is held.
///
/// # Safety
/// The addresses in `coll_args` must be accessible as those of the operation; the last four
/// must each be null or writable.
#[unsafe(no_mangle)]
#[allow(clippy::too_many_arguments)]
pub unsafe extern "C" fn gasnet_coll_tune_generic_op(
    team: TeamHandle,
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
    let function = &"gasnet_coll_tune_generic_op";
    let (operation, many) = (operation(function, op), op % 2 == 1);
    let address = |list: *mut *mut u8, many: bool| {
        if many || list.is_null() {
            Many(list.cast_const().cast())
        } else {
            // SAFETY: the specification of the collectives demands a pointer to an address.
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
        src: (coll_args.src_blksz, coll_args.src_offset),
        dst: (coll_args.src_blksz, coll_args.src_offset),
    });
    let root = if matches!(operation, CollOperation::GatherAll | CollOperation::Exchange) {
        0
    } else {
        coll_args.rootimg
    };
    // SAFETY: gasnet_coll.h demands of the record what the collective that it names demands.
    let (c, call, _) = unsafe {
        call(function, team, operation, root, dst, src, coll_args.nbytes, elements, flags)
    };
    let warm = env::COLL_AUTOTUNE_WARM_ITERS.get().into();
    let times = env::COLL_AUTOTUNE_PERF_ITERS.get().into();
    let best = search::search(collectives(c), c, &call, warm, times, || {
        if let Some(work) = fnptr {
            // SAFETY: the client's function, with the argument that the client passed for it.
            unsafe { work(sample_work_arg) };
        }
    });
    // SAFETY: gasnet_coll.h demands null or a place for each result; what is returned is the
    // caller's to free.
    unsafe {
        if !best_algidx.is_null() {
            *best_algidx = best.map_or(0, Tree::number);
        }
        if !num_params.is_null() {
            *num_params = u32::from(best.is_some());
        }
        if !best_param.is_null() {
            let memory = best.and_then(|_| sys::heap::allocate(size_of::<u32>()));
            let memory = memory.map(|m| m.cast::<u32>());
            if let Some((memory, best)) = memory.zip(best) {
                memory.write(best.fanout() as u32);
            }
            *best_param = memory.map_or(core::ptr::null_mut(), |m| m.as_ptr());
        }
        if !best_tree.is_null() {
            let name = best.map_or(String::from(BY_SIZE), Tree::name);
            let name = std::ffi::CString::new(name).unwrap_or_default();
            *best_tree = sys::heap::copy_of(&name);
        }
    }
}
