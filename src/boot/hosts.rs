//! The hosts that a user names in the variables of GASNet's ssh spawner.
//!
//! Called by `boot::launch`. Invariant: a host other than this one is rejected, because
//! gasnetrun starts processes on this host only.

use super::error::BootError;
use crate::env::{self, FreeText, OptionalVariable};
use std::net::{ToSocketAddrs, UdpSocket};

/// The variables, first match wins; the flag marks those that name a file with one host per line.
const VARIABLES: [(OptionalVariable<FreeText>, bool); 3] =
    [(env::SSH_NODEFILE, true), (env::SSH_SERVERS, false), (env::NODEFILE, true)];

/// The variable that names hosts, with its value.
#[derive(Clone, Debug)]
pub(super) struct HostList {
    variable: &'static str,
    /// The value is the path of a file.
    is_file: bool,
    value: String,
}

impl HostList {
    /// The first of the variables that is set, if one is.
    pub(super) fn from_env() -> Option<HostList> {
        VARIABLES.iter().find_map(|(variable, is_file)| {
            let value = variable.get()?;
            Some(HostList { variable: variable.name(), is_file: *is_file, value })
        })
    }

    /// Rejects a host that is not this one.
    pub(super) fn check(&self) -> Result<(), BootError> {
        let HostList { variable, is_file, value } = self;
        let unset = format!("or unset {variable}: gasnetrun starts all processes on this host.");
        let hosts = if *is_file {
            let text = std::fs::read_to_string(value).map_err(|e| {
                BootError::new(
                    format!("{variable}={value} cannot be read: {e}"),
                    format!("Correct the path, {unset}"),
                )
            })?;
            text.lines().filter_map(in_line).map(String::from).collect()
        } else {
            in_list(value)
        };
        for host in hosts {
            match is_this_host(&host) {
                Ok(true) => {}
                Ok(false) => {
                    return Err(BootError::new(
                        format!(
                            "{variable} names the host {host}, but gasnetrun starts processes on \
                             this host only"
                        ),
                        format!("Name only this host, {unset}"),
                    ));
                }
                Err(e) => {
                    return Err(BootError::new(
                        format!("{variable} names the host {host}, which is unknown: {e}"),
                        format!("Correct the name, {unset}"),
                    ));
                }
            }
        }
        Ok(())
    }
}

/// The host that a line of a file names: its first word, unless a # comes before it.
fn in_line(line: &str) -> Option<&str> {
    line.split('#').next()?.split_ascii_whitespace().next()
}

/// The hosts of a list separated by blanks or commas.
fn in_list(list: &str) -> Vec<String> {
    list.split([' ', '\t', '\n', ',']).filter(|m| !m.is_empty()).map(String::from).collect()
}

/// Whether this host has the name or the address.
fn is_this_host(name: &str) -> std::io::Result<bool> {
    let own = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    if name == "localhost" || name == own.trim() {
        return Ok(true);
    }
    // A socket can be bound only to addresses of this host.
    Ok((name, 0).to_socket_addrs()?.any(|address| UdpSocket::bind(address).is_ok()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_of_lines_and_lists() {
        let lines = "a slots=2\n\n# b\n  c # d\n";
        assert_eq!(lines.lines().filter_map(in_line).collect::<Vec<_>>(), ["a", "c"]);
        assert_eq!(in_list("a,b  c"), ["a", "b", "c"]);
    }

    #[test]
    fn this_host_is_recognised() {
        assert!(is_this_host("localhost").unwrap());
        assert!(is_this_host("127.0.0.1").unwrap());
        // An address of the block reserved for documentation.
        assert!(!is_this_host("192.0.2.1").unwrap());
        assert!(is_this_host("no host name has blanks").is_err());
    }

    /// A host is a word of its line or list, and no comment is one.
    fn any_list(input: &[u8]) {
        let text = String::from_utf8_lossy(input);
        for line in text.lines() {
            let host = in_line(line);
            let before = line.split('#').next().unwrap_or_default();
            assert_eq!(host.is_none(), before.bytes().all(|c| c.is_ascii_whitespace()));
            assert!(host.is_none_or(|h| before.contains(h) && !h.contains([' ', '\t', '#'])));
        }
        let hosts = in_list(&text);
        assert!(hosts.iter().all(|h| !h.is_empty() && !h.contains([' ', '\t', '\n', ','])));
        assert_eq!(in_list(&hosts.join(",")), hosts);
    }

    #[test]
    fn fuzz_hosts() {
        fuzz::check("hosts", 20_000, any_list);
    }
}
