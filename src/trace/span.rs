//! What a call of the library leaves behind: a line in the trace when it returns, stamped with when it began, and its share in
//! the statistics.
//!
//! Each place that makes events has a [`Probe`], which counts them; each event is a [`Span`] that the call keeps. While
//! nothing is watched a span is one test of a byte at its beginning and one of a word at its end. All counters are
//! words of their own that threads add to; the statistics are read when the process leaves, and may then be behind by the call that a
//! thread is in.

use super::Letter;
use super::source;
use crate::report;
use core::cell::Cell;
use core::fmt::{self, Write};
use core::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, Ordering};

/// Count, sum, least and most of a number.
#[derive(Debug)]
struct Tally {
    sum: AtomicU64,
    least: AtomicU64,
    most: AtomicU64,
}

impl Tally {
    const fn new() -> Tally {
        Tally { sum: AtomicU64::new(0), least: AtomicU64::new(u64::MAX), most: AtomicU64::new(0) }
    }

    fn add(&self, n: u64) {
        self.sum.fetch_add(n, Ordering::Relaxed);
        self.least.fetch_min(n, Ordering::Relaxed);
        self.most.fetch_max(n, Ordering::Relaxed);
    }
}

/// A kind of event.
#[derive(Debug)]
pub struct Probe {
    /// The client's function, or a name in its place.
    pub function: &'static str,
    letter: Letter,
    count: AtomicU64,
    bytes: Tally,
    ns: Tally,
    /// It is in [`PROBES`].
    listed: AtomicBool,
    next: AtomicPtr<Probe>,
}

/// The probes that have counted anything, linked by `next`; only ever added to.
static PROBES: AtomicPtr<Probe> = AtomicPtr::new(core::ptr::null_mut());

impl Probe {
    /// A probe of this type for a function of the client's.
    pub const fn new(letter: Letter, function: &'static str) -> Probe {
        Probe {
            function,
            letter,
            count: AtomicU64::new(0),
            bytes: Tally::new(),
            ns: Tally::new(),
            listed: AtomicBool::new(false),
            next: AtomicPtr::new(core::ptr::null_mut()),
        }
    }

    fn add(&'static self, bytes: Option<u64>, ns: u64) {
        if !self.listed.load(Ordering::Relaxed) && !self.listed.swap(true, Ordering::Relaxed) {
            let me = core::ptr::from_ref(self).cast_mut();
            let mut head = PROBES.load(Ordering::Relaxed);
            loop {
                self.next.store(head, Ordering::Relaxed);
                // Release: who finds the probe finds its link.
                match PROBES.compare_exchange_weak(head, me, Ordering::Release, Ordering::Relaxed)
                {
                    Ok(_) => break,
                    Err(now) => head = now,
                }
            }
        }
        self.count.fetch_add(1, Ordering::Relaxed);
        if let Some(bytes) = bytes {
            self.bytes.add(bytes);
        }
        self.ns.add(ns);
    }
}

/// Hands the line of statistics of each probe of a type to `each`. Neither allocates nor locks.
pub fn statistics(letter: Letter, mut each: impl FnMut(fmt::Arguments<'_>)) {
    let mut at = PROBES.load(Ordering::Acquire);
    // SAFETY: null or a probe, which are static.
    while let Some(p) = unsafe { at.as_ref() } {
        at = p.next.load(Ordering::Relaxed);
        let count = p.count.load(Ordering::Relaxed);
        if p.letter != letter || count == 0 {
            continue;
        }
        let read = |t: &Tally| {
            let sum = t.sum.load(Ordering::Relaxed);
            (sum, t.least.load(Ordering::Relaxed), sum / count, t.most.load(Ordering::Relaxed))
        };
        let (name, time, bytes) = (Name(p.function), read(&p.ns), read(&p.bytes));
        let ns = format_args!("ns={} min={} avg={} max={}", time.0, time.1, time.2, time.3);
        if bytes.1 == u64::MAX {
            each(format_args!("{name}: count={count} {ns}"));
        } else {
            each(format_args!(
                "{name}: count={count} bytes={} min={} avg={} max={} {ns}",
                bytes.0, bytes.1, bytes.2, bytes.3
            ));
        }
    }
}

/// The name of an event: that of the function without its prefix, in capitals.
struct Name(&'static str);

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = self.0.strip_prefix("gasnet_").unwrap_or(self.0);
        name.chars().try_for_each(|c| f.write_char(c.to_ascii_uppercase()))
    }
}

