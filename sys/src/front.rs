//! A process that stands in front of a child which does its work. It keeps its number, passes on
//! the signals that it receives, and ends as the child does. Called by `boot::fork` for a program
//! that has other threads.
//!
//! ```text
//! front process                          child, which has one thread
//!   handlers, then "ready" ----------->    stops the other threads of the front process
//!   each signal ---------------------->    [`FrontLink::next`]
//!   ends with that code <--------------    [`FrontLink::end`]
//! ```
//!
//! "ready" has a connection of its own: any thread may pass a signal on before it. Signals wait
//! until the child calls [`FrontLink::next`].
//!
//! Invariants: from [`FrontProcess::run`] on the front process makes system calls only. Another
//! of its threads may hold any lock when it is stopped, that of the allocator included. No thread
//! runs code of the program any more, except one that has every signal blocked: no signal has a
//! handler of the program. When the front process dies, the kernel kills the child.

use crate::child::{self, Ended, Forked};
use crate::signal::{self, Disposition, ReceivedSignal, Signal, SignalInfo, SignalSet};
use crate::{process, socket, thread};
use core::ffi::c_void;
use core::sync::atomic::{AtomicI32, AtomicU32, Ordering};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

/// The front process; 0 for none. Its children inherit the word, and compare.
static FRONT: AtomicU32 = AtomicU32::new(0);
/// Its end of the connection to the child.
static CHANNEL: AtomicI32 = AtomicI32::new(-1);
/// What the child waits for, on a connection of its own.
const READY: &[u8] = b"ready";
/// Looks for threads of the front process that were not stopped yet.
const LOOKS: u32 = 8;

/// Which of the two processes returns from [`split`].
#[derive(Debug)]
pub enum FrontRole {
    /// The calling process.
    Front(FrontProcess),
    /// The new one. It has one thread.
    Child(FrontLink),
}

/// The front process, which has not begun to serve its child.
#[derive(Debug)]
pub struct FrontProcess {
    child: u32,
    channel: OwnedFd,
    /// Where the child waits for [`READY`].
    start: OwnedFd,
}

/// The child's connection to its front process. Polls readable when a signal was passed on.
#[derive(Debug)]
pub struct FrontLink(OwnedFd);

/// Forks a child to stand behind this process. In the child, this returns when the other threads
/// of the front process have been sent the signal that stops them.
///
/// # Errors
/// That of the system.
///
/// # Safety
/// As for [`child::fork`].
pub unsafe fn split() -> io::Result<FrontRole> {
    let (channel, link) = socket::pair()?;
    let (start, started) = socket::pair()?;
    let (front, caller) = (process::pid(), thread::tid());
    // SAFETY: the caller sees to the locks.
    match unsafe { child::fork() }? {
        Forked::Parent(child) => Ok(FrontRole::Front(FrontProcess { child, channel, start })),
        Forked::Child => {
            drop((channel, start));
            let is_ready = || receive(&started, &mut [0; 8]) == Some(READY.len());
            if !child::die_with_parent(front) || !is_ready() {
                crate::exit_now(1);
            }
            stop_threads(front, caller);
            Ok(FrontRole::Child(FrontLink(link)))
        }
    }
}

/// Waits for a message: its length; `None` if the other process has ended.
fn receive(fd: &OwnedFd, buffer: &mut [u8]) -> Option<usize> {
    loop {
        match socket::receive(fd.as_fd(), buffer, true) {
            Ok(n @ 1..) => return Some(n),
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            _ => return None,
        }
    }
}

/// Stops every thread of the front process but `caller`. Where /proc does not show them, they go
/// on.
fn stop_threads(front: u32, caller: u32) {
    let mut stopped = vec![caller];
    for _ in 0..LOOKS {
        let mut others = process::threads(front).unwrap_or_default();
        others.retain(|tid| !stopped.contains(tid));
        if others.is_empty() {
            return;
        }
        for &tid in &others {
            signal::send_to_thread(front, tid, signal::notice());
        }
        stopped.extend(others);
    }
}

