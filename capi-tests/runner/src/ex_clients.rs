//! Clients of GASNet-EX: programs that use exactly the names that Caffeine, Realm, UPC++ and
//! Chapel use, which `capi-tests/clients/ex_names.tsv` lists. Each does with them what the client
//! does, and checks the results. Built against an installed library, without a warning.

use crate::build_trees::{ClientMode, compiler, root, succeed};
use crate::clients::{dir, pkg, prefix};
use crate::hosts;
use crate::job_launcher::JobLauncher;
use crate::test_job::TestJob;
use crate::{Failure, TestCase};
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// A program, its languages and its thread modes.
struct ExClient {
    name: &'static str,
    source: &'static str,
    languages: &'static [&'static str],
    modes: &'static [ClientMode],
}

const CPP: &[&str] = &["-std=c++11", "-std=c++14", "-std=c++17", "-std=c++20"];
const CLIENTS: [ExClient; 4] = [
    ExClient {
        name: "caffeine",
        source: "caffeine.c",
        languages: &["-std=c99", "-std=c11"],
        modes: &[ClientMode::Seq, ClientMode::Par],
    },
    ExClient { name: "realm", source: "realm.cc", languages: CPP, modes: &[ClientMode::Par] },
    ExClient {
        name: "upcxx",
        source: "upcxx.cc",
        languages: &["-std=c++11 -DGASNET_WITH_EX", "-std=c++20 -DGASNET_WITH_EX"],
        modes: &[ClientMode::Seq, ClientMode::Par],
    },
    // Each order of the two headers, and gasnet.h with both interfaces. As C++, handles of both
    // are one type.
    ExClient {
        name: "hybrid",
        source: "hybrid.c",
        languages: &[
            "-std=c99",
            "-std=c11",
            "-std=c++11 -x c++ -DGASNETEX_FIRST",
            "-std=c++20 -x c++",
            "-std=c++17 -x c++ -DGASNET_WITH_EX",
        ],
        modes: &[ClientMode::Seq, ClientMode::Par],
    },
];

/// How the ranks of a client reach each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ClientPath {
    CrossMapped,
    Portals,
    /// Two hosts.
    Hosts,
}

/// One entry per client and path.
pub fn cases() -> Vec<TestCase> {
    let no_hosts = hosts::missing();
    let mut all = Vec::new();
    for client in &CLIENTS {
        let name = format!("ex_clients::{}", client.name);
        all.push(TestCase::new(format!("{name}_names"), true, || names(client)));
        for (path, path_name, sampled) in [
            (ClientPath::CrossMapped, "cross_mapped", true),
            (ClientPath::Portals, "portals", false),
            (ClientPath::Hosts, "hosts", false),
        ] {
            let run = move || runs(client, path);
            let mut case = TestCase::new(format!("{name}_{path_name}"), sampled, run);
            if path == ClientPath::Hosts {
                case.missing.clone_from(&no_hosts);
            }
            all.push(case);
        }
    }
    all
}

fn source(client: &ExClient) -> PathBuf {
    root().join("capi-tests/clients").join(client.source)
}

fn read(path: &Path) -> Result<String, Failure> {
    fs::read_to_string(path).map_err(|e| format!("{}: {e}", path.display()))
}

/// The identifiers of a source, each with whether a number or a type is pasted to it.
fn identifiers(text: &str) -> BTreeSet<(&str, bool)> {
    let part = |c: char| c.is_alphanumeric() || c == '_';
    let mut all = BTreeSet::new();
    let mut rest = text;
    while let Some(start) = rest.find(part) {
        rest = &rest[start..];
        let (word, after) = rest.split_at(rest.find(|c| !part(c)).unwrap_or(rest.len()));
        all.insert((word, after.starts_with("##")));
        rest = after;
    }
    all
}

/// The client uses its names of the table, and no other of GASNet-EX.
fn names(client: &ExClient) -> Result<(), Failure> {
    let table = read(&root().join("capi-tests/clients/ex_names.tsv"))?;
    let listed: BTreeSet<&str> = table
        .lines()
        .filter(|line| !line.starts_with('#'))
        .filter_map(|line| line.split_once('\t'))
        .filter(|(_, programs)| programs.split(' ').any(|p| p == client.name))
        .map(|(name, _)| name)
        .collect();
    let text = read(&source(client))?;
    let used = identifiers(&text);
    let pasted: Vec<&str> = used.iter().filter(|(_, pasted)| *pasted).map(|(w, _)| *w).collect();
    let is_used = |name: &str| {
        used.contains(&(name, false)) || pasted.iter().any(|word| name.starts_with(word))
    };
    let unused: Vec<&&str> = listed.iter().filter(|name| !is_used(name)).collect();
    let others: Vec<&str> = used
        .iter()
        .filter(|(word, pasted)| {
            !pasted
                && (word.starts_with("gex_") || word.starts_with("GEX_"))
                && !listed.contains(word)
        })
        .map(|(word, _)| *word)
        .collect();
    if listed.len() < 50 || !unused.is_empty() || !others.is_empty() {
        return Err(format!(
            "{}: {} names; not used: {unused:?}; used, but not listed: {others:?}",
            client.source,
            listed.len()
        ));
    }
    Ok(())
}

/// The client passes, compiled for each language and mode.
fn runs(client: &ExClient, path: ClientPath) -> Result<(), Failure> {
    let prefix = prefix()?;
    let dir = dir(&format!("ex_{}", client.name))?;
    for &mode in client.modes {
        let package = format!("gasnet-portals-{}", mode.name());
        for (i, language) in client.languages.iter().enumerate() {
            let mut cc = if language.contains("c++") { Command::new("g++") } else { compiler() };
            cc.args(language.split(' '));
            cc.args(["-Wall", "-Wextra", "-pedantic", "-Wno-unused-parameter", "-Werror"]);
            cc.arg(source(client)).args(pkg(&prefix, &["--cflags", "--libs", &package])?);
            // Realm and UPC++ start threads.
            cc.arg("-pthread");
            let program = dir.join(format!("{}-{i}", mode.name()));
            cc.arg("-o").arg(&program);
            succeed(cc)?;
            let ranks = 2 + i as u32 % 2;
            let mut job = TestJob::new(&prefix, &program, &[], JobLauncher::Gasnetrun, ranks)
                .without_library_path();
            job = match path {
                ClientPath::CrossMapped => job,
                ClientPath::Portals => job.env("GASNET_SUPERNODE_MAXSIZE", "1"),
                ClientPath::Hosts => hosts::on_two(job),
            };
            let ended = job.watchdog(Duration::from_secs(60)).run()?;
            ended.tidy()?;
            if ended.code != Some(0) || !ended.output.contains("PASS") {
                return Err(ended.failure("expected exit code 0 and PASS".to_string()));
            }
        }
    }
    Ok(())
}
