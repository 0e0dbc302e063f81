//! What the objects of this program were compiled for: the interface number, thread and segment
//! modes.
//!
//! Called by the constructors of client objects, which register themselves when they are
//! loaded, and by `init.rs`, which compares. Invariant: nothing is read from an object after it
//! has registered, since it may be unloaded.
//!
//! The linker compares the objects of one program or shared object (absolute symbols in
//! gasnet_client.h). This file finds shared objects that disagree with each other.

use crate::report;
use core::mem::{offset_of, size_of};
use core::sync::atomic::{AtomicUsize, Ordering};

/// The version of the interface between the headers and the library; a change of any structure
/// or exported `gasneti_` function raises it.
pub const ABI: u32 = 1;

/// What the headers tell the library about the client that includes them (`gasneti_client_t`).
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Client {
    /// [`ABI`] of the headers.
    pub abi: u32,
    /// 1 SEQ, 2 PARSYNC, 3 PAR.
    pub thread_mode: u32,
    /// 1 FAST, 2 LARGE, 3 EVERYTHING.
    pub segment_mode: u32,
    /// Whether the client was compiled with `GASNET_DEBUG`.
    pub debug: u32,
    /// The value of the client's `gasnet_max_segsize`, 0 for none.
    pub max_segsize: u64,
}

const _: () = {
    assert!(size_of::<Client>() == 24);
    assert!(offset_of!(Client, abi) == 0);
    assert!(offset_of!(Client, max_segsize) == 16);
};

const THREADS: [&str; 4] =
    ["an unknown thread mode", "GASNET_SEQ", "GASNET_PARSYNC", "GASNET_PAR"];
const SEGMENTS: [&str; 4] = [
    "an unknown segment mode",
    "GASNET_SEGMENT_FAST",
    "GASNET_SEGMENT_LARGE",
    "GASNET_SEGMENT_EVERYTHING",
];

/// Thread and segment mode as one number from 0 to 15.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Modes(usize);

impl Modes {
    fn of(c: &Client) -> Modes {
        Modes(((c.thread_mode & 3) << 2 | c.segment_mode & 3) as usize)
    }
    fn threads(self) -> &'static str {
        THREADS[self.0 >> 2]
    }
    fn segments(self) -> &'static str {
        SEGMENTS[self.0 & 3]
    }
}

/// By modes: an address in the first object that was compiled for them; 0 if there is none.
static FIRST: [AtomicUsize; 16] = [const { AtomicUsize::new(0) }; 16];
/// The modes with which `gasnet_init` was called; 0, which is no valid choice, before.
static CHOSEN: AtomicUsize = AtomicUsize::new(0);

/// The file that was loaded at this address.
fn file_of(address: usize) -> String {
    sys::library::name_at(address).unwrap_or_else(|| "the caller of gasnet_init".into())
}

/// Ends the program: two of its objects were not compiled for the same modes.
fn refuse(a: Modes, b: Modes) -> ! {
    let file = |m: Modes| file_of(FIRST[m.0].load(Ordering::Acquire));
    let (what, p, q) = if a.threads() != b.threads() {
        ("thread mode", a.threads(), b.threads())
    } else {
        ("segment mode", a.segments(), b.segments())
    };
    report::fatal(
        format_args!("gasnet_init(): {} was compiled for {p}, but {} for {q}", file(a), file(b)),
        format_args!("Compile all parts of a program for the same {what}."),
    )
}

/// The record of a client. Ends the program if its headers are of another interface.
///
/// # Safety
/// `client` must point to a [`Client`], whose first field is right whatever its interface.
pub(super) unsafe fn read(client: *const Client) -> Client {
    // SAFETY: the headers of every version pass a record whose first field is this.
    let abi = unsafe { (*client).abi };
    if abi != ABI {
        report::fatal(
            format_args!(
                "{} was compiled with headers of interface {abi}, but the library has {ABI}",
                file_of(client as usize)
            ),
            format_args!("Compile it with the headers that belong to this library."),
        );
    }
    // SAFETY: the interface is ours, so the record is.
    unsafe { *client }
}

/// Registers an object that includes gasnet.h.
///
/// # Safety
/// `client` must point to a [`Client`], whose first field is right whatever its interface.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gasneti_register_client(client: *const Client) {
    // SAFETY: as this function requires.
    let modes = Modes::of(&unsafe { read(client) });
    let _ =
        FIRST[modes.0].compare_exchange(0, client as usize, Ordering::AcqRel, Ordering::Relaxed);
    match CHOSEN.load(Ordering::Acquire) {
        0 => (),
        chosen if chosen == modes.0 => (),
        chosen => refuse(modes, Modes(chosen)),
    }
}

/// Ends the program if some object of it was compiled for other modes than those with which
/// `gasnet_init` was called.
pub(super) fn check(client: &Client) {
    let modes = Modes::of(client);
    CHOSEN.store(modes.0, Ordering::Release);
    for (other, first) in FIRST.iter().enumerate() {
        if other != modes.0 && first.load(Ordering::Acquire) != 0 {
            refuse(Modes(other), modes);
        }
    }
}
