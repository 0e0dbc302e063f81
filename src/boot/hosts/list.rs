//! The hosts that a user names: on the command line, in a file, in the variables of GASNet's ssh
//! spawner, or by the batch system in which gasnetrun runs.
//!
//! Called by the program gasnetrun. Invariant: no host is named twice.

use crate::boot::detect;
use crate::boot::error::BootError;
use crate::env::{self, FreeText, OptionalVariable};
use std::fmt::Display;
use std::fs::File;
use std::io::Read;
use std::path::Path;
use sys::byte_count::ByteCount;

/// A host that ranks may be started on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamedHost {
    /// Its name or address, for ssh and for messages.
    pub name: String,
    /// How many ranks it is to have at most; `None` if the user does not say.
    pub slots: Option<u32>,
}

/// Hosts, and what names them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostList {
    /// An option or a variable, for messages.
    pub source: String,
    /// In the order in which they are named.
    pub hosts: Vec<NamedHost>,
}

/// The most bytes of a file of hosts.
const LONGEST: u64 = 16 << 20;

/// The variables of the ssh spawner, first match wins; the flag marks those that name a file.
const VARIABLES: [(OptionalVariable<FreeText>, bool); 3] =
    [(env::SSH_NODEFILE, true), (env::SSH_SERVERS, false), (env::NODEFILE, true)];

/// Variables of batch systems, in the same order: that of PBS names a file with a line for each
/// slot, that of LSF pairs of a host and its slots.
const PBS: &str = "PBS_NODEFILE";
const LSF: &str = "LSB_MCPU_HOSTS";
const SLURM_HOSTS: [&str; 2] = ["SLURM_JOB_NODELIST", "SLURM_NODELIST"];
const SLURM_SLOTS: [&str; 2] = ["SLURM_TASKS_PER_NODE", "SLURM_JOB_CPUS_PER_NODE"];

impl HostList {
    /// The hosts of `-H` or `GASNET_SSH_SERVERS`: names separated by commas or blanks, each maybe
    /// with a colon and slots. If none has slots and one is named several times, each time counts
    /// as one slot.
    ///
    /// # Errors
    /// What is wrong with one of them.
    pub fn of_names(source: &str, text: &str) -> Result<HostList, BootError> {
        let words = text.split([' ', '\t', '\r', '\n', ',']).filter(|w| !w.is_empty());
        HostList::new(source, words.map(|word| host(source, word)))
    }

    /// The hosts of a file: one on each line, `name`, `name:slots` or `name slots=n`; a comment
    /// begins with #. If none has slots and a host is on several lines, each line counts as one
    /// slot.
    ///
    /// # Errors
    /// The file cannot be read, or a line of it is wrong.
    pub fn of_file(source: &str, path: &Path) -> Result<HostList, BootError> {
        let unread = |e: &dyn Display| {
            BootError::new(
                format!("{source} {} cannot be read: {e}", path.display()),
                "Correct the path: the file has the name of a host on each line.",
            )
        };
        let mut text = String::new();
        let read =
            File::open(path).and_then(|file| file.take(LONGEST + 1).read_to_string(&mut text));
        if read.map_err(|e| unread(&e))? as u64 > LONGEST {
            return Err(unread(&format_args!("it is longer than {}", ByteCount(LONGEST))));
        }
        let source = format!("{source} {}", path.display());
        HostList::new(&source, text.lines().filter_map(|line| in_line(&source, line)))
    }

    /// The hosts that variables name, if one does. Those of batch systems do not count for a job
    /// that a rank starts.
    ///
    /// # Errors
    /// As [`HostList::of_names`] and [`HostList::of_file`].
    pub fn from_env() -> Result<Option<HostList>, BootError> {
        for (variable, is_file) in &VARIABLES {
            let Some(value) = variable.get() else { continue };
            let list = match is_file {
                true => HostList::of_file(variable.name(), Path::new(&value)),
                false => HostList::of_names(variable.name(), &value),
            };
            return list.map(Some);
        }
        // The batch system has given its hosts to the job of that rank.
        if detect::started_by_rank() {
            return Ok(None);
        }
        // A batch system that has given this host alone limits nothing.
        Ok(HostList::of_batch_system()?.filter(|list| list.hosts.len() > 1))
    }

