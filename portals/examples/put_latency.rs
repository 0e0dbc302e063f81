//! The latency of an 8-byte put, until its ACK has been read, between two pinned processes over
//! shared memory. It is measured between rounds of an 8-byte memcpy and of a cache line that
//! travels between the two cores.
//!
//! `cargo run --release --example put_latency`. Run by hand; nothing depends on its numbers.

use std::hint::{black_box, spin_loop};
use std::ptr::null_mut;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use portals3::md_options::*;
use portals3::nal::shm::{AttachPolicy, Fabric, FabricSpec};
use portals3::*;
use sys::child::{self, Forked};
use sys::cpu::CpuMask;
use sys::memory::MemFd;

const ROUNDS: usize = 2000;
const ENOUGH: usize = 200;
const RAR: u32 = 38;
const AM: u32 = 39;

fn pin(core: usize) {
    CpuMask::of([core]).bind();
}

fn md(start: *mut u8, length: usize, options: u32, eq: EqHandle) -> MemoryDescriptor {
    let user_ptr = null_mut();
    MemoryDescriptor {
        start: start.cast(),
        length: length as u64,
        threshold: THRESH_INF,
        max_size: 0,
        options,
        user_ptr,
        eq,
    }
}

/// Nanoseconds per call.
fn time(count: usize, mut work: impl FnMut()) -> f64 {
    let start = Instant::now();
    for _ in 0..count {
        work();
    }
    start.elapsed().as_nanos() as f64 / count as f64
}

/// Median, lower decile and minimum.
fn spread(values: &mut [f64]) -> [f64; 3] {
    values.sort_by(f64::total_cmp);
    [values[values.len() / 2], values[values.len() / 10], values[0]]
}

