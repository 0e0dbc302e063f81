//! The addresses of host names, and whether they are of this host.
//!
//! Called by `launch`, before the supervisor takes over the signals of this process; read by
//! [`super::interface`]. Invariant: a name server that does not answer keeps this process for 5 s
//! after its last answer.

use super::remote_plan::HostToStart;
use super::tree;
use crate::env;
use crate::report;
use crate::tools::this_process::hostname;
use std::collections::BTreeMap;
use std::io;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs, UdpSocket};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use sys::child::Forked;
use sys::poll::{self, PollEntry};
use sys::signal::Signal;
use sys::{child, clock, descriptor, interface, process};

/// Nanoseconds in which the next name must be answered.
const WITHIN: u64 = 5_000_000_000;
/// Processes that look names up, at most. Those of one wait for each other.
const AT_ONCE: usize = 64;
/// Addresses of a name that are used.
const MOST_ADDRESSES: usize = 16;
/// Names that a message lists.
const NAMED: usize = 4;
/// A port, which makes an address that a socket can be connected to.
const ANY_PORT: u16 = 9;

/// The addresses of the names that were looked up.
#[derive(Debug, Default)]
pub(in crate::boot) struct HostAddresses(BTreeMap<String, Vec<SocketAddr>>);

impl HostAddresses {
    /// Looks up the hosts that this one is to start itself, unless the user names its interface.
    pub(in crate::boot) fn look_up_branches(&mut self, below: &[HostToStart]) {
        if env::NETWORK_INTERFACE.get().is_none() {
            let branches = tree::branches(below, env::SSH_OUT_DEGREE.get());
            self.look_up(branches.map(|branch| branch[0].name.as_str()));
        }
    }

    /// Looks up names; those that are not answered are reported, and have no addresses.
    pub(in crate::boot) fn look_up<'a>(&mut self, names: impl Iterator<Item = &'a str>) {
        let mut unknown: Vec<&str> = Vec::new();
        for name in names {
            if self.0.contains_key(name) {
                continue;
            }
            match name.parse::<IpAddr>() {
                Ok(ip) => _ = self.0.insert(name.to_string(), vec![SocketAddr::new(ip, ANY_PORT)]),
                Err(_) => unknown.push(name),
            }
        }
        if unknown.is_empty() {
            return;
        }
        // A system that has no process for it starts no job either.
        let Ok(mut answers) = ask(&unknown, WITHIN, resolved) else { return };
        let is_silent = |(i, _): &(usize, &str)| !answers.contains_key(i);
        let silent = unknown.iter().copied().enumerate().filter(is_silent);
        let silent: Vec<&str> = silent.map(|(_, name)| name).collect();
        if !silent.is_empty() {
            report_silent(&silent);
        }
        for (i, name) in unknown.into_iter().enumerate() {
            self.0.insert(name.to_string(), answers.remove(&i).unwrap_or_default());
        }
    }

    /// The addresses of a name; none if it is unknown here.
    pub(in crate::boot) fn of(&self, name: &str) -> &[SocketAddr] {
        self.0.get(name).map_or(&[], Vec::as_slice)
    }

    /// Which of these hosts is this one.
    pub(in crate::boot) fn position_of_this_host(&mut self, names: &[String]) -> Option<usize> {
        if let Some(at) = names.iter().position(|name| name == "localhost" || name == hostname()) {
            return Some(at);
        }
        self.look_up(names.iter().map(String::as_str));
        let own: Option<Vec<IpAddr>> =
            interface::addresses().ok().map(|all| all.into_iter().map(|a| a.address).collect());
        let is_here = |name: &String| self.of(name).iter().any(|a| is_own(*a, own.as_deref()));
        names.iter().position(is_here)
    }
}

/// Whether an address is one of this host, which has these addresses. A socket can be bound to
/// those of this host alone, unless the system is set up otherwise (`ip_nonlocal_bind`). So that
/// counts only for addresses that the list does not have: those of one link, and all on systems
/// that cannot list them.
fn is_own(address: SocketAddr, own: Option<&[IpAddr]>) -> bool {
    let ip = address.ip().to_canonical();
    let is_of_link = matches!(ip, IpAddr::V6(ip) if ip.is_unicast_link_local());
    match own.filter(|_| !is_of_link) {
        Some(own) => ip.is_loopback() || ip.is_unspecified() || own.contains(&ip),
        None => {
            let mut any_port = address;
            any_port.set_port(0);
            UdpSocket::bind(any_port).is_ok()
        }
    }
}

fn report_silent(names: &[&str]) {
    let more = match names.len().saturating_sub(NAMED) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let named = names[..names.len().min(NAMED)].join(", ");
    report::line(format_args!("the name server does not answer for {named}{more}"));
    report::line(format_args!(
        "  Name hosts by their addresses, enter them in /etc/hosts, or correct /etc/resolv.conf."
    ));
}

