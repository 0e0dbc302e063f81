//! What a system offers to a program as functions: rank, size, a barrier.
//!
//! Implemented by the network that binds these functions, handed to `boot` in its options.
//! Invariant: nothing is called before the launcher is chosen, except rank and size of CNOS.

/// What a system offers as functions.
pub trait LinkedLauncher: Send + Sync + core::fmt::Debug {
    /// Its name in messages.
    fn name(&self) -> &'static str;
    /// Which system it is.
    fn system(&self) -> LinkedSystem;
    /// Identifies the service of this process among all services; `None` if it has none.
    fn service(&self) -> Option<String>;
    /// Rank and size. The first call begins the use of the service.
    ///
    /// # Errors
    /// What the system says.
    fn rank_and_size(&self) -> Result<(u32, u32), String>;
    /// Waits for all ranks; called when the addresses are known.
    ///
    /// # Errors
    /// What the system says.
    fn barrier(&self) -> Result<(), String>;
    /// Ends the use of the service, at the end of a job that all ranks leave. `code` is the exit
    /// code of this process.
    fn release(&self, code: i32);
}

/// A system that starts jobs by functions of their programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LinkedSystem {
    /// CNOS of XT-class machines.
    Cnos,
    /// PMI as a library.
    Pmi,
}

/// The systems whose functions are part of this program.
#[derive(Clone, Copy, Debug, Default)]
pub struct LinkedLaunchers {
    /// `cnos_get_rank` and the like.
    pub cnos: Option<&'static dyn LinkedLauncher>,
    /// `PMI_Init` and the like.
    pub pmi: Option<&'static dyn LinkedLauncher>,
    /// The launcher of the system that this library was built for, whose programs have one of
    /// these.
    pub expected_by: Option<&'static str>,
}
