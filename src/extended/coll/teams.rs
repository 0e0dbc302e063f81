//! The teams of this process, and how their members make and destroy them.
//!
//! Called by `capi`. Invariants: a team has a number that no other team of any of its members has
//! or had, though teams without a common member may share one. Threads that make teams of
//! different parents at once may propose the same number. Then a member refuses it to the second
//! of them, and all members of that one propose others.
//!
//! ```text
//!   1  members, and a number above those of all        a gather_all over the parent
//!   2  add the team under its number, unless another one has taken it here
//!   3  has every member added it?                      another gather_all; no: 2, next number
//! ```
//!
//! After step 3 a message for the team may arrive: all members have it.

use super::request::CollId;
use super::team::ProcessBarrier;
use super::{Coll, RANKS, Team, TeamRef};
use crate::extended::barrier::Barrier;
use crate::extended::members::TeamMembers;
use crate::rank::{JobRank, TeamRank};
use crate::runtime::Ctx;
use crate::runtime::activity::WaitReason;
use crate::{fault, report};
use alloc::collections::BTreeMap;
use alloc::collections::btree_map::Entry;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicU32, Ordering};
use parking_lot::RwLock;

/// A team, and the collective that made it: that of other images of this process for the same
/// team, but of no other team.
#[derive(Debug)]
struct TeamEntry {
    made_by: CollId,
    team: Arc<Team>,
}

/// See the module.
#[derive(Debug)]
pub(super) struct TeamTable {
    by_number: RwLock<BTreeMap<u32, TeamEntry>>,
    /// Above all numbers that were taken here.
    next: AtomicU32,
    /// How many barriers of teams are between notify and completion.
    barriers: Arc<AtomicU32>,
}

impl Default for TeamTable {
    fn default() -> TeamTable {
        TeamTable {
            by_number: RwLock::default(),
            next: AtomicU32::new(1),
            barriers: Arc::default(),
        }
    }
}

impl TeamTable {
    /// The team with this number.
    pub(super) fn get(&self, id: u32) -> Option<TeamRef> {
        Some(TeamRef::Part(self.by_number.read_recursive().get(&id)?.team.clone()))
    }

    /// The barrier of a team.
    fn barrier(&self, id: u32, members: &TeamMembers) -> ProcessBarrier {
        ProcessBarrier::OfTeam(Barrier::of_team(id, members.clone(), self.barriers.clone()))
    }

    /// Advances the barriers of the teams.
    pub(super) fn progress(&self, ctx: Ctx) {
        // A thread that waits for a barrier has notified it, or has met the thread that did.
        if self.barriers.load(Ordering::Relaxed) != 0 {
            // While another thread adds a team, the next poll will do.
            if let Some(teams) = self.by_number.try_read_recursive() {
                teams.values().for_each(|entry| entry.team.barrier().progress(ctx));
            }
        }
    }

    /// Adds the team `id`, unless another image of this process has; `None` if another team has or
    /// had the number.
    fn add(&self, id: u32, made_by: CollId, make: impl FnOnce() -> Team) -> Option<Arc<Team>> {
        let mut teams = self.by_number.write();
        let next = self.next.fetch_max(id + 1, Ordering::Relaxed);
        match teams.entry(id) {
            Entry::Vacant(place) if next <= id => {
                let team = Arc::new(make());
                Some(place.insert(TeamEntry { made_by, team }).team.clone())
            }
            Entry::Occupied(entry) if entry.get().made_by == made_by => {
                Some(entry.get().team.clone())
            }
            _ => None,
        }
    }

    /// Takes away the team `id`, if this collective made it.
    fn take_back(&self, id: u32, made_by: CollId) {
        let mut teams = self.by_number.write();
        if teams.get(&id).is_some_and(|entry| entry.made_by == made_by) {
            teams.remove(&id);
        }
    }
}

/// A team that a process is to join.
#[derive(Debug)]
struct NewTeam {
    members: TeamMembers,
    /// Images of each member.
    counts: Vec<u32>,
}

impl Coll {
    /// `gasnet_coll_team_split`: the team of the images that pass the same color, in the order
    /// of `relrank`. Collective.
    pub fn split(
        &self,
        ctx: Ctx,
        function: WaitReason,
        parent: &TeamRef,
        color: u32,
        relrank: u32,
    ) -> TeamRef {
        self.split_view(ctx, function, parent, false, Some((color, relrank)))
            .expect("the caller has a color")
    }

    /// Splits a team whose processes have one image each, as `split` does. `None` in processes
    /// that pass no color and order.
    pub fn split_ranks(
        &self,
        ctx: Ctx,
        function: WaitReason,
        parent: &TeamRef,
        choice: Option<(u32, u32)>,
    ) -> Option<TeamRef> {
        self.split_view(ctx, function, parent, true, choice)
    }

