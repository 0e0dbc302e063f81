//! The objects of clients: numbers that name a client, an endpoint, a team, a segment or an
//! atomics domain, and what a client keeps with each.
//!
//! Used by all of this folder. Invariants: there is one client and one endpoint. Segment 0 is that
//! of `gex_Segment_Attach`. A number is checked before it means anything; that of an object that
//! was destroyed names no later one, until 2^32 others have had its index.
//!
//! ```text
//!   bits    63 ........ 32   31 .. 4   3 .. 0
//!           generation       index     kind: 2 client, 4 endpoint, 6 segment, 8 team, 10 domain,
//!                                      12 source descriptor, 14 domain over all ranks;
//!                                      an odd number is a pair
//!   a pair  remote index << 20 | local index << 8 | 1
//! ```
//!
//! The generation of a team, domain or created segment counts the earlier ones with its index; of
//! others it is 0.
//! The inline functions of gasnetex_inline.h read the kinds of teams and domains over all ranks.

use crate::capi::early_job;
use crate::extended::coll::TeamRef;
use crate::extended::collectives;
use crate::rank::{JobRank, NamedRank, TeamRank};
use crate::report;
use crate::runtime::client::SegmentMode;
use crate::runtime::team::JobTeam;
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
/// `GASNETI_ALL_RANKS_DOMAIN`
const ALL_RANKS_DOMAIN: usize = 14;

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

    pub(super) fn descriptor(index: usize) -> ExObject {
        ExObject::named(DESCRIPTOR, index)
    }

    fn index_of(self, kind: usize) -> Option<usize> {
        let word = self.0;
        (word & 15 == kind).then_some(word >> 4)
    }

    /// The word itself.
    pub(super) fn word(self) -> usize {
        self.0
    }

    /// Its index among the objects of its kind, for traces and tables.
    pub(super) fn number(self) -> u32 {
        self.0 as u32 >> 4
    }

    /// Whether its ranks are those of the job: the team of all ranks, or the pair.
    #[inline(always)]
    pub(super) fn has_job_ranks(self) -> bool {
        self == ExObject::ALL || self == ExObject::PAIR
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
/// What a client keeps with the team of all ranks.
static ALL_DATA: ClientData = ClientData::new();
/// What a client keeps with the segment of `gex_Segment_Attach`.
pub(super) static SEGMENT_DATA: ClientData = ClientData::new();

/// The created segment that is bound to the endpoint, once one is.
pub(super) static BOUND: OnceBox<ExObject> = OnceBox::new();

/// Whether ranks expose all their memory, without segments.
pub(super) fn has_all_memory(job: &GasnetJob) -> bool {
    job.client.segments == SegmentMode::Everything
}

/// The segment that is bound to the endpoint, or `GEX_SEGMENT_INVALID`, also in EVERYTHING.
pub(super) fn bound_object(job: &GasnetJob) -> ExObject {
    match job.endpoint.bound_segment() {
        Some(_) if has_all_memory(job) => ExObject::INVALID,
        Some(_) => BOUND.get().copied().unwrap_or(ExObject::THE_SEGMENT),
        None => ExObject::INVALID,
    }
}

/// Objects of one kind that are made and destroyed, by their numbers.
#[derive(Debug)]
pub(super) struct ExTable<T> {
    kind: usize,
    /// Index of the first object; those below have another place.
    first: usize,
    /// Bits of a name that say something of its object, and are not compared.
    marks: usize,
    slots: RwLock<ExSlots<T>>,
}

#[derive(Debug)]
struct ExSlots<T> {
    /// Generation and object of each index from `first`; `None` while the index is free.
    all: Vec<(u32, Option<T>)>,
    free: Vec<usize>,
}

impl<T> ExTable<T> {
    const fn new(kind: usize, first: usize, marks: usize) -> ExTable<T> {
        let slots = RwLock::new(ExSlots { all: Vec::new(), free: Vec::new() });
        ExTable { kind, first, marks, slots }
    }

    /// A table of atomics domains. Those over all ranks are marked.
    pub(super) const fn of_domains() -> ExTable<T> {
        ExTable::new(DOMAIN, 0, ALL_RANKS_DOMAIN ^ DOMAIN)
    }

    /// A table of segments that are created. Index 0 is that of the attached one.
    pub(super) const fn of_segments() -> ExTable<T> {
        ExTable::new(SEGMENT, 1, 0)
    }

    /// Adds an object, and returns its name, `marked` or not.
    pub(super) fn add(&self, object: T, marked: bool) -> ExObject {
        let mut slots = self.slots.write();
        let slot = slots.free.pop().unwrap_or_else(|| {
            slots.all.push((0, None));
            slots.all.len() - 1
        });
        assert!(slot + self.first < 1 << 28, "an index has 28 bits");
        let (generation, place) = &mut slots.all[slot];
        *place = Some(object);
        let named = ExObject::named(self.kind, slot + self.first);
        ExObject((*generation as usize) << 32 | named.0 | if marked { self.marks } else { 0 })
    }

    /// Index in the table, and generation, that a name has.
    fn place_of(&self, name: ExObject) -> Option<(usize, u32)> {
        let index = ExObject(name.0 & u32::MAX as usize & !self.marks).index_of(self.kind)?;
        Some((index.checked_sub(self.first)?, (name.0 >> 32) as u32))
    }

    /// Reads what an object has; `None` if there is none of this name. Not from within another
    /// call that changes the table.
    #[inline]
    pub(super) fn read<R>(&self, name: ExObject, read: impl FnOnce(&T) -> R) -> Option<R> {
        let (slot, generation) = self.place_of(name)?;
        let slots = self.slots.read_recursive();
        let (current, object) = slots.all.get(slot)?;
        object.as_ref().filter(|_| *current == generation).map(read)
    }

    /// The name of an object that is so; of a marked one without its mark.
    pub(super) fn find(&self, is_so: impl Fn(&T) -> bool) -> Option<ExObject> {
        let slots = self.slots.read_recursive();
        let mut all = slots.all.iter().enumerate();
        let found = all.find(|(_, (_, object))| object.as_ref().is_some_and(&is_so));
        found.map(|(slot, &(generation, _))| {
            let named = ExObject::named(self.kind, slot + self.first);
            ExObject((generation as usize) << 32 | named.0)
        })
    }

    /// Takes an object away; `None` if there is none of this name.
    pub(super) fn remove(&self, name: ExObject) -> Option<T> {
        let (slot, generation) = self.place_of(name)?;
        let mut slots = self.slots.write();
        let (current, object) = slots.all.get_mut(slot)?;
        let object = object.take_if(|_| *current == generation)?;
        *current = generation.wrapping_add(1);
        slots.free.push(slot);
        Some(object)
    }

    /// Whether an object had this name and was destroyed.
    pub(super) fn was_destroyed(&self, name: ExObject) -> bool {
        let Some((slot, generation)) = self.place_of(name) else { return false };
        // The generations of an index wrap.
        let ago = |current: u32| current.wrapping_sub(generation);
        let slots = self.slots.read_recursive();
        slots.all.get(slot).is_some_and(|&(current, _)| (1..1 << 31).contains(&ago(current)))
    }
}

/// A team that a client has made.
#[derive(Debug)]
pub(super) struct TeamRecord {
    pub(super) team: TeamRef,
    data: ClientData,
    /// Address and bytes of the scratch memory that the client gave, if it did.
    pub(super) scratch: Option<(usize, usize)>,
    /// With what it was made.
    flags: u32,
}

/// The teams that clients have made.
static TEAMS: ExTable<TeamRecord> = ExTable::new(TEAM, 1, 0);

/// A team that a client names. Queries of that of all ranks need no collectives, which a job of
/// `gasnet_init` has from `gasnet_attach` on.
#[derive(Debug)]
pub(super) enum ExTeam<'a> {
    All(&'a JobTeam),
    Made(&'a TeamRecord),
}

impl ExTeam<'_> {
    /// How many ranks it has.
    pub(super) fn size(&self) -> u32 {
        match self {
            ExTeam::All(team) => team.size(),
            ExTeam::Made(record) => record.team.size(),
        }
    }

    /// The rank of a process; `None` if it is not a member.
    pub(super) fn team_rank(&self, rank: JobRank) -> Option<TeamRank> {
        match self {
            ExTeam::All(team) => team.team_rank(rank),
            ExTeam::Made(record) => record.team.team_rank(rank),
        }
    }

    /// What the client keeps with it.
    pub(super) fn data(&self) -> &ClientData {
        match self {
            ExTeam::All(_) => &ALL_DATA,
            ExTeam::Made(record) => &record.data,
        }
    }

    /// With what it was made.
    pub(super) fn flags(&self) -> u32 {
        match self {
            ExTeam::All(_) => 0,
            ExTeam::Made(record) => record.flags,
        }
    }
}

/// Adds a team, and returns its name.
pub(super) fn add_team(team: TeamRef, scratch: Option<(usize, usize)>, flags: u32) -> ExObject {
    TEAMS.add(TeamRecord { team, data: ClientData::new(), scratch, flags }, false)
}

/// Takes a team away; `None` if it is none that can be destroyed, or not any more.
pub(super) fn remove_team(tm: ExObject) -> Option<TeamRecord> {
    TEAMS.remove(tm)
}

/// Reads the team that a client names; ends the job if there is none. Not for pairs.
pub(super) fn with_team<R>(
    job: &'static GasnetJob,
    function: &str,
    tm: ExObject,
    read: impl FnOnce(ExTeam<'_>) -> R,
) -> R {
    if tm == ExObject::ALL {
        return read(ExTeam::All(&job.team));
    }
    with_record(function, tm, |record| read(ExTeam::Made(record)))
}

/// Reads the record of a team that a client has made; ends the job if there is none.
fn with_record<R>(function: &str, tm: ExObject, read: impl FnOnce(&TeamRecord) -> R) -> R {
    TEAMS.read(tm, read).unwrap_or_else(|| no_team(function, tm))
}

/// The team that a client names, for collectives; ends the job if there is none. Not for pairs.
pub(super) fn team_of(c: Ctx, function: &str, tm: ExObject) -> TeamRef {
    if tm == ExObject::ALL {
        return collectives(c).ranks(c).clone();
    }
    with_record(function, tm, |record| record.team.clone())
}

#[cold]
fn no_team(function: &str, tm: ExObject) -> ! {
    let what = match tm {
        ExObject::PAIR => "a pair of endpoints",
        _ if TEAMS.was_destroyed(tm) => "a team that gex_TM_Destroy has ended",
        _ => "no team of this process",
    };
    report::fatal(
        format_args!("{function}(): {tm:?} is {what}"),
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
    if tm.has_job_ranks() {
        return job.team.check_rank(function, rank);
    }
    job_rank_in_team(function, tm, rank)
}

/// The rank of a team, as the calls of [`crate::capi::am`] name it, which check that there is such
/// a rank of the job.
#[inline(always)]
pub(super) fn node(function: &str, tm: ExObject, rank: u32) -> u32 {
    if tm.has_job_ranks() { rank } else { node_in_team(function, tm, rank) }
}

#[cold]
#[inline(never)]
fn node_in_team(function: &str, tm: ExObject, rank: u32) -> u32 {
    early_job(function);
    job_rank_in_team(function, tm, rank).0
}

#[cold]
#[inline(never)]
fn job_rank_in_team(function: &str, tm: ExObject, rank: u32) -> JobRank {
    let found = with_record(function, tm, |record| {
        record.team.job_rank(TeamRank(rank)).ok_or(record.team.size())
    });
    found.unwrap_or_else(|size| {
        report::fatal(
            format_args!(
                "{function}(): rank {} is out of range; this team has {size}, from 0",
                NamedRank(rank)
            ),
            format_args!("Pass a rank below gex_TM_QuerySize()."),
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::rc::Rc;

    #[test]
    fn a_name_is_that_of_one_object() {
        let table: ExTable<u32> = ExTable::new(TEAM, 1, 0);
        let first = table.add(10, false);
        assert_eq!((first, table.read(first, |n| *n)), (ExObject(1 << 4 | TEAM), Some(10)));
        assert_eq!(table.remove(first), Some(10));
        let second = table.add(20, false);
        assert_eq!(second.number(), first.number(), "the index is used again");
        assert_ne!(second, first);
        assert_eq!((table.read(first, |n| *n), table.remove(first)), (None, None));
        assert!(table.was_destroyed(first) && !table.was_destroyed(second));
        let strangers =
            [ExObject::INVALID, ExObject::PAIR, ExObject::ALL, ExObject(2 << 4 | TEAM)];
        for stranger in strangers.into_iter().chain([ExObject(second.0 + (1 << 32))]) {
            assert_eq!(table.read(stranger, |n| *n), None, "{stranger:?}");
            assert!(!table.was_destroyed(stranger), "{stranger:?}");
        }
    }

    #[test]
    fn what_was_destroyed_is_freed_and_the_table_stays_small() {
        let table: ExTable<Rc<()>> = ExTable::of_domains();
        let shared = Rc::new(());
        let kept = table.add(shared.clone(), true);
        assert_eq!(kept, ExObject(ALL_RANKS_DOMAIN));
        for _ in 0..1000 {
            let name = table.add(shared.clone(), false);
            assert_eq!(name.0 & 15, DOMAIN);
            assert!(table.remove(name).is_some());
        }
        assert_eq!((Rc::strong_count(&shared), table.slots.read().all.len()), (2, 2));
        assert!(table.read(kept, |_| ()).is_some());
    }
}
