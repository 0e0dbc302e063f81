//! Jobs of several hosts in one process: each host has a fabric of its own, and each process a
//! wire over the loopback device.

mod lacks;
mod strangers;

use super::end::decode_address;
use super::limits::{LOST_MS, STRANGER_NS, WINDOW_FRAMES};
use super::*;
use crate::nal::shm::{AttachPolicy, Fabric, FabricSpec};
use crate::nal::wire::{PeerEnd, PeerFailure};
use crate::test_memory::md;
use crate::types::*;
use crate::{EqHandle, NetworkInterface};
use core::ptr;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use sys::memory::MemFd;

const LIMITS: NiLimits = NiLimits { max_mes: 64, max_mds: 256, max_eqs: 8, ..NiLimits::DEFAULT };

/// A process of a test's job.
struct Process {
    ni: NetworkInterface,
    eq: EqHandle,
    address: SocketAddr,
    failures: Arc<Mutex<Vec<PeerFailure>>>,
}

struct JobSpec {
    hosts: Vec<u32>,
    secrets: fn(u32) -> JobSecret,
    /// Changes a wire whose address is known already.
    change: fn(u32, &mut TcpWire),
}

fn secret(_: u32) -> JobSecret {
    JobSecret::from_bytes([9; 16])
}

impl JobSpec {
    fn start(&self) -> Vec<Process> {
        let mut job = Vec::new();
        let mut addresses = Vec::new();
        for (nid, &size) in (0..).zip(&self.hosts) {
            let file = MemFd::create(c"arena").unwrap();
            for index in 0..size {
                let failures = Arc::new(Mutex::new(Vec::new()));
                let log = Arc::clone(&failures);
                let mut wire = TcpWire::open(TcpSpec {
                    address: IpAddr::V4(Ipv4Addr::LOCALHOST),
                    ports: 0..=0,
                    secret: (self.secrets)(nid),
                    library: LibraryVersion::new("test"),
                    on_failure: Box::new(move |f| {
                        println!("{f}");
                        log.lock().unwrap().push(f.clone())
                    }),
                    on_lack: |e| println!("{e}"),
                })
                .unwrap();
                addresses.extend(wire.address());
                let address = wire.socket_address();
                (self.change)(nid, &mut wire);
                let arena = file.as_fd().try_clone_to_owned().unwrap();
                let (bytes, attach) = (4 << 20, AttachPolicy::Allowed);
                let fabric = FabricSpec { arena, index, size, bytes, nid, jid: 9, attach };
                let fabric = Fabric::join(fabric).unwrap();
                let ni =
                    NetworkInterface::joined(fabric, &self.hosts, Box::new(wire), Some(LIMITS));
                let ni = ni.unwrap();
                let eq = ni.eq_alloc(4096, None).unwrap();
                job.push(Process { ni, eq, address, failures });
            }
        }
        for process in &job {
            process.ni.connect(addresses.clone().into()).unwrap();
        }
        job
    }
}

fn job(hosts: &[u32]) -> Vec<Process> {
    JobSpec { hosts: hosts.to_vec(), secrets: secret, change: |_, _| {} }.start()
}

/// Memory of a process that its descriptors name.
fn memory(bytes: usize, fill: impl Fn(usize) -> u8) -> Vec<u8> {
    (0..bytes).map(fill).collect()
}

impl Process {
    fn bind(&self, memory: &mut [u8]) -> MdHandle {
        let md = md(memory, md_options::EVENT_START_DISABLE, self.eq);
        // SAFETY: the memory of a test outlives its processes.
        unsafe { self.ni.md_bind(&md, Unlink::Retain) }.unwrap()
    }

    /// Puts and gets with these match bits reach this memory, at the offset of the initiator.
    fn expose(&self, bits: u64, memory: &mut [u8]) -> MdHandle {
        use md_options::*;
        let any = PtlProcessId::ANY;
        let me = self.ni.me_attach(4, any, bits, 0, Unlink::Retain, InsPos::After).unwrap();
        let options = OP_PUT | OP_GET | MANAGE_REMOTE | TRUNCATE | EVENT_START_DISABLE;
        let md = md(memory, options, self.eq);
        // SAFETY: as above.
        unsafe { self.ni.md_attach(me, &md, Unlink::Retain) }.unwrap()
    }

