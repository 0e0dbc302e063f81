//! A peer that sends frames which make no sense harms no other process.

use core::cell::Cell;
use core::ptr::NonNull;
use core::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex};

use fuzz::InputReader;

use crate::NetworkInterface;
use crate::message::OpKind;
use crate::nal::frame::{FrameHeader, FrameRole};
use crate::nal::{FrameSent, FrameSink, FrameWatch, Nal, PeerState, Route, gathered};
use crate::types::*;

const ARENA: usize = 1 << 20;
const MAX: usize = 256;
const LIMITS: NiLimits = NiLimits { max_mes: 8, max_mds: 8, max_eqs: 4, ..NiLimits::DEFAULT };

/// A frame of a peer: the sender and the bytes.
type WireFrame = (u32, Vec<u8>);

/// A network whose other end sends these frames, and sometimes takes none.
struct Hostile {
    pages: Box<[u128]>,
    frames: Mutex<Vec<WireFrame>>,
    sent: Mutex<u32>,
    has_died: Arc<AtomicBool>,
}

impl Hostile {
    fn new(mut frames: Vec<WireFrame>) -> Hostile {
        frames.reverse();
        let pages = alloc::vec![0_u128; (ARENA + 4096) / 16].into_boxed_slice();
        Hostile {
            pages,
            frames: Mutex::new(frames),
            sent: Mutex::new(0),
            has_died: Arc::default(),
        }
    }
}

// SAFETY: the arena is zeroed and lives as long as the value; it begins at a page inside of
// it.
unsafe impl Nal for Hostile {
    fn nid(&self) -> u32 {
        0
    }
    fn index(&self) -> u32 {
        0
    }
    fn size(&self) -> u32 {
        2
    }
    fn jid(&self) -> u32 {
        0
    }
    fn arena(&self) -> NonNull<u8> {
        let base = self.pages.as_ptr() as *mut u8;
        NonNull::new(base.wrapping_add(base.align_offset(4096))).expect("memory")
    }
    fn arena_bytes(&self) -> usize {
        ARENA
    }
    fn route(&self, _peer: u32) -> Route {
        Route::Wire
    }
    fn peer_state(&self, _peer: u32) -> PeerState {
        let has_died = self.has_died.load(Ordering::Relaxed);
        if has_died { PeerState::Dead } else { PeerState::Alive }
    }
    fn max_frame(&self, _peer: u32, _payload: Size) -> usize {
        MAX
    }
    unsafe fn send(&self, _: u32, header: &[u8], payload: &[MdIovec], _: bool) -> FrameSent {
        // SAFETY: the pieces are readable (`# Safety`).
        let frame = unsafe { gathered(header, payload) };
        assert!(frame.len() <= MAX && FrameHeader::decode(&frame).is_some());
        let mut sent = self.sent.lock().expect("a number");
        *sent += 1;
        if sent.is_multiple_of(4) { FrameSent::Full } else { FrameSent::Sent }
    }
    fn frame_watch(&self) -> FrameWatch<'_> {
        static ALWAYS: AtomicU32 = AtomicU32::new(1);
        FrameWatch { arrived: &ALWAYS, countdown: None }
    }
    fn receive(&self, _lane: usize, max: usize, sink: &mut dyn FrameSink) {
        for _ in 0..max {
            let Some((sender, bytes)) = self.frames.lock().expect("frames").pop() else { return };
            sink.frame(sender, &bytes);
        }
    }
}

/// Three descriptors, each between memory that no message may touch, meet these frames.
fn meet(frames: Vec<WireFrame>) {
    let rounds = frames.len().div_ceil(16) + 1;
    let ni = NetworkInterface::with_nal(Box::new(Hostile::new(frames)), Some(LIMITS));
    let ni = ni.expect("an interface");
    let eq = ni.eq_alloc(16, None).expect("a queue");
    let mut memory = [[0x55_u8; 64]; 7];
    let mut handles = Vec::new();
    for (number, options) in
        [md_options::MANAGE_REMOTE, md_options::TRUNCATE, 0].into_iter().enumerate()
    {
        let (id, unlink) = (PtlProcessId::ANY, Unlink::Retain);
        let me = ni.me_attach(0, id, 0, !0, unlink, InsPos::After).expect("an entry");
        let md = MemoryDescriptor {
            start: memory[2 * number + 1].as_mut_ptr().cast(),
            length: 64,
            threshold: THRESH_INF,
            max_size: 0,
            options: options | md_options::OP_PUT | md_options::OP_GET,
            user_ptr: core::ptr::null_mut(),
            eq,
        };
        // SAFETY: the memory outlives the interface.
        handles.push(unsafe { ni.md_attach(me, &md, unlink) }.expect("a descriptor"));
    }
    for _ in 0..rounds {
        ni.progress();
        let peer = PtlProcessId { nid: 0, pid: 1 };
        let _ = ni.put(handles[0], AckReq::Ack, peer, 0, 0, 0, 0, 0);
        while ni.eq_get(eq).expect("the queue").is_some() {}
    }
    drop(ni);
    assert!(memory.iter().step_by(2).all(|room| *room == [0x55; 64]));
}

