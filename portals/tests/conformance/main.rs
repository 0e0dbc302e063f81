//! The conformance suite: what the Portals 3.3 specification says, sentence by sentence, on
//! every network.
//!
//! A case is a function named after the sentence it tests and takes the kind of network;
//! [`instantiate!`] makes one test per network of it, so a test is named
//! `file::sentence::network`. Where the specification leaves a liberty, the case accepts what it
//! permits. [`common`] holds what cases share; [`rig`] controls two processes from one script.

#[path = "../rig/mod.rs"]
mod rig;

mod common;

mod acceptance;
mod access;
mod bypass;
mod drops;
mod eq;
mod errors;
mod events;
mod fit;
mod getput;
mod iovec;
mod lists;
mod ordering;
mod threshold;
mod unlink;
mod update;