    /// The team of these ranks, in this order. Collective over `parent`; a process that is in no
    /// new team passes no ranks and gets none.
    pub fn create(
        &self,
        ctx: Ctx,
        function: WaitReason,
        parent: &TeamRef,
        ranks: Option<Vec<JobRank>>,
    ) -> Option<TeamRef> {
        let mine = [self.teams.next.load(Ordering::Relaxed)];
        let records = self.records_of_all(ctx, function, (parent, true), mine);
        let id = records.iter().map(|record| record[0]).max().unwrap_or(1);
        let team = ranks.map(|ranks| {
            let counts = alloc::vec![1; ranks.len()];
            NewTeam { members: TeamMembers::new(ranks, ctx.endpoint().rank), counts }
        });
        self.make(ctx, function, (parent, true), id, team)
    }

    /// Forgets a team: no collective of it is in progress. Collective over the team.
    pub fn destroy(&self, ctx: Ctx, function: WaitReason, team: &TeamRef, quiet: bool) {
        if !quiet {
            self.meet(ctx, function, (team, true));
        }
        self.teams.by_number.write().remove(&team.id());
        if fault::on("keep_team") {
            core::mem::forget(team.clone());
        }
        if let Some(profile) = &self.profile {
            profile.lock().retain(|&(id, _, _), _| id != team.id());
        }
    }

    fn split_view(
        &self,
        ctx: Ctx,
        function: WaitReason,
        parent: &TeamRef,
        by_process: bool,
        choice: Option<(u32, u32)>,
    ) -> Option<TeamRef> {
        let view = parent.view(by_process);
        let (color, order) = choice.unwrap_or_default();
        // Color, order, the number that this process has for a new team, and whether it joins
        // one, from each image.
        let next = self.teams.next.load(Ordering::Relaxed);
        let mine = [color, order, next, u32::from(choice.is_some())];
        let records = self.records_of_all(ctx, function, (parent, by_process), mine);
        let id = records.iter().map(|record| record[2]).max().unwrap_or(1);
        // By rank in the parent: the record of the first image of that process.
        let mut chosen: Vec<(u32, TeamRank)> = (0..view.members.size())
            .map(|rank| (records[view.first[rank as usize] as usize], TeamRank(rank)))
            .filter(|(record, _)| record[0] == color && record[3] != 0)
            .map(|(record, rank)| (record[1], rank))
            .collect();
        chosen.sort_unstable();
        let ranks = chosen.iter().map(|&(_, rank)| view.members.job_rank(rank)).collect();
        let counts = chosen.iter().map(|&(_, rank)| parent.images_of(rank)).collect();
        let team = choice
            .map(|_| NewTeam { members: TeamMembers::new(ranks, ctx.endpoint().rank), counts });
        self.make(ctx, function, (parent, by_process), id, team)
    }

    /// Adds a team that has this number, or one above, in all members. Collective over `parent`;
    /// a process that joins none takes part.
    fn make(
        &self,
        ctx: Ctx,
        function: WaitReason,
        parent: (&TeamRef, bool),
        mut id: u32,
        team: Option<NewTeam>,
    ) -> Option<TeamRef> {
        let view = parent.0.view(parent.1);
        let calls = &view.images[self.image(ctx, function, view)];
        // How far above the next number this team goes: twice as far after each refusal, so that
        // it overtakes a thread that makes many teams; and as the parent's number says, so that
        // two teams that meet propose different numbers soon.
        let mut lead = 0;
        loop {
            if id >= RANKS {
                report::fatal(
                    format_args!("this job has used up the {RANKS} numbers of teams"),
                    format_args!("Make teams once, and use them again."),
                )
            }
            let made_by = CollId { context: view.context, number: calls.called() };
            let added = team.as_ref().map(|new| {
                let make = || {
                    let barrier = self.teams.barrier(id, &new.members);
                    Team::new(id, new.members.clone(), new.counts.clone(), barrier)
                };
                self.teams.add(id, made_by, make)
            });
            let is_added = !matches!(added, Some(None));
            let next = self
                .teams
                .next
                .load(Ordering::Relaxed)
                .saturating_add(lead + (view.context >> 1 & lead));
            let mine = [u32::from(is_added), next];
            let records = self.records_of_all(ctx, function, parent, mine);
            if records.iter().all(|record| record[0] != 0) {
                return added.flatten().map(TeamRef::Part);
            }
            self.teams.take_back(id, made_by);
            id = records.iter().map(|record| record[1]).max().unwrap_or(id);
            lead = (lead << 1 | 1) & 0xffff;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_is_of_one_team() {
        let table = TeamTable::default();
        let by = |context| CollId { context, number: 7 };
        let make = || {
            let members = TeamMembers::new(alloc::vec![JobRank(0)], JobRank(0));
            let barrier = table.barrier(5, &members);
            Team::new(5, members, alloc::vec![1], barrier)
        };
        let team = table.add(5, by(0), make).unwrap();
        // Another image of the same collective gets the same team, another collective none.
        assert!(Arc::ptr_eq(&team, &table.add(5, by(0), make).unwrap()));
        assert!(table.add(5, by(2), make).is_none());
        // What a collective did not add it does not take away.
        table.take_back(5, by(2));
        assert!(table.get(5).is_some());
        table.take_back(5, by(0));
        assert!(table.get(5).is_none() && table.add(5, by(2), make).is_none());
        assert_eq!(table.next.load(Ordering::Relaxed), 6);
        assert!(table.add(6, by(2), make).is_some());
    }
}
