//! A built library, and the environment variables of its jobs.

use crate::Failure;
use crate::build_trees::{self, ClientMode, StartFunctions};
use crate::job_launcher::JobLauncher;
use crate::test_job::TestJob;
use std::path::{Path, PathBuf};

/// A built library, and the environment variables of its jobs.
#[derive(Clone)]
pub struct TestLibrary {
    tree: PathBuf,
    env: Vec<(&'static str, String)>,
    /// The kernel as on which its jobs run, if not that of the machine.
    kernel: Option<&'static str>,
    /// Its programs are static, and have libportals3 and these functions in them.
    static_with: Option<StartFunctions>,
    /// Its ranks run as on a lightweight kernel.
    is_lightweight: bool,
}

impl TestLibrary {
    /// The library of a build tree.
    pub fn of(tree: PathBuf) -> TestLibrary {
        TestLibrary {
            tree,
            env: Vec::new(),
            kernel: None,
            static_with: None,
            is_lightweight: false,
        }
    }

    /// The same for static programs over libportals3 and these functions.
    pub fn in_static_programs(self, functions: StartFunctions) -> TestLibrary {
        TestLibrary { static_with: Some(functions), ..self }
    }

    /// A program, compiled in `mode` for this library.
    pub fn compiled(&self, source: &Path, mode: ClientMode) -> Result<PathBuf, Failure> {
        match self.static_with {
            Some(functions) => build_trees::compiled_static(&self.tree, source, mode, functions),
            None => build_trees::compiled(source, mode),
        }
    }

    /// Sets an environment variable for its jobs.
    pub fn with_env(mut self, name: &'static str, value: impl Into<String>) -> TestLibrary {
        self.env.push((name, value.into()));
        self
    }

    /// Runs its jobs as on this older kernel.
    pub fn under(mut self, kernel: &'static str) -> TestLibrary {
        self.kernel = Some(kernel);
        self
    }

    /// Runs its ranks as on a lightweight kernel.
    pub fn under_lightweight(self) -> TestLibrary {
        TestLibrary { is_lightweight: true, ..self }
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
        let (mut program, mut args) = (program.to_path_buf(), args.to_vec());
        if self.is_lightweight {
            args.insert(0, program.display().to_string());
            program = build_trees::underlightweight()?;
        }
        let mut job = TestJob::new(&self.tree, &program, &args, launcher, nodes);
        if let Some(kernel) = self.kernel {
            job = job.below(&build_trees::underkernel()?, kernel);
        }
        Ok(self.env.iter().fold(job, |job, (name, value)| job.env(name, value)))
    }
}
