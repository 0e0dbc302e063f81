//! The handlers of active messages: the table by index, a client's function, and the token of a
//! handler that runs.
//!
//! Filled by `capi`, used by `am` to run handlers. Invariants: clients own the indices
//! 128 to 255, the extended layer 64 to 127. A [`HandlerEntry`] names a function that takes what
//! the messages to its index bring.

use super::{GasnetError, GasnetResult};
use crate::conduit::{AmMessage, Category, ReplyToken};
use crate::rank::JobRank;
use crate::report;
use alloc::boxed::Box;
use alloc::vec::Vec;
use core::cell::Cell;
use core::ffi::c_void;
use core::fmt;
use core::mem::offset_of;
use core::sync::atomic::{AtomicPtr, Ordering};
use once_cell::race::OnceBox;
use parking_lot::Mutex;
use std::sync::OnceLock;

/// Lowest index that a client may register.
pub const CLIENT_BASE: u8 = 128;
/// Lowest index of the extended layer.
pub const EXTENDED_BASE: u8 = 64;
/// Most arguments of a message (`gasnet_AMMaxArgs`).
pub const MAX_ARGS: usize = 16;

/// What `gasnet_token_t` points to; lives on the stack of the thread that runs the handler.
pub struct AmToken<'a> {
    /// Rank of the sender.
    pub(super) source: JobRank,
    /// Index of the handler that runs.
    pub(super) handler: u8,
    /// What kind of message it is.
    pub(super) category: Category,
    /// With what a reply may be sent, until one was.
    pub(super) reply: Cell<Option<&'a mut ReplyToken>>,
    /// Whether the message is a request.
    pub(super) is_request: bool,
}

impl<'a> AmToken<'a> {
    /// That of a message, with what a reply to a request needs.
    #[inline(always)]
    pub(super) fn new(m: &AmMessage<'_>, reply: Option<&'a mut ReplyToken>) -> AmToken<'a> {
        let AmMessage { source, handler, category, .. } = *m;
        let is_request = reply.is_some();
        AmToken { source, handler, category, reply: Cell::new(reply), is_request }
    }

    /// Rank of the sender.
    #[inline(always)]
    pub fn source(&self) -> JobRank {
        self.source
    }

    /// Index of the handler that runs.
    pub fn handler(&self) -> u8 {
        self.handler
    }

    /// What kind of message it is.
    pub fn category(&self) -> Category {
        self.category
    }

    /// Whether the message is a request.
    pub fn is_request(&self) -> bool {
        self.is_request
    }

    /// Handler and rank of a token that another thread may end meanwhile; `None` if its memory
    /// cannot be read. The caller looks whether it is still linked afterwards. Async-signal-safe.
    pub(super) fn peek(at: *const AmToken<'_>) -> Option<(u8, JobRank)> {
        let (mut handler, mut source) = ([0], [0; size_of::<JobRank>()]);
        let read = |offset, to: &mut [u8]| {
            sys::attach::peek(at.cast::<u8>().wrapping_add(offset), to) == to.len()
        };
        let is_read = read(offset_of!(AmToken<'_>, handler), &mut handler)
            && read(offset_of!(AmToken<'_>, source), &mut source);
        is_read.then(|| (handler[0], JobRank(u32::from_ne_bytes(source))))
    }
}

impl fmt::Debug for AmToken<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (source, is_request) = (self.source(), self.is_request);
        f.debug_struct("AmToken")
            .field("source", &source)
            .field("is_request", &is_request)
            .finish()
    }
}

/// A handler of the extended layer, which runs in a context `C`.
pub type ContextHandler<C> = fn(C, &AmToken<'_>, &AmMessage<'_>);

/// The handlers of this process, by index.
#[derive(Debug)]
pub struct HandlerTable<C: 'static> {
    /// Those of clients, functions of a [`HandlerEntry`]; null below [`CLIENT_BASE`].
    clients: [AtomicPtr<()>; 256],
    /// What the client said of each, by index.
    rows: Box<[OnceBox<AmEntry>]>,
    /// Those of the extended layer, from [`EXTENDED_BASE`] on.
    extended: OnceLock<&'static [ContextHandler<C>]>,
    /// Held by the thread that registers handlers of a client.
    changes: Mutex<()>,
}

impl<C> Default for HandlerTable<C> {
    fn default() -> Self {
        HandlerTable {
            clients: [const { AtomicPtr::new(core::ptr::null_mut()) }; 256],
            rows: (0..256).map(|_| OnceBox::new()).collect(),
            extended: OnceLock::new(),
            changes: Mutex::new(()),
        }
    }
}