/// What there is to say of an event.
#[derive(Clone, Copy, Debug)]
pub enum EventDetail {
    /// Nothing more.
    Nothing,
    /// A put or get of `bytes` bytes.
    Move {
        /// Rank of the other side.
        node: u32,
        /// Bytes.
        bytes: usize,
        /// Address there.
        remote: *const u8,
        /// Address here; null for a value.
        local: *const u8,
    },
    /// A put or get of pieces.
    Pieces {
        /// Rank of the other side.
        node: u32,
        /// Bytes of all pieces together.
        bytes: usize,
    },
    /// A sync of this many explicit operations.
    Sync(usize),
    /// A message, to or from a rank.
    Message {
        /// Rank of the other side.
        node: u32,
        /// Index of its handler.
        handler: u8,
        /// Bytes of the payload.
        bytes: usize,
        /// The payload, if it can be read.
        payload: *const u8,
        /// The first argument.
        args: *const i32,
        /// How many there are.
        nargs: usize,
    },
    /// A barrier.
    Barrier {
        /// The name that was passed.
        id: i32,
        /// Its flags.
        flags: i32,
    },
    /// A collective.
    Collective {
        /// Number of the team.
        team: u32,
        /// Image that is its root.
        root: u32,
        /// Bytes of a block.
        bytes: usize,
    },
    /// Something at this address.
    At(usize),
}

impl EventDetail {
    /// A get or put of `bytes` bytes between `local` here and `remote` on `node`.
    #[inline(always)]
    pub fn moved<R, L>(node: u32, bytes: usize, remote: *const R, local: *const L) -> EventDetail {
        EventDetail::Move { node, bytes, remote: remote.cast(), local: local.cast() }
    }

    fn bytes(&self) -> Option<u64> {
        match *self {
            EventDetail::Move { bytes, .. }
            | EventDetail::Pieces { bytes, .. }
            | EventDetail::Message { bytes, .. }
            | EventDetail::Collective { bytes, .. } => Some(bytes as u64),
            _ => None,
        }
    }

    /// The rank on the other side of a put or get.
    fn moved_with(&self) -> Option<u32> {
        match *self {
            EventDetail::Move { node, .. } | EventDetail::Pieces { node, .. } => Some(node),
            _ => None,
        }
    }
}

impl fmt::Display for EventDetail {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            EventDetail::Nothing => Ok(()),
            EventDetail::Move { node, bytes, .. } | EventDetail::Pieces { node, bytes } => {
                write!(f, " node={node} bytes={bytes}")
            }
            EventDetail::Sync(n) => write!(f, " handles={n}"),
            EventDetail::Message { node, handler, bytes, nargs, .. } => {
                write!(f, " node={node} handler={handler} args={nargs} bytes={bytes}")
            }
            EventDetail::Barrier { id, flags } => write!(f, " id={id} flags={flags}"),
            EventDetail::Collective { team, root, bytes } => {
                write!(f, " team={team} root={root} bytes={bytes}")
            }
            EventDetail::At(address) => write!(f, " at={address:#x}"),
        }
    }
}

/// The first bytes at an address, in hexadecimal digits.
struct Data(*const u8, usize);

impl fmt::Display for Data {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const MOST: usize = 16;
        for i in 0..self.1.min(MOST) {
            // SAFETY: who makes one of these has been promised that so many bytes can be read (`detail`).
            write!(f, "{:02x}", unsafe { self.0.add(i).read_volatile() })?;
        }
        if self.1 > MOST { f.write_str("...") } else { Ok(()) }
    }
}

/// An event that began and will be told when it ends.
#[derive(Debug)]
struct Open {
    probe: &'static Probe,
    what: EventDetail,
    start: u64,
    /// There will be a line.
    traced: bool,
    /// It is counted.
    counted: bool,
    /// The line of the client's source that it is told with, and the one of the call itself.
    from: source::SourceLine,
    call: source::SourceLine,
    /// The code that it returned, if it is not 0.
    result: i32,
}

/// An event in progress: told when it is dropped. On the heap, so that a call that is not watched keeps one word.
#[derive(Debug)]
pub struct Span(Option<Box<Open>>);

impl Span {
    /// An event of this probe begins.
    ///
    /// # Safety
    /// The payload of a put or message that `what` names, and its arguments, must be readable now.
    #[inline(always)]
    pub unsafe fn new(probe: &'static Probe, what: impl FnOnce() -> EventDetail) -> Span {
        // SAFETY: the caller's promise.
        if super::on() { Span(unsafe { open(probe, what()) }) } else { Span(None) }
    }

    /// The code that the call returns is part of what is told.
    #[inline(always)]
    pub fn result(&mut self, code: i32) -> i32 {
        if let Some(open) = &mut self.0 {
            open.result = code;
        }
        code
    }
}

impl Drop for Span {
    #[inline(always)]
    fn drop(&mut self) {
        if let Some(open) = &self.0 {
            close(open);
        }
    }
}

/// # Safety
/// As [`Span::new`].
#[cold]
#[inline(never)]
unsafe fn open(probe: &'static Probe, what: EventDetail) -> Option<Box<Open>> {
    let (trace, stats) = super::masks();
    let local = what.moved_with().is_some_and(|node| Some(node) == report::rank());
    let traced = trace.has(probe.letter) && (!local || super::traces_local());
    let counted = stats.has(probe.letter);
    if !traced && !counted {
        return None;
    }
    let start = sys::clock::now_ns();
    if traced && trace.has(Letter::D) {
        // SAFETY: the caller's promise.
        unsafe { detail(probe, &what, start) };
    }
    // What it says takes time of its own.
    let start = sys::clock::now_ns().max(start);
    Some(Box::new(Open {
        probe,
        what,
        start,
        traced,
        counted,
        from: source::current(),
        call: source::last_call(),
        result: 0,
    }))
}

