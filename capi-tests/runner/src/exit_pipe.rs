//! The pipe through which the processes of a job report their exit. Each process opens it by
//! the name in TESTEXIT_PIPE and keeps it open while it lives. So a hang-up marks the end of
//! the last process, under every launcher. Used by `test_job` for `testexit`.

use crate::Failure;
use std::ffi::CString;
use std::fs::File;
use std::io::Read;
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::time::Duration;

/// The reading end.
pub struct ExitPipe {
    file: File,
    text: String,
    /// When the last hang-up was seen; `None` while a process holds the pipe, or before the
    /// first opened it.
    hung_up: Option<u64>,
    come: bool,
}

/// The exits that processes reported.
#[derive(Clone, Debug, Default)]
pub struct ExitTimes {
    /// Ranks that exited on their own.
    pub left: Vec<u32>,
    /// Ranks whose SIGQUIT handler ran.
    pub quit: Vec<u32>,
    /// From the first exit to the end of the last process of the job, including our own
    /// launcher.
    pub gone: Option<Duration>,
}

impl ExitPipe {
    /// Makes a pipe with this name.
    pub fn create(path: &Path) -> Result<ExitPipe, Failure> {
        let failure = |e: std::io::Error| format!("{}: {e}", path.display());
        let name = CString::new(path.as_os_str().as_bytes()).map_err(|e| e.to_string())?;
        let file = sys::file::read_new_pipe(&name).map_err(failure)?.into();
        Ok(ExitPipe { file, text: String::new(), hung_up: None, come: false })
    }

    /// Reads the reports. True if no process holds the pipe any more, though some did.
    pub fn look(&mut self) -> bool {
        let mut buffer = [0; 4096];
        while let Ok(n @ 1..) = self.file.read(&mut buffer) {
            self.text += &String::from_utf8_lossy(&buffer[..n]);
            self.come = true;
        }
        if sys::poll::hung_up(self.file.as_fd()) {
            self.come = true;
            self.hung_up.get_or_insert_with(now);
        } else {
            self.hung_up = None;
        }
        self.come && self.hung_up.is_some()
    }

    /// The sum of the reports; `last` is when the last process of the job was seen, or found
    /// gone.
    pub fn sum(mut self, last: u64) -> ExitTimes {
        self.look();
        let mut sum = ExitTimes::default();
        let mut first = None;
        for line in self.text.lines() {
            let words: Vec<&str> = line.split_ascii_whitespace().collect();
            let [what, node, time] = words[..] else { continue };
            let (Ok(node), Ok(time)) = (node.parse(), time.parse::<u64>()) else { continue };
            match what {
                "leaves" => {
                    sum.left.push(node);
                    first = Some(first.map_or(time, |f: u64| f.min(time)));
                }
                _ => sum.quit.push(node),
            }
        }
        sum.quit.sort_unstable();
        sum.gone = first.map(|first| Duration::from_nanos(last.saturating_sub(first)));
        sum
    }
}

/// The clock of the processes, in nanoseconds.
pub use sys::clock::now_ns as now;