    fn put(&self, md: MdHandle, part: (u64, u64), to: &Process, bits: u64, at: u64, data: u64) {
        let (ack, id) = (AckReq::Ack, to.ni.id());
        self.ni.put_region(md, part.0, part.1, ack, id, 4, 0, bits, at, data).unwrap();
    }

    fn failed(&self) -> Vec<PeerFailure> {
        self.failures.lock().unwrap().clone()
    }
}

/// Polls these processes until `done`; the test fails after 60 seconds.
#[track_caller]
fn until(job: &[&Process], mut done: impl FnMut() -> bool) {
    let began = Instant::now();
    while !done() {
        for process in job {
            process.ni.progress();
        }
        assert!(began.elapsed() < Duration::from_secs(60), "nothing more happens");
    }
}

/// Polls these processes until the first of them has this many events; returns them.
#[track_caller]
fn events(job: &[&Process], count: usize) -> Vec<PtlEvent> {
    let mut events = Vec::new();
    until(job, || {
        while let Some(fetched) = job[0].ni.eq_get(job[0].eq).unwrap() {
            assert!(!fetched.dropped);
            assert_eq!(fetched.event.ni_fail, NiFail::Ok);
            events.push(fetched.event);
        }
        events.len() >= count
    });
    assert_eq!(events.len(), count);
    events
}

/// Memory of 64 zeros that `a` may send from, and of 64 ones that `b` exposes.
fn bound_and_exposed(a: &Process, b: &Process) -> ([Vec<u8>; 2], MdHandle) {
    let mut memories = [0, 1].map(|i| memory(64, |_| i));
    let [source, target] = &mut memories;
    let from = a.bind(source);
    b.expose(7, target);
    (memories, from)
}

fn id(nid: u32, pid: u32) -> PtlProcessId {
    PtlProcessId { nid, pid }
}

/// Every process puts to every other one, itself included, and sees the initiators.
#[test]
fn all_processes_of_uneven_hosts_reach_each_other() {
    let job = job(&[2, 1, 0, 3]);
    let all: Vec<&Process> = job.iter().collect();
    let n = job.len();
    let mut targets: Vec<Vec<u8>> = (0..n).map(|_| memory(n * 64, |_| 0)).collect();
    let mut sources: Vec<Vec<u8>> = (0..n).map(|i| memory(64, |_| i as u8 + 1)).collect();
    for (process, memory) in job.iter().zip(&mut targets) {
        process.expose(7, memory);
    }
    let sources: Vec<MdHandle> = job.iter().zip(&mut sources).map(|(p, m)| p.bind(m)).collect();
    for (i, process) in job.iter().enumerate() {
        for to in &job {
            process.put(sources[i], (0, 64), to, 7, i as u64 * 64, i as u64);
        }
    }
    for process in &job {
        let mut order: Vec<&Process> = vec![process];
        order.extend(all.iter().filter(|p| !core::ptr::eq(**p, process)));
        // Per process an arrival, a SEND and an ACK.
        let events = events(&order, 3 * n);
        for (i, from) in job.iter().enumerate() {
            let arrived = events
                .iter()
                .filter(|e| e.kind == PtlEventKind::PutEnd && e.hdr_data == i as u64)
                .collect::<Vec<_>>();
            assert_eq!(arrived.len(), 1);
            assert_eq!(arrived[0].initiator, from.ni.id());
            assert_eq!((arrived[0].rlength, arrived[0].mlength), (64, 64));
            let acked = |e: &&PtlEvent| e.kind == PtlEventKind::Ack && e.initiator == from.ni.id();
            assert_eq!(events.iter().filter(acked).count(), 1);
        }
    }
    for memory in &targets {
        let right = memory.chunks(64).zip(1..).all(|(piece, i)| piece == [i; 64]);
        assert!(right);
    }
    assert_eq!(job[0].ni.distance(id(0, 0)), Ok(0));
    assert_eq!(job[0].ni.distance(id(0, 1)), Ok(1));
    assert_eq!(job[0].ni.distance(id(3, 2)), Ok(2));
    assert_eq!(job[0].ni.distance(id(2, 0)), Err(PtlError::ProcessInvalid));
    assert!(job.iter().all(|process| process.failed().is_empty()));
    // Processes of one host send no frames to each other.
    let frames: u64 = job.iter().map(|p| p.ni.counters().frames_sent).sum();
    assert_eq!(frames, 2 * (2 * 4 + 5 + 3 * 3));
}