/// One row of the table that a client hands to `gasnet_attach`: index (0: choose one) and
/// function.
///
/// Rows are made by clients, in C, and enter through `capi`. It owes this: the function
/// takes the arguments that the specification lists for a handler. These follow from the
/// category and the number of arguments of the messages that ranks send to its index.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct HandlerEntry {
    /// `gasnet_handler_t`
    index: u8,
    /// The function; its shape depends on the category and the number of arguments of the
    /// message.
    fnptr: Option<unsafe extern "C" fn()>,
}

/// `gex_AM_Entry_t`: a row of the table that a client hands to `gex_EP_RegisterHandlers`, and what
/// the library keeps of each handler. The same holds for its function as for [`HandlerEntry`].
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct AmEntry {
    /// `gex_AM_Index_t`
    index: u8,
    fnptr: Option<unsafe extern "C" fn()>,
    /// For which messages: [`AmEntry::CATEGORIES`] and [`AmEntry::DIRECTIONS`].
    flags: u32,
    /// How many arguments its messages have; [`AmEntry::ANY_ARGS`] if that is not said.
    nargs: u32,
    /// Pointers of the client, which the library does not follow.
    cdata: usize,
    name: usize,
}

impl AmEntry {
    /// `GEX_FLAG_AM_SHORT`, `MEDIUM` and `LONG`.
    const SHORT: u32 = 1;
    const MEDIUM: u32 = 1 << 1;
    const LONG: u32 = 1 << 2;
    const CATEGORIES: u32 = AmEntry::SHORT | AmEntry::MEDIUM | AmEntry::LONG;
    /// `GEX_FLAG_AM_REQUEST` and `REPLY`.
    const REQUEST: u32 = 1 << 3;
    const REPLY: u32 = 1 << 4;
    const DIRECTIONS: u32 = AmEntry::REQUEST | AmEntry::REPLY;
    /// The handler was registered by `gasnet_attach`.
    const ANY_ARGS: u32 = u32::MAX;

    /// Whether the handler takes messages of this category and direction with this number of
    /// arguments.
    pub(super) fn takes(&self, category: Category, is_request: bool, args: usize) -> bool {
        let category = match category {
            Category::Short => AmEntry::SHORT,
            Category::Medium => AmEntry::MEDIUM,
            Category::Long => AmEntry::LONG,
        };
        let direction = if is_request { AmEntry::REQUEST } else { AmEntry::REPLY };
        let is_numbered = self.nargs == AmEntry::ANY_ARGS || self.nargs as usize == args;
        is_numbered && self.flags & category != 0 && self.flags & direction != 0
    }
}

/// A row of a table of handlers.
pub trait HandlerRow {
    /// Its index; 0 for one that is to be chosen.
    fn index(&self) -> u8;
    /// Writes the index that was chosen.
    fn choose(&mut self, index: u8);
    /// What is to be kept of it.
    fn entry(&self) -> AmEntry;
}

impl HandlerRow for HandlerEntry {
    fn index(&self) -> u8 {
        self.index
    }

    fn choose(&mut self, index: u8) {
        self.index = index;
    }

    fn entry(&self) -> AmEntry {
        AmEntry {
            index: self.index,
            fnptr: self.fnptr,
            flags: AmEntry::CATEGORIES | AmEntry::DIRECTIONS,
            nargs: AmEntry::ANY_ARGS,
            cdata: 0,
            name: 0,
        }
    }
}

impl HandlerRow for AmEntry {
    fn index(&self) -> u8 {
        self.index
    }

    fn choose(&mut self, index: u8) {
        self.index = index;
    }

    fn entry(&self) -> AmEntry {
        *self
    }
}

/// The order in which free indices are given to rows with index 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FreeIndex {
    /// The lowest first, as `gasnet_attach` does.
    Lowest,
    /// The highest first, as `gex_EP_RegisterHandlers` does.
    Highest,
}

/// The function of a [`HandlerEntry`].
#[derive(Clone, Copy, Debug)]
pub(super) struct ClientHandler(*mut ());

