//! The call stack of the calling thread. Called by `tools` and `capi`, also from signal handlers.

use core::ffi::c_int;

#[cfg(all(target_env = "gnu", feature = "hosted"))]
mod imp {
    use core::ffi::{CStr, c_char, c_int, c_void};

    unsafe extern "C" {
        fn backtrace(buffer: *mut *mut c_void, size: c_int) -> c_int;
        fn backtrace_symbols_fd(buffer: *const *mut c_void, size: c_int, fd: c_int);
    }

    pub(super) fn print(fd: c_int) -> bool {
        let mut frames = [core::ptr::null_mut(); 64];
        // SAFETY: a live buffer of that many entries.
        let n = unsafe { backtrace(frames.as_mut_ptr(), frames.len() as c_int) };
        let frames = callers(&frames[..usize::try_from(n).unwrap_or(0)]);
        if frames.is_empty() {
            return false;
        }
        // SAFETY: backtrace has filled these entries.
        unsafe { backtrace_symbols_fd(frames.as_ptr(), frames.len() as c_int, fd) };
        true
    }

    /// The frames without those of this library at their beginning, and without that from which
    /// the C library calls signal handlers. All frames where the program has the library's code in
    /// its own file.
    fn callers(frames: &[*mut c_void]) -> &[*mut c_void] {
        let base = |address: usize| crate::library::loaded_at(address).map(|file| file.base);
        let (own, libc) =
            (base(callers as *const () as usize), base(backtrace as *const () as usize));
        // A frame holds the return address; the call is before it.
        let at =
            |i: usize| frames.get(i).and_then(|frame| base((*frame as usize).wrapping_sub(1)));
        let mut first = frames.iter().enumerate().take_while(|&(i, _)| at(i) == own).count();
        let is_in_own_file = (first..frames.len()).all(|i| at(i) == libc || at(i).is_none());
        if first == 0 || is_in_own_file {
            return frames;
        }
        if at(first) == libc {
            first += 1;
        }
        &frames[first..]
    }

    /// Longest text of an address: 0x, 16 digits, NUL.
    const ADDRESS: usize = 19;
    /// Most addresses that one run of addr2line gets.
    const BATCH: usize = 16;

    /// `value` in hexadecimal, as C reads it.
    fn hex(value: usize) -> [u8; ADDRESS] {
        let mut text = *b"0x0000000000000000\0";
        for (i, digit) in text[2..18].iter_mut().rev().enumerate() {
            *digit = b"0123456789abcdef"[value >> (4 * i) & 15];
        }
        text
    }

    /// The file that a call address was loaded from, and the address as that file counts it.
    fn place(address: usize) -> Option<(*const c_char, usize)> {
        let file = crate::library::loaded_at(address)?;
        let header = core::ptr::with_exposed_provenance::<u16>(file.base);
        // SAFETY: an ELF header is loaded there; its type is the ninth 16-bit word.
        let kind = unsafe { header.add(8).read_unaligned() };
        const FIXED: u16 = 2;
        Some((file.name, if kind == FIXED { address } else { address - file.base }))
    }

    /// Prints the functions at these addresses of a file.
    ///
    /// # Safety
    /// `file` must be NUL-terminated.
    unsafe fn look_up(
        fd: c_int,
        program: &CStr,
        file: *const c_char,
        addresses: &[usize],
    ) -> bool {
        let mut texts = [[0u8; ADDRESS]; BATCH];
        let mut args = [core::ptr::null::<c_char>(); BATCH + 4];
        args[0] = c"addr2line".as_ptr();
        args[1] = c"-Cfipe".as_ptr();
        args[2] = file;
        for (i, &a) in addresses.iter().enumerate() {
            texts[i] = hex(a);
            args[3 + i] = texts[i].as_ptr().cast();
        }
        // SAFETY: the texts are live and NUL-terminated, and null ends the list.
        unsafe { crate::helper::run(program, &args, fd, 30_000_000_000) }
    }

    pub(super) fn print_lines(fd: c_int, program: &CStr) -> bool {
        let mut frames = [core::ptr::null_mut(); 64];
        // SAFETY: a live buffer of that many entries.
        let n = unsafe { backtrace(frames.as_mut_ptr(), frames.len() as c_int) };
        let n = usize::try_from(n).unwrap_or(0);
        let (mut file, mut batch, mut count) = (core::ptr::null(), [0usize; BATCH], 0);
        let mut printed = false;
        for frame in callers(&frames[..n]) {
            // A frame holds the return address; the call is before it.
            let Some((of, address)) = place((*frame as usize).wrapping_sub(1)) else { continue };
            if count == BATCH || count > 0 && of != file {
                // SAFETY: the name of a loaded file.
                printed |= unsafe { look_up(fd, program, file, &batch[..count]) };
                count = 0;
            }
            file = of;
            batch[count] = address;
            count += 1;
        }
        // SAFETY: the name of a loaded file: `count` is 0 before the first.
        printed | (count > 0 && unsafe { look_up(fd, program, file, &batch[..count]) })
    }

    pub(super) fn prepare() {
        let mut frame = [core::ptr::null_mut(); 1];
        // SAFETY: a live buffer of one entry.
        unsafe { backtrace(frame.as_mut_ptr(), 1) };
    }
}

#[cfg(not(all(target_env = "gnu", feature = "hosted")))]
mod imp {
    use core::ffi::c_int;

    pub(super) fn print(_fd: c_int) -> bool {
        false
    }

    pub(super) fn print_lines(_fd: c_int, _program: &core::ffi::CStr) -> bool {
        false
    }

    pub(super) fn prepare() {}
}

/// Writes the stack of the calling thread to descriptor `fd`, innermost call first. False if
/// this system cannot. Async-signal-safe after [`prepare`].
pub fn print(fd: c_int) -> bool {
    imp::print(fd)
}

/// As [`print()`], with functions, files and lines, which `program` (addr2line) finds. False if
/// it printed nothing.
pub fn print_lines(fd: c_int, program: &core::ffi::CStr) -> bool {
    imp::print_lines(fd, program)
}

/// Loads what [`print()`] needs; this allocates.
pub fn prepare() {
    imp::prepare();
}