/// Messages of any length arrive whole, and in the order in which they were sent.
#[test]
fn messages_of_any_length_arrive_whole_and_in_order() {
    let job = job(&[1, 1]);
    let [a, b] = &job[..] else { unreachable!() };
    let longest = 3 << 20;
    let mut source = memory(longest, |i| (i * 7 + i / 251) as u8);
    let mut target = memory(longest, |_| 0);
    let from = a.bind(&mut source);
    b.expose(7, &mut target);
    let lengths =
        [0, 1, 63, 64, 65, 131, 132, 133, 4096, FRAME - 68, FRAME - 67, 300_000, longest];
    for (i, &length) in lengths.iter().enumerate() {
        a.put(from, (0, length as u64), b, 7, 0, i as u64);
    }
    let arrivals = events(&[b, a], lengths.len());
    for ((i, event), &length) in (0..).zip(&arrivals).zip(&lengths) {
        assert_eq!((event.hdr_data, event.mlength), (i, length as u64));
    }
    assert!(source == target);
    let ends = events(&[a, b], 2 * lengths.len());
    let acks = ends.iter().filter(|e| e.kind == PtlEventKind::Ack).map(|e| e.mlength as usize);
    assert_eq!(acks.collect::<Vec<_>>(), lengths);
}

/// More messages than there are credits for, small ones that are kept for the next and long ones
/// between them.
#[test]
fn messages_that_leave_together_arrive_in_order() {
    let job = job(&[1, 1]);
    let [a, b] = &job[..] else { unreachable!() };
    let lengths = [8, 0, 1, 300, 64, 9000, 8, 8, 4096];
    let count = WINDOW_FRAMES as usize + 500;
    let mut source = memory(9000, |i| (i * 5) as u8);
    let mut target = memory(9000, |_| 0);
    let from = a.bind(&mut source);
    b.expose(7, &mut target);
    let all: Vec<usize> = lengths.iter().copied().cycle().take(count).collect();
    a.put(from, (0, 0), b, 7, 0, 0);
    events(&[b, a], 1);
    events(&[a, b], 2);
    let before = a.ni.counters().frames_sent;
    a.ni.together(&mut || {
        for (i, &length) in all.iter().enumerate() {
            a.put(from, (0, length as u64), b, 7, 0, i as u64);
        }
    });
    assert_eq!(a.ni.counters().frames_sent - before, count as u64);
    let arrivals = events(&[b, a], count);
    for ((i, event), &length) in (0..).zip(&arrivals).zip(&all) {
        assert_eq!((event.hdr_data, event.mlength), (i, length as u64));
    }
    assert!(source == target);
    let ends = events(&[a, b], 2 * count);
    let acks = ends.iter().filter(|e| e.kind == PtlEventKind::Ack).map(|e| e.mlength as usize);
    assert_eq!(acks.collect::<Vec<_>>(), all);
}

#[test]
fn gets_and_swaps_cross_hosts() {
    let job = job(&[1, 1]);
    let [a, b] = &job[..] else { unreachable!() };
    let mut exposed = memory(1 << 20, |i| (i / 3) as u8);
    let expected = exposed.clone();
    b.expose(7, &mut exposed);
    let mut got = memory(1 << 20, |_| 0);
    let to = a.bind(&mut got);
    for (offset, length) in [(0u64, 8u64), (100, 1), (0, 1 << 20)] {
        a.ni.get_region(to, 0, length, b.ni.id(), 4, 0, 7, offset).unwrap();
        let event = events(&[a, b], 1)[0];
        assert_eq!((event.kind, event.mlength), (PtlEventKind::ReplyEnd, length));
        assert_eq!(event.initiator, b.ni.id());
        assert!(got[..length as usize] == expected[offset as usize..][..length as usize]);
    }
    let (mut new, mut old) = (memory(64, |_| 0xaa), memory(64, |_| 0));
    let (put, get) = (a.bind(&mut new), a.bind(&mut old));
    a.ni.get_put(get, put, b.ni.id(), 4, 0, 7, 3, 0).unwrap();
    events(&[a, b], 2);
    assert!(old == expected[3..67] && exposed[3..67] == [0xaa; 64]);
}

