//! The calls of an interface, over a loopback and over two interfaces that share memory.
//!
//! Beyond the specification: puts and gets that are complete at once, inline payloads, and the
//! cache lines of a target that a put writes.

use std::ffi::c_void;
use std::os::fd::AsFd;
use std::ptr::null_mut;

use portals3::md_options::*;
use portals3::nal::shm::{AttachPolicy, Fabric, FabricSpec};
use portals3::*;
use sys::memory::MemFd;

/// `n` interfaces of one memory file, all in this process.
fn fabric(n: u32, attach: AttachPolicy) -> Vec<NetworkInterface> {
    let file = MemFd::create(c"arena").unwrap();
    let join = |index| {
        let arena = file.as_fd().try_clone_to_owned().unwrap();
        let spec = FabricSpec { arena, index, size: n, bytes: 4 << 20, nid: 7, jid: 9, attach };
        NetworkInterface::shm(Fabric::join(spec).unwrap(), None).unwrap()
    };
    (0..n).map(join).collect()
}

fn md(bytes: &mut [u8], options: u32, eq: EqHandle) -> MemoryDescriptor {
    MemoryDescriptor {
        start: bytes.as_mut_ptr().cast(),
        length: bytes.len() as u64,
        threshold: THRESH_INF,
        max_size: 0,
        options,
        user_ptr: null_mut(),
        eq,
    }
}

fn kinds(ni: &NetworkInterface, eq: EqHandle) -> Vec<PtlEventKind> {
    std::iter::from_fn(|| ni.eq_get(eq).unwrap().map(|f| f.event.kind)).collect()
}

fn put_and_get(a: &NetworkInterface, b: &NetworkInterface) {
    use PtlEventKind::{
        Ack, GetEnd, GetPutEnd, GetPutStart, GetStart, PutEnd, PutStart, ReplyEnd, ReplyStart,
        SendEnd, SendStart,
    };
    let (mut near, mut far) = (vec![0u8; 100], vec![0u8; 100]);
    near.iter_mut().enumerate().for_each(|(i, byte)| *byte = i as u8);
    let (eq_a, eq_b) = (a.eq_alloc(16, None).unwrap(), b.eq_alloc(16, None).unwrap());
    let me = b.me_attach(4, PtlProcessId::ANY, 5, 0xf0, Unlink::Retain, InsPos::After).unwrap();
    // SAFETY: both buffers outlive the interfaces' use of them.
    let (target, source) = unsafe {
        let options = OP_PUT | OP_GET | MANAGE_REMOTE;
        let mut target = md(&mut far, options, eq_b);
        target.user_ptr = 77 as *mut c_void;
        (
            b.md_attach(me, &target, Unlink::Retain).unwrap(),
            a.md_bind(&md(&mut near, 0, eq_a), Unlink::Retain).unwrap(),
        )
    };
    a.put_region(source, 10, 20, AckReq::Ack, b.id(), 4, 0, 0x35, 50, 123).unwrap();
    assert_eq!(&far[50..70], &near[10..30]);
    assert_eq!(far[70], 0);
    assert_eq!(kinds(a, eq_a), [SendStart, SendEnd, Ack]);
    let start = b.eq_get(eq_b).unwrap().unwrap().event;
    let end = b.eq_get(eq_b).unwrap().unwrap().event;
    assert_eq!((start.kind, end.kind), (PutStart, PutEnd));
    assert_eq!(end.link, start.sequence);
    assert_eq!((end.offset, end.mlength, end.rlength, end.hdr_data), (50, 20, 20, 123));
    assert_eq!((end.initiator, end.match_bits, end.md_handle), (a.id(), 0x35, target));
    assert_eq!((end.md.user_ptr as usize, end.md.start), (77, far.as_mut_ptr().cast()));
    assert!(b.eq_get(eq_b).unwrap().is_none());

    far[0..5].copy_from_slice(b"hello");
    a.get_region(source, 0, 5, b.id(), 4, 0, 5, 0).unwrap();
    assert_eq!(&near[..5], b"hello");
    assert_eq!(kinds(a, eq_a), [ReplyStart, ReplyEnd]);
    assert_eq!(kinds(b, eq_b), [GetStart, GetEnd]);

    // No match: dropped.
    let drops = b.status(StatusRegister::DropCount);
    a.put(source, AckReq::Ack, b.id(), 4, 0, 6, 0, 0).unwrap();
    assert_eq!(kinds(a, eq_a), [SendStart, SendEnd]);
    assert_eq!(b.status(StatusRegister::DropCount), drops + 1);

    let word = &mut [1u8; 8][..];
    let back = &mut [2u8; 8][..];
    // SAFETY: as above.
    let (put_md, get_md) = unsafe {
        (
            a.md_bind(&md(word, 0, eq_a), Unlink::Retain).unwrap(),
            a.md_bind(&md(back, 0, eq_a), Unlink::Retain).unwrap(),
        )
    };
    a.get_put(get_md, put_md, b.id(), 4, 0, 5, 0, 0).unwrap();
    assert_eq!((&far[..8], &back[..5]), (&[1u8; 8][..], &b"hello"[..]));
    assert_eq!(kinds(a, eq_a), [SendStart, SendEnd, ReplyStart, ReplyEnd]);
    assert_eq!(kinds(b, eq_b), [GetPutStart, GetPutEnd]);

    assert_eq!(b.md_unlink(target), Ok(()));
    assert_eq!(b.md_unlink(target), Err(PtlError::MdInvalid));
    assert_eq!(a.md_unlink(source), Ok(()));
    assert_eq!(b.me_unlink(me), Ok(()));
    assert_eq!(b.me_unlink(me), Err(PtlError::MeInvalid));
}

