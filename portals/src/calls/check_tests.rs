//! The check of the arena. It names each word that a peer has overwritten, and finds nothing in an
//! arena that processes use as they should.

use core::cell::Cell;
use core::sync::atomic::Ordering::Relaxed;
use core::sync::atomic::{AtomicBool, AtomicU32, AtomicU64};
use std::sync::atomic::AtomicUsize;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use super::NetworkInterface;
use crate::arena::ArenaView;
use crate::arena::hazard::{HazardWord, NO_MD};
use crate::descriptor::state::{FLIGHT, INACTIVE, UNLINKED};
use crate::md_options::*;
use crate::nal::shm::AttachPolicy;
use crate::nal::shm::tests::fabric;
use crate::types::*;

const PT: u32 = 4;

thread_local! {
    static FOUND: Cell<Option<Damage>> = const { Cell::new(None) };
}

fn found(damage: &Damage) {
    FOUND.set(Some(*damage));
}

/// What the check of the arena reports.
fn check(ni: &NetworkInterface) -> Option<Damage> {
    ni.check_arena();
    FOUND.take()
}

/// An interface with a list of three entries, of which the second has a descriptor that manages
/// its offset, the third a scattered one.
struct Scene {
    ni: NetworkInterface,
    eq: u32,
    mes: [u32; 3],
    mds: [u32; 2],
}

fn md(start: *mut u8, length: u64, options: u32, eq: EqHandle) -> MemoryDescriptor {
    MemoryDescriptor {
        start: start.cast(),
        length,
        threshold: THRESH_INF,
        max_size: 16,
        options: options | OP_PUT,
        user_ptr: core::ptr::null_mut(),
        eq,
    }
}

fn entry(ni: &NetworkInterface, bits: u64) -> MeHandle {
    ni.me_attach(PT, PtlProcessId::ANY, bits, 0xff, Unlink::Retain, InsPos::After).unwrap()
}

impl Scene {
    fn new() -> Scene {
        let mut ni = NetworkInterface::loopback(None).unwrap();
        ni.set_damage_handler(found);
        let eq = ni.eq_alloc(8, None).unwrap();
        let mes = [1 << 8, 2 << 8, 3 << 8].map(|bits| entry(&ni, bits));
        let start = ni.alloc(128, 64).unwrap().as_ptr();
        let mut pieces = [0, 64].map(|at| MdIovec { base: start.wrapping_add(at).cast(), len: 8 });
        let specs = [
            md(start, 100, MAX_SIZE, eq),
            md(pieces.as_mut_ptr().cast(), 2, IOVEC | MANAGE_REMOTE, EqHandle::NONE),
        ];
        let mut mds = [0; 2];
        for (i, spec) in specs.iter().enumerate() {
            // SAFETY: memory of the arena, and a vector that is readable during the call.
            let md = unsafe { ni.md_attach(mes[i + 1], spec, Unlink::Unlink) }.unwrap();
            mds[i] = md.0 & 0xffff;
        }
        Scene { ni, eq: eq.0 & 0xffff, mes: mes.map(|me| me.0 & 0xffff), mds }
    }

    fn view(&self) -> &ArenaView {
        &self.ni.state.peers.own.view
    }

    /// The check finds each of the values in the word, and nothing before and afterwards.
    fn finds<W: SharedWord>(
        &self,
        table: ArenaTable,
        index: u32,
        word: &'static str,
        at: &W,
        only_ours: bool,
        values: &[u64],
    ) {
        let before = at.get();
        assert_eq!(check(&self.ni), None, "{word}");
        for &value in values {
            at.set(value);
            let (expected, found) = (only_ours.then_some(before), at.get());
            let damage = Damage::Word { table, index, word, expected, found };
            assert_eq!(check(&self.ni), Some(damage), "{word} {value:#x}");
            at.set(before);
        }
        assert_eq!(check(&self.ni), None, "{word}");
    }

    /// Of a word that only the owner writes: the values are wrong in one bit, in all, or 0.
    fn finds_any<W: SharedWord>(&self, table: ArenaTable, index: u32, word: &'static str, at: &W) {
        let before = at.get();
        let values = [before ^ 1, before ^ 1 << 16, !before, 0].map(|value| value & W::ALL);
        let other: Vec<u64> = values.into_iter().filter(|&value| value != before).collect();
        assert!(other.len() >= 3);
        self.finds(table, index, word, at, true, &other);
    }
}

/// A word of an arena.
trait SharedWord {
    const ALL: u64;
    fn get(&self) -> u64;
    fn set(&self, value: u64);
}