/// Both begin a connection to each other before either has seen the other's.
#[test]
fn of_two_connections_one_stays() {
    for round in 0..50 {
        let job = job(&[1, 1]);
        let [a, b] = &job[..] else { unreachable!() };
        let mut memories = [0, 1, 2, 3].map(|i| memory(64, |_| i));
        let [to_a, to_b, from_a, from_b] = &mut memories;
        a.expose(7, to_a);
        b.expose(7, to_b);
        let (from_a, from_b) = (a.bind(from_a), b.bind(from_b));
        a.put(from_a, (0, 64), b, 7, 0, 0);
        if round % 2 == 0 {
            b.ni.progress();
        }
        b.put(from_b, (0, 64), a, 7, 0, 0);
        events(&[a, b], 3);
        events(&[b, a], 3);
        assert!(a.failed().is_empty() && b.failed().is_empty());
        assert_eq!((a.ni.counters().refused, b.ni.counters().refused), (0, 0), "round {round}");
    }
}

/// A flood at a receiver that does not poll stays at the sender, whose connection keeps nothing.
#[test]
fn a_flood_waits_for_credits() {
    let job = job(&[1, 1]);
    let [a, b] = &job[..] else { unreachable!() };
    let mut source = memory(4096, |i| i as u8);
    let mut target = memory(4096, |_| 0);
    let from = a.bind(&mut source);
    let any = PtlProcessId::ANY;
    let me = b.ni.me_attach(4, any, 7, 0, Unlink::Retain, InsPos::After).unwrap();
    let options = md_options::OP_PUT | md_options::MANAGE_REMOTE;
    let md = md(&mut target, options, EqHandle::NONE);
    // SAFETY: as in `bind`.
    unsafe { b.ni.md_attach(me, &md, Unlink::Retain) }.unwrap();
    let put = |length: u64| {
        let id = b.ni.id();
        a.ni.put_region(from, 0, length, AckReq::NoAck, id, 4, 0, 7, 0, 0).unwrap();
    };
    put(1);
    events(&[a, b], 1);
    until(&[a, b], || b.ni.counters().frames_taken == 1);
    let n = 20_000;
    let mut sends = 0;
    let sent = |sends: &mut usize| {
        while a.ni.eq_get(a.eq).unwrap().is_some() {
            *sends += 1;
        }
    };
    for _ in 0..n {
        put(8);
        sent(&mut sends);
    }
    // As many as there are credits for have left; the others wait, in place.
    let most = WINDOW_FRAMES as usize;
    assert!(sends > most / 2 && sends <= most, "{sends} of {most}");
    until(&[b, a], || {
        sent(&mut sends);
        sends == n
    });
    until(&[b, a], || b.ni.counters().frames_taken == 1 + n as u64);
    assert!(source[..8] == target[..8]);
}

/// A process that does not poll for long is slow, not lost, although its buffers are full.
#[test]
fn a_peer_that_computes_for_long_is_not_lost() {
    let job = job(&[1, 1]);
    let [a, b] = &job[..] else { unreachable!() };
    let mut source = memory(8 << 20, |i| (i / 5) as u8);
    let mut target = memory(8 << 20, |_| 0);
    let from = a.bind(&mut source);
    b.expose(7, &mut target);
    a.put(from, (0, 8), b, 7, 0, 0);
    events(&[a, b], 2);
    a.put(from, (0, 8 << 20), b, 7, 0, 0);
    let began = Instant::now();
    while began.elapsed() < Duration::from_millis(2 * u64::from(LOST_MS)) {
        a.ni.progress();
        std::thread::sleep(Duration::from_millis(1));
    }
    assert!(a.failed().is_empty(), "{}", a.failed()[0]);
    events(&[a, b], 2);
    assert!(source == target);
}