    /// The hosts that a batch system has given.
    fn of_batch_system() -> Result<Option<HostList>, BootError> {
        let set = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
        if let Some(path) = set(PBS) {
            let mut list = HostList::of_file(PBS, Path::new(&path))?;
            count_names(&mut list.hosts);
            return Ok(Some(list));
        }
        if let Some(value) = set(LSF) {
            return HostList::new(LSF, of_lsf(&value).into_iter()).map(Some);
        }
        let first = |names: [&'static str; 2]| names.into_iter().find_map(|n| Some((n, set(n)?)));
        match first(SLURM_HOSTS) {
            Some((name, value)) => {
                let slots = first(SLURM_SLOTS).map_or(Vec::new(), |(_, slots)| of_slurm(&slots));
                let hosts = expanded(&value).ok_or_else(|| malformed(name, &value))?;
                let hosts = hosts.into_iter().enumerate();
                let hosts =
                    hosts.map(|(i, name)| Ok(NamedHost { name, slots: slots.get(i).copied() }));
                HostList::new(name, hosts).map(Some)
            }
            None => Ok(None),
        }
    }

    /// Joins the slots of hosts that are named several times.
    fn new(
        source: &str,
        named: impl Iterator<Item = Result<NamedHost, BootError>>,
    ) -> Result<HostList, BootError> {
        let mut hosts: Vec<NamedHost> = Vec::new();
        let (mut is_repeated, mut has_slots) = (false, false);
        for host in named {
            let host = host?;
            has_slots |= host.slots.is_some();
            match hosts.iter_mut().find(|known| known.name == host.name) {
                Some(known) => {
                    is_repeated = true;
                    let slots = known.slots.unwrap_or(1).saturating_add(host.slots.unwrap_or(1));
                    known.slots = Some(slots);
                }
                None => hosts.push(host),
            }
        }
        if hosts.is_empty() {
            return Err(BootError::new(
                format!("{source} names no host"),
                "Name at least one, such as localhost, or leave it out.",
            ));
        }
        if is_repeated && !has_slots {
            count_names(&mut hosts);
        }
        Ok(HostList { source: source.to_string(), hosts })
    }
}

/// Each time that a host is named is a slot: so one that is named once has one.
fn count_names(hosts: &mut [NamedHost]) {
    hosts.iter_mut().for_each(|host| host.slots = host.slots.or(Some(1)));
}

/// A word such as `name`, `name:slots` or `[address]:slots`.
fn host(source: &str, word: &str) -> Result<NamedHost, BootError> {
    let (name, slots) = match word.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((address, "")) => (address, None),
        Some((address, rest)) => (address, Some(rest.trim_start_matches(':'))),
        // An address of version 6 has several colons.
        None if word.matches(':').count() > 1 => (word, None),
        None => word.split_once(':').map_or((word, None), |(name, slots)| (name, Some(slots))),
    };
    let slots = slots.map(|text| text.parse::<u32>().ok().filter(|n| *n > 0).ok_or(text));
    match slots.transpose() {
        // A dash would be an option of ssh.
        Ok(slots) if !name.is_empty() && !name.starts_with('-') && !name.contains('\0') => {
            Ok(NamedHost { name: name.to_string(), slots })
        }
        _ => Err(malformed(source, word)),
    }
}

fn malformed(source: &str, word: &str) -> BootError {
    BootError::new(
        format!("{source}: {} is not a host", word.escape_debug()),
        "Give a name or an address, and maybe the number of ranks: node1:4. In a file, \
         node1 slots=4 says the same.",
    )
}

/// The host of a line of a file.
fn in_line(source: &str, line: &str) -> Option<Result<NamedHost, BootError>> {
    let words: Vec<&str> = line.split('#').next()?.split_ascii_whitespace().collect();
    let text = words.join(" ").replace(" =", "=").replace("= ", "=");
    let mut words = text.split_ascii_whitespace();
    let named = host(source, words.next()?);
    let mut slots = None;
    for word in words {
        match word.split_once('=') {
            Some(("slots", count)) => slots = Some(count.parse::<u32>()),
            // Of Open MPI: gasnetrun starts no more ranks than slots anyway.
            Some(("max_slots" | "max-slots", _)) => {}
            _ => return Some(Err(malformed(source, line))),
        }
    }
    Some(match (named, slots) {
        (Ok(named), Some(Ok(slots @ 1..))) => Ok(NamedHost { slots: Some(slots), ..named }),
        (Ok(_), Some(_)) => Err(malformed(source, line)),
        (named, None) => named,
        (Err(e), _) => Err(e),
    })
}

/// Pairs of a host and its slots.
fn of_lsf(value: &str) -> Vec<Result<NamedHost, BootError>> {
    let words: Vec<&str> = value.split_ascii_whitespace().collect();
    let pairs = words.chunks(2).map(|pair| match pair {
        [name, slots] => host(LSF, &format!("{name}:{slots}")),
        _ => Err(malformed(LSF, value)),
    });
    pairs.collect()
}

/// Slots of Slurm, such as `2(x3),1`, one for each host.
fn of_slurm(text: &str) -> Vec<u32> {
    let groups = text.split(',').filter_map(|group| {
        let (slots, times) = match group.split_once("(x") {
            Some((slots, times)) => (slots, times.strip_suffix(')')?.parse().ok()?),
            None => (group, 1),
        };
        Some((slots.parse::<u32>().ok().filter(|n| *n > 0)?, times))
    });
    groups.flat_map(|(slots, times): (u32, usize)| vec![slots; times.min(MOST_HOSTS)]).collect()
}

/// Hosts of one list of Slurm.
const MOST_HOSTS: usize = 65_536;

