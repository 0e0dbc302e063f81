//! The movements in shared memory that calls have started and do not await, and those that plans
//! carry on.
//!
//! Owned by `engine`, which calls this under its lock. Invariant: movements enter, leave and end
//! in the order of their calls, which is the same at all ranks.

use super::CollCall;
use super::counts::{AwaitedCount, MovementNumber};
use super::direct::{DirectMovement, MovementShare, MovementStep};
use super::plan::CollPlan;
use super::request::{CollId, CollRequest, CollStatus};
use super::roles::MovementRoles;
use crate::runtime::Ctx;
use alloc::collections::VecDeque;
use alloc::sync::Arc;

/// How far a movement is, with what plans do of it.
#[derive(Clone, Debug)]
enum MovementStage {
    At(MovementStep),
    /// A plan does the rest of it.
    Resting(MovementNumber, Arc<CollStatus>),
    /// It was left, and nothing was moved: a plan does all of it.
    Refused(Arc<CollStatus>),
}

/// What a plan does of a movement.
#[derive(Debug)]
pub(super) enum PlannedShare {
    /// All that this request, which is what is left of the call's, demands.
    All(CollRequest),
    /// What this plan does.
    Rest(CollPlan),
}

/// A movement and the call that started it.
#[derive(Debug)]
pub(super) struct StartedMovement {
    pub(super) call: CollCall,
    pub(super) id: CollId,
    pub(super) status: Arc<CollStatus>,
    roles: MovementRoles,
    stage: MovementStage,
}

impl StartedMovement {
    /// One that has taken a step.
    pub(super) fn new(
        call: &CollCall,
        id: CollId,
        roles: MovementRoles,
        step: MovementStep,
    ) -> StartedMovement {
        let call = CollCall { team: call.team.clone(), ..*call };
        let stage = MovementStage::At(step);
        StartedMovement { call, id, status: Arc::default(), roles, stage }
    }

    /// Takes the next steps, but for the entry, as far as the other ranks allow. `plan` starts
    /// a plan. False if those after it must not leave before it.
    fn advance(
        &mut self,
        ctx: Ctx,
        direct: &DirectMovement,
        plan: &mut impl FnMut(&StartedMovement, PlannedShare) -> Arc<CollStatus>,
    ) -> bool {
        if let MovementStage::At(MovementStep::Entered(number)) = self.stage {
            if !direct.is_ready(&self.roles, number) {
                return false;
            }
            self.stage = match direct.transfer(ctx, number, &self.call, &self.roles) {
                MovementShare::Done => {
                    direct.leave(ctx, &self.roles, number);
                    MovementStage::At(MovementStep::Left(number))
                }
                MovementShare::Refused => {
                    direct.leave(ctx, &self.roles, number);
                    // The ranks that an `IN_ALLSYNC` awaits have entered.
                    let request = CollRequest { in_allsync: false, ..self.call.request };
                    MovementStage::Refused(plan(self, PlannedShare::All(request)))
                }
                MovementShare::Rest => {
                    let rest = direct.rest(ctx, number, &self.call, &self.roles);
                    MovementStage::Resting(number, plan(self, PlannedShare::Rest(rest)))
                }
            };
        }
        match &self.stage {
            MovementStage::Resting(number, rest) if rest.done() => {
                direct.leave(ctx, &self.roles, *number);
                self.stage = MovementStage::At(MovementStep::Left(*number));
            }
            MovementStage::At(MovementStep::Called) | MovementStage::Resting(..) => return false,
            _ => {}
        }
        true
    }

    /// Whether its memory belongs to the client again.
    fn has_ended(&self, direct: &DirectMovement) -> bool {
        match &self.stage {
            MovementStage::At(MovementStep::Left(number)) => direct.is_free(&self.roles, *number),
            MovementStage::Refused(all) => all.done(),
            _ => false,
        }
    }
}

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Movements {
    queue: VecDeque<StartedMovement>,
    /// How many of these, from the front, have entered, and how many have left.
    entered: usize,
    left: usize,
}

impl Movements {
    /// Whether all have ended.
    pub(super) fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }

    /// Counts of other ranks: before one of them is reached, none of the movements goes on. One
    /// that is reached already if plans may carry any on.
    pub(super) fn awaited(&self, direct: &DirectMovement) -> [Option<AwaitedCount>; 3] {
        let at = |i: usize| self.queue.get(i).map(|m| (&m.roles, &m.stage));
        let step = |(roles, stage): (&MovementRoles, &MovementStage)| match stage {
            MovementStage::At(MovementStep::Called) => direct.awaited_to_enter(roles),
            MovementStage::At(MovementStep::Entered(n)) => direct.awaited_to_move(roles, *n),
            MovementStage::At(MovementStep::Left(n)) => direct.awaited_to_end(roles, *n),
            _ => AwaitedCount::REACHED,
        };
        // The next that ends, that leaves, and that enters.
        [at(0), at(self.left), at(self.entered)].map(|movement| movement.map(step))
    }

    /// Adds one that follows all others.
    pub(super) fn add(&mut self, started: StartedMovement) {
        self.queue.push_back(started);
    }

    /// Carries all on as far as the other ranks allow, and returns the first if it has ended.
    /// `plan` starts a plan for a movement.
    pub(super) fn advance(
        &mut self,
        ctx: Ctx,
        direct: &DirectMovement,
        mut plan: impl FnMut(&StartedMovement, PlannedShare) -> Arc<CollStatus>,
    ) -> Option<StartedMovement> {
        loop {
            for movement in self.queue.range_mut(self.entered..) {
                if let MovementStage::At(MovementStep::Called) = movement.stage {
                    let StartedMovement { call, roles, .. } = &*movement;
                    let Some(number) = direct.enter(ctx, call, roles) else { break };
                    direct.announce_entry(ctx, roles, number);
                    movement.stage = MovementStage::At(MovementStep::Entered(number));
                }
                self.entered += 1;
            }
            let before = self.left;
            for movement in self.queue.range_mut(before..) {
                if !movement.advance(ctx, direct, &mut plan) {
                    break;
                }
                self.left += 1;
            }
            // Those that have left may have made room.
            if self.left == before || self.entered == self.queue.len() {
                break;
            }
        }
        if !self.queue.front()?.has_ended(direct) {
            return None;
        }
        self.entered -= 1;
        self.left -= 1;
        self.queue.pop_front()
    }
}