impl SharedWord for AtomicU64 {
    const ALL: u64 = u64::MAX;
    fn get(&self) -> u64 {
        self.load(Relaxed)
    }
    fn set(&self, value: u64) {
        self.store(value, Relaxed);
    }
}

impl SharedWord for AtomicU32 {
    const ALL: u64 = u32::MAX as u64;
    fn get(&self) -> u64 {
        self.load(Relaxed).into()
    }
    fn set(&self, value: u64) {
        self.store(value as u32, Relaxed);
    }
}

#[test]
fn each_word_of_the_owner_is_compared() {
    let scene = Scene::new();
    let view = scene.view();
    let ident = &view.header().ident;
    scene.finds_any(ArenaTable::Ident, 0, "magic", &ident.magic);
    scene.finds_any(ArenaTable::Ident, 0, "secret_at", &ident.secret_at);
    scene.finds_any(ArenaTable::Ident, 0, "secret", &ident.secret);
    for (word, at) in [
        ("os_pid", &ident.os_pid),
        ("max_mes", &ident.max_mes),
        ("max_mds", &ident.max_mds),
        ("max_eqs", &ident.max_eqs),
        ("max_ac_index", &ident.max_ac_index),
        ("max_pt_index", &ident.max_pt_index),
    ] {
        scene.finds_any(ArenaTable::Ident, 0, word, at);
    }
    for pt in [PT, PT + 1] {
        let entry = view.pt(pt).unwrap();
        scene.finds_any(ArenaTable::Pt, pt, "version", &entry.version);
        scene.finds_any(ArenaTable::Pt, pt, "head", &entry.head);
    }
    for ac in [0, 1] {
        let entry = view.ac(ac).unwrap();
        scene.finds_any(ArenaTable::Ac, ac, "version", &entry.version);
        scene.finds_any(ArenaTable::Ac, ac, "process", &entry.process);
        scene.finds_any(ArenaTable::Ac, ac, "ids", &entry.ids);
        scene.finds_any(ArenaTable::Ac, ac, "pt_index", &entry.pt_index);
        scene.finds_any(ArenaTable::Ac, ac, "valid", &entry.valid);
    }
    for me in scene.mes {
        let cell = view.me(me).unwrap();
        scene.finds_any(ArenaTable::Me, me, "match_bits", &cell.match_bits);
        scene.finds_any(ArenaTable::Me, me, "ignore_bits", &cell.ignore_bits);
        scene.finds_any(ArenaTable::Me, me, "match_id", &cell.match_id);
        scene.finds_any(ArenaTable::Me, me, "next", &cell.next);
        scene.finds_any(ArenaTable::Me, me, "md", &cell.md);
    }
    for md in scene.mds {
        let cell = view.md(md).unwrap();
        for (word, at) in [
            ("traits", &cell.traits),
            ("length", &cell.length),
            ("max_size", &cell.max_size),
            ("start", &cell.start),
            ("address", &cell.address),
            ("iov", &cell.iov),
            ("eq_key", &cell.eq_key),
        ] {
            scene.finds_any(ArenaTable::Md, md, word, at);
        }
        scene.finds_any(ArenaTable::Md, md, "generation", &cell.generation);
        scene.finds_any(ArenaTable::Md, md, "seal", &cell.seal);
    }
    let scattered = scene.mds[1];
    let offset = view.md(scattered).unwrap().iov.load(Relaxed);
    let table = view.iov(sys::peer::Peer::new(offset)).unwrap();
    scene.finds_any(ArenaTable::Iov, scattered, "count", &table.count);
    for piece in &table.pieces[..2] {
        scene.finds_any(ArenaTable::Iov, scattered, "kind", &piece.kind);
        scene.finds_any(ArenaTable::Iov, scattered, "seal", &piece.seal);
        scene.finds_any(ArenaTable::Iov, scattered, "start", &piece.start);
        scene.finds_any(ArenaTable::Iov, scattered, "address", &piece.address);
        scene.finds_any(ArenaTable::Iov, scattered, "length", &piece.length);
    }
    let cell = view.eq(scene.eq).unwrap();
    scene.finds_any(ArenaTable::Eq, scene.eq, "ring", &cell.shape.ring);
    scene.finds_any(ArenaTable::Eq, scene.eq, "size", &cell.shape.size);
    scene.finds_any(ArenaTable::Eq, scene.eq, "key", &cell.shape.key);
}

