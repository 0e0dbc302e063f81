//! The machines that a user names for a job in the variables of GASNet's ssh spawner, all of which must be this one: this
//! library does not reach further yet. Called by `boot::gasnetrun`.

use super::BootError;
use crate::env::{self, FreeText, OptionalVariable};
use std::net::{ToSocketAddrs, UdpSocket};

/// The variables, the first that is set counts, and whether each names a file with one machine in
/// each line.
const VARIABLES: [(OptionalVariable<FreeText>, bool); 3] =
    [(env::SSH_NODEFILE, true), (env::SSH_SERVERS, false), (env::NODEFILE, true)];

/// Refuses a machine that is not this one.
pub(super) fn check() -> Result<(), BootError> {
    let named = VARIABLES.iter().find_map(|(var, file)| Some((var.name(), *file, var.get()?)));
    let Some((name, file, value)) = named else { return Ok(()) };
    let unset = format!("or unset {name}: all processes are started on this machine.");
    let machines = if file {
        let text = std::fs::read_to_string(&value).map_err(|e| {
            BootError::new(
                format!("{name}={value} cannot be read: {e}"),
                format!("Correct the path, {unset}"),
            )
        })?;
        text.lines().filter_map(in_line).map(String::from).collect()
    } else {
        in_list(&value)
    };
    for machine in machines {
        match is_here(&machine) {
            Ok(true) => {}
            Ok(false) => {
                return Err(BootError::new(
                    format!(
                        "{name} names the machine {machine}, but this library does not reach other machines yet"
                    ),
                    format!("Name this machine alone, {unset}"),
                ));
            }
            Err(e) => {
                return Err(BootError::new(
                    format!("{name} names the machine {machine}, which is not known: {e}"),
                    format!("Correct the name, {unset}"),
                ));
            }
        }
    }
    Ok(())
}

/// The machine that a line of a file names: its first word, unless that is behind a #.
fn in_line(line: &str) -> Option<&str> {
    line.split('#').next()?.split_ascii_whitespace().next()
}

/// The machines of a list with blanks or commas between.
fn in_list(list: &str) -> Vec<String> {
    list.split([' ', '\t', '\n', ',']).filter(|m| !m.is_empty()).map(String::from).collect()
}

/// Whether this machine has the name or the address.
fn is_here(machine: &str) -> std::io::Result<bool> {
    let own = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    if machine == "localhost" || machine == own.trim() {
        return Ok(true);
    }
    // A socket can be bound to addresses of this machine alone.
    Ok((machine, 0).to_socket_addrs()?.any(|address| UdpSocket::bind(address).is_ok()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn machines_of_lines_and_lists() {
        let lines = "a slots=2\n\n# b\n  c # d\n";
        assert_eq!(lines.lines().filter_map(in_line).collect::<Vec<_>>(), ["a", "c"]);
        assert_eq!(in_list("a,b  c"), ["a", "b", "c"]);
    }

    #[test]
    fn this_machine_is_here() {
        assert!(is_here("localhost").unwrap());
        assert!(is_here("127.0.0.1").unwrap());
        // An address of the block that is for documentation.
        assert!(!is_here("192.0.2.1").unwrap());
        assert!(is_here("no machine has blanks").is_err());
    }
}