/// A process that computes between its greeting and its proof keeps its connection.
#[test]
fn a_process_that_computes_within_a_handshake_is_no_stranger() {
    let job = job(&[1, 1]);
    let [a, b] = &job[..] else { unreachable!() };
    let (_memories, from) = bound_and_exposed(a, b);
    a.put(from, (0, 64), b, 7, 0, 0);
    let began = Instant::now();
    while began.elapsed() < Duration::from_nanos(STRANGER_NS + STRANGER_NS / 5) {
        b.ni.progress();
        std::thread::sleep(Duration::from_millis(1));
    }
    events(&[a, b], 2);
    assert_eq!((a.failed().len(), b.ni.counters().refused), (0, 0));
}

/// The network is not blamed for a put from memory that is not mapped.
#[test]
fn a_put_from_memory_that_is_not_mapped_is_the_fault_of_the_program() {
    let job = job(&[1, 1]);
    let [a, b] = &job[..] else { unreachable!() };
    let mut target = memory(1 << 20, |_| 0);
    b.expose(7, &mut target);
    let mut none = md(&mut [], md_options::EVENT_START_DISABLE, a.eq);
    (none.start, none.length) = (ptr::without_provenance_mut(4096), 1 << 20);
    // SAFETY: only the system reads the memory, which refuses.
    let from = unsafe { a.ni.md_bind(&none, Unlink::Retain) }.unwrap();
    a.put(from, (0, 1 << 20), b, 7, 0, 0);
    until(&[a, b], || !a.failed().is_empty());
    assert_eq!(a.failed()[0].end, PeerEnd::ByProgram);
}

/// A process that has exited is reported once, and messages to it end.
#[test]
fn a_lost_peer_is_reported_once() {
    let mut job = job(&[1, 1, 1]);
    let c = job.pop().unwrap();
    let [a, b] = &job[..] else { unreachable!() };
    let mut memories = [0, 1, 2].map(|i| memory(64, |_| i));
    let [source, to_b, to_c] = &mut memories;
    let from = a.bind(source);
    b.expose(7, to_b);
    c.expose(7, to_c);
    a.put(from, (0, 64), &c, 7, 0, 0);
    a.put(from, (0, 64), b, 7, 0, 0);
    events(&[a, b, &c], 4);
    let (gone, address) = (c.ni.id(), c.address.to_string());
    let number = a.ni.number(gone).unwrap();
    assert_eq!(a.ni.peer_state(number), PeerState::Alive);
    drop(c);
    until(&[a, b], || !a.failed().is_empty());
    let failed = a.failed();
    assert_eq!(
        (failed[0].process, &failed[0].address, failed[0].end),
        (gone, &address, PeerEnd::Closed)
    );
    assert_eq!(a.ni.peer_state(number), PeerState::Dead);
    // Its messages end with an event that says that they failed.
    let part = (AckReq::Ack, gone);
    a.ni.put_region(from, 0, 64, part.0, part.1, 4, 0, 7, 0, 0).unwrap();
    let mut ended = None;
    until(&[a, b], || {
        ended = ended.or(a.ni.eq_get(a.eq).unwrap());
        ended.is_some()
    });
    assert_eq!(ended.unwrap().event.ni_fail, NiFail::Fail);
    // One that never had a connection to it finds no listener.
    b.ni.put(b.bind(&mut memory(8, |_| 0)), AckReq::NoAck, gone, 4, 0, 7, 0, 0).unwrap();
    until(&[a, b], || !b.failed().is_empty());
    a.put(from, (0, 64), b, 7, 0, 0);
    events(&[a, b], 2);
    assert_eq!((a.failed().len(), b.failed().len()), (1, 1));
}

/// A process of another job, on the same addresses.
#[test]
fn a_process_with_another_secret_is_refused() {
    let secrets = |nid| JobSecret::from_bytes([nid as u8; 16]);
    let job = JobSpec { hosts: vec![1, 1], secrets, change: |_, _| {} }.start();
    let [a, b] = &job[..] else { unreachable!() };
    let (memories, from) = bound_and_exposed(a, b);
    a.put(from, (0, 64), b, 7, 0, 0);
    until(&[a, b], || !a.failed().is_empty() && b.ni.counters().refused == 1);
    let failure = a.failed()[0].to_string();
    assert!(failure.contains("does not know the secret of the job"), "{failure}");
    assert!(b.failed().is_empty());
    assert_eq!(memories[1], [1; 64]);
}