/// Of words that several processes or threads write, the check knows what none of them writes.
#[test]
fn impossible_values_are_found() {
    let scene = Scene::new();
    let view = scene.view();
    // The consumer is at 16. A thread between its two stores leaves 15.
    let head = &view.eq(scene.eq).unwrap().head.0;
    scene.finds(ArenaTable::Eq, scene.eq, "head", head, true, &[0, 14, 17, u64::MAX]);
    head.store(15, Relaxed);
    assert_eq!(check(&scene.ni), None);
    head.store(16, Relaxed);
    // Length 100, rest at least 16, infinite threshold: cursor of 7 bits.
    let (full, used_up) = (85 | INACTIVE, 85 | INACTIVE | UNLINKED);
    let wrong = [101, 85, INACTIVE, 84 | INACTIVE, 1 << 7, 1 << 52, UNLINKED, 85 | UNLINKED];
    let flights = [used_up | FLIGHT, FLIGHT, 84 + 3 * FLIGHT, full | FLIGHT];
    let state = &view.md(scene.mds[0]).unwrap().state.0;
    let table = ArenaTable::Md;
    scene.finds(table, scene.mds[0], "state", state, false, &wrong);
    scene.finds(table, scene.mds[0], "state", state, false, &flights);
    for possible in [1, 84, full, used_up] {
        state.store(possible, Relaxed);
        assert_eq!(check(&scene.ni), None, "{possible:#x}");
    }
    state.store(0, Relaxed);
    // Operations in flight that a hazard or a framed message accounts for.
    state.store(FLIGHT, Relaxed);
    let (own, md) = (scene.ni.state.peers.index, scene.mds[0]);
    let hold = scene.ni.state.peers.hold(HazardWord::new(own, md, NO_MD, NO_MD));
    assert_eq!(check(&scene.ni), None);
    hold.clear(false);
    let pending = &scene.ni.state.mds[md as usize].pending;
    pending.store(1, Relaxed);
    assert_eq!(check(&scene.ni), None);
    pending.store(0, Relaxed);
    assert!(check(&scene.ni).is_some());
    state.store(0, Relaxed);

    let lock = &view.header().swap_lock.0;
    scene.finds(ArenaTable::Header, 0, "swap_lock", lock, false, &[2, 0xffff_ffff]);
    let slot = &view.header().hazards.slots[9].0;
    let strange = HazardWord::new(3, 0, NO_MD, NO_MD).bits();
    let far = HazardWord::own(0xfffe, NO_MD).bits();
    let used = &view.header().hazards.used.0;
    used.fetch_or(1 << 9, Relaxed);
    scene.finds(ArenaTable::Hazards, 9, "slot", slot, false, &[1, strange, far]);
    // A thread sets the bit of its slot first.
    slot.store(HazardWord::own(0, 0).bits(), Relaxed);
    assert_eq!(check(&scene.ni), None);
    scene.finds(ArenaTable::Hazards, 0, "used", used, false, &[0, u64::MAX ^ 1 << 9]);
    slot.store(0, Relaxed);
}

/// A descriptor with a finite threshold.
#[test]
fn a_threshold_only_falls() {
    let scene = Scene::new();
    let spec =
        MemoryDescriptor { threshold: 5, ..md(core::ptr::null_mut(), 0, 0, EqHandle::NONE) };
    // SAFETY: no bytes.
    let handle = unsafe { scene.ni.md_bind(&spec, Unlink::Retain) }.unwrap();
    let index = handle.0 & 0xffff;
    let state = &scene.view().md(index).unwrap().state.0;
    let wrong = [6, 7, 8, 0, 5 | INACTIVE, UNLINKED | INACTIVE, FLIGHT | 5];
    scene.finds(ArenaTable::Md, index, "state", state, false, &wrong);
    for possible in [4, 1, INACTIVE] {
        state.store(possible, Relaxed);
        assert_eq!(check(&scene.ni), None, "{possible:#x}");
    }
}

/// The only thread of a process holds no hazard while it checks.
#[test]
fn the_only_thread_knows_its_hazards() {
    let mut scene = Scene::new();
    // SAFETY: this thread alone calls it.
    unsafe { scene.ni.set_single_threaded() };
    let possible = HazardWord::own(3, 3).bits();
    let used = &scene.view().header().hazards.used.0;
    scene.finds(ArenaTable::Hazards, 0, "used", used, false, &[0, u64::MAX << 1]);
    used.fetch_or(1 << 9, Relaxed);
    for number in [0, 9] {
        let slot = &scene.view().header().hazards.slots[number].0;
        let table = ArenaTable::Hazards;
        scene.finds(table, number as u32, "slot", slot, false, &[1, possible, u64::MAX]);
    }
}