/// Any frame: mostly small numbers, which are likely to be valid, and sometimes absurd ones.
fn any(lot: &Cell<u64>) -> FrameHeader {
    let draw = || {
        let mut word = lot.get();
        word ^= word << 13;
        word ^= word >> 7;
        word ^= word << 17;
        lot.set(word);
        word
    };
    let number = |below: u64| match draw() % 8 {
        0 => [u64::MAX, 1 << 63, 1 << 48, u64::from(u32::MAX)][(draw() % 4) as usize],
        _ => draw() % below,
    };
    use FrameRole::{Ack, Exposed, Reply, Request, Taken};
    FrameHeader {
        role: [Request, Request, Reply, Ack, Taken, Exposed][(number(6) % 6) as usize],
        op: [OpKind::Put, OpKind::Get, OpKind::GetPut][(number(3) % 3) as usize],
        ack: number(2) == 0,
        confirm: number(2) == 0,
        failed: number(2) == 0,
        message: number(4) as u32,
        at: number(3).wrapping_mul(100),
        uid: number(2) as u32,
        jid: number(2) as u32,
        pt_index: number(2) as u32,
        ac_index: number(8) as u32 / 7,
        match_bits: 0,
        remote_offset: number(300),
        rlength: number(400),
        hdr_data: 0,
        md: MdHandle(number(4) as u32),
        local_offset: number(300),
        mlength: number(300),
    }
}

#[test]
fn nonsense_from_a_peer_harms_nobody() {
    for seed in 1..=20 {
        let lot = Cell::new(seed);
        let frames = (0..6400u32).map(|number| {
            let mut bytes = Vec::new();
            any(&lot).encode(&mut bytes);
            bytes.resize(bytes.len() + (number * 7 % 160) as usize, 0xee);
            if number % 16 == 5 {
                bytes.truncate((number / 16 % 128) as usize);
            }
            (number / 3 % 4, bytes)
        });
        meet(frames.collect());
    }
}

/// Its descriptor can be unlinked then.
#[test]
fn a_message_whose_sender_dies_within_it_ends() {
    let mut bytes = Vec::new();
    FrameHeader { rlength: 64, ..FrameHeader::of(FrameRole::Request) }.encode(&mut bytes);
    bytes.extend([7; 30]);
    let network = Hostile::new(alloc::vec![(1, bytes)]);
    let has_died = network.has_died.clone();
    let ni = NetworkInterface::with_nal(Box::new(network), Some(LIMITS)).expect("an interface");
    let eq = ni.eq_alloc(16, None).expect("a queue");
    let mut memory = [0_u8; 64];
    let unlink = Unlink::Retain;
    let me = ni.me_attach(0, PtlProcessId::ANY, 0, !0, unlink, InsPos::After).expect("an entry");
    let md = MemoryDescriptor {
        start: memory.as_mut_ptr().cast(),
        length: 64,
        threshold: THRESH_INF,
        max_size: 0,
        options: md_options::OP_PUT,
        user_ptr: core::ptr::null_mut(),
        eq,
    };
    // SAFETY: the memory outlives the interface.
    let md = unsafe { ni.md_attach(me, &md, unlink) }.expect("a descriptor");
    let next = || {
        (0..2000).for_each(|_| ni.progress());
        ni.eq_get(eq).expect("the queue").map(|got| (got.event.kind, got.event.ni_fail))
    };
    assert_eq!(next(), Some((PtlEventKind::PutStart, NiFail::Ok)));
    assert_eq!((next(), ni.md_unlink(md)), (None, Err(PtlError::MdInUse)));
    has_died.store(true, Ordering::Relaxed);
    assert_eq!(next(), Some((PtlEventKind::PutEnd, NiFail::Fail)));
    assert_eq!((next(), ni.md_unlink(md)), (None, Ok(())));
    drop(ni);
}

/// An input is frames: a byte with the sender (1:0), one with the length, the bytes.
fn any_frames(input: &[u8]) {
    let mut input = InputReader::new(input);
    let mut frames = Vec::new();
    while !input.is_empty() {
        let (sender, length) = (input.byte() & 3, input.byte());
        frames.push((sender.into(), input.bytes(length.into()).to_vec()));
    }
    meet(frames);
}

#[test]
fn fuzz_frames() {
    fuzz::check("frames", 3_000, any_frames);
}
