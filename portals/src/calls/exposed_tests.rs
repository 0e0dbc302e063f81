//! Exposed descriptors over libfabric: the same events and bytes as in frames, without frames.

use super::NotExposed;
use crate::nal::ofi::{NoOfi, OfiRemoteAccess, OfiSpec, OfiWire, ProviderChoice};
use crate::nal::remote::ExposedBlocks;
use crate::nal::shm::{AttachPolicy, Fabric, FabricSpec};
use crate::test_memory::md;
use crate::types::md_options::*;
use crate::types::*;
use crate::{EqHandle, NetworkInterface};
use core::net::IpAddr;
use handshake::JobSecret;
use std::boxed::Box;
use std::os::fd::AsFd;
use std::string::ToString;
use std::time::{Duration, Instant};
use std::vec;
use std::vec::Vec;
use sys::memory::MemFd;

const LIMITS: NiLimits = NiLimits { max_mes: 8, max_mds: 64, max_eqs: 4, ..NiLimits::DEFAULT };
const PT: u32 = 4;
const BYTES: usize = 3 << 20;
/// The last 8 bits of the match bits name the descriptor.
const IGNORED: u64 = !0xff;

/// An initiator and a target, each on a host of its own; `None`, said aloud: no such provider.
fn pair(provider: &str, remote: OfiRemoteAccess) -> Option<[NetworkInterface; 2]> {
    open(provider, remote, &[1, 1])?.try_into().ok()
}

/// The same with remote access, over provider net, or tcp where there is none.
fn remote_pair() -> Option<[NetworkInterface; 2]> {
    pair("net", OfiRemoteAccess::Always).or_else(|| pair("tcp", OfiRemoteAccess::Always))
}

/// All processes of hosts with these numbers of processes, which do not attach each other.
fn open(provider: &str, remote: OfiRemoteAccess, hosts: &[u32]) -> Option<Vec<NetworkInterface>> {
    let mut addresses = Vec::new();
    let mut open = |nid: u32, index: u32, size: u32, arena: &MemFd| {
        let wire = OfiWire::open(OfiSpec {
            address: IpAddr::from([127, 0, 0, 1]),
            ports: 0..=0,
            secret: JobSecret::from_bytes([9; 16]),
            providers: ProviderChoice::Include(vec![provider.to_string()]),
            tag_mode: None,
            remote,
            thread_grouping: false,
            events: 16,
            processes: hosts.iter().sum(),
            on_failure: Box::new(|failure| std::println!("{failure}")),
        });
        let wire = match wire {
            Ok(wire) => wire,
            Err(why @ (NoOfi::NoLibrary(_) | NoOfi::NoProvider)) => {
                std::println!("skipped: {why}");
                return None;
            }
            Err(why) => panic!("{why}"),
        };
        addresses.extend(wire.address());
        let fabric = FabricSpec {
            arena: arena.as_fd().try_clone_to_owned().unwrap(),
            index,
            size,
            bytes: 4 << 20,
            nid,
            jid: 9,
            attach: AttachPolicy::Denied,
        };
        let fabric = Fabric::join(fabric).unwrap();
        Some(NetworkInterface::joined(fabric, hosts, Box::new(wire), Some(LIMITS)).unwrap())
    };
    let mut all = Vec::new();
    for (nid, &size) in hosts.iter().enumerate() {
        let arena = MemFd::create(c"arena").unwrap();
        for index in 0..size {
            all.push(open(nid as u32, index, size, &arena)?);
        }
    }
    for ni in &all {
        ni.connect(addresses.clone().into()).unwrap();
    }
    Some(all)
}

/// Attaches the memory for messages whose last bits are these.
fn attach(ni: &NetworkInterface, bits: u64, memory: &mut [u8], options: u32) -> MdHandle {
    let (any, stay) = (PtlProcessId::ANY, Unlink::Retain);
    let me = ni.me_attach(PT, any, bits, IGNORED, stay, InsPos::After).unwrap();
    // SAFETY: the memory of a test outlives its interfaces.
    unsafe { ni.md_attach(me, &md(memory, options, EqHandle::NONE), stay) }.unwrap()
}

