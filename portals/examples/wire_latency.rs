//! Puts over a wire between two pinned processes, until their ACK has been read. They are
//! measured in turn with the same bytes over a plain TCP socket and a short answer.
//!
//! `cargo run --release --example wire_latency` measures the TCP wire; with the name of a provider
//! of libfabric as argument, the wire over that. Run by hand; nothing depends on its numbers.

use std::io::{ErrorKind, Read, Write};
use std::net::{IpAddr, Ipv4Addr, TcpListener, TcpStream};
use std::time::Instant;

use portals3::md_options::*;
use portals3::nal::ofi::{OfiRemoteAccess, OfiSpec, OfiWire, ProviderChoice};
use portals3::nal::shm::{AttachPolicy, Fabric, FabricSpec};
use portals3::nal::tcp::{JobSecret, LibraryVersion, TcpSpec, TcpWire};
use portals3::nal::wire::{PeerEnd, PeerFailure, Wire};
use portals3::*;
use sys::child::{self, Forked};
use sys::cpu::CpuMask;
use sys::memory::MemFd;

const ROUNDS: usize = 100;
const LARGE: usize = 1 << 20;

/// What the second process is to do next.
#[derive(Clone, Copy)]
enum Phase {
    Raw { bytes: usize, times: usize },
    Puts { times: usize },
}

/// Reads without waiting, as a library that polls does.
fn read_all(mut stream: &TcpStream, mut into: &mut [u8]) {
    while !into.is_empty() {
        match stream.read(into) {
            Ok(0) => std::process::exit(0),
            Ok(n) => into = &mut into[n..],
            Err(e) if e.kind() == ErrorKind::WouldBlock => {}
            Err(e) => panic!("{e}"),
        }
    }
}

fn write_all(mut stream: &TcpStream, mut from: &[u8]) {
    while !from.is_empty() {
        match stream.write(from) {
            Ok(n) => from = &from[n..],
            Err(e) if e.kind() == ErrorKind::WouldBlock => {}
            Err(e) => panic!("{e}"),
        }
    }
}

/// The wire that is measured, and its address.
fn open_wire() -> (Box<dyn Wire>, Vec<u8>) {
    let on_failure = Box::new(|failure: &PeerFailure| {
        if failure.end != PeerEnd::Closed {
            eprintln!("{failure}");
        }
        std::process::exit(0)
    });
    let (address, ports) = (IpAddr::V4(Ipv4Addr::LOCALHOST), 0..=0);
    let secret = JobSecret::from_bytes([1; 16]);
    match std::env::args().nth(1) {
        None => {
            let library = LibraryVersion::new("bench");
            let on_lack = |e: &std::io::Error| eprintln!("{e}");
            let spec = TcpSpec { address, ports, secret, library, on_failure, on_lack };
            let wire = TcpWire::open(spec).expect("a wire");
            let address = wire.address().to_vec();
            (Box::new(wire), address)
        }
        Some(provider) => {
            let providers = ProviderChoice::Include(vec![provider]);
            let (tag_mode, processes) = (None, 2);
            let spec = OfiSpec {
                address,
                ports,
                secret,
                providers,
                tag_mode,
                remote: OfiRemoteAccess::Never,
                thread_grouping: false,
                events: 16,
                processes,
                on_failure,
            };
            let wire = OfiWire::open(spec).expect("a wire");
            let address = wire.address().to_vec();
            (Box::new(wire), address)
        }
    }
}

struct Side {
    ni: NetworkInterface,
    eq: EqHandle,
    watch: EqWatch,
    memory: Vec<u8>,
    raw: TcpStream,
}

impl Side {
    fn open(nid: u32, raw: TcpStream) -> Side {
        raw.set_nodelay(true).expect("TCP_NODELAY");
        raw.set_nonblocking(true).expect("O_NONBLOCK");
        let (wire, address) = open_wire();
        let mut addresses = [address.clone(), address];
        write_all(&raw, &addresses[0]);
        read_all(&raw, &mut addresses[1 - nid as usize]);
        let arena = MemFd::create(c"arena").expect("memfd_create").into();
        let (bytes, attach) = (4 << 20, AttachPolicy::Allowed);
        let fabric = FabricSpec { arena, index: 0, size: 1, bytes, nid, jid: 1, attach };
        let fabric = Fabric::join(fabric).expect("a fabric");
        let ni = NetworkInterface::joined(fabric, &[1, 1], wire, None);
        let mut ni = ni.expect("joined");
        // SAFETY: this process has one thread.
        unsafe { ni.set_single_threaded() };
        ni.connect(addresses.concat().into()).expect("addresses");
        let eq = ni.eq_alloc(64, None).expect("PtlEQAlloc");
        let watch = ni.eq_watch(eq).expect("a queue");
        Side { ni, eq, watch, memory: vec![nid as u8; LARGE], raw }
    }

