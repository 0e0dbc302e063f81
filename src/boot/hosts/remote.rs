//! The supervisor of a host to which gasnetrun has been started by ssh: how it connects to the
//! supervisor of gasnetrun, and learns what to start.
//!
//! Called by the program gasnetrun with --remote. Invariant: it starts nothing before the other
//! end has proven that it knows the secret which came by standard input.

use super::link::HostLink;
use super::message::HostMessage;
use super::remote_plan::RemotePlan;
use super::ssh::{self, RemoteGreeting};
use crate::boot::error::BootError;
use crate::env;
use crate::tools::this_process::hostname;
use handshake::JobSecret;
use std::ffi::{CString, OsString};
use std::net::SocketAddr;
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt;
use std::time::Duration;
use sys::limits;

/// How long the greeting may take, which gasnetrun writes when it starts ssh.
const GREETING: Duration = Duration::from_secs(30);
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
/// That supervisor cannot be reached, or is of another version; or the folder does not exist here,
/// of which that supervisor learns.
pub fn connect() -> Result<RemoteHost, BootError> {
    let line = ssh::read_line(std::io::stdin().as_fd(), GREETING);
    let greeting = line.as_deref().and_then(RemoteGreeting::parse).ok_or_else(|| {
        BootError::new(
            "gasnetrun --remote is started by gasnetrun on another host, which tells it what to do",
            "Use gasnetrun -n N -H HOSTS program.",
        )
    })?;
    let RemoteGreeting { host, mut root } = greeting;
    put_client_first(&mut root.addresses);
    let mut link = root.connect(host).map_err(|why| unreachable(&why))?;
    // A lost connection has none.
    let address = link.peer_address().map_or_else(String::new, |a| a.to_string());
    let plan = match link.await_message(PLAN) {
        Some(HostMessage::Plan(plan)) => RemotePlan::decode(&plan),
        _ => None,
    };
    let plan = plan.ok_or_else(|| {
        unreachable(&format!("{address} ({})", link.lost().unwrap_or("it sent nothing")))
    })?;
    surround(&plan).inspect_err(|e| link.fail(e.code))?;
    Ok(RemoteHost { host, plan, secret: root.secret, link })
}

fn unreachable(what: &str) -> BootError {
    BootError::new(
        format!("host {} cannot connect to gasnetrun at {what}", hostname()),
        "Allow the connection in the firewall (GASNET_NETWORK_PORTS bounds the ports), name the \
         interface in GASNET_NETWORK_INTERFACE, and install the same version on all hosts.",
    )
}

/// The address from which ssh came is tried first. It is that of the right host, whatever this
/// host thinks of names; its port is one of those that listen.
fn put_client_first(addresses: &mut [SocketAddr]) {
    let ssh = std::env::var("SSH_CONNECTION").ok();
    let client = ssh.and_then(|text| text.split(' ').next()?.parse().ok());
    addresses.sort_by_key(|a| client != Some(a.ip()));
}

/// Gives this process the folder, environment and limits of the job. Of what its login has set it
/// keeps the variables of this host alone.
fn surround(plan: &RemotePlan) -> Result<(), BootError> {
    for &(resource, limit) in &plan.limits {
        limits::set_soft(resource, limit);
    }
    let text = |t: &OsString| CString::new(t.as_bytes()).unwrap_or_default();
    for (name, _) in std::env::vars_os().filter(|(name, _)| !env::is_of_host(name.as_bytes())) {
        // SAFETY: this process has one thread.
        unsafe { sys::environment::unset(&text(&name)) };
    }
    for (name, value) in &plan.variables {
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
