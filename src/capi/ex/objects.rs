//! The objects of clients: numbers that name a client, an endpoint, a team, a segment or an
//! atomics domain, and what a client keeps with each.
//!
//! Used by all of this folder. Invariants: there is one client, one endpoint and at most one
//! segment. A number is checked before it means anything.
//!
//! ```text
//!   bits    63 ............ 4   3 .. 0
//!           index               kind: 2 client, 4 endpoint, 6 segment, 8 team, 10 domain,
//!                               12 source descriptor; an odd number is a pair
//!   a pair  remote index << 20 | local index << 8 | 1
//! ```

use crate::extended::coll::Team;
use crate::extended::collectives;
use crate::rank::{JobRank, TeamRank};
use crate::report;
use crate::runtime::{Ctx, GasnetJob};
use alloc::ffi::CString;
use core::ffi::c_void;
use core::fmt;
use core::sync::atomic::{AtomicPtr, Ordering};
use once_cell::race::OnceBox;
use parking_lot::RwLock;

/// `gex_Client_t`, `gex_EP_t`, `gex_TM_t`, `gex_Segment_t`, `gex_AD_t`: a word of the client.
#[derive(Clone, Copy, PartialEq, Eq)]
#[repr(transparent)]
pub struct ExObject(usize);

impl fmt::Debug for ExObject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#x}", self.0)
    }
}

const CLIENT: usize = 2;
const ENDPOINT: usize = 4;
const SEGMENT: usize = 6;
const TEAM: usize = 8;
const DOMAIN: usize = 10;
const DESCRIPTOR: usize = 12;

impl ExObject {
    pub(super) const INVALID: ExObject = ExObject::named(0, 0);
    pub(super) const THE_CLIENT: ExObject = ExObject::named(CLIENT, 0);
    pub(super) const THE_ENDPOINT: ExObject = ExObject::named(ENDPOINT, 0);
    pub(super) const THE_SEGMENT: ExObject = ExObject::named(SEGMENT, 0);
    /// The team of all ranks.
    pub(super) const ALL: ExObject = ExObject::named(TEAM, 0);
    /// The pair of endpoints 0.
    pub(super) const PAIR: ExObject = ExObject(1);

    /// `GEX_MK_HOST`, which is no team.
    pub(super) const HOST_MEMORY: ExObject = ExObject(1);

    const fn named(kind: usize, index: usize) -> ExObject {
        ExObject(index << 4 | kind)
    }

    pub(super) fn team(index: usize) -> ExObject {
        ExObject::named(TEAM, index)
    }

    pub(super) fn domain(index: usize) -> ExObject {
        ExObject::named(DOMAIN, index)
    }

    pub(super) fn descriptor(index: usize) -> ExObject {
        ExObject::named(DESCRIPTOR, index)
    }

    fn index_of(self, kind: usize) -> Option<usize> {
        let word = self.0;
        (word & 15 == kind).then_some(word >> 4)
    }

    /// The index of an atomics domain.
    pub(super) fn domain_index(self) -> Option<usize> {
        self.index_of(DOMAIN)
    }

    /// The index of a source descriptor.
    pub(super) fn descriptor_index(self) -> Option<usize> {
        self.index_of(DESCRIPTOR)
    }

    /// Ends the job unless it is the client.
    pub(super) fn check_client(self, function: &str) {
        self.check(function, ExObject::THE_CLIENT, "client", "gex_Client_Init gave");
    }

    /// Ends the job unless it is the endpoint.
    pub(super) fn check_endpoint(self, function: &str) {
        self.check(function, ExObject::THE_ENDPOINT, "endpoint", "gex_Client_Init gave");
    }

    /// Ends the job unless it is the segment.
    pub(super) fn check_segment(self, function: &str) {
        self.check(function, ExObject::THE_SEGMENT, "segment", "gex_Segment_Attach gave");
    }

    fn check(self, function: &str, right: ExObject, what: &str, source: &str) {
        if self != right {
            report::fatal(
                format_args!("{function}(): {self:?} is no {what}"),
                format_args!("Pass the {what} that {source}."),
            )
        }
    }
}

/// The pointer that a client keeps with an object.
#[derive(Debug, Default)]
pub(super) struct ClientData(AtomicPtr<c_void>);

impl ClientData {
    pub(super) const fn new() -> ClientData {
        ClientData(AtomicPtr::new(core::ptr::null_mut()))
    }