/// A message to oneself is dropped, and waits for nothing, if a peer has made the own list one
/// that cannot be walked.
#[test]
fn a_message_to_oneself_does_not_wait_for_a_damaged_list() {
    let (done, ended) = mpsc::channel();
    let test = thread::spawn(move || {
        send_along_damaged_lists();
        let _ = done.send(());
    });
    let hangs = ended.recv_timeout(Duration::from_secs(60)) == Err(RecvTimeoutError::Timeout);
    assert!(!hangs && test.join().is_ok());
}

fn send_along_damaged_lists() {
    let scene = Scene::new();
    let spec = md(core::ptr::null_mut(), 0, 0, EqHandle::NONE);
    // SAFETY: no bytes, here and below.
    let source = unsafe { scene.ni.md_bind(&spec, Unlink::Retain) }.unwrap();
    let drops = || scene.ni.status(StatusRegister::DropCount);
    let put = || {
        let (ni, before) = (&scene.ni, drops());
        ni.put(source, AckReq::NoAck, ni.id(), PT, 0, 9 << 8, 0, 0).unwrap();
        drops() - before
    };
    let view = scene.view();
    let (entry, admission) = (view.pt(PT).unwrap(), view.ac(0).unwrap());
    let third = view.me(scene.mes[2]).unwrap();
    let words64 = [&entry.version, &admission.version];
    for word in words64 {
        let before = word.load(Relaxed);
        word.store(before | 1, Relaxed);
        assert_eq!(put(), 1);
        word.store(before, Relaxed);
    }
    for wrong in [scene.mes[0] + 1, u32::MAX] {
        third.next.store(wrong, Relaxed);
        assert_eq!(put(), 1);
    }
    third.next.store(0, Relaxed);
    third.md.store(u32::MAX, Relaxed);
    assert_eq!(put(), 1);
}

/// Two processes wait for each other's lists, whose versions a third has made odd: each checks its
/// own.
#[test]
fn a_process_that_waits_for_a_list_checks_its_own() {
    static STUCK: AtomicBool = AtomicBool::new(false);
    /// Lets the other list go, as the end of the job would.
    fn stuck(damage: &Damage) {
        assert!(matches!(damage, Damage::Word { table: ArenaTable::Pt, index: PT, .. }));
        STUCK.store(true, Relaxed);
    }
    let mut nis = fabric(2, AttachPolicy::Denied);
    nis[0].set_damage_handler(stuck);
    let nis = &nis[..];
    let version = |ni: usize| &nis[ni].state.peers.own.view.pt(PT).unwrap().version;
    version(0).store(7, Relaxed);
    version(1).store(9, Relaxed);
    thread::scope(|scope| {
        let sender = scope.spawn(move || {
            let spec = md(core::ptr::null_mut(), 0, 0, EqHandle::NONE);
            // SAFETY: no bytes.
            let source = unsafe { nis[0].md_bind(&spec, Unlink::Retain) }.unwrap();
            nis[0].put(source, AckReq::NoAck, nis[1].id(), PT, 0, 0, 0, 0).unwrap();
        });
        let start = std::time::Instant::now();
        while !STUCK.load(Relaxed) && start.elapsed() < Duration::from_secs(60) {
            assert!(!sender.is_finished());
            thread::yield_now();
        }
        version(1).store(0, Relaxed);
        // ThreadSanitizer sees a join, not the end of a scope; also below.
        sender.join().unwrap();
    });
    assert!(STUCK.load(Relaxed));
}

/// Where no message may be dropped, the process whose message is dropped reports it.
#[test]
fn a_dropped_message_is_reported_where_none_may_be() {
    let mut nis = fabric(2, AttachPolicy::Denied);
    nis[0].set_damage_handler(found);
    let spec = md(core::ptr::null_mut(), 0, 0, EqHandle::NONE);
    // SAFETY: no bytes.
    let source = unsafe { nis[0].md_bind(&spec, Unlink::Retain) }.unwrap();
    let put = |nis: &[NetworkInterface]| {
        nis[0].put(source, AckReq::Ack, nis[1].id(), PT, 0, 77, 0, 0).unwrap();
        FOUND.take()
    };
    assert_eq!(put(&nis), None);
    nis[0].expect_no_loss();
    let dropped = Damage::Dropped { process: 1, pt_index: PT, match_bits: 77 };
    assert_eq!(put(&nis), Some(dropped));
    let eq = nis[0].eq_alloc(4, None).unwrap().0 & 0xffff;
    assert_eq!(check(&nis[0]), None);
    nis[0].state.eq_cell(eq).losses.count.store(2, Relaxed);
    assert_eq!(check(&nis[0]), Some(Damage::Lost { queue: eq, lost: 2 }));
    // A process that closes its interface may drop.
    let magic = &nis[1].state.peers.own.view.header().ident.magic;
    magic.store(0, Relaxed);
    assert_eq!(put(&nis), None);
}