#[test]
fn loopback() {
    let ni = NetworkInterface::loopback(None).unwrap();
    put_and_get(&ni, &ni);
}

#[test]
fn shared_memory() {
    let nis = fabric(2, AttachPolicy::Allowed);
    put_and_get(&nis[0], &nis[1]);
    put_and_get(&nis[1], &nis[0]);
    put_and_get(&nis[1], &nis[1]);
}

/// A put or get at once does to the target what any put or get does, and nothing to the
/// initiator. What cannot complete at once is refused and leaves no trace.
#[test]
fn at_once() {
    let nis = fabric(2, AttachPolicy::Denied);
    let (a, b) = (&nis[0], &nis[1]);
    let eq = b.eq_alloc(16, None).unwrap();
    let start = b.alloc(64, 64).unwrap().as_ptr();
    let (mut private, mut framed) = ([7u8; 8], [5u8; 8]);
    let attach = |bits, md: &MemoryDescriptor| {
        let me =
            b.me_attach(4, PtlProcessId::ANY, bits, 0, Unlink::Retain, InsPos::After).unwrap();
        // SAFETY: memory of the arena, and an array that outlives the interfaces' use of it.
        unsafe { b.md_attach(me, md, Unlink::Retain).unwrap() }
    };
    let options = OP_PUT | OP_GET | EVENT_START_DISABLE;
    let arena =
        MemoryDescriptor { start: start.cast(), length: 64, options, ..md(&mut [], 0, eq) };
    attach(1, &arena);
    attach(2, &MemoryDescriptor { options: options | TRUNCATE | MANAGE_REMOTE, ..arena });
    attach(3, &md(&mut private, options | MANAGE_REMOTE, eq));
    let put = |from: &[u8], target, bits, offset| {
        let (one, other) = from.split_at(from.len() / 2);
        let pieces = [one, &[], other];
        let pieces =
            pieces.map(|p| MdIovec { base: p.as_ptr().cast_mut().cast(), len: p.len() as u64 });
        // SAFETY: slices, which are readable.
        unsafe { a.put_at_once(pieces, target, 4, 0, bits, offset, 99) }
    };
    let get = |to: &mut [u8], target, bits, offset| {
        // SAFETY: a slice, which is writable.
        unsafe { a.get_at_once(to.as_mut_ptr(), to.len() as u64, target, 4, 0, bits, offset) }
    };
    // SAFETY: 64 bytes of the arena, which nothing else uses now.
    let there = || unsafe { std::slice::from_raw_parts(start, 64) }.to_vec();

    // The second follows the first, at an offset that the target chose.
    assert_eq!([put(b"hello", b.id(), 1, 0), put(b"world", b.id(), 1, 0)], [Ok(Some(5)); 2]);
    assert_eq!(&there()[..10], b"helloworld");
    let events: Vec<PtlEvent> =
        std::iter::from_fn(|| b.eq_get(eq).unwrap().map(|f| f.event)).collect();
    let fields: Vec<_> =
        events.iter().map(|e| (e.kind, e.initiator, e.offset, e.mlength, e.hdr_data)).collect();
    assert_eq!(
        fields,
        [(PtlEventKind::PutEnd, a.id(), 0, 5, 99), (PtlEventKind::PutEnd, a.id(), 5, 5, 99)]
    );

    let mut back = [0u8; 8];
    assert_eq!(get(&mut back, b.id(), 2, 2), Ok(Some(8)));
    assert_eq!((&back, kinds(b, eq)), (b"lloworld", vec![PtlEventKind::GetEnd]));
    // Only four bytes are accepted, and four arrive.
    assert_eq!([put(b"longer", b.id(), 2, 60), get(&mut back, b.id(), 2, 60)], [Ok(Some(4)); 2]);
    assert_eq!((&there()[60..], &back), (&b"long"[..], b"longorld"));
    assert_eq!(kinds(b, eq), [PtlEventKind::PutEnd, PtlEventKind::GetEnd]);
    let counters = a.counters();
    assert_eq!((counters.puts, counters.gets), (3, 2));

    // A cached match serves its own entries only, however large a number another message names.
    b.ac_entry(1, PtlProcessId::ANY, b.uid(), b.jid(), PT_INDEX_ANY).unwrap();
    for (pt, ac, goes) in
        [(4, 1, Some(0)), (4, 1, Some(0)), (4 | 1 << 24, 0, None), (4, 1 | 1 << 30, None)]
    {
        // SAFETY: no pieces.
        let done = unsafe { a.put_at_once([], b.id(), pt, ac, 2, 0, 0) };
        assert_eq!(done, Ok(goes), "{pt:#x} {ac:#x}");
    }
    assert_eq!(kinds(b, eq), [PtlEventKind::PutEnd; 2]);

    // A descriptor without bytes can be reached wherever it begins.
    attach(5, &md(&mut [], options | MANAGE_REMOTE, eq));
    attach(
        6,
        &MemoryDescriptor {
            start: private.as_mut_ptr().cast(),
            ..md(&mut [], options | MANAGE_REMOTE, eq)
        },
    );
    for bits in [5, 5, 6, 6] {
        assert_eq!(put(&[], b.id(), bits, 0), Ok(Some(0)), "{bits}");
    }
    assert_eq!(kinds(b, eq), [PtlEventKind::PutEnd; 4]);
    assert_eq!((a.counters().puts, a.counters().framed), (9, 0));

    // This process itself, memory that is not shared, no match, no process.
    assert_eq!(put(b"x", a.id(), 1, 0), Ok(None));
    assert_eq!([put(b"x", b.id(), 3, 0), get(&mut back, b.id(), 3, 0)], [Ok(None); 2]);
    assert_eq!([put(b"x", b.id(), 4, 0), put(&[0; 65], b.id(), 1, 0)], [Ok(None); 2]);
    assert_eq!(put(b"x", PtlProcessId { nid: 7, pid: 2 }, 1, 0), Err(PtlError::ProcessInvalid));
    assert_eq!((private, kinds(b, eq)), ([7u8; 8], vec![]));
    let after = a.counters();
    assert_eq!((after.puts, after.gets, b.status(StatusRegister::DropCount)), (9, 2, 0));

    // Nothing overtakes frames that are on their way. SAFETY: the array outlives the interfaces'
    // use of it.
    let source =
        unsafe { a.md_bind(&md(&mut framed, 0, EqHandle::NONE), Unlink::Retain).unwrap() };
    a.put(source, AckReq::NoAck, b.id(), 4, 0, 3, 0, 0).unwrap();
    assert_eq!((put(b"x", b.id(), 1, 0), private), (Ok(None), [7u8; 8]));
}

