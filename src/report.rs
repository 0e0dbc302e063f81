//! How the library tells of trouble: one line that says what happened, one that says what to do, on stderr.
//!
//! Messages are formatted into a buffer on the stack and written with a single `write`, so that lines of several
//! processes do not mix and nothing is allocated when memory is the trouble.

use core::fmt::{self, Write};
use core::sync::atomic::{AtomicPtr, AtomicU32, Ordering};

/// Rank to name in messages; `u32::MAX` before it is known.
static RANK: AtomicU32 = AtomicU32::new(u32::MAX);
/// What ends the job after a fatal message; a `fn(i32) -> !`, null for the default.
static EXIT: AtomicPtr<()> = AtomicPtr::new(core::ptr::null_mut());
/// What leaves this process if the job turns out to be ending already; a `fn()`, null for nothing.
static ENDING: AtomicPtr<()> = AtomicPtr::new(core::ptr::null_mut());
/// The text of the [`Suspicion`] that there is, else null.
static SUSPICION: AtomicPtr<String> = AtomicPtr::new(core::ptr::null_mut());
/// What is done between a fatal message and the end; a `fn()`, null for nothing.
static AFTER_FATAL: AtomicPtr<()> = AtomicPtr::new(core::ptr::null_mut());

/// Sets what is done between a fatal message and the end of the job: a backtrace, a pause for a debugger.
pub fn set_after_fatal(hook: fn()) {
    AFTER_FATAL.store(hook as *mut (), Ordering::Release);
}

/// Makes later messages name this rank.
pub fn set_rank(rank: u32) {
    RANK.store(rank, Ordering::Relaxed);
}

/// The rank that messages name, if it is known.
pub fn rank() -> Option<u32> {
    Some(RANK.load(Ordering::Relaxed)).filter(|r| *r != u32::MAX)
}

/// Sets what ends the job after a fatal message; until then it is `_exit`.
pub fn set_exit(exit: fn(i32) -> !) {
    EXIT.store(exit as *mut (), Ordering::Release);
}

/// Sets what waits a moment for the end of the job, and does not return if it comes.
pub fn set_ending(ending: fn()) {
    ENDING.store(ending as *mut (), Ordering::Release);
}

/// While it lives, a crash is told with an explanation.
#[derive(Debug)]
pub struct Suspicion(());

impl Suspicion {
    /// One at a time. The text stays for good, since a handler may read it at any time.
    pub fn new(explanation: String) -> Suspicion {
        SUSPICION.store(Box::into_raw(Box::new(explanation)), Ordering::Release);
        Suspicion(())
    }
}

impl Drop for Suspicion {
    fn drop(&mut self) {
        SUSPICION.store(core::ptr::null_mut(), Ordering::Release);
    }
}

/// The explanation of a crash that happens now; async-signal-safe.
pub fn suspicion() -> Option<&'static str> {
    // SAFETY: null, or a text that `Suspicion::new` stored and nobody frees or changes.
    unsafe { SUSPICION.load(Ordering::Acquire).as_ref() }.map(String::as_str)
}

/// Text under construction on the stack; what does not fit is cut, and a cut text still ends its last line.
#[derive(Debug)]
pub struct MessageLine {
    buf: [u8; 1024],
    len: usize,
}

impl MessageLine {
    /// No text yet.
    pub fn new() -> MessageLine {
        MessageLine { buf: [0; 1024], len: 0 }
    }

    /// What has been written.
    pub fn bytes(&mut self) -> &[u8] {
        if self.len == self.buf.len() {
            self.buf[self.len - 1] = b'\n';
        }
        &self.buf[..self.len]
    }
}

impl Default for MessageLine {
    fn default() -> MessageLine {
        MessageLine::new()
    }
}

impl Write for MessageLine {
    fn write_str(&mut self, s: &str) -> fmt::Result {
        let room = self.buf.len() - self.len;
        let n = s.len().min(room);
        self.buf[self.len..self.len + n].copy_from_slice(&s.as_bytes()[..n]);
        self.len += n;
        Ok(())
    }
}

fn emit(kind: &str, cause: fmt::Arguments<'_>, remedy: Option<fmt::Arguments<'_>>) {
    let mut line = MessageLine::new();
    let _ = match RANK.load(Ordering::Relaxed) {
        u32::MAX => writeln!(line, "*** {kind}: {cause}"),
        rank => writeln!(line, "*** {kind} (proc {rank}): {cause}"),
    };
    if let Some(remedy) = remedy {
        let _ = writeln!(line, "***   {remedy}");
    }
    sys::stdio::write_stderr(line.bytes());
}

/// Tells of something that does not end the job.
pub fn warn(cause: fmt::Arguments<'_>, remedy: fmt::Arguments<'_>) {
    emit("GASNet WARNING", cause, Some(remedy));
}

/// Tells one line and nothing more.
pub fn note(cause: fmt::Arguments<'_>) {
    emit("GASNet", cause, None);
}

/// Tells one line as it is, after three stars; async-signal-safe.
pub fn line(text: fmt::Arguments<'_>) {
    let mut line = MessageLine::new();
    let _ = writeln!(line, "*** {text}");
    sys::stdio::write_stderr(line.bytes());
}

/// Tells why the caller is about to end the job.
pub fn fatal_line(cause: fmt::Arguments<'_>) {
    emit("FATAL ERROR", cause, None);
}

/// Calls what a hook holds, if anything.
fn call(hook: &AtomicPtr<()>) {
    let hook = hook.load(Ordering::Acquire);
    if !hook.is_null() {
        // SAFETY: ENDING and AFTER_FATAL only ever hold null or a `fn()`, stored by `set_ending` and `set_after_fatal`.
        let hook: fn() = unsafe { core::mem::transmute(hook) };
        hook();
    }
}

/// As [`fatal`], over something that also happens when another process has died. Its supervisor tells of that death and ends
/// the job; this tells only if nobody does.
pub fn fatal_unless_ending(cause: fmt::Arguments<'_>, remedy: fmt::Arguments<'_>) -> ! {
    call(&ENDING);
    fatal(cause, remedy)
}

/// Ends the job with exit code 1 after telling why and what to do.
pub fn fatal(cause: fmt::Arguments<'_>, remedy: fmt::Arguments<'_>) -> ! {
    emit("FATAL ERROR", cause, Some(remedy));
    call(&AFTER_FATAL);
    let exit = EXIT.load(Ordering::Acquire);
    if exit.is_null() {
        sys::exit_now(1);
    }
    // SAFETY: EXIT only ever holds null or a `fn(i32) -> !` stored by `set_exit`.
    let exit: fn(i32) -> ! = unsafe { core::mem::transmute(exit) };
    exit(1)
}
