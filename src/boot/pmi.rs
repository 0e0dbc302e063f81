//! PMI-1, spoken to the launcher over the descriptor in PMI_FD: MPICH's mpiexec (hydra), and
//! Slurm's `srun --mpi=pmi2`.
//!
//! Called by `boot::foreign`. The protocol is lines of `name=value` pairs, one question and one
//! answer at a time, so it needs no library. Invariant: MPI in the same process uses the same
//! descriptor. If MPI is initialised, the conversation is continued, not begun; if the program has
//! MPI at all, it is not ended. Slurm accepts only one beginning.

use super::error::BootError;
use super::host_share::HostShare;
use super::key_value::{KeyValueSpace, LauncherRelease};
use super::options::BootOptions;
use super::siblings::Siblings;
use super::{launcher_variables, mpi_state};
use std::io;
use std::os::fd::RawFd;

/// The conversation with the launcher.
#[derive(Debug)]
pub(super) struct Pmi {
    fd: RawFd,
    rank: u32,
    size: u32,
    space: String,
    read: Vec<u8>,
    /// This library began it, and must end it.
    ours: bool,
    /// The other processes.
    siblings: Siblings,
}

fn failure(what: &str) -> BootError {
    BootError::new(
        format!("the launcher's PMI does not work: {what}"),
        "Let each process that the launcher starts run one GASNet program, with the descriptor of \
         PMI_FD open; or start the job with gasnetrun -n N.",
    )
}

/// Identifies the PMI-1 service of this process among all services; `None` without one.
pub(super) fn service() -> Option<String> {
    let fd = launcher_variables::variable("PMI_FD")?.trim().parse().unwrap_or(-1);
    Some(format!("pmi:{}", sys::descriptor::inode(fd).unwrap_or(0)))
}

fn number(name: &str) -> Result<u32, BootError> {
    let value = launcher_variables::variable(name)
        .ok_or_else(|| failure(&format!("{name} is not set")))?;
    value.trim().parse().map_err(|_| failure(&format!("{name}={value} is not a number")))
}

impl Pmi {
    pub(super) fn open(options: &BootOptions) -> Result<Pmi, BootError> {
        let fd = number("PMI_FD")? as RawFd;
        if !sys::descriptor::is_open(fd) {
            return Err(failure(&format!("descriptor {fd} of PMI_FD is closed")));
        }
        let mpi = mpi_state::is_initialised();
        let slurm = launcher_variables::variable("SLURM_STEP_ID").is_some()
            && launcher_variables::variable("MPI_LOCALNRANKS").is_none();
        if mpi == Some(false) && slurm && options.spawn_control.is_none() {
            return Err(BootError::new(
                "the program has MPI, but Slurm's PMI can be initialised only once per process",
                "Call MPI_Init before gasnet_init; if the program never calls it, set \
                 GASNET_SPAWN_CONTROL=PMI.",
            ));
        }
        let mut p = Pmi {
            fd,
            rank: number("PMI_RANK")?,
            size: number("PMI_SIZE")?,
            space: String::new(),
            read: Vec::new(),
            ours: mpi.is_none(),
            siblings: Siblings::find(options.spawn_timeout),
        };
        if mpi != Some(true) {
            p.ask("cmd=init pmi_version=1 pmi_subversion=1\n", "response_to_init")?;
        }
        let answer = p.ask("cmd=get_my_kvsname\n", "my_kvsname")?;
        p.space = value(&answer, "kvsname")
            .ok_or_else(|| failure("it has no name for the key-value space"))?
            .to_string();
        Ok(p)
    }

    /// Sends a question and returns the answer, which must be of this kind and report success.
    fn ask(&mut self, question: &str, kind: &str) -> Result<String, BootError> {
        let answer = self.answer(question)?;
        if is_success(&answer, kind) {
            Ok(answer)
        } else {
            Err(failure(&format!("it answers {:?} to {:?}", answer, question.trim())))
        }
    }

    /// Sends a question and returns the answer.
    fn answer(&mut self, question: &str) -> Result<String, BootError> {
        self.send(question.as_bytes()).map_err(|e| failure(&e.to_string()))?;
        self.line()
    }

