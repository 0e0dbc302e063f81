//! The supervisor of a host to which gasnetrun has been started by ssh: how it connects to the
//! supervisor of gasnetrun, and learns what to start.
//!
//! Called by the program gasnetrun with --remote. Invariant: it starts nothing before the other
//! end has proven that it knows the secret which came by standard input.

use super::link::HostLink;
use super::message::HostMessage;
use super::remote_plan::RemotePlan;
use super::ssh::{self, RemoteGreeting};
use super::{library_version, purpose};
use crate::boot::error::BootError;
use crate::tools::this_process::hostname;
use handshake::{Handshake, HandshakeSpec, JobSecret, Nonce};
use std::ffi::CString;
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::ffi::OsStrExt;
use std::time::Duration;
use sys::limits;

/// How long an address may take to answer.
const ANSWER: Duration = Duration::from_secs(5);
/// How long the plan may take, which comes behind the proof.
const PLAN: Duration = Duration::from_secs(30);

/// A host that is to start ranks, and its connection to the supervisor of gasnetrun.
#[derive(Debug)]
pub struct RemoteHost {
    /// Its number.
    pub(in crate::boot) host: u32,
    pub(in crate::boot) plan: RemotePlan,
    pub(in crate::boot) secret: JobSecret,
    pub(in crate::boot) link: HostLink,
}

/// Connects this process to the supervisor that the greeting on standard input names, and makes
/// the folder, environment and limits of the job its own.
///
/// # Errors
/// That supervisor cannot be reached, or is of another version; or the folder does not exist here.
pub fn connect() -> Result<RemoteHost, BootError> {
    let line = ssh::read_line();
    let greeting = line.as_deref().and_then(RemoteGreeting::parse).ok_or_else(|| {
        BootError::new(
            "gasnetrun --remote is started by gasnetrun on another host, which tells it what to do",
            "Use gasnetrun -n N -H HOSTS program.",
        )
    })?;
    let RemoteGreeting { host, secret, addresses } = greeting;
    let mut failures = Vec::new();
    for address in candidates(&addresses) {
        match introduced(address, host, &secret) {
            Ok(mut link) => {
                let plan = match link.await_message(PLAN) {
                    Some(HostMessage::Plan(plan)) => RemotePlan::decode(&plan),
                    _ => None,
                };
                let plan = plan.ok_or_else(|| {
                    let why = link.lost().unwrap_or("it sent nothing");
                    unreachable(&format!("{address} ({why})"))
                })?;
                surround(&plan)?;
                return Ok(RemoteHost { host, plan, secret, link });
            }
            Err(why) => failures.push(format!("{address} ({why})")),
        }
    }
    Err(unreachable(&failures.join(", ")))
}

fn unreachable(what: &str) -> BootError {
    BootError::new(
        format!("host {} cannot connect to gasnetrun at {what}", hostname()),
        "Allow the connection in the firewall (GASNET_NETWORK_PORTS bounds the ports), name the \
         interface in GASNET_NETWORK_INTERFACE, and install the same version on all hosts.",
    )
}

/// The addresses to try. The one from which ssh came is that of the right host, whatever this host
/// thinks of names; its port is one of those that listen.
fn candidates(addresses: &[SocketAddr]) -> Vec<SocketAddr> {
    let ssh = std::env::var("SSH_CONNECTION").ok();
    let client = ssh.and_then(|text| text.split(' ').next()?.parse().ok());
    let mut all: Vec<SocketAddr> = addresses.to_vec();
    all.sort_by_key(|a| client != Some(a.ip()));
    all
}

/// A link to the supervisor at an address.
fn introduced(address: SocketAddr, host: u32, secret: &JobSecret) -> io::Result<HostLink> {
    let mut stream = TcpStream::connect_timeout(&address, ANSWER)?;
    stream.set_read_timeout(Some(ANSWER))?;
    stream.set_nodelay(true)?;
    let spec = HandshakeSpec {
        secret,
        library: library_version(),
        purpose: purpose(),
        identity: host.into(),
        nonce: Nonce::random()?,
    };
    let mut handshake = Handshake::connector(spec, None);
    let mut buffer = [0; 1024];
    loop {
        while !handshake.to_send().is_empty() {
            let n = stream.write(handshake.to_send())?;
            handshake.sent(n);
        }
        if handshake.peer().is_some() {
            return HostLink::new(stream, Vec::new());
        }
        let n = match stream.read(&mut buffer)? {
            0 => return Err(io::Error::other("it hung up")),
            n => n,
        };
        // The other end says nothing more before it has the proof of this one.
        handshake.feed(&buffer[..n]).map_err(io::Error::other)?;
    }
}

/// Gives this process the folder, environment and limits of the job.
fn surround(plan: &RemotePlan) -> Result<(), BootError> {
    for &(resource, limit) in &plan.limits {
        limits::set_soft(resource, limit);
    }
    for (name, value) in &plan.variables {
        let text = |t: &std::ffi::OsString| CString::new(t.as_bytes()).unwrap_or_default();
        // SAFETY: this process has one thread.
        unsafe { sys::environment::set(&text(name), &text(value)) };
    }
    std::env::set_current_dir(&plan.folder).map_err(|e| {
        BootError::new(
            format!("host {} has no folder {}: {e}", hostname(), plan.folder.display()),
            "Start the job in a folder that all hosts have, or name one: gasnetrun --wdir DIR.",
        )
    })
}