/// The events of one message: kind, offset, length, match bits, header data, failed.
type EventWords = (PtlEventKind, Size, Size, u64, u64, bool);

/// Polls until the queue has this number of events.
#[track_caller]
fn events(pair: &[NetworkInterface], eq: EqHandle, count: usize) -> Vec<EventWords> {
    let (mut all, began) = (Vec::new(), Instant::now());
    while all.len() < count {
        pair[1].progress();
        if let Some(FetchedEvent { event: e, .. }) = pair[0].eq_get(eq).unwrap() {
            let failed = e.ni_fail != NiFail::Ok;
            all.push((e.kind, e.offset, e.mlength, e.match_bits, e.hdr_data, failed));
        }
        assert!(began.elapsed() < Duration::from_secs(60), "{all:?} of {count}");
    }
    all
}

/// What a run leaves: all events, and the bytes of both sides.
#[derive(Debug, PartialEq, Eq)]
struct RunResult {
    events: Vec<EventWords>,
    there: Vec<u8>,
    here: Vec<u8>,
}

/// Puts and gets of many kinds; returns how many messages went by remote access, too.
fn run(provider: &str, remote: OfiRemoteAccess) -> Option<(RunResult, u64)> {
    let mut there = vec![0u8; BYTES];
    let mut here: Vec<u8> = (0..BYTES).map(|i| ((i * 7) >> 3) as u8).collect();
    let pair = pair(provider, remote)?;
    let [a, b] = &pair;
    let target = attach(b, 5, &mut there, OP_PUT | OP_GET | MANAGE_REMOTE);
    // SAFETY: the memory is dropped after the interfaces.
    let exposed = unsafe { b.expose_remotely(target, ExposedBlocks::WHOLE) }.unwrap();
    assert_eq!(exposed, remote != OfiRemoteAccess::Never);
    let eq = a.eq_alloc(64, None).unwrap();
    // SAFETY: as above.
    let source = unsafe { a.md_bind(&md(&mut here, 0, eq), Unlink::Retain) }.unwrap();
    let mut pieces: Vec<MdIovec> = here[4096..][..4000]
        .chunks_mut(500)
        .map(|piece| MdIovec { base: piece.as_mut_ptr().cast(), len: piece.len() as u64 })
        .collect();
    let scattered = MemoryDescriptor {
        start: pieces.as_mut_ptr().cast(),
        length: pieces.len() as u64,
        options: IOVEC,
        ..md(&mut [], 0, eq)
    };
    // SAFETY: as above.
    let scattered = unsafe { a.md_bind(&scattered, Unlink::Retain) }.unwrap();
    let (id, mut all, mut bits) = (b.id(), Vec::new(), 0x500);
    let mut put = |md, at, length, ack, to| {
        bits += 0x100;
        a.put_region(md, at, length, ack, id, PT, 0, bits | 5, to, bits + 1).unwrap();
        all.extend(events(&pair, eq, if ack == AckReq::Ack { 3 } else { 2 }));
    };
    // The first is framed; a notice follows it.
    put(source, 0, 100, AckReq::Ack, 17);
    for length in [9, 100, 4096, 100_000, BYTES as u64 - 1] {
        put(source, 1, length, AckReq::Ack, 1);
        put(source, 0, length, AckReq::NoAck, 1);
    }
    put(source, 0, 8, AckReq::Ack, 64);
    put(scattered, 100, 1300, AckReq::Ack, 5);
    put(scattered, 0, 4000, AckReq::Ack, 5);
    for (md, at, length, from) in [
        (source, 0, 8, 64),
        (source, 3, 9, 1),
        (source, 500_000, 100_000, 7),
        (scattered, 400, 700, 2_000_000),
        (source, 0, BYTES as u64, 0),
    ] {
        bits += 0x100;
        a.get_region(md, at, length, id, PT, 0, bits | 5, from).unwrap();
        all.extend(events(&pair, eq, 2));
    }
    let mut counters = a.counters();
    // Dropped: it does not fall into the descriptor as a whole.
    let dropped = b.counters().dropped;
    a.put_region(source, 0, 2, AckReq::Ack, id, PT, 0, 5, BYTES as u64 - 1, 0).unwrap();
    all.extend(events(&pair, eq, 2));
    let began = Instant::now();
    while b.counters().dropped == dropped {
        pair.iter().for_each(NetworkInterface::progress);
        assert!(began.elapsed() < Duration::from_secs(60), "it is not dropped");
    }
    if exposed {
        assert_eq!(b.md_unlink(target), Err(PtlError::MdInUse));
        let (old, new) = (None, md(&mut [], OP_PUT, EqHandle::NONE));
        // SAFETY: no memory.
        let updated = unsafe { b.md_update(target, old, Some(&new), EqHandle::NONE) };
        assert_eq!(updated, Err(PtlError::MdNoUpdate));
        // Two words of 8 bytes, the first message, and eight pieces if they are too many.
        let limits = a.state.peers.nal.wire().unwrap().remote_memory().unwrap().limits();
        let framed = if limits.pieces < 8 { 4 } else { 3 };
        assert_eq!(counters.framed - counters.remote, framed, "{counters:?}");
        assert!(counters.frames_sent <= 4 && counters.bytes > 3 * BYTES as u64, "{counters:?}");
    } else {
        assert_eq!(core::mem::take(&mut counters.remote), 0);
        assert!(counters.frames_sent > 100, "{counters:?}");
    }
    let remote = counters.remote;
    drop(pair);
    Some((RunResult { events: all, there, here }, remote))
}