impl FrontProcess {
    /// The number of the child.
    pub fn child(&self) -> u32 {
        self.child
    }

    /// Passes on these signals, except those that are ignored, until the child has ended.
    /// Returns the code that the child gave, or how it ended if it gave none.
    pub fn run(self, passed_on: &[Signal]) -> Ended {
        FRONT.store(process::pid(), Ordering::Relaxed);
        // Release pairs with the Acquire in `pass_on`.
        CHANNEL.store(self.channel.as_raw_fd(), Ordering::Release);
        // The program's handler would run here; with the signal ignored, no end is reported.
        signal::set_default(Signal::CHLD);
        // The child sends this signal as soon as it is ready.
        signal::handle(signal::notice(), stop, false);
        let is_handled = |s: &Signal| signal::disposition(*s) != Disposition::Ignore;
        for s in passed_on.iter().copied().filter(is_handled) {
            signal::handle(s, pass_on, false);
            signal::unblock(&SignalSet::of(&[s]));
        }
        // Until the other threads are stopped they may rely on their handlers of faults.
        let of_program = |s: &Signal| {
            !signal::FAULTS.contains(s) && *s != signal::notice() && !passed_on.contains(s)
        };
        signal::handled().filter(of_program).for_each(signal::drop_handler);
        process::on_exit(keep_from_exit);
        let mut code = [0; 4];
        let received = socket::send(self.start.as_fd(), READY, true).ok();
        let received = received.and_then(|()| receive(&self.channel, &mut code));
        let ended = child::await_child(self.child);
        if received == Some(code.len()) { Ended::Exited(i32::from_ne_bytes(code)) } else { ended }
    }
}

impl FrontLink {
    /// The next signal that the front process has received.
    pub fn next(&self) -> Option<ReceivedSignal> {
        let mut message = [0; 8];
        match socket::receive(self.0.as_fd(), &mut message, false) {
            Ok(5) => {
                let [a, b, c, d, sent, ..] = message;
                let number = i32::from_ne_bytes([a, b, c, d]);
                Some(ReceivedSignal { signal: Signal::new(number), sent: sent != 0 })
            }
            _ => None,
        }
    }

    /// Has the front process end with this code once this process has ended.
    pub fn end(&self, code: i32) {
        // If it cannot be sent, the front process has ended.
        let _ = socket::send(self.0.as_fd(), &code.to_ne_bytes(), false);
    }
}

