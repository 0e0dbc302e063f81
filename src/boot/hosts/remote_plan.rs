//! What the supervisor of another host must know: its ranks, their program and their surroundings.
//!
//! Made by `launch`, read by [`super::remote`]. Invariant: what is decoded is what was encoded, or
//! nothing; both ends are of one version of the library.

use crate::boot::launch_plan::{CpuBinding, LaunchPlan};
use crate::env;
use crate::limits::MAX_RANKS;
use crate::tools::this_process::working_folder;
use std::ffi::OsString;
use std::iter::repeat_n;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::PathBuf;
use sys::limits;

/// What a host is to start.
#[derive(Clone, Debug)]
pub struct RemotePlan {
    /// The number of the host of each rank, by rank.
    pub host_of: Vec<u32>,
    /// The program of the ranks, and how it is started.
    pub launch: LaunchPlan,
    /// Where the ranks begin.
    pub folder: PathBuf,
    /// Their environment.
    pub variables: Vec<(OsString, OsString)>,
    /// Their limits, by the kernel's number.
    pub limits: Vec<(u32, Option<u64>)>,
    /// The hosts below the reader of the plan, which it is to start.
    pub below: Vec<HostToStart>,
}

/// A host that another one starts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostToStart {
    /// Its number in the job.
    pub number: u32,
    /// How ssh and messages call it.
    pub name: String,
}

impl RemotePlan {
    /// This process's folder, environment and limits are those of the job.
    pub fn of_here(host_of: Vec<u32>, launch: LaunchPlan) -> RemotePlan {
        let variables = std::env::vars_os();
        RemotePlan {
            host_of,
            launch,
            folder: working_folder().unwrap_or_else(|_| "/".into()),
            variables: variables.filter(|(name, _)| !env::is_of_host(name.as_bytes())).collect(),
            limits: limits::PASSED_ON.iter().map(|&r| (r, limits::soft(r))).collect(),
            below: Vec::new(),
        }
    }

    /// As sent to a host with these hosts below it.
    pub fn encode_for(&self, below: &[HostToStart]) -> Vec<u8> {
        let mut out = Encoder(Vec::new());
        let LaunchPlan { program, args, bind, cores, prefix, fixed_addresses, .. } = &self.launch;
        let runs = self.host_of.chunk_by(|a, b| a == b);
        out.list(runs.map(|run| [run[0], run.len() as u32].map(u32::to_le_bytes).concat()));
        out.bytes(program.as_bytes());
        out.list(args.iter().map(|a| a.as_bytes()));
        let bind = match bind {
            CpuBinding::None => 0,
            CpuBinding::Core => 1,
            CpuBinding::Numa => 2,
        };
        let flags = [*prefix, *fixed_addresses, self.launch.verbose].map(u8::from);
        out.bytes(&[&[bind][..], &flags, &cores.to_le_bytes()].concat());
        let output = self.launch.output.as_ref().map_or(&b""[..], |o| o.as_os_str().as_bytes());
        out.bytes(output);
        out.bytes(self.folder.as_os_str().as_bytes());
        let both = self.variables.iter().flat_map(|(name, value)| [name, value]);
        out.list(both.map(|text| text.as_bytes()));
        // Where there is no limit, the number of the resource stands alone.
        out.list(self.limits.iter().map(|(resource, limit)| {
            let mut bytes = resource.to_le_bytes().to_vec();
            bytes.extend(limit.iter().flat_map(|limit| limit.to_le_bytes()));
            bytes
        }));
        out.list(below.iter().map(|h| [&h.number.to_le_bytes()[..], h.name.as_bytes()].concat()));
        out.0
    }

