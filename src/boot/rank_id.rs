//! What a supervisor hands to a process that is to become a rank, and the variable through which
//! gasnetrun passes it to a program.
//!
//! Used by the supervisor and the ranks. Invariant: the variable is removed when it is read. So
//! a GASNet program that a rank starts is not a rank of the same job.

use super::error::BootError;
use super::host_memory::HostMemory;
use super::host_share::RankPlace;
use super::launcher_variables;
use crate::rank::{JobRank, LocalRank};
use std::ffi::{CStr, CString};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, IntoRawFd, OwnedFd, RawFd};

/// Rank, size, cookie, then the descriptors of the control memory, arena, segments, scratch and
/// control socket, and the [`checksum`] of these. In a job of several hosts: the number of the
/// host, the hosts, the local rank and the ranks of the host.
const SPAWN_FDS: &CStr = c"GASNET_SPAWN_FDS";

/// Descriptors of a rank.
const DESCRIPTORS: usize = 5;

/// The least number of a descriptor that a program inherits, if the limit allows it. Scripts
/// around the program use lower numbers for files of their own.
const INHERITED: RawFd = 200;

/// What makes a process a rank of a job.
#[derive(Debug)]
pub struct RankId {
    /// Where it stands.
    pub place: RankPlace,
    /// Distinguishes the job from others.
    pub cookie: u64,
    /// The control memory.
    pub control: OwnedFd,
    /// The memory files of its host.
    pub memory: HostMemory,
    /// Its end of the control socket.
    pub socket: OwnedFd,
}

impl RankId {
    fn descriptors(&self) -> [BorrowedFd<'_>; DESCRIPTORS] {
        let HostMemory { arena, segments, scratch } = &self.memory;
        let [arena, segments, scratch] = [arena, segments, scratch].map(AsFd::as_fd);
        [self.control.as_fd(), arena, segments, scratch, self.socket.as_fd()]
    }

    /// Lets programs that this process executes inherit the descriptors, or not.
    ///
    /// # Errors
    /// That of the system.
    pub(super) fn close_on_exec(&self, close: bool) -> Result<(), BootError> {
        for fd in self.descriptors() {
            sys::descriptor::close_on_exec(fd.as_raw_fd(), close)
                .map_err(|e| BootError::system("cannot use an inherited descriptor", &e))?;
        }
        Ok(())
    }

    /// The variable, with its value, for the program that the calling process executes next. The
    /// program inherits the descriptors.
    pub(super) fn for_program(&self) -> CString {
        let name = SPAWN_FDS.to_string_lossy();
        let RankPlace { rank, size, host, hosts, local_rank, local_size } = self.place;
        let mut variable = format!("{name}={rank},{size},{}", self.cookie);
        let fds = self.descriptors().map(|fd| fd.as_raw_fd());
        let high = fds.map(|fd| sys::descriptor::inheritable_from(fd, INHERITED).ok());
        let fds = match high.iter().all(Option::is_some) {
            true => high.map(|fd| fd.map_or(-1, IntoRawFd::into_raw_fd)),
            false => {
                let _ = self.close_on_exec(false);
                fds
            }
        };
        for fd in fds {
            variable += &format!(",{fd}");
        }
        variable += &format!(",{}", checksum(&fds));
        if hosts > 1 {
            variable += &format!(",{host},{hosts},{local_rank},{local_size}");
        }
        CString::new(variable).unwrap_or_default()
    }

