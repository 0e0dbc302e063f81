//! The job: init, attach, exit, segments, active messages, operations, threads, waiting.

pub mod exit;
pub mod ops;
pub mod signals;