#[test]
fn events_and_bytes_are_those_of_frames() {
    for provider in ["net", "tcp;ofi_rxm", "sockets"] {
        let Some((frames, _)) = run(provider, OfiRemoteAccess::Never) else { continue };
        for mode in [OfiRemoteAccess::Always, OfiRemoteAccess::AlwaysBasic] {
            let (result, remote) = run(provider, mode).unwrap();
            assert!(remote >= 15, "{provider}");
            assert_eq!(result.events, frames.events, "{provider}");
            assert!(result == frames, "{provider}: other bytes");
        }
    }
}

/// Both sides use each other's memory at once, with more messages than may be under way.
#[test]
fn a_flood_of_both_sides_arrives() {
    const MESSAGES: usize = 500;
    const PART: usize = 3000;
    let mut memory = [0u8; 2].map(|byte| vec![byte; MESSAGES * PART]);
    let mut sources = [1u8, 2].map(|byte| vec![byte; MESSAGES * PART]);
    let Some(pair) = remote_pair() else { return };
    let mut queues = Vec::new();
    for (ni, (memory, source)) in pair.iter().zip(memory.iter_mut().zip(&mut sources)) {
        let target = attach(ni, 5, memory, OP_PUT | OP_GET | MANAGE_REMOTE);
        // SAFETY: the memory is dropped after the interfaces.
        assert!(unsafe { ni.expose_remotely(target, ExposedBlocks::WHOLE) }.unwrap());
        let eq = ni.eq_alloc(4 * MESSAGES as u64, None).unwrap();
        let options = EVENT_START_DISABLE;
        // SAFETY: as above.
        let source = unsafe { ni.md_bind(&md(source, options, eq), Unlink::Retain) }.unwrap();
        queues.push((eq, source));
    }
    let mut done = [0; 2];
    let began = Instant::now();
    for i in 0..MESSAGES {
        for (side, ni) in pair.iter().enumerate() {
            let (at, to) = ((i * PART) as u64, pair[1 - side].id());
            let md = queues[side].1;
            ni.put_region(md, at, PART as u64, AckReq::Ack, to, PT, 0, 5, at, 0).unwrap();
        }
        if i == 0 {
            // The first messages bring the notices.
            while pair.iter().any(|ni| ni.counters().frames_taken < 3) {
                pair.iter().for_each(NetworkInterface::progress);
                assert!(began.elapsed() < Duration::from_secs(60));
            }
        }
    }
    while done != [2 * MESSAGES; 2] {
        for (side, ni) in pair.iter().enumerate() {
            while let Some(FetchedEvent { event: e, .. }) = ni.eq_get(queues[side].0).unwrap() {
                assert_eq!(e.ni_fail, NiFail::Ok);
                done[side] += 1;
            }
        }
        assert!(began.elapsed() < Duration::from_secs(60), "{done:?}");
    }
    assert!(pair.iter().all(|ni| ni.counters().remote == MESSAGES as u64 - 1));
    drop(pair);
    assert!(memory[0] == sources[1] && memory[1] == sources[0]);
}