    /// What was encoded; `None` if these bytes are no plan.
    pub fn decode(bytes: &[u8]) -> Option<RemotePlan> {
        let mut from = Decoder(bytes);
        let number = |b: Vec<u8>| Some(u32::from_le_bytes(b.try_into().ok()?));
        let mut host_of = Vec::new();
        for run in from.list()? {
            let (host, ranks) = run.split_first_chunk()?;
            let ranks = number(ranks.to_vec())? as usize;
            if ranks > MAX_RANKS as usize - host_of.len() {
                return None;
            }
            host_of.extend(repeat_n(u32::from_le_bytes(*host), ranks));
        }
        let program = OsString::from_vec(from.bytes()?.to_vec());
        let args = from.list()?.into_iter().map(OsString::from_vec).collect();
        let [bind, prefix, fixed_addresses, verbose, cores @ ..] = from.bytes()? else {
            return None;
        };
        let output = Some(from.bytes()?).filter(|path| !path.is_empty());
        let path = |bytes: &[u8]| PathBuf::from(OsString::from_vec(bytes.to_vec()));
        let launch = LaunchPlan {
            size: host_of.len() as u32,
            hosts: None,
            program,
            args,
            bind: match bind {
                0 => CpuBinding::None,
                1 => CpuBinding::Core,
                _ => CpuBinding::Numa,
            },
            cores: number(cores.to_vec())?,
            prefix: *prefix != 0,
            fixed_addresses: *fixed_addresses != 0,
            verbose: *verbose != 0,
            timeout: None,
            output: output.map(path),
            gdb: None,
        };
        let folder = path(from.bytes()?);
        let texts: Vec<OsString> = from.list()?.into_iter().map(OsString::from_vec).collect();
        let variables = texts.chunks(2).map(|pair| match pair {
            [name, value] => Some((name.clone(), value.clone())),
            _ => None,
        });
        let variables = variables.collect::<Option<Vec<_>>>()?;
        let limits = from.list()?.into_iter().map(|limit| {
            let (resource, limit) = limit.split_first_chunk()?;
            let limit = (!limit.is_empty()).then(|| limit.try_into().ok().map(u64::from_le_bytes));
            Some((u32::from_le_bytes(*resource), limit.flatten()))
        });
        let limits = limits.collect::<Option<Vec<_>>>()?;
        let below = from.list()?.into_iter().map(|host| {
            let (number, name) = host.split_first_chunk()?;
            let name = String::from_utf8(name.to_vec()).ok()?;
            Some(HostToStart { number: u32::from_le_bytes(*number), name })
        });
        let below = below.collect::<Option<Vec<_>>>()?;
        let plan = RemotePlan { host_of, launch, folder, variables, limits, below };
        from.0.is_empty().then_some(plan)
    }
}

/// Byte strings, each behind its length.
struct Encoder(Vec<u8>);

impl Encoder {
    fn bytes(&mut self, bytes: &[u8]) {
        self.0.extend((bytes.len() as u32).to_le_bytes());
        self.0.extend_from_slice(bytes);
    }

    fn list<B: AsRef<[u8]>>(&mut self, all: impl Iterator<Item = B>) {
        let mut inner = Encoder(Vec::new());
        all.for_each(|bytes| inner.bytes(bytes.as_ref()));
        self.bytes(&inner.0);
    }
}

/// The rest of what an [`Encoder`] made.
struct Decoder<'a>(&'a [u8]);

impl<'a> Decoder<'a> {
    fn bytes(&mut self) -> Option<&'a [u8]> {
        let (length, rest) = self.0.split_first_chunk()?;
        let (bytes, rest) = rest.split_at_checked(u32::from_le_bytes(*length) as usize)?;
        self.0 = rest;
        Some(bytes)
    }

    fn list(&mut self) -> Option<Vec<Vec<u8>>> {
        let mut inner = Decoder(self.bytes()?);
        let mut all = Vec::new();
        while !inner.0.is_empty() {
            all.push(inner.bytes()?.to_vec());
        }
        Some(all)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plan_survives_its_message() {
        let launch = LaunchPlan {
            size: 4,
            hosts: None,
            program: "./p".into(),
            args: vec!["".into(), "a b".into()],
            bind: CpuBinding::Core,
            cores: 2,
            prefix: true,
            fixed_addresses: false,
            verbose: true,
            timeout: None,
            output: Some("/o".into()),
            gdb: None,
        };
        let mut plan = RemotePlan::of_here(vec![0, 1, 1, 0], launch);
        plan.below.push(HostToStart { number: 7, name: "h7".into() });
        let bytes = plan.encode_for(&plan.below);
        let read = RemotePlan::decode(&bytes).unwrap();
        assert_eq!(format!("{read:?}"), format!("{plan:?}"));
        assert!((0..bytes.len()).all(|end| RemotePlan::decode(&bytes[..end]).is_none()));
    }

    /// Any bytes are a plan or none.
    fn any_bytes(input: &[u8]) {
        if let Some(plan) = RemotePlan::decode(input) {
            assert!(RemotePlan::decode(&plan.encode_for(&plan.below)).is_some());
        }
    }

    #[test]
    fn fuzz_remote_plan() {
        fuzz::check("remote_plan", 20_000, any_bytes);
    }
}