/// Inline payloads: calls that know of them return the bytes, others an empty put. A descriptor
/// without events, with two per message, or with an offset of its own, accepts none.
#[test]
fn inline() {
    let nis = fabric(2, AttachPolicy::Denied);
    let (a, b) = (&nis[0], &nis[1]);
    let eq = b.eq_alloc(4, None).unwrap();
    let watch = b.eq_watch(eq).unwrap();
    let start = b.alloc(64, 64).unwrap().as_ptr();
    let attach = |bits, md: &MemoryDescriptor, unlink| {
        let me =
            b.me_attach(4, PtlProcessId::ANY, bits, 0, Unlink::Retain, InsPos::After).unwrap();
        // SAFETY: memory of the arena.
        (me, unsafe { b.md_attach(me, md, unlink).unwrap() })
    };
    let options = OP_PUT | MANAGE_REMOTE | EVENT_START_DISABLE;
    let arena =
        MemoryDescriptor { start: start.cast(), length: 64, options, ..md(&mut [], 0, eq) };
    let (me, target) = attach(1, &arena, Unlink::Retain);
    attach(2, &md(&mut [], options, eq), Unlink::Retain);
    attach(3, &MemoryDescriptor { options: options & !MANAGE_REMOTE, ..arena }, Unlink::Unlink);
    attach(4, &MemoryDescriptor { eq: EqHandle::NONE, ..arena }, Unlink::Retain);
    attach(
        5,
        &MemoryDescriptor { options: options & !EVENT_START_DISABLE, ..arena },
        Unlink::Retain,
    );
    let words = |n: u64| [n, u64::MAX - n, n << 32, !n];
    let sent = std::cell::Cell::new(0);
    // The n-th that is sent carries words(n).
    let put = |target, pt, bits| {
        let goes = a.put_inline(&words(sent.get() + 1), target, pt, 0, bits, 99);
        sent.set(sent.get() + u64::from(goes));
        goes
    };

    let mut came = [0; 4];
    // The queue of 4 wraps; a plain put is reported as before.
    for round in 0..3 {
        let nth = |i: u64| words(3 * round + i);
        assert!(put(b.id(), 4, 1) && put(b.id(), 4, 2) && put(b.id(), 4, 1));
        // SAFETY: no pieces.
        let empty = unsafe { a.put_at_once([], b.id(), 4, 0, 1, 7, 98) };
        let next = b.eq_next_arrival(&watch, &mut came);
        let EqNext::Arrival(arrival) = next else { panic!("{next:?}") };
        assert_eq!((std::mem::take(&mut came), empty), (nth(1), Ok(Some(0))));
        assert_eq!((arrival.match_bits, arrival.hdr_data, arrival.inline), (1, 99, true));
        assert!(arrival.offset.equals(0) && arrival.mlength.equals(0));
        assert_eq!(arrival.start, start.cast());
        let brief = b.eq_next(&watch, &mut came).unwrap();
        assert_eq!(
            (brief.kind, brief.ni_fail, brief.hdr_data),
            (PtlEventKind::PutEnd, NiFail::Ok, 99)
        );
        assert_eq!((std::mem::take(&mut came), brief.inline), (nth(2), true));
        assert_eq!((brief.match_bits, brief.offset.data(), brief.mlength.data()), (2, 0, 0));
        let event = b.eq_get(eq).unwrap().unwrap().event;
        assert_eq!(
            (event.kind, event.initiator, event.md_handle),
            (PtlEventKind::PutEnd, a.id(), target)
        );
        assert_eq!((event.offset, event.rlength, event.mlength, event.link), (0, 0, 0, 0));
        assert_eq!(event.md.threshold, THRESH_INF);
        let plain = b.eq_next(&watch, &mut came).unwrap();
        assert_eq!(
            (plain.offset.data(), plain.hdr_data, plain.inline, came),
            (7, 98, false, [0; 4])
        );
    }
    let counters = a.counters();
    assert_eq!(
        (counters.puts, counters.bytes, b.status(StatusRegister::DropCount)),
        (12, 9 * 32, 0)
    );

    for refused in [3, 4, 5, 6] {
        assert!(!put(b.id(), 4, refused) && !put(b.id(), 4, refused), "{refused}");
    }
    assert!(
        !put(a.id(), 4, 1)
            && !put(b.id(), 5, 1)
            && !put(PtlProcessId { nid: b.id().nid, pid: 2 }, 4, 1)
    );
    assert!(!put(PtlProcessId { nid: b.id().nid + 1, ..b.id() }, 4, 1));
    assert_eq!((kinds(b, eq), a.counters().puts), (vec![], 12));

    // A list that has changed is walked again.
    b.me_unlink(me).unwrap();
    assert!(!put(b.id(), 4, 1));
    attach(1, &arena, Unlink::Retain);
    assert!(put(b.id(), 4, 1));
    let arrival = b.eq_next_arrival(&watch, &mut came);
    assert!(matches!(arrival, EqNext::Arrival(e) if e.inline));
    assert_eq!(came, words(10));
    // SAFETY: 64 bytes of the arena, which nothing writes now.
    assert_eq!(unsafe { std::slice::from_raw_parts(start, 64) }, [0; 64]);
}