/// A descriptor in blocks: each is registered when a peer first accesses it, up to the limit.
#[test]
fn blocks_are_registered_when_they_are_accessed() {
    const BLOCK: usize = 64 << 10;
    const MOST: usize = 10;
    let mut there = vec![0u8; 16 * BLOCK - 1000];
    let mut here: Vec<u8> = (0..there.len()).map(|i| ((i * 7) >> 3) as u8).collect();
    let Some(pair) = remote_pair() else { return };
    let [a, b] = &pair;
    let target = attach(b, 5, &mut there, OP_PUT | OP_GET | MANAGE_REMOTE);
    let blocks = ExposedBlocks { bytes: BLOCK as u64, most: MOST };
    // SAFETY: the memory is dropped after the interfaces.
    assert!(unsafe { b.expose_remotely(target, blocks) }.unwrap());
    let eq = a.eq_alloc(16, None).unwrap();
    let length = here.len();
    // SAFETY: as above.
    let source = unsafe { a.md_bind(&md(&mut here, 0, eq), Unlink::Retain) }.unwrap();
    // Returns whether a put of these bytes went by remote access.
    let put = |first: usize, last: usize| {
        let (at, bytes) = (first as u64, (last - first) as u64);
        let before = a.counters().remote;
        a.put_region(source, at, bytes, AckReq::Ack, b.id(), PT, 0, 5, at, 0).unwrap();
        let all = events(&pair, eq, 3);
        assert!(all.iter().all(|event| !event.5 && event.2 == bytes), "{all:?}");
        // A notice may follow the ACK.
        let began = Instant::now();
        while began.elapsed() < Duration::from_millis(20) {
            pair.iter().for_each(NetworkInterface::progress);
        }
        a.counters().remote != before
    };
    assert!(!put(2 * BLOCK + 5, 3 * BLOCK - 5), "block 2");
    assert!(put(2 * BLOCK, 3 * BLOCK));
    assert!(!put(2 * BLOCK, 3 * BLOCK + 1), "block 3 is not known");
    assert!(put(2 * BLOCK + 1, 4 * BLOCK - 1));
    assert!(!put(0, 8), "the first block is registered, but not known");
    assert!(put(0, 9));
    // Blocks 0, 2 and 3, and 7 more: 1 and 4 to 9.
    assert!(!put(0, 16 * BLOCK - 1000));
    assert!(put(0, 10 * BLOCK));
    assert!(!put(9 * BLOCK, 10 * BLOCK + 1), "the limit");
    assert!(!put(10 * BLOCK, 11 * BLOCK));
    // The last block is shorter, and there is no room for it.
    assert!(!put(15 * BLOCK, length));
    a.get_region(source, 0, 10 * BLOCK as u64, b.id(), PT, 0, 5, 0).unwrap();
    events(&pair, eq, 2);
    drop(pair);
    assert!(there == here);
}