impl<C> HandlerTable<C> {
    /// Registers handlers of a client: explicit indices first, then each 0 gets a free index,
    /// written back in table order. `function` names the caller in messages.
    ///
    /// # Errors
    /// [`GasnetError::BadArg`], after a line that says which row, for an index that is taken or
    /// below 128, no free index, or flags that do not say which messages. No handler of this table
    /// is registered then.
    pub fn register(
        &self,
        function: &str,
        table: &mut [impl HandlerRow],
        free: FreeIndex,
    ) -> GasnetResult {
        let _lock = self.changes.lock();
        let was_zero: Vec<bool> = table.iter().map(|row| row.index() == 0).collect();
        let result = self.choose_all(function, table, free);
        if result.is_err() {
            let chosen = table.iter_mut().zip(was_zero).filter(|(_, was_zero)| *was_zero);
            chosen.for_each(|(row, _)| row.choose(0));
            return result;
        }
        for row in table {
            let entry = row.entry();
            let index = usize::from(entry.index);
            let f = entry.fnptr.map_or(core::ptr::null_mut(), |f| f as *mut ());
            // Set once, as its function.
            let _ = self.rows[index].set(Box::new(entry));
            // Release pairs with the Acquire in `of_client`.
            self.clients[index].store(f, Ordering::Release);
        }
        result
    }

    /// Checks the rows of a table, and gives free indices to those without. The caller holds
    /// `changes`.
    fn choose_all(
        &self,
        function: &str,
        table: &mut [impl HandlerRow],
        free: FreeIndex,
    ) -> GasnetResult {
        let mut taken: Vec<bool> =
            self.clients.iter().map(|f| !f.load(Ordering::Relaxed).is_null()).collect();
        for (row, e) in table.iter().enumerate().filter(|(_, e)| e.index() != 0) {
            if e.index() < CLIENT_BASE {
                let why = "is reserved; clients have 128 to 255";
                return refuse(function, row, e.index(), why, OWN_INDEX);
            }
            check_row(function, row, &e.entry(), &taken)?;
            taken[usize::from(e.index())] = true;
        }
        for (row, e) in table.iter_mut().enumerate().filter(|(_, e)| e.index() == 0) {
            let is_free = |i: &u8| !taken[usize::from(*i)];
            let mut all = CLIENT_BASE..=255;
            let chosen = match free {
                FreeIndex::Lowest => all.find(is_free),
                FreeIndex::Highest => all.rev().find(is_free),
            };
            let Some(chosen) = chosen else {
                let why = "(don't care) cannot be placed: 128 to 255 are all taken";
                return refuse(function, row, 0, why, OWN_INDEX);
            };
            e.choose(chosen);
            check_row(function, row, &e.entry(), &taken)?;
            taken[usize::from(chosen)] = true;
        }
        Ok(())
    }

    /// What the client said of the handler with this index, if it has registered one.
    pub fn entry(&self, index: u8) -> Option<&AmEntry> {
        self.rows[usize::from(index)].get()
    }

    /// Registers the handlers of the extended layer, from [`EXTENDED_BASE`] upwards.
    pub fn register_extended(&self, table: &'static [ContextHandler<C>]) {
        assert!(table.len() <= (CLIENT_BASE - EXTENDED_BASE) as usize);
        let _ = self.extended.set(table);
    }

    /// The handler of a client with this index, if there is one.
    #[inline(always)]
    pub(super) fn of_client(&self, index: u8) -> Option<ClientHandler> {
        let f = self.clients[index as usize].load(Ordering::Acquire);
        if f.is_null() { None } else { Some(ClientHandler(f)) }
    }

    /// The handler of the extended layer with this index, if there is one.
    #[cold]
    pub(super) fn of_extended(&self, index: u8) -> Option<ContextHandler<C>> {
        self.extended.get()?.get(usize::from(index.checked_sub(EXTENDED_BASE)?)).copied()
    }
}

/// What to do about an index that cannot be used.
const OWN_INDEX: &str =
    "Give each handler an index of its own from 128 to 255, or 0 to have one chosen.";

/// Checks a row that has an index.
fn check_row(function: &str, row: usize, e: &AmEntry, taken: &[bool]) -> GasnetResult {
    if e.fnptr.is_none() {
        return refuse(function, row, e.index, "has a null function", "Pass its function.");
    }
    if e.flags & AmEntry::CATEGORIES == 0 || e.flags & AmEntry::DIRECTIONS == 0 {
        let why = "lacks a flag of GEX_FLAG_AM_SHORT, MEDIUM, LONG, or of REQUEST, REPLY";
        let remedy = "Give it one flag of each: its category, and its direction.";
        return refuse(function, row, e.index, why, remedy);
    }
    if e.nargs != AmEntry::ANY_ARGS && e.nargs as usize > MAX_ARGS {
        let remedy = "Give at most 16 as gex_nargs.";
        return refuse(function, row, e.index, "has more than 16 arguments", remedy);
    }
    if taken[usize::from(e.index)] {
        return refuse(function, row, e.index, "is registered twice", OWN_INDEX);
    }
    Ok(())
}

