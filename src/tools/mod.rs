//! What the `gasnett_*` functions do, as far as the headers do not do it inline. Usable without a job.

pub mod bytes;
pub mod environment;
pub mod heap;
pub mod pieces;
pub mod process;
pub mod stack;
pub mod timer;
