//! The identity of a process and of its parent, encoded as text for the launcher's key-value
//! space.
//!
//! Written by each rank, read by rank 0 for the supervisor. Invariant: the text names its
//! process-id namespace; readers in another namespace reject it.

use std::io;
use sys::process::{self, ProcessIdentity};

/// A process that takes part in the exchange, and the process that started it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Member {
    pub(super) process: ProcessIdentity,
    /// `None` if it is process 1, the parent of processes whose own has exited.
    pub(super) parent: Option<ProcessIdentity>,
}

impl Member {
    /// This process; `None` if the system does not report it.
    pub(super) fn this_process() -> Option<Member> {
        let parent = ProcessIdentity::of(process::parent()).filter(|p| p.pid > 1);
        Some(Member { process: ProcessIdentity::of(process::pid())?, parent })
    }

    /// The text for the other processes.
    pub(super) fn text(self) -> String {
        let p = self.process;
        let parent = self.parent.unwrap_or(ProcessIdentity { pid: 0, start: 0 });
        let namespace = pid_namespace().unwrap_or_default();
        format!("{}.{}.{}.{}.{}", namespace, p.pid, p.start, parent.pid, parent.start)
    }

    /// The process of a text; `None` if it is of another namespace, or if that of this process
    /// cannot be read.
    pub(super) fn read(text: &str) -> Option<Member> {
        let mut parts = text.split('.');
        (parts.next()? == pid_namespace()?).then_some(())?;
        let mut identity = || {
            Some(ProcessIdentity {
                pid: parts.next()?.parse().ok()?,
                start: parts.next()?.parse().ok()?,
            })
        };
        let (process, parent) = (identity()?, identity()?);
        Some(Member { process, parent: (parent.pid > 0).then_some(parent) })
    }
}

fn pid_namespace() -> Option<String> {
    namespace("pid").ok()
}

/// The number of a namespace of this process; empty where the system shows none.
///
/// # Errors
/// That of the system.
pub(super) fn namespace(kind: &str) -> io::Result<String> {
    let link = shown(std::fs::read_link(format!("/proc/self/ns/{kind}")))?;
    Ok(link.to_string_lossy().chars().filter(char::is_ascii_digit).collect())
}

/// What was read of /proc; empty if the system does not show it.
pub(super) fn shown<T: Default>(read: io::Result<T>) -> io::Result<T> {
    match read {
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(T::default()),
        read => read,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_of_members() {
        let here = Member::this_process().unwrap();
        assert_eq!(here.process.pid, process::pid());
        assert_eq!(Member::read(&here.text()), Some(here));
        let alone = Member { parent: None, ..here };
        assert_eq!(Member::read(&alone.text()), Some(alone));
        let elsewhere = here.text().replacen('.', "0.", 1);
        for bad in ["", "-", elsewhere.as_str(), &here.text()[..here.text().rfind('.').unwrap()]] {
            assert_eq!(Member::read(bad), None, "{bad}");
        }
    }
}
