//! Why a process cannot become part of a job: one line what happened, one line what to do.
//!
//! Returned by every file of `boot`; its callers print both lines.

/// Why a process cannot become part of a job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BootError {
    /// What happened.
    pub cause: String,
    /// What to do.
    pub remedy: String,
    /// Exit code of a launcher that fails for it.
    pub code: i32,
    /// A rank of the job is missing, which those of other hosts may not notice.
    #[cfg(feature = "hosted")]
    pub(super) is_loss: bool,
}

impl BootError {
    pub(super) fn new(cause: impl Into<String>, remedy: impl Into<String>) -> BootError {
        BootError {
            cause: cause.into(),
            remedy: remedy.into(),
            code: 1,
            #[cfg(feature = "hosted")]
            is_loss: false,
        }
    }

    /// The same for a rank that is missing.
    #[cfg(feature = "hosted")]
    pub(super) fn with_loss(self) -> BootError {
        BootError { is_loss: true, ..self }
    }

    /// The same with this exit code.
    pub fn with_code(self, code: i32) -> BootError {
        BootError { code, ..self }
    }

    /// An error of the operating system.
    pub(super) fn system(what: &str, e: &std::io::Error) -> BootError {
        BootError::new(
            format!("{what}: {e}"),
            "Free the resource that the system names (memory, processes, descriptors: see \
             ulimit -a; space or permissions in /dev/shm or TMPDIR), or start fewer ranks.",
        )
    }
}

impl core::fmt::Display for BootError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(&self.cause)
    }
}

impl core::error::Error for BootError {}