/// The hosts of a list of Slurm, such as `a[1-3,07],b`. `None` if it is malformed.
fn expanded(text: &str) -> Option<Vec<String>> {
    let mut all = Vec::new();
    let mut rest = text;
    while !rest.is_empty() {
        // A comma in brackets divides no hosts.
        let end = rest.find([',', '[']).unwrap_or(rest.len());
        let (name, after) = rest.split_at(end);
        if !after.starts_with('[') {
            all.push(name.to_string());
            rest = after.strip_prefix(',').unwrap_or(after);
            continue;
        }
        let (ranges, after) = after[1..].split_once(']')?;
        let (tail, after) = after.split_once(',').unwrap_or((after, ""));
        for range in ranges.split(',') {
            let (first, last) = range.split_once('-').unwrap_or((range, range));
            let (low, high) = (first.parse::<usize>().ok()?, last.parse::<usize>().ok()?);
            if high < low || high - low >= MOST_HOSTS || all.len() > MOST_HOSTS {
                return None;
            }
            let width = first.len();
            all.extend((low..=high).map(|n| format!("{name}{n:0width$}{tail}")));
        }
        rest = after;
    }
    (!all.iter().any(|name| name.is_empty() || name.starts_with('-'))).then_some(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(name: &str, slots: Option<u32>) -> NamedHost {
        NamedHost { name: name.into(), slots }
    }

    #[test]
    fn hosts_of_names() {
        let list = HostList::of_names("-H", "a:2,b  c, [fe80::1]:3 ::1,a").unwrap();
        let hosts = [
            named("a", Some(3)),
            named("b", None),
            named("c", None),
            named("fe80::1", Some(3)),
            named("::1", None),
        ];
        assert_eq!(list.hosts, hosts);
        for wrong in ["a:0", "a:x", ":3", "-oProxyCommand=x", "", "[::1]:x"] {
            assert!(HostList::of_names("-H", wrong).is_err(), "{wrong}");
        }
    }

    /// Each is a slot, also of a host that is named once.
    #[test]
    fn names_without_slots_that_are_repeated() {
        let hosts = HostList::of_names("-H", "b,a,a\r\na,a").unwrap().hosts;
        assert_eq!(hosts, [named("b", Some(1)), named("a", Some(4))]);
        let hosts = HostList::of_names("-H", "b,a").unwrap().hosts;
        assert_eq!(hosts, [named("b", None), named("a", None)]);
    }

    #[test]
    fn hosts_of_lines() {
        let lines = "a slots=2 max_slots=9\n\n# b\n  c # d\na\ne:4\n";
        let read = lines.lines().filter_map(|line| in_line("file", line));
        let hosts = HostList::new("file", read).unwrap().hosts;
        assert_eq!(hosts, [named("a", Some(3)), named("c", None), named("e", Some(4))]);
        for wrong in ["a slots=0", "a 4", "a slot=4", "a slots:4", "a slots"] {
            assert!(in_line("file", wrong).unwrap().is_err(), "{wrong}");
        }
        assert_eq!(in_line("file", "a  slots = 3").unwrap().unwrap(), named("a", Some(3)));
    }

    #[test]
    fn hosts_of_batch_systems() {
        let of = |text: &str| expanded(text).map(|all| all.join(" "));
        assert_eq!(of("node[1-3,07],b").as_deref(), Some("node1 node2 node3 node07 b"));
        assert_eq!(of("a,b[08-10]-x").as_deref(), Some("a b08-x b09-x b10-x"));
        assert!(
            ["a[1", "a[x]", "a[3-1]", "a[0-999999999]", "-a"].map(of).iter().all(|o| o.is_none())
        );
        assert_eq!(of_slurm("2(x3),1"), [2, 2, 2, 1]);
        let lsf: Result<Vec<_>, _> = of_lsf("a 2 b 3").into_iter().collect();
        assert_eq!(lsf.unwrap(), [named("a", Some(2)), named("b", Some(3))]);
        assert!(of_lsf("a 2 b").pop().unwrap().is_err());
    }

    /// Any text is a list of hosts, none of which ssh would take for an option, or is refused.
    fn any_list(input: &[u8]) {
        let text = String::from_utf8_lossy(input);
        let lines = HostList::new("file", text.lines().filter_map(|line| in_line("file", line)));
        for list in [HostList::of_names("-H", &text), lines].into_iter().flatten() {
            assert!(!list.hosts.is_empty());
            for host in list.hosts {
                assert!(!host.name.is_empty() && !host.name.starts_with('-'));
                assert!(host.slots != Some(0));
            }
        }
        if let Some(all) = expanded(&text) {
            assert!(all.iter().all(|name| !name.is_empty() && !name.starts_with('-')));
        }
        of_slurm(&text);
        of_lsf(&text);
    }

    #[test]
    fn fuzz_hosts() {
        fuzz::check("hosts", 20_000, any_list);
    }
}