/// A locally managed descriptor that unlinks itself: two messages of 100 fit into 256 with
/// `max_size` 128.
#[test]
fn max_size_unlinks() {
    use PtlEventKind::{PutEnd, SendEnd, SendStart};
    let nis = fabric(2, AttachPolicy::Allowed);
    let (a, b) = (&nis[0], &nis[1]);
    let (mut near, mut far) = (vec![3u8; 100], vec![0u8; 256]);
    let (eq_a, eq_b) = (a.eq_alloc(16, None).unwrap(), b.eq_alloc(4, None).unwrap());
    for round in 0..10 {
        let me = b.me_attach(4, PtlProcessId::ANY, 5, 0, Unlink::Unlink, InsPos::After).unwrap();
        let target = MemoryDescriptor {
            max_size: 128,
            ..md(&mut far, OP_PUT | MAX_SIZE | EVENT_START_DISABLE, eq_b)
        };
        // SAFETY: both buffers outlive the interfaces' use of them.
        let source = unsafe {
            b.md_attach(me, &target, Unlink::Unlink).unwrap();
            a.md_bind(&md(&mut near, 0, eq_a), Unlink::Retain).unwrap()
        };
        for _ in 0..4 {
            a.put(source, AckReq::NoAck, b.id(), 4, 0, 5, 0, 0).unwrap();
        }
        assert_eq!(b.status(StatusRegister::DropCount), 2 * (round + 1));
        assert_eq!(kinds(b, eq_b), [PutEnd, PutEnd, PtlEventKind::Unlink]);
        assert_eq!(b.me_unlink(me), Err(PtlError::MeInvalid));
        assert_eq!(kinds(a, eq_a), [SendStart, SendEnd].repeat(4));
        assert_eq!(a.md_unlink(source), Ok(()));
    }
    assert_eq!((far[199], far[200]), (3, 0));
}

