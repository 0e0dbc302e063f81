//! A rank's conversation with its supervisor over the control socket: exchange and barrier.
//!
//! Made for every rank that has a supervisor, used through [`Exchange`] and [`JobBarrier`].
//! Invariants: a hang-up of the supervisor ends every wait; one thread converses at a time.

use super::bootstrap::{Bootstrap, WireStart};
use super::collective::{Exchange, JobBarrier};
use super::control_memory::ControlMemory;
use super::control_message::{self, Assembly, ControlHead, ControlKind};
use super::control_socket::ControlSocket;
use super::error::BootError;
use super::exit_notice::ExitNotice;
use super::host_share::RankPlace;
use super::hosts::interface;
use super::placement::Placement;
use super::rank_id::RankId;
use crate::rank::{ByJobRank, JobRank};
use crate::report;
use std::io::ErrorKind;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::{Mutex, PoisonError};
use sys::memory::Mapping;
use sys::{process, socket};

/// A rank's end of the control socket.
#[derive(Debug)]
struct SupervisorLink {
    exit: &'static ExitNotice,
    size: u32,
    /// The control socket, which `exit` owns.
    socket: BorrowedFd<'static>,
    /// Held during a conversation.
    turn: Mutex<Conversation>,
}

#[derive(Debug)]
struct Conversation {
    /// Receives messages.
    buffer: &'static mut [u8],
    /// Messages received so far.
    received: u64,
}

/// Makes this process the rank, and notifies the supervisor, which messages call `supervisor`.
pub(super) fn join(id: RankId, supervisor: &'static str) -> Result<Bootstrap, BootError> {
    id.close_on_exec(true)?;
    let RankId { place, cookie, control, memory: host_memory, socket } = id;
    let RankPlace { rank, size, local_rank, .. } = place;
    let memory = ControlMemory::open(control.as_fd(), place.local_size, cookie)?;
    let link = Some(ControlSocket::new(socket, supervisor));
    let exit = ExitNotice::join(memory, rank, local_rank, size, link)?;
    let socket = exit.socket().expect("a rank with a supervisor has a socket");
    // Most messages are short, and memory is taken as far as they reach.
    let buffer = Mapping::leaked_bytes(control_message::HEAD_BYTES + control_message::DATA_BYTES)
        .map_err(|e| BootError::system("cannot get a buffer for the supervisor's messages", &e))?;
    let conversation = Conversation { buffer, received: 0 };
    let link: &'static SupervisorLink =
        Box::leak(Box::new(SupervisorLink { exit, size, socket, turn: Mutex::new(conversation) }));
    link.send(&ControlHead { kind: ControlKind::Joined, a: process::pid(), b: 0 }.bytes());
    let (placement, wire) = match place.hosts {
        1 => (Placement::one_host(rank, size), None),
        _ => {
            let wire = link.wire_start()?;
            let hosts = link.exchange(&place.host.to_le_bytes());
            let number = |b: &Vec<u8>| b[..].try_into().map_or(u32::MAX, u32::from_le_bytes);
            let hosts: Vec<u32> = hosts.iter().map(number).collect();
            (Placement::apart(rank, size).with_hosts(&hosts), Some(wire))
        }
    };
    Ok(Bootstrap {
        placement,
        wire,
        exchange: link,
        barrier: link,
        exit,
        host_memory: Some(host_memory),
        one_environment: false,
        network_start: None,
        release: None,
    })
}

impl SupervisorLink {
    fn send(&self, message: &[u8]) {
        loop {
            match socket::send(self.socket, message, true) {
                Ok(()) => return,
                Err(e) if e.kind() == ErrorKind::Interrupted => self.exit_if_ending(),
                Err(_) => self.supervisor_lost(),
            }
        }
    }

    /// The next message other than the order to exit, which is obeyed.
    fn receive<'a>(&self, turn: &'a mut Conversation) -> (ControlHead, &'a [u8]) {
        let n = loop {
            let received = socket::receive(self.socket, turn.buffer, true);
            if matches!(received, Ok(1..)) {
                turn.received += 1;
            }
            match received {
                Ok(0) => self.supervisor_lost(),
                Ok(n) => match ControlHead::parse(&turn.buffer[..n]) {
                    Some((ControlHead { kind: ControlKind::ExitNow, .. }, _)) => {
                        self.exit_if_ending();
                    }
                    Some(_) => break n,
                    None => self.not_understood(),
                },
                Err(e) if e.kind() == ErrorKind::Interrupted => self.exit_if_ending(),
                Err(_) => self.supervisor_lost(),
            }
        };
        // Parsed above.
        ControlHead::parse(&turn.buffer[..n])
            .unwrap_or((ControlHead::new(ControlKind::ExitNow), &[]))
    }

    /// What this rank must know to reach those of other hosts.
    fn wire_start(&self) -> Result<WireStart, BootError> {
        let mut turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        let (head, data) = self.receive(&mut turn);
        match (head.kind, control_message::parse_job_secret(data)) {
            (ControlKind::JobSecret, Some((secret, address))) => {
                Ok(WireStart { secret, address, ports: interface::ports() })
            }
            _ => self.not_understood(),
        }
    }

    fn exit_if_ending(&self) {
        if self.exit.must_exit() {
            self.exit.exit_now();
        }
    }

    fn not_understood(&self) -> ! {
        report::fatal(
            format_args!(
                "the supervisor of the job sent a message that this rank does not expect"
            ),
            format_args!("Start the job with the gasnetrun of the same version of this library."),
        )
    }

    fn supervisor_lost(&self) -> ! {
        self.exit.is_supervisor_lost();
        self.exit.exit_now()
    }
}

impl JobBarrier for SupervisorLink {
    fn barrier(&self) {
        let mut turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        self.exit.without_notices(|| {
            self.send(&ControlHead::new(ControlKind::Barrier).bytes());
            while self.receive(&mut turn).0.kind != ControlKind::BarrierDone {}
            self.exit.await_sent(turn.received);
        });
    }
}

impl Exchange for SupervisorLink {
    fn exchange(&self, mine: &[u8]) -> ByJobRank<Vec<u8>> {
        let all = self.join_all(mine);
        match mine.len() {
            0 => (0..self.size).map(|_| Vec::new()).collect(),
            n => all.chunks(n).map(<[u8]>::to_vec).collect(),
        }
    }

    /// The others contribute nothing.
    fn hand_over(&self, given: Option<&[u8]>, _: JobRank, _: usize) -> Vec<u8> {
        self.join_all(given.unwrap_or_default())
    }
}

impl SupervisorLink {
    /// What all ranks contribute, by rank.
    fn join_all(&self, mine: &[u8]) -> Vec<u8> {
        let mut turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        self.exit.without_notices(|| {
            for part in control_message::parts(mine) {
                self.send(&part);
            }
            let mut all = Assembly::default();
            loop {
                let (head, data) = self.receive(&mut turn);
                match all.add(head, data) {
                    Some(true) => {
                        self.exit.await_sent(turn.received);
                        return all.take();
                    }
                    Some(false) => {}
                    None => self.not_understood(),
                }
            }
        })
    }
}