    fn send(&self, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            match sys::descriptor::write(self.fd, bytes) {
                Ok(n) => bytes = &bytes[n..],
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => return Err(e),
            }
        }
        Ok(())
    }

    /// The next line. Any answer may need the other processes, so every wait checks that they
    /// live.
    fn line(&mut self) -> Result<String, BootError> {
        loop {
            if let Some(line) = take_line(&mut self.read) {
                return Ok(line);
            }
            let mut wanted = [sys::poll::PollEntry::reading_number(self.fd)];
            sys::poll::wait(&mut wanted, Some(self.siblings.pause()));
            if !wanted[0].happened() {
                self.siblings.check(self.rank)?;
                continue;
            }
            let mut buffer = [0; 4096];
            match sys::descriptor::read(self.fd, &mut buffer) {
                Ok(0) => return Err(failure("the launcher has hung up")),
                Ok(n) => self.read.extend_from_slice(&buffer[..n]),
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => return Err(failure(&e.to_string())),
            }
        }
    }
}

/// Takes the first line off what was read, if it is complete.
fn take_line(read: &mut Vec<u8>) -> Option<String> {
    let end = read.iter().position(|&c| c == b'\n')?;
    let line = read.drain(..=end).collect::<Vec<u8>>();
    Some(String::from_utf8_lossy(&line).trim_end().to_string())
}

/// Whether an answer is of this kind and reports success.
fn is_success(answer: &str, kind: &str) -> bool {
    value(answer, "cmd") == Some(kind) && value(answer, "rc").is_none_or(|rc| rc == "0")
}

/// The value of a name in a line.
fn value<'a>(line: &'a str, name: &str) -> Option<&'a str> {
    line.split_ascii_whitespace().find_map(|pair| pair.strip_prefix(name)?.strip_prefix('='))
}

/// The host of each of `size` ranks in a value of `PMI_process_mapping`; `None` if it is none.
///
/// `(vector,(0,2,3),(2,1,1))` means: hosts 0 and 1 have 3 ranks each, then host 2 has one. The
/// list begins again where it ends before the ranks do.
fn hosts_of(mapping: &str, size: usize) -> Option<Vec<u64>> {
    let list = mapping.strip_prefix("(vector,(")?.strip_suffix("))")?;
    let block = |text: &str| {
        let numbers: Vec<u32> = text.split(',').map(|n| n.parse().ok()).collect::<Option<_>>()?;
        <[u32; 3]>::try_from(numbers).ok().filter(|[_, hosts, ranks]| *hosts > 0 && *ranks > 0)
    };
    let blocks: Vec<[u32; 3]> = list.split("),(").map(block).collect::<Option<_>>()?;
    let hosts = blocks.iter().cycle().flat_map(|&[first, hosts, ranks]| {
        let hosts = (0..hosts).map(move |n| u64::from(first) + u64::from(n));
        hosts.flat_map(move |host| (0..ranks).map(move |_| host))
    });
    Some(hosts.take(size).collect())
}

impl KeyValueSpace for Pmi {
    fn rank(&self) -> u32 {
        self.rank
    }

    fn size(&self) -> u32 {
        self.size
    }

    fn host_share(&mut self) -> Result<Option<HostShare>, BootError> {
        let question = format!("cmd=get kvsname={} key=PMI_process_mapping\n", self.space);
        let answer = self.answer(&question)?;
        let mapping = value(&answer, "value").filter(|_| is_success(&answer, "get_result"));
        let hosts = mapping.and_then(|mapping| hosts_of(mapping, self.size as usize));
        Ok(hosts.and_then(|hosts| HostShare::of_names(self.rank, &hosts)))
    }

    fn put(&mut self, key: &str, value: &str) -> Result<(), BootError> {
        let question =
            format!("cmd=put kvsname={} key={key}-{} value={value}\n", self.space, self.rank);
        self.ask(&question, "put_result").map(drop)
    }

    fn fence(&mut self) -> Result<(), BootError> {
        self.ask("cmd=barrier_in\n", "barrier_out").map(drop)
    }