/// A message of more blocks than are registered in one go: they are all registered soon.
#[test]
fn a_long_message_registers_all_its_blocks() {
    const BLOCKS: usize = 200;
    let mut there = vec![0u8; BLOCKS * 4096];
    let mut here: Vec<u8> = (0..there.len()).map(|i| ((i * 5) >> 2) as u8).collect();
    let Some(pair) = remote_pair() else { return };
    let [a, b] = &pair;
    let target = attach(b, 5, &mut there, OP_PUT | OP_GET | MANAGE_REMOTE);
    let blocks = ExposedBlocks { bytes: 4096, most: usize::MAX };
    // SAFETY: the memory is dropped after the interfaces.
    assert!(unsafe { b.expose_remotely(target, blocks) }.unwrap());
    let (eq, length) = (a.eq_alloc(16, None).unwrap(), here.len() as u64);
    // SAFETY: as above.
    let source = unsafe { a.md_bind(&md(&mut here, 0, eq), Unlink::Retain) }.unwrap();
    let began = Instant::now();
    while a.counters().remote == 0 {
        a.put_region(source, 0, length, AckReq::Ack, b.id(), PT, 0, 5, 0, 0).unwrap();
        events(&pair, eq, 3);
        // Calls without any message register the rest.
        (0..100).for_each(|_| pair.iter().for_each(NetworkInterface::progress));
        assert!(began.elapsed() < Duration::from_secs(60), "{:?}", a.counters());
    }
    drop(pair);
    assert!(there == here);
}

/// No wire reaches a process of this host: framed messages to an exposed descriptor stay framed.
#[test]
fn processes_of_one_host_use_no_remote_access() {
    let mut there = vec![0u8; 4096];
    let mut here = vec![7u8; 4096];
    let Some(all) = open("net", OfiRemoteAccess::Always, &[2, 1])
        .or_else(|| open("tcp", OfiRemoteAccess::Always, &[2, 1]))
    else {
        return;
    };
    let [a, b] = [&all[0], &all[1]];
    let target = attach(b, 5, &mut there, OP_PUT | OP_GET | MANAGE_REMOTE);
    // SAFETY: the memory is dropped after the interfaces.
    assert!(unsafe { b.expose_remotely(target, ExposedBlocks::WHOLE) }.unwrap());
    let eq = a.eq_alloc(16, None).unwrap();
    // SAFETY: as above.
    let source = unsafe { a.md_bind(&md(&mut here, 0, eq), Unlink::Retain) }.unwrap();
    for at in [0, 1000, 2000] {
        a.put_region(source, at, 1000, AckReq::Ack, b.id(), PT, 0, 5, at, 0).unwrap();
        events(&all, eq, 3);
    }
    let counters = a.counters();
    assert_eq!((counters.framed, counters.remote), (3, 0));
    drop(all);
    assert!(there[..3000] == here[..3000]);
}

/// A descriptor that a message can change, or that logs, is not exposed.
#[test]
fn only_silent_descriptors_are_exposed() {
    let mut memory = vec![0u8; 64];
    let ni = NetworkInterface::loopback(Some(LIMITS)).unwrap();
    let all = OP_PUT | OP_GET | MANAGE_REMOTE;
    // SAFETY: the memory is dropped after the interface.
    let expose = |md| unsafe { ni.expose_remotely(md, ExposedBlocks::WHOLE) };
    for options in [OP_PUT | OP_GET, OP_PUT | MANAGE_REMOTE, all | ACK_DISABLE] {
        let md = attach(&ni, 1, &mut memory, options);
        assert_eq!(expose(md), Err(NotExposed::Illegal(PtlError::MdIllegal)), "{options:#x}");
    }
    let good = attach(&ni, 1, &mut memory, all);
    assert_eq!(expose(good), Ok(false), "there is no wire");
    ni.md_unlink(good).unwrap();
    let eq = ni.eq_alloc(4, None).unwrap();
    for other in [
        md(&mut memory, all, eq),
        MemoryDescriptor { threshold: 1, ..md(&mut memory, all, EqHandle::NONE) },
    ] {
        let (any, stay) = (PtlProcessId::ANY, Unlink::Retain);
        let me = ni.me_attach(PT, any, 2, 0, stay, InsPos::After).unwrap();
        // SAFETY: as above.
        let md = unsafe { ni.md_attach(me, &other, stay) }.unwrap();
        assert_eq!(expose(md), Err(NotExposed::Illegal(PtlError::MdIllegal)));
    }
    // SAFETY: as above.
    let bound =
        unsafe { ni.md_bind(&md(&mut memory, all, EqHandle::NONE), Unlink::Retain) }.unwrap();
    assert_eq!(expose(bound), Err(NotExposed::Illegal(PtlError::MdIllegal)));
    drop(ni);
}
