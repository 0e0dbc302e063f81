//! A built library, and the environment variables of its jobs.

use crate::job_launcher::JobLauncher;
use crate::test_job::TestJob;
use crate::{Failure, build_trees};
use std::path::{Path, PathBuf};

/// A built library, and the environment variables of its jobs.
#[derive(Clone)]
pub struct TestLibrary {
    tree: PathBuf,
    env: Vec<(&'static str, String)>,
    /// The kernel as on which its jobs run, if not that of the machine.
    kernel: Option<&'static str>,
}

impl TestLibrary {
    /// The library of a build tree.
    pub fn of(tree: PathBuf) -> TestLibrary {
        TestLibrary { tree, env: Vec::new(), kernel: None }
    }

    /// Sets an environment variable for its jobs.
    pub fn told(mut self, name: &'static str, value: impl Into<String>) -> TestLibrary {
        self.env.push((name, value.into()));
        self
    }

    /// Runs its jobs as on this older kernel.
    pub fn under(mut self, kernel: &'static str) -> TestLibrary {
        self.kernel = Some(kernel);
        self
    }

    /// [`TestJob::new`] with this library.
    pub fn job(
        &self,
        program: &Path,
        args: &[String],
        launcher: JobLauncher,
        nodes: u32,
    ) -> Result<TestJob, Failure> {
        build_trees::require(&self.tree)?;
        let mut job = TestJob::new(&self.tree, program, args, launcher, nodes);
        if let Some(kernel) = self.kernel {
            job = job.below(&build_trees::underkernel()?, kernel);
        }
        Ok(self.env.iter().fold(job, |job, (name, value)| job.env(name, value)))
    }
}