impl AsFd for FrontLink {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

fn is_front() -> bool {
    process::pid() == FRONT.load(Ordering::Relaxed)
}

/// Passes a signal on to the child.
extern "C" fn pass_on(s: Signal, info: &SignalInfo, _: *mut c_void) {
    if !is_front() {
        // A process that one of the other threads has forked.
        signal::set_default(s);
        return signal::raise(s);
    }
    let errno = crate::errno();
    let [a, b, c, d] = s.number().to_ne_bytes();
    let message = [a, b, c, d, u8::from(info.is_sent())];
    // Acquire pairs with the Release in `run`.
    let channel = CHANNEL.load(Ordering::Acquire);
    // If it cannot be sent, the child has ended, or many signals wait for it.
    // SAFETY: `run` owns the descriptor, and returns when the process is about to end.
    let _ = socket::send(unsafe { BorrowedFd::borrow_raw(channel) }, &message, false);
    crate::set_errno(errno);
}

/// Keeps the calling thread here until the process ends.
fn rest() -> ! {
    signal::block(&SignalSet::all());
    loop {
        signal::pause();
    }
}

extern "C" fn stop(_: Signal, _: &SignalInfo, _: *mut c_void) {
    if is_front() {
        rest()
    }
}

/// A thread that was not stopped yet ends the program: the job goes on without it.
extern "C" fn keep_from_exit(_: i32, _: *mut c_void) {
    if is_front() {
        rest()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock;
    use crate::memory::MemFd;
    use core::sync::atomic::AtomicU64;

    /// Ends with 7 if all is as it should be, else with another code.
    fn behave(counter: &'static AtomicU64) -> ! {
        std::thread::spawn(|| {
            loop {
                counter.fetch_add(1, Ordering::Relaxed);
            }
        });
        std::thread::spawn(|| {
            // No signal stops it.
            signal::block(&SignalSet::all());
            clock::sleep_ns(100_000_000);
            std::process::exit(3)
        });
        // A thread that is stopped before it counts would show nothing.
        while counter.load(Ordering::Relaxed) == 0 {
            clock::sleep_ns(1_000_000);
        }
        signal::ignore(Signal::HUP);
        // SAFETY: no thread holds a lock that the child needs.
        let link = match unsafe { split() } {
            Err(_) => crate::exit_now(20),
            Ok(FrontRole::Front(front)) => match front.run(&[Signal::TERM, Signal::HUP]) {
                Ended::Exited(code) => crate::exit_now(code),
                Ended::Killed(_) => crate::exit_now(21),
            },
            Ok(FrontRole::Child(link)) => link,
        };
        // It stops when it next runs, which may take a while on a busy machine.
        let stands = |_| {
            let before = counter.load(Ordering::Relaxed);
            clock::sleep_ns(200_000_000);
            counter.load(Ordering::Relaxed) == before
        };
        if !(0..50).any(stands) {
            crate::exit_now(22);
        }
        let front = process::parent();
        process::kill(front, Signal::HUP);
        process::kill(front, Signal::TERM);
        while !crate::poll::readable(link.as_fd()) {
            clock::sleep_ns(1_000_000);
        }
        let got = link.next();
        if !got.is_some_and(|r| r.signal == Signal::TERM && r.sent) || link.next().is_some() {
            crate::exit_now(23);
        }
        link.end(7);
        // Not this code.
        crate::exit_now(24)
    }

    #[test]
    fn the_front_process_ends_as_its_child_says() {
        let file = MemFd::create(c"counter").unwrap();
        file.set_len(4096).unwrap();
        let counter = &file.map(0, 4096).unwrap().leak_words()[0];
        // SAFETY: the child uses no lock that another test may hold, but the allocator's.
        let Forked::Parent(child) = unsafe { child::fork() }.unwrap() else { behave(counter) };
        assert_eq!(child::await_child(child), Ended::Exited(7));
    }

    #[test]
    fn a_signal_that_was_pending_is_passed_on() {
        // SAFETY: as above.
        let Forked::Parent(child) = unsafe { child::fork() }.unwrap() else {
            signal::block(&SignalSet::of(&[Signal::TERM]));
            process::kill(process::pid(), Signal::TERM);
            // SAFETY: as above.
            match unsafe { split() } {
                Ok(FrontRole::Front(front)) => match front.run(&[Signal::TERM]) {
                    Ended::Exited(code) => crate::exit_now(code),
                    Ended::Killed(_) => crate::exit_now(21),
                },
                Ok(FrontRole::Child(link)) => {
                    let got = link.next();
                    let is_it = got.is_some_and(|r| r.signal == Signal::TERM && r.sent);
                    link.end(if is_it && link.next().is_none() { 7 } else { 22 });
                    crate::exit_now(24)
                }
                Err(_) => crate::exit_now(20),
            }
        };
        assert_eq!(child::await_child(child), Ended::Exited(7));
    }

    #[test]
    fn a_killed_child_ends_the_front_process() {
        // SAFETY: as above.
        let Forked::Parent(child) = unsafe { child::fork() }.unwrap() else {
            // SAFETY: as above.
            match unsafe { split() } {
                Ok(FrontRole::Front(front)) => {
                    process::kill(front.child(), Signal::KILL);
                    let killed = front.run(&[]) == Ended::Killed(Signal::KILL);
                    crate::exit_now(if killed { 7 } else { 1 })
                }
                Ok(FrontRole::Child(_)) => loop {
                    signal::pause();
                },
                Err(_) => crate::exit_now(20),
            }
        };
        assert_eq!(child::await_child(child), Ended::Exited(7));
    }
}
