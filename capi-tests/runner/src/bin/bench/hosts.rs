//! Systems over several hosts, which are network namespaces of this machine (`ci/with-hosts.sh`).

use crate::bench_system::{BenchSystem, Kind, Start};
use crate::building::{cc, compile};
use crate::identity;
use crate::turns::STARTED;
use capi_tests::build_trees;

/// The hosts that a comparison needs.
const HOSTS: u32 = 4;

/// The providers of libfabric: how systems are called, and the value of
/// GASNET_OFI_PROVIDER_INCLUDE. The first has two names: net in libfabric 1.17, tcp in 2.x.
const PROVIDERS: [(&str, &str); 2] = [("net", "net,tcp"), ("rxm", "tcp;ofi_rxm")];
const INCLUDE: &str = "GASNET_OFI_PROVIDER_INCLUDE";
/// The command that enters a host: `ci/with-hosts.sh` sets it.
const SSH: &str = "GASNET_SSH_CMD";
const TWO_HOSTS: &str = "host1:1,host2:1";

/// `ours` over these hosts, with these variables.
fn over(
    ours: &BenchSystem,
    (name, kind): (&str, Kind),
    hosts: &[&str],
    variables: &[(&str, &str)],
) -> BenchSystem {
    let gasnetrun = build_trees::build().join("bin/gasnetrun").display().to_string();
    let mut words = vec![gasnetrun, "-H".into()];
    words.extend(hosts.iter().map(ToString::to_string));
    let mut system = BenchSystem {
        name: name.to_string(),
        start: Start::JobLauncher(words),
        kind,
        launch: None,
        ..ours.clone()
    };
    system.environment.extend(variables.iter().map(|(n, v)| (n.to_string(), v.to_string())));
    system
}

/// The program of this name: a wire without GASNet.
fn bare(
    name: &str,
    program: &'static str,
    library: Option<&str>,
    variables: &[(&str, &str)],
) -> Result<BenchSystem, String> {
    let programs = build_trees::build().join("bench/wire");
    let flags: Vec<String> = library.iter().map(ToString::to_string).collect();
    compile(&cc(), program, &programs, &flags)?;
    let environment = variables.iter().map(|(n, v)| (n.to_string(), v.to_string())).collect();
    let version = library.map(|_| identity::of_libfabric()).unwrap_or_default();
    let system = BenchSystem::new(name, programs, Kind::BareWire(program));
    Ok(BenchSystem { environment, version, ..system })
}

/// Another GASNet over two hosts.
fn peer(text: &str, ssh: (&str, &str)) -> Result<BenchSystem, String> {
    let mut peer = BenchSystem::peer(text)?;
    if let Some((prefix, "udp")) = text.split_once(',') {
        let words = [format!("{prefix}/bin/amudprun"), "-spawn".into(), "S".into()];
        peer.start = Start::JobLauncher(words.to_vec());
    }
    for (name, value) in [ssh, ("GASNET_SSH_SERVERS", "host1 host2")] {
        peer.environment.push((name.to_string(), value.to_string()));
    }
    Ok(BenchSystem { kind: Kind::Hosts, launch: None, ..peer })
}

/// Open MPI's launcher over the same command as ours.
fn openmpi(hosts: &str, (_, ssh): (&str, &str)) -> Result<BenchSystem, String> {
    let system = BenchSystem::foreign("openmpi")?;
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
    let command =
        std::env::var(SSH).map_err(|_| format!("{SSH} is not set: use `make bench HOSTS=2`"))?;
    let ssh = (SSH, command.as_str());
    let (tcp, ofi) = (("GASNET_NETWORK", "TCP"), ("GASNET_NETWORK", "OFI"));
    let thread = ("GASNET_PROGRESS", "THREAD");
    let all = (1..=HOSTS).map(|n| format!("host{n}:{}", STARTED / HOSTS)).collect::<Vec<_>>();
    let all = all.join(",");
    let ours = &BenchSystem::ours("tcp", &[ssh])?;
    let mut systems = vec![
        bare("bare-tcp", "wire_tcp", None, &[ssh])?,
        over(ours, ("tcp", Kind::Hosts), &[TWO_HOSTS], &[tcp]),
        over(ours, ("tcp-thread", Kind::Idle), &[TWO_HOSTS], &[tcp, thread]),
        over(ours, ("one-host", Kind::Neighbours(2)), &["host1:2"], &[]),
        over(
            ours,
            ("with-second", Kind::Neighbours(3)),
            &["host1:2,host2:1", "--map-by", "host"],
            &[tcp],
        ),
        over(ours, ("four-hosts", Kind::HostStarts("startup")), &[&all], &[tcp]),
    ];
    let mut optional = Vec::new();
    for (name, provider) in PROVIDERS {
        let include = (INCLUDE, provider);
        let bare_name = format!("bare-{name}");
        optional.push(bare(&bare_name, "wire_ofi", Some("-lfabric"), &[ssh, include]));
        optional.push(Ok(over(ours, (name, Kind::Hosts), &[TWO_HOSTS], &[ofi, include])));
        let name = format!("{name}-thread");
        let variables = [ofi, include, thread];
        optional.push(Ok(over(ours, (&name, Kind::Idle), &[TWO_HOSTS], &variables)));
    }
    optional.push(openmpi(&all, ssh));
    for system in optional {
        match system {
            Ok(system) => systems.push(system),
            Err(e) => eprintln!("bench: left out: {e}"),
        }
    }
    for text in peers {
        systems.push(peer(text, ssh)?);
    }
    Ok(systems)
}
