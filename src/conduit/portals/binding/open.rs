//! Opens the interface of a libportals, and tries what the library does.
//!
//! Called by `conduit::network` through [`Binding::open`]. Invariant: an interface that lacks what
//! the conduit needs is an error that says what is missing and what to do.

use super::super::{OpenError, Portals, PortalsError, PortalsId, trial};
use super::call_lock::CallLock;
use super::{Binding, PtlHandle, done, ranks, sys, system};
use crate::conduit::Config;
use crate::env;
use crate::rank::JobRank;
use crate::report::CrashHint;
use alloc::boxed::Box;
use alloc::format;
use alloc::string::{String, ToString};
use core::ffi::{CStr, c_char, c_int};
use core::mem::zeroed;
use crossbeam_utils::CachePadded;
use std::os::fd::OwnedFd;

/// What to do if the library lacks what registration on demand needs, in LARGE.
const WHOLE: &str = "Or set GASNET_USE_FIREHOSE=0: then segments are registered whole.";
/// What to do if the library refuses to open its interface.
const NOT_OPENED: &str =
    "See what the library prints, and which variables it reads (PTL_IFACE, for example).";

/// Events of the queue that stands for `PTL_EQ_NONE`, which gets none.
const QUIET_EVENTS: usize = 64;

/// The header that the binding was made from.
pub fn header() -> &'static str {
    env!("GASNETI_PORTALS_HEADER")
}

/// What to do if another library was loaded than that of the header.
const LOADED: &str =
    "See which libportals LD_LIBRARY_PATH leads to, or build this library with that one.";

/// The file that the library was loaded from; that of the program if it is part of it.
pub fn loaded_file() -> String {
    // SAFETY: takes nothing.
    let function = unsafe { sys::gasneti_ptl_function() };
    ::sys::library::file_at(function.addr()).unwrap_or_else(|| "?".into())
}

/// Whether the library is to know the process ids of the system before it is opened.
pub fn wants_process_ids() -> bool {
    system::fabric_variable().is_none() && system::has_set_rank()
}

impl Binding {
    /// Opens the interface of the process with this rank. `shared` is an empty memory file that
    /// all processes of this host have. A library that wants one gets it, unless a launcher has
    /// given it another. `process_ids` are those of the system, by rank, for a library that
    /// [`wants_process_ids`]. In a small portal table other entries are chosen in `config`.
    ///
    /// # Errors
    /// What the library lacks or does wrong, with its file.
    pub fn open(
        shared: Option<OwnedFd>,
        rank: JobRank,
        process_ids: &[u32],
        config: &mut Config,
    ) -> Result<Binding, OpenError> {
        let file = loaded_file();
        let _hint = CrashHint::new(format!(
            "{file}: it crashed when it was tried; it may not be the library of the header that this one was built with, {}. \
             {LOADED}",
            header()
        ));
        Binding::open_any(shared, rank, process_ids, config)
            .map_err(|e| OpenError::new(format!("{file}: {}", e.cause), e.remedy))
    }