/// Rounds of the threads that change what others deliver to.
static CHANGES: AtomicUsize = AtomicUsize::new(0);
const ENOUGH: usize = 40_000;

/// Threads of two processes deliver to lists, descriptors and queues that threads of their owner
/// make, change and remove, while the owner checks its arena.
#[test]
fn an_arena_in_use_is_not_damaged() {
    fn panics(damage: &Damage) {
        panic!("{damage}");
    }
    let mut nis = fabric(2, AttachPolicy::Denied);
    nis[0].set_damage_handler(panics);
    nis[1].set_damage_handler(panics);
    let nis = &nis[..];
    let (owner, over) = (&nis[0], &AtomicBool::new(false));
    thread::scope(|scope| {
        let changers = [0, 1].map(|number| scope.spawn(move || change(owner, number)));
        let deliverers: Vec<_> = (0..3)
            .map(|number| scope.spawn(move || deliver(&nis[number % 2], owner, number, over)))
            .collect();
        let checker = scope.spawn(move || {
            let mut checks = 0;
            while !over.load(Relaxed) || checks < 20_000 {
                owner.check_arena();
                checks += 1;
            }
        });
        while CHANGES.load(Relaxed) < ENOUGH {
            assert!(!checker.is_finished() && deliverers.iter().all(|d| !d.is_finished()));
            thread::yield_now();
        }
        over.store(true, Relaxed);
        changers.into_iter().chain(deliverers).chain([checker]).for_each(|t| t.join().unwrap());
    });
    owner.check_arena();
}

/// Makes and removes what others deliver to.
fn change(ni: &NetworkInterface, number: u64) {
    let start = ni.alloc(4096, 64).unwrap().as_ptr();
    let mut round = 0u32;
    while CHANGES.fetch_add(1, Relaxed) < ENOUGH {
        round += 1;
        let eq = ni.eq_alloc(64, None).unwrap();
        let me = entry(ni, number << 8);
        let finite = MemoryDescriptor {
            threshold: [THRESH_INF, 3][round as usize % 2],
            ..md(start, 4096, MAX_SIZE, eq)
        };
        // SAFETY: memory of the arena, here and below.
        let md = unsafe { ni.md_attach(me, &finite, Unlink::Unlink) }.unwrap();
        for _ in 0..50 {
            while ni.eq_get(eq).unwrap().is_some() {}
            // SAFETY: as above.
            let _ = unsafe { ni.md_update(md, None, Some(&finite), eq) };
        }
        ni.ac_entry(1, PtlProcessId::ANY, UID_ANY, JID_ANY, PT).unwrap();
        while ni.md_unlink(md) == Err(PtlError::MdInUse) {
            while ni.eq_get(eq).unwrap().is_some() {}
        }
        ni.me_unlink(me).unwrap();
        while ni.eq_get(eq).unwrap().is_some() {}
        ni.eq_free(eq).unwrap();
    }
}

/// Puts until all is over.
fn deliver(ni: &NetworkInterface, to: &NetworkInterface, number: usize, over: &AtomicBool) {
    let start = ni.alloc(64, 64).unwrap().as_ptr();
    let eq = ni.eq_alloc(64, None).unwrap();
    let mut at = number;
    while !over.load(Relaxed) {
        at += 1;
        let source = MemoryDescriptor {
            threshold: [THRESH_INF, 2][at % 2],
            ..md(start, [0, 8, 40][at % 3], MANAGE_REMOTE, eq)
        };
        // SAFETY: memory of the arena.
        let source = unsafe { ni.md_bind(&source, Unlink::Unlink) }.unwrap();
        let (ac, bits) = (at.is_multiple_of(5).into(), ((at % 2) as u64) << 8);
        let _ = ni.put(source, AckReq::Ack, to.id(), PT, ac, bits, 0, 0);
        if at.is_multiple_of(16) {
            ni.check_arena();
        }
        while ni.eq_get(eq).unwrap().is_some() {}
        while ni.md_unlink(source) == Err(PtlError::MdInUse) {}
        while ni.eq_get(eq).unwrap().is_some() {}
    }
}