    fn md(&mut self, options: u32) -> MemoryDescriptor {
        MemoryDescriptor {
            start: self.memory.as_mut_ptr().cast(),
            length: LARGE as u64,
            threshold: THRESH_INF,
            max_size: 0,
            options: options | EVENT_START_DISABLE,
            user_ptr: std::ptr::null_mut(),
            eq: self.eq,
        }
    }

    /// Polls for an event of this kind.
    fn await_event(&self, kind: PtlEventKind) {
        while !self.ni.eq_next(&self.watch, &mut [0; 4]).is_some_and(|e| e.kind == kind) {}
    }

    fn serve(&mut self, phase: Phase) {
        match phase {
            Phase::Raw { bytes, times } => {
                for _ in 0..times {
                    read_all(&self.raw, &mut self.memory[..bytes]);
                    write_all(&self.raw, &[0; 8]);
                }
            }
            Phase::Puts { times } => {
                for _ in 0..times {
                    self.await_event(PtlEventKind::PutEnd);
                }
            }
        }
    }
}

/// Microseconds per call.
fn time(count: usize, mut work: impl FnMut()) -> f64 {
    let start = Instant::now();
    for _ in 0..count {
        work();
    }
    start.elapsed().as_nanos() as f64 / count as f64 / 1000.0
}

fn main() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a socket");
    let address = listener.local_addr().expect("its address");
    let sizes = [(8, 200), (LARGE, 5)];
    let phases = sizes.map(|(bytes, times)| [Phase::Raw { bytes, times }, Phase::Puts { times }]);
    // SAFETY: this process has one thread.
    let forked = unsafe { child::fork() }.expect("fork");
    let Forked::Parent(_) = forked else {
        CpuMask::of([1]).bind();
        let mut side = Side::open(1, TcpStream::connect(address).expect("connect"));
        let options = OP_PUT | MANAGE_REMOTE;
        let me = side.ni.me_attach(4, PtlProcessId::ANY, 0, 0, Unlink::Retain, InsPos::After);
        let md = side.md(options);
        // SAFETY: the memory stays as long as the process.
        unsafe { side.ni.md_attach(me.expect("PtlMEAttach"), &md, Unlink::Retain) }
            .expect("PtlMDAttach");
        for _ in 0..=ROUNDS {
            for phase in phases.iter().flatten() {
                write_all(&side.raw, &[0; 8]); // ready
                side.serve(*phase);
            }
        }
        std::process::exit(0)
    };
    CpuMask::of([0]).bind();
    let mut side = Side::open(0, listener.accept().expect("accept").0);
    let md = side.md(0);
    // SAFETY: as above.
    let md = unsafe { side.ni.md_bind(&md, Unlink::Retain) }.expect("PtlMDBind");
    let target = PtlProcessId { nid: 1, pid: 0 };
    let mut ready = [0; 8];
    let mut results: [[Vec<f64>; 2]; 2] = Default::default();
    for round in 0..=ROUNDS {
        for ((bytes, times), results) in sizes.into_iter().zip(&mut results) {
            read_all(&side.raw, &mut ready);
            let raw = time(times, || {
                write_all(&side.raw, &side.memory[..bytes]);
                read_all(&side.raw, &mut ready);
            });
            read_all(&side.raw, &mut ready);
            let put = time(times, || {
                let put =
                    side.ni.put_region(md, 0, bytes as u64, AckReq::Ack, target, 4, 0, 0, 0, 0);
                put.expect("PtlPut");
                side.await_event(PtlEventKind::Ack);
            });
            if round != 0 {
                results[0].push(raw);
                results[1].push(put);
            }
        }
    }
    for ((bytes, _), results) in sizes.into_iter().zip(&mut results) {
        let mut of = |which: usize| {
            let values: &mut Vec<f64> = &mut results[which];
            values.sort_by(f64::total_cmp);
            [values[values.len() / 2], values[values.len() / 10]]
        };
        let ([raw, raw_10], [put, put_10]) = (of(0), of(1));
        println!(
            "{bytes} bytes: plain TCP {raw:.1}/{raw_10:.1} us, put and ACK {put:.1}/{put_10:.1} us \
             (median/10th percentile), ratio {:.2}/{:.2}",
            put / raw,
            put_10 / raw_10
        );
    }
}