    pub(super) fn set(&self, value: *const c_void) {
        self.0.store(value.cast_mut(), Ordering::Release);
    }

    pub(super) fn get(&self) -> *mut c_void {
        self.0.load(Ordering::Acquire)
    }
}

/// What the client said of itself.
#[derive(Debug)]
pub(super) struct ClientRecord {
    pub(super) name: CString,
    pub(super) flags: u32,
}

/// Set by `gex_Client_Init`; unset in a job of `gasnet_init`.
pub(super) static RECORD: OnceBox<ClientRecord> = OnceBox::new();
pub(super) static CLIENT_DATA: ClientData = ClientData::new();
pub(super) static ENDPOINT_DATA: ClientData = ClientData::new();
pub(super) static MEMORY_DATA: ClientData = ClientData::new();
pub(super) static SEGMENT_DATA: ClientData = ClientData::new();

/// A team of a client.
#[derive(Debug)]
pub(super) struct TeamRecord {
    pub(super) team: &'static Team,
    pub(super) data: ClientData,
    /// Address and bytes of the scratch memory that the client gave, if it did.
    pub(super) scratch: Option<(usize, usize)>,
}

/// That of all ranks; made when it is first named.
static ALL_RANKS: OnceBox<&'static TeamRecord> = OnceBox::new();
/// The others, by index less 1; `None` for one that was destroyed.
static TEAMS: RwLock<Vec<Option<&'static TeamRecord>>> = RwLock::new(Vec::new());

fn record(team: &'static Team, scratch: Option<(usize, usize)>) -> &'static TeamRecord {
    Box::leak(Box::new(TeamRecord { team, data: ClientData::new(), scratch }))
}

/// Adds a team, and returns its name.
pub(super) fn add_team(team: &'static Team, scratch: Option<(usize, usize)>) -> ExObject {
    let mut teams = TEAMS.write();
    let record = Some(record(team, scratch));
    let index = match teams.iter().position(Option::is_none) {
        Some(free) => {
            teams[free] = record;
            free
        }
        None => {
            teams.push(record);
            teams.len() - 1
        }
    };
    ExObject::team(index + 1)
}

/// Takes a team away; `None` if it is not one that can be destroyed.
pub(super) fn remove_team(tm: ExObject) -> Option<&'static TeamRecord> {
    let index = tm.index_of(TEAM)?.checked_sub(1)?;
    TEAMS.write().get_mut(index)?.take()
}

/// The team that a client names; ends the job if there is none. Not for pairs.
pub(super) fn team_of(c: Ctx, function: &str, tm: ExObject) -> &'static TeamRecord {
    if tm == ExObject::ALL {
        return ALL_RANKS.get_or_init(|| Box::new(record(collectives(c).ranks(c), None)));
    }
    let named =
        tm.index_of(TEAM).and_then(|index| *TEAMS.read_recursive().get(index.checked_sub(1)?)?);
    match named {
        Some(record) => record,
        None => no_team(function, tm),
    }
}

#[cold]
fn no_team(function: &str, tm: ExObject) -> ! {
    let what = if tm == ExObject::PAIR { "a pair, which is no team here" } else { "no team" };
    report::fatal(
        format_args!("{function}(): {tm:?} is {what} of this process"),
        format_args!("Pass a team of gex_Client_Init, gex_TM_Split or gex_TM_Create."),
    )
}

/// The rank in the job of rank `rank` of a team or pair; ends the job if there is none.
#[inline(always)]
pub(super) fn job_rank(
    job: &'static GasnetJob,
    function: &str,
    tm: ExObject,
    rank: u32,
) -> JobRank {
    if tm == ExObject::ALL || tm == ExObject::PAIR {
        return job.team.check_rank(function, rank);
    }
    job_rank_in_team(job, function, tm, rank)
}

#[cold]
#[inline(never)]
fn job_rank_in_team(job: &'static GasnetJob, function: &str, tm: ExObject, rank: u32) -> JobRank {
    let team = team_of(job.ctx(), function, tm).team;
    team.job_rank(TeamRank(rank)).unwrap_or_else(|| {
        report::fatal(
            format_args!(
                "{function}(): rank {rank} is out of range; this team has {}, from 0",
                team.size()
            ),
            format_args!("Pass a rank below gex_TM_QuerySize()."),
        )
    })
}