#[test]
fn an_address_reads_back() {
    for text in ["10.1.2.3:4", "[2001:db8::1]:65535"] {
        let address: SocketAddr = text.parse().unwrap();
        assert_eq!(decode_address(&encode_address(address)), address);
    }
}

#[test]
fn a_port_of_the_range_is_taken() {
    let open = |ports| {
        TcpWire::open(TcpSpec {
            address: IpAddr::V4(Ipv4Addr::LOCALHOST),
            ports,
            secret: secret(0),
            library: LibraryVersion::new("test"),
            on_failure: Box::new(|_| {}),
            on_lack: |_| {},
        })
    };
    let any = open(0..=0).unwrap();
    let port = any.socket_address().port();
    assert_eq!(open(port..=port).unwrap_err().kind(), io::ErrorKind::AddrInUse);
    if let Some(last) = port.checked_add(20) {
        let other = open(port..=last).unwrap().socket_address().port();
        assert!(other > port && other <= last);
    }
}

/// A process that sleeps is woken by a frame, and by a process of its host.
#[test]
fn a_sleeper_is_woken_from_both_sides() {
    let mut job = job(&[2, 1]);
    // So that no bound of sleeps of several threads hides a wake-up that was lost.
    // SAFETY: one thread at a time calls this interface.
    unsafe { job[0].ni.set_single_threaded() };
    let [a, near, far] = &job[..] else { unreachable!() };
    let mut memories = [0, 1, 2].map(|i| memory(64, |_| i));
    let [to_a, from_near, from_far] = &mut memories;
    a.expose(7, to_a);
    let (from_near, from_far) = (near.bind(from_near), far.bind(from_far));
    // Connected.
    far.put(from_far, (0, 64), a, 7, 0, 0);
    events(&[far, a], 2);
    events(&[a], 1);
    let long = 30_000_000_000;
    for round in 0..200 {
        let (from, md) = if round % 2 == 0 { (near, from_near) } else { (far, from_far) };
        std::thread::scope(|scope| {
            let asleep = scope.spawn(|| {
                let began = Instant::now();
                loop {
                    let seen = a.ni.doorbell();
                    if let Some(fetched) = a.ni.eq_get(a.eq).unwrap() {
                        return (fetched.event.hdr_data, began.elapsed());
                    }
                    a.ni.sleep(seen, long);
                }
            });
            if round % 4 < 2 {
                std::thread::sleep(Duration::from_millis(1));
            }
            from.ni.put_region(md, 0, 64, AckReq::NoAck, a.ni.id(), 4, 0, 7, 0, round).unwrap();
            let (data, slept) = asleep.join().unwrap();
            assert_eq!(data, round);
            assert!(slept < Duration::from_nanos(long), "it woke by its timeout");
        });
        while from.ni.eq_get(from.eq).unwrap().is_some() {}
    }
}

/// A thread delivers what arrives while the application does not call.
#[test]
fn a_thread_delivers_while_the_application_computes() {
    let job = job(&[1, 1]);
    let [a, b] = &job[..] else { unreachable!() };
    let mut memories = [0, 1].map(|i| memory(64, |_| i));
    let [to_b, from_a] = &mut memories;
    b.expose(7, to_b);
    let from_a = a.bind(from_a);
    let over = core::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !over.load(Ordering::Relaxed) {
                b.ni.progress_wire(60_000_000_000);
            }
        });
        for round in 0..100 {
            a.put(from_a, (0, 64), b, 7, 0, round);
            events(&[a], 2);
            // Now and then the application polls, and the thread rests.
            if round % 10 == 0 {
                for _ in 0..1000 {
                    b.ni.progress();
                }
            }
        }
        over.store(true, Ordering::Relaxed);
        b.ni.wake_wire();
    });
    assert_eq!(events(&[b], 100).len(), 100);
    assert_eq!(memories[0], [1; 64]);
}