/// What the system answers, which may take it long.
fn resolved(name: &str) -> Vec<SocketAddr> {
    let addresses = (name, ANY_PORT).to_socket_addrs();
    addresses.map_or(Vec::new(), |all| all.take(MOST_ADDRESSES).collect())
}

/// Has children look names up: threads would need a newer C library than old systems have. Returns
/// the answers by the number of the name: all, or those that arrive before none does for this many
/// nanoseconds.
///
/// # Errors
/// The system has no pipe or no process for it.
fn ask(
    names: &[&str],
    within: u64,
    resolve: fn(&str) -> Vec<SocketAddr>,
) -> io::Result<BTreeMap<usize, Vec<SocketAddr>>> {
    let (from, to) = descriptor::pipe()?;
    let own = process::pid();
    let number = AT_ONCE.min(names.len());
    let mut children = Vec::new();
    let mut begun = Ok(());
    for first in 0..number {
        // SAFETY: this process has one thread.
        match unsafe { child::fork() } {
            Ok(Forked::Child) => {
                if child::die_with_parent(own) {
                    let part = names.iter().enumerate().skip(first).step_by(number);
                    answer(part, &to, resolve);
                }
                sys::exit_now(0)
            }
            Ok(Forked::Parent(child)) => children.push(child),
            Err(e) => {
                begun = Err(e);
                break;
            }
        }
    }
    drop(to);
    let answers = begun.map(|()| read_answers(&from, names.len(), within));
    for child in children {
        process::kill(child, Signal::KILL);
        child::await_child(child);
    }
    answers
}

/// Writes an answer for each of these names as a line.
fn answer<'a>(
    names: impl Iterator<Item = (usize, &'a &'a str)>,
    to: &OwnedFd,
    resolve: fn(&str) -> Vec<SocketAddr>,
) {
    for (i, name) in names {
        let all: String = resolve(name).iter().map(|address| format!(" {address}")).collect();
        // A pipe takes a line of this length whole.
        sys::file::write_all(to.as_raw_fd(), format!("{i}{all}\n").as_bytes());
    }
}

fn read_answers(from: &OwnedFd, number: usize, within: u64) -> BTreeMap<usize, Vec<SocketAddr>> {
    let mut answers = BTreeMap::new();
    let mut text = Vec::new();
    let mut buffer = vec![0; 4096];
    let mut until = clock::now_ns() + within;
    while answers.len() < number {
        let mut entry = [PollEntry::reading(Some(from.as_fd()))];
        let left = until.saturating_sub(clock::now_ns());
        poll::wait_ns(&mut entry, left);
        if !entry[0].happened() {
            match left {
                0 => break,
                _ => continue,
            }
        }
        match descriptor::read(from.as_raw_fd(), &mut buffer) {
            Ok(n @ 1..) => text.extend_from_slice(&buffer[..n]),
            Err(e) if e.kind() == io::ErrorKind::Interrupted => continue,
            _ => break,
        }
        while let Some(end) = text.iter().position(|&c| c == b'\n') {
            let line: Vec<u8> = text.drain(..=end).collect();
            let line = String::from_utf8_lossy(&line);
            let mut words = line.split_ascii_whitespace();
            if let Some(i) = words.next().and_then(|word| word.parse().ok()) {
                answers.insert(i, words.filter_map(|word| word.parse().ok()).collect());
                until = clock::now_ns() + within;
            }
        }
    }
    answers
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_host_is_recognised() {
        let mut addresses = HostAddresses::default();
        let mut position = |names: &[&str]| {
            let names: Vec<String> = names.iter().map(ToString::to_string).collect();
            addresses.position_of_this_host(&names)
        };
        // The second is an address of the block reserved for documentation.
        assert_eq!(position(&["no host name has blanks", "192.0.2.1", "127.0.0.1"]), Some(2));
        assert_eq!(position(&["192.0.2.1", "localhost"]), Some(1));
        assert_eq!(position(&["192.0.2.1"]), None);
        assert!(addresses.of("no host name has blanks").is_empty());
    }

    /// Whatever a socket can be bound to.
    #[test]
    fn an_address_of_this_host_is_listed() {
        let loopback = SocketAddr::from(([127, 0, 0, 2], ANY_PORT));
        let other = SocketAddr::from(([192, 0, 2, 7], ANY_PORT));
        assert!(is_own(loopback, Some(&[])) && is_own(other, Some(&[other.ip()])));
        assert!(!is_own(other, Some(&[loopback.ip()])));
        assert!(is_own(loopback, None));
    }

    /// One that does not answer keeps nothing but itself.
    #[test]
    fn a_silent_server_has_a_limit() {
        let resolve = |name: &str| match name {
            "silent" => loop {
                clock::sleep_ns(1_000_000_000);
            },
            _ => vec!["[fe80::1%2]:9".parse().unwrap()],
        };
        let answers = ask(&["silent", "a", "b"], 300_000_000, resolve).unwrap();
        assert_eq!(answers.keys().collect::<Vec<_>>(), [&1, &2]);
        assert_eq!(answers[&1], resolve("a"));
    }
}