fn refuse(function: &str, row: usize, index: u8, why: &str, remedy: &str) -> GasnetResult {
    report::warn(
        format_args!("{function}(): row {row} of the handler table: index {index} {why}"),
        format_args!("{remedy}"),
    );
    Err(GasnetError::BadArg)
}

/// Calls a client's handler with as many arguments as the message has.
macro_rules! call {
    (@one $f:expr, $args:expr, ($($lead:expr => $t:ty),*), $($i:literal)*) => {{
        // SAFETY: a pointer to a function of this shape, by the invariant of `HandlerEntry`;
        // all function pointers are of one size.
        let f = unsafe {
            core::mem::transmute::<*mut (), unsafe extern "C" fn($($t,)* $(call!(@int $i)),*)>($f.0)
        };
        // SAFETY: the specification lets a handler use its token, payload and arguments until
        // it returns, and they stay as long.
        unsafe { f($($lead,)* $($args[$i]),*) }
    }};
    (@int $i:literal) => { i32 };
    ($f:expr, $args:expr, $lead:tt, $($n:literal: $($i:literal)*;)*) => {
        match $args.len() {
            $($n => call!(@one $f, $args, $lead, $($i)*),)*
            _ => unreachable!("the conduit delivers at most 16 arguments"),
        }
    };
    ($f:expr, $args:expr, $lead:tt) => {
        call!($f, $args, $lead,
            0: ; 1: 0; 2: 0 1; 3: 0 1 2; 4: 0 1 2 3; 5: 0 1 2 3 4; 6: 0 1 2 3 4 5; 7: 0 1 2 3 4 5 6;
            8: 0 1 2 3 4 5 6 7; 9: 0 1 2 3 4 5 6 7 8; 10: 0 1 2 3 4 5 6 7 8 9; 11: 0 1 2 3 4 5 6 7 8 9 10;
            12: 0 1 2 3 4 5 6 7 8 9 10 11; 13: 0 1 2 3 4 5 6 7 8 9 10 11 12; 14: 0 1 2 3 4 5 6 7 8 9 10 11 12 13;
            15: 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14; 16: 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15;)
    };
}

