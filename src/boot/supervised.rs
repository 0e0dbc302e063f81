//! A process of a job that has a supervisor: it takes its seat, and meets the others through its control socket.
//!
//! The supervisor's hang-up ends every wait. Only the process that joined speaks on the socket.

use super::control::JobControl;
use super::message::{self, Assembly, MessageHead, MessageKind};
use super::{BootError, Bootstrap, HostMemory};
use std::io::ErrorKind;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, PoisonError};
use sys::socket;

/// What a supervisor hands to a process that is to become a rank.
#[derive(Debug)]
pub struct RankId {
    /// Its rank.
    pub rank: u32,
    /// Ranks of the job.
    pub size: u32,
    /// Tells the job from others.
    pub cookie: u64,
    /// Job-control memory.
    pub control: OwnedFd,
    /// See [`HostMemory`].
    pub arena: OwnedFd,
    /// See [`HostMemory`].
    pub segments: OwnedFd,
    /// See [`HostMemory`].
    pub scratch: OwnedFd,
    /// Its end of the control socket.
    pub socket: OwnedFd,
}

/// A rank. Never dropped once the ways out are armed.
#[derive(Debug)]
pub struct SupervisedRank {
    host: HostMemory,
    control: &'static JobControl,
    socket: OwnedFd,
    /// Held during a collective call; the buffer receives messages.
    turn: Mutex<Vec<u8>>,
    /// Messages received so far.
    received: AtomicU32,
}

impl SupervisedRank {
    /// Takes the seat, for this process alone, and tells the supervisor.
    pub fn join(id: RankId) -> Result<SupervisedRank, BootError> {
        let RankId { rank, size, cookie, control, arena, segments, scratch, socket } = id;
        for fd in [&arena, &segments, &scratch, &socket] {
            sys::descriptor::close_on_exec(fd.as_raw_fd(), true)
                .map_err(|e| BootError::system("cannot use an inherited descriptor", &e))?;
        }
        let control = JobControl::join(control.as_fd(), size, rank, cookie, socket.as_raw_fd())?;
        let r = SupervisedRank {
            host: HostMemory { local_rank: rank, local_size: size, arena, segments, scratch },
            control,
            socket,
            turn: Mutex::new(vec![0; message::HEAD_BYTES + message::DATA_BYTES]),
            received: AtomicU32::new(0),
        };
        r.send(&MessageHead { kind: MessageKind::Joined, a: sys::process::pid(), b: 0 }.bytes());
        Ok(r)
    }

    fn send(&self, message: &[u8]) {
        loop {
            match socket::send(self.socket.as_raw_fd(), message, true) {
                Ok(()) => return,
                Err(e) if e.kind() == ErrorKind::Interrupted => self.leave_if_ending(),
                Err(_) => self.orphan(),
            }
        }
    }

    /// The next message that is not just a knock.
    fn receive<'a>(&self, buffer: &'a mut [u8]) -> (MessageHead, &'a [u8]) {
        let n = loop {
            let received = socket::receive(self.socket.as_raw_fd(), buffer, true);
            if matches!(received, Ok(1..)) {
                self.received.fetch_add(1, Ordering::Relaxed);
            }
            match received {
                Ok(0) => self.orphan(),
                Ok(n) => match MessageHead::parse(&buffer[..n]) {
                    Some((MessageHead { kind: MessageKind::ExitNow, .. }, _)) => {
                        self.leave_if_ending()
                    }
                    Some(_) => break n,
                    None => self.orphan(),
                },
                Err(e) if e.kind() == ErrorKind::Interrupted => self.leave_if_ending(),
                Err(_) => self.orphan(),
            }
        };
        // Parsed above.
        MessageHead::parse(&buffer[..n]).unwrap_or((MessageHead::new(MessageKind::ExitNow), &[]))
    }

    fn leave_if_ending(&self) {
        if self.control.poll_exit().is_some() {
            self.control.leave();
        }
    }

    fn orphan(&self) -> ! {
        self.control.orphaned();
        self.control.leave()
    }
}

impl Bootstrap for SupervisedRank {
    fn rank(&self) -> u32 {
        self.host.local_rank
    }

    fn size(&self) -> u32 {
        self.host.local_size
    }

    fn barrier(&self) {
        let mut buffer = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        self.control.converse(|| {
            self.send(&MessageHead::new(MessageKind::Barrier).bytes());
            while self.receive(&mut buffer).0.kind != MessageKind::BarrierDone {}
            self.control.await_sent(self.received.load(Ordering::Relaxed));
        });
    }

    fn exchange(&self, mine: &[u8]) -> Vec<Vec<u8>> {
        let mut buffer = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        let all = self.control.converse(|| {
            for part in message::parts(mine) {
                self.send(&part);
            }
            let mut all = Assembly::default();
            loop {
                let (head, data) = self.receive(&mut buffer);
                match all.add(head, data) {
                    Some(true) => {
                        self.control.await_sent(self.received.load(Ordering::Relaxed));
                        return all.take();
                    }
                    Some(false) => {}
                    None => self.orphan(),
                }
            }
        });
        match mine.len() {
            0 => vec![Vec::new(); self.size() as usize],
            n => all.chunks(n).map(<[u8]>::to_vec).collect(),
        }
    }

    fn host(&self) -> &HostMemory {
        &self.host
    }

    fn control(&self) -> &'static JobControl {
        self.control
    }
}
