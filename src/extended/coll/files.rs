//! Files of the collectives: choices that are loaded and dumped, and the profile of what was
//! moved.
//!
//! Called by `capi`. Invariant: only the first image of a team writes; a file that cannot be
//! used ends the job.

use super::Coll;
use super::team::Team;
use crate::rank::JobRank;
use crate::runtime::Ctx;
use crate::runtime::activity::WaitReason;
use crate::{env, report};
use alloc::string::String;
use std::path::Path;

fn unusable(function: &str, name: &str, why: &dyn core::fmt::Display) -> ! {
    report::fatal(
        format_args!("{function}(): {name}: {why}"),
        format_args!(
            "Pass the name of a file that gasnet_coll_dumpTuningState wrote, or may write."
        ),
    )
}

fn write(function: &str, name: &str, text: &str) {
    std::fs::write(name, text).unwrap_or_else(|e| unusable(function, name, &e));
}

impl Team {
    /// Takes the choices of this file, or of that which GASNET_COLL_TUNING_FILE names; does
    /// nothing without either.
    pub fn load_tuning(&self, function: &str, name: Option<String>) {
        let Some(name) = name.or_else(|| env::COLL_TUNING_FILE.get()) else { return };
        self.take_tuning(function, &name, &read(function, &name));
    }

    /// Takes the choices of this text, that of the file `name`.
    fn take_tuning(&self, function: &str, name: &str, text: &str) {
        if let Err(line) = self.tuning().change(|t| t.take_text(text)) {
            unusable(function, name, &format_args!("the line '{line}' makes no sense"));
        }
    }
}

fn read(function: &str, name: &str) -> String {
    std::fs::read_to_string(name).unwrap_or_else(|e| unusable(function, name, &e))
}

impl Coll {
    /// Takes the choices of the file that GASNET_COLL_TUNING_FILE names, if rank 0 finds it: all
    /// ranks get its text from there. Collective over the processes.
    pub(super) fn load_tuning_at_start(&self, ctx: Ctx, function: WaitReason, team: &Team) {
        let Some(name) = env::COLL_TUNING_FILE.get() else { return };
        let is_first = ctx.endpoint().rank == JobRank(0);
        let mine = is_first && Path::new(&name).exists();
        let mut text = if mine { read(function, &name).into_bytes() } else { Vec::new() };
        let length = self.of_first_rank(ctx, function, &text.len().to_ne_bytes());
        text.resize(usize::from_ne_bytes(length.try_into().expect("as many bytes")), 0);
        if text.is_empty() {
            return;
        }
        let text = self.of_first_rank(ctx, function, &text);
        team.take_tuning(function, &name, &String::from_utf8_lossy(&text));
    }

    /// Writes the choices of a team to this file, or to that which GASNET_COLL_TUNING_FILE
    /// names, from the first image.
    pub fn dump_tuning(&self, ctx: Ctx, function: &str, team: &Team, name: Option<String>) {
        let name = name.or_else(|| env::COLL_TUNING_FILE.get());
        if let Some(name) = name.filter(|_| self.caller(ctx, function, team, false).1 == 0) {
            let text = team.tuning().settings().to_text();
            write(function, &name, &text);
        }
    }

    /// Writes how often which blocks were moved to this file, or to stdout, from the first
    /// image, if it was counted.
    pub fn dump_profile(&self, ctx: Ctx, function: &str, team: &Team, name: Option<String>) {
        if self.caller(ctx, function, team, false).1 != 0 {
            return;
        }
        match (self.profile(team), name) {
            (None, _) => {}
            (Some(text), Some(name)) => write(function, &name, &text),
            (Some(text), None) => std::print!("{text}"),
        }
    }
}
