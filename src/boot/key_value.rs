//! The key-value space that a launcher offers to the processes it started: PMI-1 or PMIx.
//!
//! Implemented by `boot::pmi` and `boot::pmix`, used by `boot::foreign` until the ranks have
//! connected to their supervisor.

#[cfg(feature = "hosted")]
use super::error::BootError;
#[cfg(feature = "hosted")]
use super::host_share::HostShare;

/// Ends the use of a launcher's service at the very end of the process, which exits with this
/// code.
pub type LauncherRelease = Box<dyn Fn(i32) + Send + Sync>;

/// Where each process of a launcher can store texts that all can read.
#[cfg(feature = "hosted")]
pub trait KeyValueSpace {
    /// Rank of this process.
    fn rank(&self) -> u32;
    /// Processes that the launcher started.
    fn size(&self) -> u32;
    /// The ranks that the launcher has started on this host, if it says so.
    fn host_share(&mut self) -> Result<Option<HostShare>, BootError>;
    /// Stores a text without blanks under a key of this rank.
    fn put(&mut self, key: &str, value: &str) -> Result<(), BootError>;
    /// Waits until all processes call it; texts stored before can then be read.
    fn fence(&mut self) -> Result<(), BootError>;
    /// The text that a rank stored under this key.
    fn get(&mut self, rank: u32, key: &str) -> Result<String, BootError>;
    /// Has the launcher end the processes of all hosts, soon.
    fn abort(&self);
    /// Ends the use of the service, or returns what ends it when the process exits.
    fn finish(self: Box<Self>) -> Option<LauncherRelease>;
}
