//! Systems over several hosts, which are network namespaces of this machine (`ci/with-hosts.sh`),
//! and what they do in turn.

use crate::bench_system::{BenchSystem, Kind, Start};
use crate::building::{cc, compile};
use crate::turns::Turn;
use capi_tests::build_trees;

/// The hosts that a comparison needs.
pub(crate) const HOSTS: u32 = 4;
/// Ranks that start on all of them.
pub(crate) const STARTED: u32 = 32;

/// A round.
pub(crate) const HOST_TURNS: &[Turn] = &[
    Turn::Hosts(&[
        ("rma", 2, &["put", "get", "put_bandwidth"]),
        ("am", 2, &["short_trip", "medium_trip"]),
        ("barrier", 2, &["barrier_anonymous"]),
    ]),
    Turn::Idle(("idle", 2, &[])),
    Turn::Neighbours(&[("rma", &["put", "get"]), ("am", &["short_trip"])]),
    Turn::HostStarts,
];

/// The providers of libfabric: how systems are called, and the value of
/// GASNET_OFI_PROVIDER_INCLUDE. The first has two names: net in libfabric 1.17, tcp in 2.x.
const PROVIDERS: [(&str, &str); 2] = [("net", "net,tcp"), ("rxm", "tcp;ofi_rxm")];
const INCLUDE: &str = "GASNET_OFI_PROVIDER_INCLUDE";
const TWO_HOSTS: &str = "host1:1,host2:1";

/// What `ci/with-hosts.sh` says about its hosts.
fn entered(name: &str) -> Result<String, String> {
    std::env::var(name).map_err(|_| format!("{name} is not set: use `make bench HOSTS=2`"))
}

/// Our library over these hosts.
fn over(
    name: &str,
    hosts: &[&str],
    env: &[(&str, &str)],
    kind: Kind,
) -> Result<BenchSystem, String> {
    let mut words =
        vec![build_trees::build().join("bin/gasnetrun").display().to_string(), "-H".into()];
    words.extend(hosts.iter().map(ToString::to_string));
    let ssh = entered("GASNET_SSH_CMD")?;
    let mut env = env.to_vec();
    env.push(("GASNET_SSH_CMD", &ssh));
    let ours = BenchSystem::ours(name, &env)?;
    Ok(BenchSystem { start: Start::JobLauncher(words), kind, launch: None, ..ours })
}

/// The program of this name: a wire without GASNet.
fn bare(name: &str, program: &'static str, env: &[(&str, &str)]) -> Result<BenchSystem, String> {
    let programs = build_trees::build().join("bench/wire");
    let flags = if env.is_empty() { Vec::new() } else { vec!["-lfabric".to_string()] };
    compile(&cc(), program, &programs, &flags)?;
    let entered = [("GASNET_SSH_CMD", entered("GASNET_SSH_CMD")?)];
    let environment = entered.iter().map(|(n, v)| (*n, v.as_str())).chain(env.iter().copied());
    Ok(BenchSystem {
        name: name.to_string(),
        start: Start::Fork,
        environment: environment.map(|(n, v)| (n.to_string(), v.to_string())).collect(),
        programs,
        kind: Kind::BareWire(program),
        launch: None,
    })
}

/// Another GASNet over two hosts.
fn peer(text: &str) -> Result<BenchSystem, String> {
    let mut peer = BenchSystem::peer(text)?;
    if let Some((prefix, "udp")) = text.split_once(',') {
        let words = [format!("{prefix}/bin/amudprun"), "-spawn".into(), "S".into()];
        peer.start = Start::JobLauncher(words.to_vec());
    }
    let ssh = entered("GASNET_SSH_CMD")?;
    for (name, value) in [("GASNET_SSH_CMD", ssh.as_str()), ("GASNET_SSH_SERVERS", "host1 host2")]
    {
        peer.environment.push((name.to_string(), value.to_string()));
    }
    Ok(BenchSystem { kind: Kind::Hosts, launch: None, ..peer })
}

/// Open MPI's launcher over the same command as ours.
fn openmpi(hosts: &str) -> Result<BenchSystem, String> {
    let system = BenchSystem::foreign("openmpi")?;
    let ssh = entered("GASNET_SSH_CMD")?;
    let words = format!(
        "mpirun.openmpi --allow-run-as-root --bind-to none --mca plm rsh --mca plm_rsh_agent {ssh} \
         --mca oob_tcp_if_include eth0 --mca btl_tcp_if_include eth0 --host {hosts}"
    );
    let start = Start::JobLauncher(words.split(' ').map(str::to_string).collect());
    let name = "openmpi-hosts".to_string();
    Ok(BenchSystem { name, start, kind: Kind::HostStarts("mpi_startup"), launch: None, ..system })
}

/// All systems. What this machine lacks is left out, with a line on standard error.
pub(crate) fn systems(peers: &[String]) -> Result<Vec<BenchSystem>, String> {
    let (tcp, ofi) = (("GASNET_NETWORK", "TCP"), ("GASNET_NETWORK", "OFI"));
    let thread = ("GASNET_PROGRESS", "THREAD");
    let all = (1..=HOSTS).map(|n| format!("host{n}:{}", STARTED / HOSTS)).collect::<Vec<_>>();
    let all = all.join(",");
    let mut systems = vec![
        bare("bare-tcp", "wire_tcp", &[])?,
        over("tcp", &[TWO_HOSTS], &[tcp], Kind::Hosts)?,
        over("tcp-thread", &[TWO_HOSTS], &[tcp, thread], Kind::Idle)?,
        over("one-host", &["host1:2"], &[], Kind::Neighbours(2))?,
        over(
            "with-second",
            &["host1:2,host2:1", "--map-by", "host"],
            &[tcp],
            Kind::Neighbours(3),
        )?,
        over("four-hosts", &[&all], &[tcp], Kind::HostStarts("startup"))?,
    ];
    let mut optional = Vec::new();
    for (name, provider) in PROVIDERS {
        let include = (INCLUDE, provider);
        optional.push(bare(&format!("bare-{name}"), "wire_ofi", &[include]));
        optional.push(over(name, &[TWO_HOSTS], &[ofi, include], Kind::Hosts));
        let name = format!("{name}-thread");
        optional.push(over(&name, &[TWO_HOSTS], &[ofi, include, thread], Kind::Idle));
    }
    optional.push(openmpi(&all));
    for system in optional {
        match system {
            Ok(system) => systems.push(system),
            Err(e) => eprintln!("bench: left out: {e}"),
        }
    }
    for text in peers {
        systems.push(peer(text)?);
    }
    Ok(systems)
}