/// An event of this probe, which began at `start`, has ended.
pub fn ended(probe: &'static Probe, start: u64) {
    // SAFETY: there is nothing to read.
    if let Some(mut open) = unsafe { open(probe, EventDetail::Nothing) } {
        open.start = start;
        close(&open);
    }
}

/// Tells addresses, arguments and the first bytes of an event.
///
/// # Safety
/// As [`Span::new`].
unsafe fn detail(probe: &'static Probe, what: &EventDetail, now: u64) {
    let name = Name(probe.function);
    match *what {
        EventDetail::Move { bytes, remote, local, .. } => {
            let n = if probe.letter == Letter::P && !local.is_null() { bytes } else { 0 };
            super::line(
                now,
                source::current(),
                Letter::D,
                format_args!("{name}: remote={remote:p} local={local:p} data={}", Data(local, n)),
            );
        }
        EventDetail::Message { bytes, payload, args, nargs, .. } => {
            // SAFETY: the caller's promise.
            let args =
                if nargs == 0 { &[] } else { unsafe { core::slice::from_raw_parts(args, nargs) } };
            let n = if payload.is_null() { 0 } else { bytes };
            super::line(
                now,
                source::current(),
                Letter::D,
                format_args!("{name}: args={args:?} data={}", Data(payload, n)),
            );
        }
        _ => {}
    }
}

#[cold]
#[inline(never)]
fn close(open: &Open) {
    // What handlers have called meanwhile is over.
    source::call(open.call);
    let took = sys::clock::now_ns().saturating_sub(open.start);
    if open.counted {
        open.probe.add(open.what.bytes(), took);
    }
    if open.traced {
        let (name, what) = (Name(open.probe.function), &open.what);
        let tell = |text| super::line(open.start, open.from, open.probe.letter, text);
        match open.result {
            0 => tell(format_args!("{name}:{what} took={took}ns")),
            code => tell(format_args!("{name}:{what} result={code} took={took}ns")),
        }
    }
}

/// What a call returns, as far as it is told: a code other than 0.
pub trait TracedResult {
    /// The code.
    fn code(&self) -> i32 {
        0
    }
}

impl TracedResult for () {}
impl TracedResult for usize {}
impl TracedResult for *mut core::ffi::c_void {}
impl TracedResult for i32 {
    fn code(&self) -> i32 {
        *self
    }
}

thread_local! {
    /// The call that this thread is about to make is an event already.
    static TOLD: Cell<bool> = const { Cell::new(false) };
}

/// Makes `call` as an event of this probe; `None` if it is that very call that asks.
///
/// # Safety
/// As [`Span::new`].
#[cold]
#[inline(never)]
pub unsafe fn tell<R: TracedResult>(
    probe: &'static Probe,
    what: impl FnOnce() -> EventDetail,
    call: impl FnOnce() -> R,
) -> Option<R> {
    if TOLD.replace(false) {
        return None;
    }
    // SAFETY: the caller's promise.
    let mut span = unsafe { Span::new(probe, what) };
    TOLD.set(true);
    let result = call();
    span.result(result.code());
    Some(result)
}

/// The first thing in a function of the client's: if anything is watched, `$call`, which is the same call once more, is made as an
/// event of type `$letter`, and what it returns is returned. So a call that is not watched pays for one test. What of
/// `$what` can be read must be readable, see [`Span::new`].
macro_rules! watch {
    ($letter:ident $function:expr, $what:expr, $call:expr) => {
        if $crate::trace::on() {
            static PROBE: $crate::trace::Probe =
                $crate::trace::Probe::new($crate::trace::Letter::$letter, $function);
            let (what, call) = (move || $what, move || $call);
            // SAFETY: what is named here is readable: it is what the client promises of the call.
            if let Some(result) = unsafe { $crate::trace::tell(&PROBE, what, call) } {
                return result;
            }
        }
    };
}
pub(crate) use watch;

/// An event of type `$letter` of the client's function `$function` begins; `$what` is evaluated if anything is watched. What of it
/// can be read must be readable, see [`Span::new`].
macro_rules! span {
    ($letter:ident $function:expr) => {
        $crate::trace::span!($letter $function, $crate::trace::EventDetail::Nothing)
    };
    ($letter:ident $function:expr, $what:expr) => {{
        static PROBE: $crate::trace::Probe =
            $crate::trace::Probe::new($crate::trace::Letter::$letter, $function);
        let what = || $what;
        // SAFETY: what is named here is readable: it is what the client promises of the call.
        unsafe { $crate::trace::Span::new(&PROBE, what) }
    }};
}
pub(crate) use span;