impl ClientHandler {
    /// Runs the handler for this message, whose sender it may ask of `token`.
    #[inline(always)]
    pub(super) fn call(self, token: &AmToken<'_>, m: &AmMessage<'_>) {
        let t: *const c_void = core::ptr::from_ref(token).cast();
        if m.category == Category::Short && m.args.is_empty() {
            // The most frequent case needs no jump by the number of arguments.
            call!(@one self, m.args, (t => *const c_void),);
        } else if m.category == Category::Short {
            call!(self, m.args, (t => *const c_void));
        } else {
            let (at, bytes) = (m.payload.as_ptr(), m.payload.len());
            call!(self, m.args, (t => *const c_void, at => *mut u8, bytes => usize));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::sync::atomic::AtomicU32;

    static SOURCE: AtomicU32 = AtomicU32::new(0);

    unsafe extern "C" fn f() {}

    fn row(index: u8) -> HandlerEntry {
        HandlerEntry { index, fnptr: Some(f) }
    }

    fn register(table: &mut [HandlerEntry]) -> GasnetResult {
        HandlerTable::<()>::default().register("gasnet_attach", table, FreeIndex::Lowest)
    }

    #[test]
    fn explicit_indices_come_first() {
        let mut t = [row(0), row(128), row(0), row(130), row(0)];
        assert_eq!(register(&mut t), Ok(()));
        assert_eq!(t.map(|e| e.index), [129, 128, 131, 130, 132]);
    }

    #[test]
    fn bad_rows_are_refused() {
        assert_eq!(register(&mut [row(127)]), Err(GasnetError::BadArg));
        assert_eq!(register(&mut [row(200), row(200)]), Err(GasnetError::BadArg));
        assert_eq!(
            register(&mut [HandlerEntry { index: 0, fnptr: None }]),
            Err(GasnetError::BadArg)
        );
        assert_eq!(register(&mut [row(0); 129]), Err(GasnetError::BadArg));
    }

    #[test]
    fn a_refused_table_leaves_nothing() {
        let h = HandlerTable::<()>::default();
        let attach = |table: &mut [HandlerEntry]| h.register("f", table, FreeIndex::Lowest);
        assert_eq!(attach(&mut [row(200), row(200)]), Err(GasnetError::BadArg));
        assert!(h.of_client(200).is_none() && h.entry(200).is_none());
        assert_eq!(attach(&mut [row(200)]), Ok(()));
        assert_eq!(attach(&mut [row(201), row(200)]), Err(GasnetError::BadArg));
        assert!(h.of_client(200).is_some() && h.of_client(201).is_none());
    }

    #[test]
    fn a_refused_table_can_be_corrected() {
        let h = HandlerTable::<()>::default();
        let attach = |table: &mut [HandlerEntry]| h.register("f", table, FreeIndex::Lowest);
        let mut table = [row(0), row(200), HandlerEntry { index: 0, fnptr: None }];
        assert_eq!(attach(&mut table), Err(GasnetError::BadArg));
        assert_eq!(table.map(|e| e.index), [0, 200, 0]);
        assert_eq!(attach(&mut [row(128), row(129)]), Ok(()));
        table[2].fnptr = Some(f);
        assert_eq!(attach(&mut table), Ok(()));
        assert_eq!(table.map(|e| e.index), [130, 200, 131]);
    }

    #[test]
    fn threads_register_tables_at_once() {
        const THREADS: usize = 4;
        const ROWS: usize = 30;
        for _ in 0..100 {
            let h = HandlerTable::<()>::default();
            let start = std::sync::Barrier::new(THREADS);
            let mut all: Vec<u8> = std::thread::scope(|s| {
                let register = || {
                    let mut table = [row(0); ROWS];
                    start.wait();
                    assert_eq!(h.register("f", &mut table, FreeIndex::Highest), Ok(()));
                    table.map(|e| e.index)
                };
                let threads: Vec<_> = (0..THREADS).map(|_| s.spawn(register)).collect();
                threads.into_iter().flat_map(|t| t.join().unwrap()).collect()
            });
            all.sort_unstable();
            all.dedup();
            assert_eq!(all.len(), THREADS * ROWS);
            assert!(all.iter().all(|&i| h.of_client(i).is_some() && h.entry(i).is_some()));
        }
    }

    #[test]
    fn tables_add_up_and_their_rows_are_kept() {
        let h = HandlerTable::<()>::default();
        let all = AmEntry::CATEGORIES | AmEntry::DIRECTIONS;
        let entry =
            |index, flags| AmEntry { index, fnptr: Some(f), flags, nargs: 1, cdata: 7, name: 0 };
        let add = |table: &mut [AmEntry]| h.register("f", table, FreeIndex::Highest);
        assert_eq!(add(&mut [entry(254, all)]), Ok(()));
        let mut two = [entry(0, all), entry(0, 9)];
        assert_eq!(add(&mut two), Ok(()));
        assert_eq!(two.map(|e| e.index), [255, 253]);
        assert_eq!(h.entry(253).map(|e| (e.index, e.flags, e.cdata)), Some((253, 9, 7)));
        for flags in [0, AmEntry::CATEGORIES, AmEntry::DIRECTIONS] {
            assert_eq!(add(&mut [entry(0, flags)]), Err(GasnetError::BadArg));
        }
        let many = AmEntry { nargs: 17, ..entry(0, all) };
        assert_eq!(add(&mut [many]), Err(GasnetError::BadArg));
    }

    #[test]
    fn handlers_of_the_library_have_their_own_indices() {
        let h = HandlerTable::<&'static AtomicU32>::default();
        assert!(h.of_extended(EXTENDED_BASE).is_none());
        h.register_extended(&[|source, token, _| {
            source.store(token.source().0, Ordering::Relaxed)
        }]);
        for index in [0, EXTENDED_BASE - 1, EXTENDED_BASE + 1, 255] {
            assert!(h.of_extended(index).is_none());
        }
        let message = AmMessage {
            source: JobRank(7),
            category: Category::Short,
            handler: EXTENDED_BASE,
            args: &[],
            payload: AmMessage::NO_PAYLOAD,
        };
        let token = AmToken::new(&message, None);
        let handler = h.of_extended(EXTENDED_BASE).unwrap();
        handler(&SOURCE, &token, &message);
        assert_eq!(SOURCE.load(Ordering::Relaxed), 7);
    }
}