fn main() {
    let file = MemFd::create(c"arena").expect("memfd_create");
    let shared = MemFd::create(c"words").expect("memfd_create");
    shared.set_len(4096).expect("ftruncate");
    let shared = shared.map(0, 4096).expect("mmap");
    // SAFETY: a mapping of zeros, whose words are atomics in both processes.
    let words = unsafe { std::slice::from_raw_parts(shared.as_ptr().cast::<AtomicU64>(), 512) };
    let (ball, ready, done) = (&words[0], &words[64], &words[128]);
    // SAFETY: there is one thread.
    let forked = unsafe { child::fork() }.expect("fork");
    let index = u32::from(forked == Forked::Child);
    pin(index as usize);
    let single = std::env::args().nth(1).is_none_or(|mode| mode != "par");
    let spec = FabricSpec {
        arena: file.into(),
        index,
        size: 2,
        bytes: 8 << 20,
        nid: 0,
        jid: 1,
        attach: AttachPolicy::Allowed,
    };
    let mut ni =
        NetworkInterface::shm(Fabric::join(spec).expect("join"), None).expect("PtlNIInit");
    if single {
        // SAFETY: there is one thread.
        unsafe { ni.set_single_threaded() };
    }
    let memory = ni.alloc(1 << 16, 64).expect("alloc").as_ptr();
    let [eq, am_eq] = [8192; 2].map(|count| ni.eq_alloc(count, None).expect("PtlEQAlloc"));
    let silent = EVENT_START_DISABLE | EVENT_END_DISABLE;
    // SAFETY: library memory is never freed.
    let (source, quiet) = unsafe {
        let me = ni
            .me_attach(RAR, PtlProcessId::ANY, 0, !0xf, Unlink::Retain, InsPos::After)
            .expect("PtlMEAttach");
        let rar = md(memory, 4096, OP_PUT | OP_GET | MANAGE_REMOTE | silent, EqHandle::NONE);
        ni.md_attach(me, &rar, Unlink::Retain).expect("PtlMDAttach");
        let me = ni
            .me_attach(AM, PtlProcessId::ANY, 3, !0xf, Unlink::Retain, InsPos::After)
            .expect("PtlMEAttach");
        let am = md(memory.add(4096), 4096, OP_PUT | MANAGE_REMOTE | EVENT_START_DISABLE, am_eq);
        ni.md_attach(me, &am, Unlink::Retain).expect("PtlMDAttach");
        let source = md(memory.add(8192), 4096, EVENT_START_DISABLE, eq);
        let quiet = md(memory.add(8192), 4096, 0, EqHandle::NONE);
        (
            ni.md_bind(&source, Unlink::Retain).expect("PtlMDBind"),
            ni.md_bind(&quiet, Unlink::Retain).expect("PtlMDBind"),
        )
    };
    ready.fetch_add(1, Ordering::SeqCst);
    while ready.load(Ordering::SeqCst) != 2 {
        spin_loop();
    }
    let peer = PtlProcessId { nid: 0, pid: 1 - index };
    let watch = |eq| ni.eq_watch(eq).expect("a queue of this interface");
    let (eq_watch, am_watch) = (watch(eq), watch(am_eq));
    let next = |watch: &EqWatch| ni.eq_next(watch, &mut [0; 4]);
    let message = |hdr| {
        ni.put_region(source, 0, 8, AckReq::NoAck, peer, AM, 0, 3, 0, hdr).expect("PtlPutRegion");
    };
    if forked == Forked::Child {
        // The other side returns the ball and the messages, and is otherwise idle.
        while done.load(Ordering::Relaxed) == 0 {
            let now = ball.load(Ordering::Acquire);
            if now & 1 == 1 {
                ball.store(now + 1, Ordering::Release);
            }
            if let Some(event) = next(&am_watch) {
                message(event.hdr_data);
                while next(&eq_watch).is_some() {}
            }
        }
        return;
    }
    let wait = |watch, kind| loop {
        if let Some(event) = next(watch)
            && event.kind == kind
        {
            return;
        }
    };
    let mut figures: [Vec<f64>; 8] = Default::default();
    let (mut from, mut to) = ([1u8; 64], [0u8; 64]);
    for _ in 0..ROUNDS {
        figures[0].push(time(ENOUGH, || {
            let length = black_box(8);
            // SAFETY: two buffers of 64 bytes.
            unsafe {
                std::ptr::copy_nonoverlapping(
                    black_box(&raw mut from).cast::<u8>(),
                    (&raw mut to).cast(),
                    length,
                )
            };
            black_box(&mut to);
        }));
        figures[1].push(time(ENOUGH, || {
            let now = ball.load(Ordering::Relaxed) + 1;
            ball.store(now, Ordering::Release);
            while ball.load(Ordering::Acquire) == now {
                spin_loop();
            }
        }));
        figures[2].push(time(ENOUGH, || {
            ni.put_region(source, 0, 8, AckReq::Ack, peer, RAR, 0, 0, 64, 0)
                .expect("PtlPutRegion");
            wait(&eq_watch, PtlEventKind::SendEnd);
            wait(&eq_watch, PtlEventKind::Ack);
        }));
        figures[3].push(time(ENOUGH, || {
            ni.get_region(source, 0, 8, peer, RAR, 0, 0, 64).expect("PtlGetRegion");
            wait(&eq_watch, PtlEventKind::ReplyEnd);
        }));
        figures[4].push(time(ENOUGH, || {
            message(7);
            wait(&am_watch, PtlEventKind::PutEnd);
            wait(&eq_watch, PtlEventKind::SendEnd);
        }));
        figures[7].push(time(ENOUGH, || {
            // SAFETY: library memory is never freed.
            let md =
                unsafe { ni.md_bind(&md(memory, 4096, EVENT_START_DISABLE, eq), Unlink::Retain) };
            ni.md_unlink(md.expect("PtlMDBind")).expect("PtlMDUnlink");
        }));
        figures[6].push(time(ENOUGH, || {
            ni.put_region(quiet, 0, 8, AckReq::NoAck, peer, RAR, 0, 0, 64, 0)
                .expect("PtlPutRegion");
        }));
        figures[5].push(time(ENOUGH, || {
            black_box(next(&eq_watch).is_none());
        }));
    }
    done.store(1, Ordering::Relaxed);
    let names = [
        "memcpy of 8 bytes",
        "cache line round trip",
        "put of 8 bytes, SEND_END and ACK read",
        "get of 8 bytes, REPLY_END read",
        "round trip of two puts with PUT_END",
        "look at an empty queue",
        "put of 8 bytes without any event",
        "bind and unlink a descriptor",
    ];
    println!("{} rounds of {ENOUGH}, ns: median, least", ROUNDS);
    for (name, values) in names.iter().zip(&mut figures) {
        let [middle, decile, least] = spread(values);
        println!("{name:40} {middle:9.1} {decile:9.1} {least:9.1}");
    }
    if let Forked::Parent(child) = forked {
        child::await_child(child);
    }
}
