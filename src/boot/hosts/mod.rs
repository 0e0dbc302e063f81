//! Jobs of several hosts: which hosts there are, which ranks they have, how their supervisors
//! start and how these are connected.
//!
//! Used by `launch`, `foreign` and the supervisor. Invariant: what arrives from another host is
//! used only after both ends have proven that they know the secret of the job.
//!
//! ```text
//! gasnetrun = supervisor of its host ----> its ranks
//!   |  |
//!   |  +--ssh--> gasnetrun --remote = supervisor of host 1 ----> its ranks
//!   +-----ssh--> gasnetrun --remote = supervisor of host 2 ----> its ranks
//!
//! each gasnetrun --remote has one TCP connection to the supervisor that has started it: barriers,
//! exchanges, the exit. Above GASNET_SSH_OUT_DEGREE hosts they form a tree.
//! ```
//!
//! | file | what it owns |
//! |---|---|
//! | `list` | the hosts that the user names, with their slots |
//! | `mapping` | which ranks a host has |
//! | `tree` | which host starts which |
//! | `names` | the addresses of the hosts, and which of them is this one |
//! | `interface` | the addresses of this host that other hosts reach |
//! | `ssh` | the process that starts the supervisor of another host |
//! | `error_stream` | its standard error, without errors that another rank has printed |
//! | `remote_plan` | what that supervisor must know |
//! | `remote` | how that supervisor connects and begins |
//! | `listener` | where it connects |
//! | `root_address` | the address of that as a word, and connecting to it |
//! | `link`, `parts`, `message` | the connection, and what is said on it |

pub(super) mod error_stream;
pub(super) mod interface;
pub(super) mod link;
pub mod list;
pub(super) mod listener;
pub mod mapping;
pub mod message;
pub(super) mod names;
mod parts;
pub mod remote;
pub mod remote_plan;
pub(super) mod root_address;
pub(super) mod ssh;
pub mod tree;

use handshake::{ConnectionPurpose, LibraryVersion};

/// What both ends of a connection between hosts must have.
pub fn library_version() -> LibraryVersion {
    LibraryVersion::new(env!("CARGO_PKG_VERSION"))
}

/// What these connections are for.
fn purpose() -> ConnectionPurpose {
    ConnectionPurpose::Control
}
