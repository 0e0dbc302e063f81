//! How the processes of a job find each other: one small trait, one file per spawner.

/// What a spawner gives to a process of the job.
pub trait Bootstrap: Send + Sync {
    /// Rank of this process, from 0.
    fn rank(&self) -> u32;
    /// Processes of the job.
    fn size(&self) -> u32;
    /// Waits until every process of the job is here.
    fn barrier(&self);
    /// Everybody's `mine`, by rank; all are of the same length.
    fn exchange(&self, mine: &[u8]) -> Vec<Vec<u8>>;
    /// Memory files shared by the processes of this host.
    fn host(&self) -> &HostMemory;
}

/// The memory files that the processes of one host share; they have no name in any file system and vanish with the
/// last process that holds them. All are empty at start and grow as processes reserve their parts.
#[derive(Debug)]
pub struct HostMemory {
    /// Rank of this process among those of the host, and how many there are.
    pub local_rank: u32,
    /// Processes of the job on this host.
    pub local_size: u32,
    /// Library memory and Portals objects of all processes of the host.
    pub arena: std::os::fd::OwnedFd,
    /// Segments of all processes of the host.
    pub segments: std::os::fd::OwnedFd,
    /// Barriers and other words of the extended room.
    pub scratch: std::os::fd::OwnedFd,
}
