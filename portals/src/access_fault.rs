//! An access to memory of a process that the kernel has refused.
//!
//! Made by `transfer`, passed to the user's handler by `peer`. Invariant: plain values.

use crate::types::PtlProcessId;
use alloc::boxed::Box;

/// A put or get of memory that does not exist, or that may not be written or read, as the kernel
/// found. The memory is the target's, in a descriptor over its whole address space, or the
/// initiator's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AccessFault {
    /// Memory of the target.
    Target {
        /// Whether it is a put; else a get.
        put: bool,
        /// The process that began it.
        initiator: PtlProcessId,
        /// The process whose memory it names.
        target: PtlProcessId,
        /// First byte, an address of the target.
        address: u64,
        /// Bytes.
        length: u64,
    },
    /// Memory of the target, to which the system denies access that it has allowed before.
    Denied {
        /// Whether it is a put; else a get.
        put: bool,
        /// This process, which began it.
        initiator: PtlProcessId,
        /// The process whose memory it names.
        target: PtlProcessId,
        /// First byte, an address of the target.
        address: u64,
        /// Bytes.
        length: u64,
    },
    /// Memory of this process, the initiator.
    Initiator {
        /// Whether it is a put; else a get.
        put: bool,
        /// First byte.
        address: u64,
        /// Bytes.
        length: u64,
    },
}

/// What to do about an [`AccessFault`]: report it and end the job. If it returns, the operation
/// fails with `PTL_NI_FAIL`.
pub type AccessHandler = Box<dyn Fn(&AccessFault) + Send + Sync>;