    fn get(&mut self, rank: u32, key: &str) -> Result<String, BootError> {
        let question = format!("cmd=get kvsname={} key={key}-{rank}\n", self.space);
        let answer = self.ask(&question, "get_result")?;
        Ok(value(&answer, "value").unwrap_or_default().to_string())
    }

    fn abort(&self) {
        // If the launcher has ended, nothing is left to end.
        let _ = self.send(b"cmd=abort exitcode=1\n");
    }

    fn finish(mut self: Box<Self>) -> Option<LauncherRelease> {
        if self.ours {
            // The answer has no consequence.
            let _ = self.ask("cmd=finalize\n", "finalize_ack");
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::{AsFd, AsRawFd};
    use sys::socket;

    #[test]
    fn pairs() {
        let line = "cmd=get_result rc=0 msg=success value=a:b";
        assert_eq!(value(line, "cmd"), Some("get_result"));
        assert_eq!(value(line, "value"), Some("a:b"));
        assert_eq!(value(line, "key"), None);
    }

    #[test]
    fn a_mapping_names_the_host_of_each_rank() {
        let hosts = |mapping, size| hosts_of(mapping, size).unwrap();
        assert_eq!(hosts("(vector,(0,1,4),(1,2,1))", 6), [0, 0, 0, 0, 1, 2]);
        assert_eq!(hosts("(vector,(0,3,1))", 6), [0, 1, 2, 0, 1, 2]);
        assert_eq!(hosts("(vector,(0,4294967295,4294967295))", 2), [0, 0]);
        for wrong in
            ["", "(vector)", "(vector,)", "(vector,(0,1))", "(vector,(0,0,1))", "(vector,(0,1,0))"]
        {
            assert_eq!(hosts_of(wrong, 2), None, "{wrong}");
        }
    }

    #[test]
    fn a_conversation() {
        let (ours, theirs) = socket::pair().unwrap();
        let mut p = Pmi {
            fd: ours.as_raw_fd(),
            rank: 1,
            size: 2,
            space: "kvs".into(),
            read: Vec::new(),
            ours: true,
            siblings: Siblings::find(None),
        };
        let mut received = [0; 256];
        for answer in [&b"cmd=put_result rc=0 msg=success\n"[..], b"cmd=barrier", b"_out\n"] {
            socket::send(theirs.as_fd(), answer, true).unwrap();
        }
        p.put("k", "v").unwrap();
        let n = socket::receive(theirs.as_fd(), &mut received, true).unwrap();
        assert_eq!(&received[..n], b"cmd=put kvsname=kvs key=k-1 value=v\n");
        p.fence().unwrap();
        let n = socket::receive(theirs.as_fd(), &mut received, true).unwrap();
        assert_eq!(&received[..n], b"cmd=barrier_in\n");
        socket::send(theirs.as_fd(), b"cmd=get_result rc=-1 msg=unknown\n", true).unwrap();
        assert!(p.get(0, "k").unwrap_err().cause.contains("rc=-1"));
        drop(theirs);
        assert!(p.fence().is_err());
    }

    /// Whatever the launcher writes is taken line by line, and a value is a part of its text line
    /// without blanks.
    fn any_lines(input: &[u8]) {
        let mut read = input.to_vec();
        let mut lines = 0;
        while let Some(line) = take_line(&mut read) {
            assert!(!line.contains('\n'));
            lines += 1;
            for name in ["cmd", "rc", "kvsname", "value"] {
                let Some(value) = value(&line, name) else { continue };
                assert!(!value.contains(|c: char| c.is_ascii_whitespace()));
                assert!(line.contains(&format!("{name}={value}")));
            }
            let kind = value(&line, "cmd").unwrap_or_default();
            let is_failure = value(&line, "rc").is_some_and(|rc| rc != "0");
            assert_eq!(is_success(&line, kind), value(&line, "cmd").is_some() && !is_failure);
        }
        let text = String::from_utf8_lossy(input);
        assert!(hosts_of(&text, 9).is_none_or(|hosts| hosts.len() == 9));
        assert_eq!(lines, input.iter().filter(|&&c| c == b'\n').count());
        assert!(!read.contains(&b'\n') && input.ends_with(&read));
    }

    #[test]
    fn fuzz_pmi() {
        fuzz::check("pmi", 20_000, any_lines);
    }
}