#[test]
fn overflow_reports_once() {
    let ni = NetworkInterface::loopback(None).unwrap();
    let eq = ni.eq_alloc(3, None).unwrap();
    let mut memory = [0u8; 8];
    // SAFETY: the buffer outlives the interface's use of it.
    let source =
        unsafe { ni.md_bind(&md(&mut memory, EVENT_START_DISABLE, eq), Unlink::Retain).unwrap() };
    let put = || ni.put(source, AckReq::NoAck, ni.id(), 9, 0, 5, 0, 0).unwrap();
    for _ in 0..20 {
        (0..7).for_each(|_| put());
        let mut flags: Vec<bool> =
            std::iter::from_fn(|| ni.eq_get(eq).unwrap().map(|f| f.dropped)).collect();
        assert_eq!(flags, [false; 4]);
        (0..2).for_each(|_| put());
        flags = std::iter::from_fn(|| ni.eq_get(eq).unwrap().map(|f| f.dropped)).collect();
        assert_eq!(flags, [true, false]);
    }
}

/// The cache lines of an interface's arena that differ from `before`.
fn changed_lines(ni: &NetworkInterface, before: &[u8]) -> Vec<usize> {
    let now = lines_of(ni);
    (0..now.len() / 64)
        .filter(|line| now[line * 64..][..64] != before[line * 64..][..64])
        .collect()
}

fn lines_of(ni: &NetworkInterface) -> Vec<u8> {
    let (base, bytes) = ni.arena_of(ni.id()).unwrap();
    // SAFETY: the arena is mapped, and no other thread writes to it now.
    unsafe { std::slice::from_raw_parts(base.as_ptr(), bytes).to_vec() }
}