    /// What gasnetrun left for this process; `None` if it did not start this process.
    pub(super) fn inherited() -> Result<Option<RankId>, BootError> {
        let name = SPAWN_FDS.to_string_lossy();
        let Some(text) = launcher_variables::variable(&name) else { return Ok(None) };
        let bad = || {
            BootError::new(
                format!(
                    "{name}={text} is invalid: it names a rank, the ranks of the job, a cookie and \
                     five different descriptors, open and not 0, 1 or 2, with their checksum"
                ),
                format!(
                    "Unset {name}; start ranks only by gasnetrun, and neither close nor redirect \
                     inherited descriptors before gasnet_init."
                ),
            )
        };
        let numbers: Option<Vec<u64>> = text.split(',').map(|n| n.parse().ok()).collect();
        let Some([rank, size, cookie, rest @ ..]) = numbers.as_deref() else { return Err(bad()) };
        let (fds, place) = rest.split_at(rest.len().min(DESCRIPTORS));
        let Some((&sum, place)) = place.split_first() else { return Err(bad()) };
        let place = place_of(*rank, *size, place).ok_or_else(bad)?;
        let fds: Vec<i32> = fds.iter().filter_map(|&n| i32::try_from(n).ok()).collect();
        let fds: [i32; DESCRIPTORS] = fds.try_into().map_err(|_| bad())?;
        if !are_inherited(&fds) || checksum(&fds) != sum {
            return Err(bad());
        }
        // SAFETY: gasnetrun opened these descriptors for this process, which has not used them;
        // they are distinct.
        let [control, arena, segments, scratch, socket] =
            fds.map(|n| unsafe { sys::descriptor::inherited(n) }.ok_or_else(bad));
        let id = RankId {
            place,
            cookie: *cookie,
            control: control?,
            memory: HostMemory {
                arena: arena?.into(),
                segments: segments?.into(),
                scratch: scratch?.into(),
            },
            socket: socket?,
        };
        // SAFETY: no other thread uses the environment during gasnet_init, as its description
        // demands.
        unsafe { sys::environment::unset(SPAWN_FDS) };
        Ok(Some(id))
    }
}

/// The cookie of the job whose rank another process is, or has started it, if this process may
/// read its environment.
pub(super) fn cookie_of(pid: u32) -> Option<u64> {
    let text = sys::process::variable_of(pid, &SPAWN_FDS.to_string_lossy())?;
    text.split(',').nth(2)?.parse().ok()
}

/// The place that the numbers of the variable say; `several` is empty in a job of one host.
fn place_of(rank: u64, size: u64, several: &[u64]) -> Option<RankPlace> {
    let number = |n: u64| u32::try_from(n).ok();
    let (rank, size) = (JobRank(number(rank)?), number(size)?);
    match *several {
        [] => Some(RankPlace::on_one_host(rank, size)),
        [host, hosts, local_rank, local_size] => Some(RankPlace {
            rank,
            size,
            host: number(host)?,
            hosts: number(hosts)?,
            local_rank: LocalRank(number(local_rank)?),
            local_size: number(local_size)?,
        }),
        _ => None,
    }
}

/// What tells the files of these descriptors from others that a script may have opened under the
/// same numbers: no file but that of the job may be written.
fn checksum(fds: &[RawFd]) -> u64 {
    let words = fds.iter().flat_map(|&fd| sys::descriptor::identity(fd).unwrap_or_default());
    words.fold(0, sys::checksum::add)
}

/// Whether these can be the descriptors of a rank: none is a standard one, which belongs to the
/// program, and all are open and distinct. Otherwise none of them may be taken over, or closed.
fn are_inherited(fds: &[i32]) -> bool {
    fds.iter().enumerate().all(|(i, &fd)| {
        fd >= sys::descriptor::FIRST_OWN && sys::descriptor::is_open(fd) && !fds[..i].contains(&fd)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn descriptors_of_a_rank_are_distinct_and_not_standard() {
        let (a, b) = sys::descriptor::pipe().unwrap();
        let (a, b) = (a.as_raw_fd(), b.as_raw_fd());
        assert!(are_inherited(&[a, b]));
        assert!(!are_inherited(&[a, a]) && !are_inherited(&[a, -1]));
        assert!((0..3).all(|standard| !are_inherited(&[a, standard])));
    }

    #[test]
    fn files_in_other_places_are_other_files() {
        let [(a, _a), (b, _b)] = [(); 2].map(|()| sys::descriptor::pipe().unwrap());
        let (a, b) = (a.as_raw_fd(), b.as_raw_fd());
        let copy = sys::descriptor::duplicate(b).unwrap();
        assert_eq!(checksum(&[a, b]), checksum(&[a, copy.as_raw_fd()]));
        assert_ne!(checksum(&[a, b]), checksum(&[b, a]));
        assert_ne!(checksum(&[a, b]), checksum(&[a, a]));
    }
}