    fn open_any(
        shared: Option<OwnedFd>,
        rank: JobRank,
        process_ids: &[u32],
        config: &mut Config,
    ) -> Result<Binding, OpenError> {
        same_names()?;
        let wanted = sys::gasneti_ptl_limits {
            mes: 17 + 2 * config.match_entries() as c_int,
            mds: 18 + config.reqrb_buffers as c_int + config.descriptors() as c_int,
            eqs: 7,
            pt_index: config.last_list() as c_int,
        };
        let mut limits = wanted;
        // SAFETY: a handle is plain data, overwritten before it is used.
        let mut ni: sys::ptl_handle_ni_t = unsafe { zeroed() };
        let mut call: *const c_char = c"PtlNIInit".as_ptr();
        let variables = ranks::set_variables(shared, rank, config.nodes, process_ids)?;
        let has_rank = variables.name_the_rank().into();
        // SAFETY: the pointers are live variables of the types that shim.h names.
        let rc = unsafe { sys::gasneti_ptl_open(has_rank, &mut limits, &mut ni, &mut call) };
        drop(variables);
        // SAFETY: a string constant, ours or that of shim.c.
        let call = unsafe { CStr::from_ptr(call) }.to_str().unwrap_or("PtlNIInit");
        let refused = |e: PortalsError| OpenError::new(e.to_string(), NOT_OPENED);
        done(call, rc).map_err(refused)?;
        choose_entries(&limits, config)?;
        config.place_lists(limits.pt_index.max(0) as u32);
        let regions = config.targets_regions();
        // A library may do for whole segments.
        let advised = |e: OpenError| match config.registers_segments() {
            true => OpenError::new(e.cause, format!("{} {WHOLE}", e.remedy)),
            false => e,
        };
        enough(&limits, &wanted, regions).map_err(advised)?;
        let mut id: sys::ptl_process_id_t =
            // SAFETY: a process id is plain data, overwritten before it is used.
            unsafe { zeroed() };
        // SAFETY: `id` is live, and the interface is open.
        done("PtlGetId", unsafe { sys::PtlGetId(ni, &mut id) } as c_int).map_err(refused)?;
        // SAFETY: a handle is plain data, overwritten before it is used.
        let mut eq_none: sys::ptl_handle_eq_t = unsafe { zeroed() };
        // SAFETY: `eq_none` is live.
        unsafe { sys::gasneti_ptl_eq_none(&mut eq_none) };
        let mut this = Binding {
            ni: PtlHandle(ni),
            id: PortalsId { nid: id.nid as u32, pid: id.pid as u32 },
            eq_none: PtlHandle(eq_none),
            quiet: None,
            echoes_match_bits: true,
            calls: None,
            single_threaded: config.threads == 1,
            sent: CachePadded::default(),
        };
        let may_enter_together = || {
            let says = this.has_property(sys::GASNETI_PTL_THREAD_SAFE);
            env::PORTAL_THREADSAFE.get().unwrap_or(says)
        };
        if !this.single_threaded && !may_enter_together() {
            this.calls = Some(Box::leak(Box::new(CallLock::new())));
        }
        let mut findings = trial::run(&this, config.pt_rar, regions).map_err(advised)?;
        if findings.refuses_eq_none.is_some() {
            this.quiet = Some(this.eq_alloc(QUIET_EVENTS).map_err(refused)?);
            findings = trial::run(&this, config.pt_rar, regions).map_err(advised)?;
        }
        if let Some(e) = findings.refuses_eq_none {
            return Err(trial::failed(e));
        }
        this.echoes_match_bits = findings.echoes_match_bits;
        // What the trial sent is no traffic of the job.
        this.sent = CachePadded::default();
        Ok(this)
    }
}

/// Whether the library and the header mean the same errors by the same numbers.
fn same_names() -> Result<(), OpenError> {
    let mut value: c_int = 0;
    let mut theirs: *const c_char = core::ptr::null();
    // SAFETY: both are live.
    let ours = unsafe { sys::gasneti_ptl_disagrees(&mut value, &mut theirs) };
    if ours.is_null() {
        return Ok(());
    }
    // SAFETY: not null: strings of shim.c and of the library.
    let (ours, theirs) = unsafe { (CStr::from_ptr(ours), CStr::from_ptr(theirs)) };
    Err(OpenError::new(
        format!(
            "the loaded library differs from the header it was built with, {}: {value} is {} in the header and {} in the library",
            header(),
            ours.to_string_lossy(),
            theirs.to_string_lossy()
        ),
        LOADED,
    ))
}

/// Replaces the default portal entries in a table that ends before them by its last two; those
/// that the user has chosen must be there.
fn choose_entries(
    granted: &sys::gasneti_ptl_limits,
    config: &mut Config,
) -> Result<(), OpenError> {
    let last = granted.pt_index.max(0) as u32;
    let rows = [
        (&mut config.pt_rar, &env::PORTAL_PTE_RAR, last.saturating_sub(1)),
        (&mut config.pt_am, &env::PORTAL_PTE_AM, last),
    ];
    for (entry, variable, other) in rows {
        if *entry <= last {
            continue;
        }
        if variable.get().is_some() {
            let name = variable.name();
            return Err(OpenError::new(
                format!("its portal table ends at {last}, but {name}={entry} names a later entry"),
                format!("Set {name} to a free entry up to {last}, or unset it."),
            ));
        }
        *entry = other;
    }
    Ok(())
}

/// Whether the interface grants what the conduit needs; `regions`: that of registered memory too.
fn enough(
    granted: &sys::gasneti_ptl_limits,
    wanted: &sys::gasneti_ptl_limits,
    regions: bool,
) -> Result<(), OpenError> {
    const LOWER: &str = "Lower GASNET_PORTAL_NUM_TMPMD or GASNET_PORTAL_AMRECV_SPACE.";
    const FEWER: &str = "Lower GASNET_FIREHOSE_R and GASNET_FIREHOSE_MAXVICTIM_R.";
    const OTHER: &str = "Use a libportals that grants as many.";
    let lower = if regions { FEWER } else { LOWER };
    let rows = [
        ("match entries", granted.mes, wanted.mes, lower),
        ("memory descriptors", granted.mds, wanted.mds, lower),
        ("event queues", granted.eqs, wanted.eqs, OTHER),
    ];
    match rows.iter().find(|row| row.1 < row.2) {
        None => Ok(()),
        Some((what, granted, wanted, remedy)) => Err(OpenError::new(
            format!("it grants {granted} {what}, but {wanted} are wanted"),
            *remedy,
        )),
    }
}