/// A put to a descriptor that counts and logs nothing writes nothing but the data; an event
/// costs one cache line.
#[test]
fn a_put_writes_no_line_of_the_target_but_the_data() {
    let nis = fabric(2, AttachPolicy::Allowed);
    let (a, b) = (&nis[0], &nis[1]);
    let memory = b.alloc(4096, 4096).unwrap();
    let eq = b.eq_alloc(64, None).unwrap();
    let mut near = [0u8; 64];
    for (bits, options, eq) in [
        (1, EVENT_START_DISABLE | EVENT_END_DISABLE, EqHandle::NONE),
        (2, EVENT_START_DISABLE, eq),
    ] {
        let me =
            b.me_attach(4, PtlProcessId::ANY, bits, 0, Unlink::Retain, InsPos::After).unwrap();
        let target = MemoryDescriptor {
            start: memory.as_ptr().cast(),
            length: 4096,
            ..md(&mut [], OP_PUT | OP_GET | MANAGE_REMOTE | options, eq)
        };
        // SAFETY: library memory, and a buffer that outlives the interfaces.
        let source = unsafe {
            b.md_attach(me, &target, Unlink::Retain).unwrap();
            a.md_bind(&md(&mut near, 0, EqHandle::NONE), Unlink::Retain).unwrap()
        };
        let data =
            (memory.as_ptr() as usize - b.arena_of(b.id()).unwrap().0.as_ptr() as usize) / 64;
        for n in 1..200u8 {
            // SAFETY: no operation uses the buffer now.
            unsafe { (&raw mut near).write_volatile([n; 64]) };
            let before = lines_of(b);
            a.put(source, AckReq::Ack, b.id(), 4, 0, bits, 0, 0).unwrap();
            a.get(source, b.id(), 4, 0, bits, 0).unwrap();
            let changed = changed_lines(b, &before);
            assert!(changed.contains(&data));
            if eq == EqHandle::NONE {
                assert_eq!(changed.len(), 1);
                continue;
            }
            assert_eq!(changed.len(), 3, "the data, PUT_END and GET_END");
            let watch = b.eq_watch(eq).unwrap();
            let fetched = [(); 2].map(|()| b.eq_next(&watch, &mut [0; 4]).unwrap().kind);
            assert_eq!(fetched, [PtlEventKind::PutEnd, PtlEventKind::GetEnd]);
        }
    }
}

/// Threads of one process put to each other through one interface while descriptors are made and
/// unlinked.
#[test]
fn threads_share_an_interface() {
    let nis = fabric(2, AttachPolicy::Allowed);
    let (a, b) = (&nis[0], &nis[1]);
    let memory = b.alloc(4096, 4096).unwrap();
    let me = b.me_attach(4, PtlProcessId::ANY, 1, 0, Unlink::Retain, InsPos::After).unwrap();
    let target = MemoryDescriptor {
        start: memory.as_ptr().cast(),
        length: 4096,
        ..md(&mut [], OP_PUT | MANAGE_REMOTE, EqHandle::NONE)
    };
    // SAFETY: library memory.
    unsafe { b.md_attach(me, &target, Unlink::Retain).unwrap() };
    let (threads, puts) = (4, 2000u64);
    // Room for all events: the thread whose turn it is to take them may be descheduled while the
    // others put.
    let eq = a.eq_alloc(u64::from(threads) * puts * 2, None).unwrap();
    let acks = std::sync::atomic::AtomicU64::new(0);
    let order = std::sync::atomic::Ordering::Relaxed;
    std::thread::scope(|scope| {
        let start = |thread| {
            let acks = &acks;
            scope.spawn(move || {
                let mut near = [thread; 8];
                for n in 0..puts {
                    // SAFETY: the buffer lives until the descriptor is unlinked.
                    let source = unsafe {
                        a.md_bind(&md(&mut near, EVENT_START_DISABLE, eq), Unlink::Retain)
                    };
                    let source = source.unwrap();
                    let offset = u64::from(thread) * 64 + n % 8;
                    a.put(source, AckReq::Ack, b.id(), 4, 0, 1, offset, n).unwrap();
                    assert_eq!(a.md_unlink(source), Ok(()));
                    assert_eq!(a.md_unlink(source), Err(PtlError::MdInvalid));
                    while let Some(fetched) = a.eq_get(eq).unwrap() {
                        assert!(!fetched.dropped);
                        acks.fetch_add(u64::from(fetched.event.kind == PtlEventKind::Ack), order);
                    }
                }
            })
        };
        // ThreadSanitizer sees a join, not the end of a scope.
        let running: Vec<_> = (0..threads).map(start).collect();
        running.into_iter().for_each(|thread| thread.join().unwrap());
    });
    while let Some(fetched) = a.eq_get(eq).unwrap() {
        acks.fetch_add(u64::from(fetched.event.kind == PtlEventKind::Ack), order);
    }
    assert_eq!(acks.load(order), u64::from(threads) * puts);
    assert_eq!(a.counters().puts, u64::from(threads) * puts);
}
