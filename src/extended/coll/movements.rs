//! The movements in shared memory that calls have started and do not await.
//!
//! Owned by `engine`, which calls this under its lock. Invariant: movements enter, leave and end
//! in the order of their calls, which is the same at all ranks.

use super::CollCall;
use super::direct::{DirectMovement, MovementNumber};
use super::request::{CollId, CollStatus};
use crate::runtime::Ctx;
use alloc::collections::VecDeque;
use alloc::sync::Arc;

/// The steps that this rank has taken in a movement.
#[derive(Clone, Copy, Debug)]
enum MovementStage {
    /// There is no room yet for its offsets.
    Called,
    Entered(MovementNumber),
    Left(MovementNumber),
    /// It was left, and nothing was moved: a source is in no segment.
    Refused,
}

/// A movement and the call that started it.
#[derive(Debug)]
pub(super) struct StartedMovement {
    pub(super) call: CollCall,
    pub(super) id: CollId,
    pub(super) status: Arc<CollStatus>,
    stage: MovementStage,
}

impl StartedMovement {
    pub(super) fn new(call: &CollCall, id: CollId) -> StartedMovement {
        let call = CollCall { team: call.team.clone(), ..*call };
        StartedMovement { call, id, status: Arc::default(), stage: MovementStage::Called }
    }

    /// Whether it has ended without moving anything.
    pub(super) fn is_refused(&self) -> bool {
        matches!(self.stage, MovementStage::Refused)
    }
}

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Movements(VecDeque<StartedMovement>);

impl Movements {
    /// Whether all have ended.
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Adds one that follows all others.
    pub(super) fn add(&mut self, started: StartedMovement) {
        self.0.push_back(started);
    }

    /// Carries all on as far as the other ranks allow, and returns the first if it has ended.
    pub(super) fn advance(
        &mut self,
        ctx: Ctx,
        direct: &DirectMovement,
    ) -> Option<StartedMovement> {
        for movement in &mut self.0 {
            let CollCall { request, buffers, .. } = &movement.call;
            if let MovementStage::Called = movement.stage {
                let Some(number) = direct.enter(ctx, request, *buffers) else { break };
                movement.stage = MovementStage::Entered(number);
            }
        }
        for movement in &mut self.0 {
            let CollCall { request, buffers, .. } = &movement.call;
            let number = match movement.stage {
                MovementStage::Entered(number) if direct.all_entered(number) => number,
                MovementStage::Left(_) | MovementStage::Refused => continue,
                _ => break,
            };
            let is_done = direct.transfer(ctx, number, request, *buffers);
            direct.leave(ctx, number);
            movement.stage = match is_done {
                true => MovementStage::Left(number),
                false => MovementStage::Refused,
            };
        }
        let has_ended = match self.0.front()?.stage {
            MovementStage::Left(number) => direct.all_left(number),
            MovementStage::Refused => true,
            MovementStage::Called | MovementStage::Entered(_) => false,
        };
        if has_ended { self.0.pop_front() } else { None }
    }
}
