//! A job of one process: nobody to meet, nobody to watch.

use super::control::JobControl;
use super::{BootError, Bootstrap, HostMemory};
use sys::memory::MemFd;

/// A job of one process.
#[derive(Debug)]
pub struct SingleProcess {
    host: HostMemory,
    control: &'static JobControl,
}

impl SingleProcess {
    /// Makes this process a job of its own.
    pub fn new() -> Result<SingleProcess, BootError> {
        let file = |name| {
            MemFd::create(name).map_err(|e| BootError::system("cannot create a memory file", &e))
        };
        Ok(SingleProcess {
            host: HostMemory {
                local_rank: 0,
                local_size: 1,
                arena: file(c"gasnet-arena")?.into(),
                segments: file(c"gasnet-segments")?.into(),
                scratch: file(c"gasnet-scratch")?.into(),
            },
            control: JobControl::alone()?,
        })
    }
}

impl Bootstrap for SingleProcess {
    fn rank(&self) -> u32 {
        0
    }

    fn size(&self) -> u32 {
        1
    }

    fn barrier(&self) {}

    fn exchange(&self, mine: &[u8]) -> Vec<Vec<u8>> {
        vec![mine.to_vec()]
    }

    fn host(&self) -> &HostMemory {
        &self.host
    }

    fn control(&self) -> &'static JobControl {
        self.control
    }
}
