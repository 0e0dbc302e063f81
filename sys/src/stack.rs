//! The call stack of the calling thread. Called by `tools` and `capi`, also from signal handlers.

use core::ffi::c_int;

#[cfg(all(target_env = "gnu", feature = "hosted"))]
mod imp {
    use core::ffi::{CStr, c_char, c_int, c_void};
    use core::mem::{offset_of, size_of};
    use core::sync::atomic::{AtomicUsize, Ordering};
    use std::ffi::CString;
    use std::os::unix::ffi::OsStringExt;
    use std::sync::OnceLock;

    unsafe extern "C" {
        fn backtrace(buffer: *mut *mut c_void, size: c_int) -> c_int;
        fn backtrace_symbols_fd(buffer: *const *mut c_void, size: c_int, fd: c_int);
    }

    /// Most frames that are printed.
    const DEEPEST: usize = 64;

    /// The program.
    static PROGRAM: OnceLock<ProgramFile> = OnceLock::new();

    #[derive(Debug)]
    struct ProgramFile {
        /// Its file: the loader has the name as it was typed, which may have been found by PATH,
        /// or have been of another folder.
        path: CString,
        /// Where it was loaded; `None` if the system does not say so.
        base: Option<usize>,
    }

    /// The instruction that a fatal signal has interrupted; [`usize::MAX`] for none.
    static INTERRUPTED: AtomicUsize = AtomicUsize::new(usize::MAX);

    /// Where the address of the interrupted instruction is in the context of a signal handler.
    #[cfg(target_arch = "x86_64")]
    const INSTRUCTION: Option<usize> = Some(
        offset_of!(libc::ucontext_t, uc_mcontext.gregs)
            + libc::REG_RIP as usize * size_of::<libc::greg_t>(),
    );
    #[cfg(not(target_arch = "x86_64"))]
    const INSTRUCTION: Option<usize> = None;

    pub(super) fn note_interrupted(context: *const c_void) {
        let Some(offset) = INSTRUCTION else { return };
        let mut word = [0; size_of::<usize>()];
        if crate::attach::peek(context.cast::<u8>().wrapping_add(offset), &mut word) == word.len()
        {
            INTERRUPTED.store(usize::from_ne_bytes(word), Ordering::Relaxed);
        }
    }

    /// Whether the program has jumped to where no code is. The C library would read code there to
    /// find the frame before it. Another means may find it.
    fn has_lost_its_code() -> bool {
        let at = INTERRUPTED.load(Ordering::Relaxed);
        at != usize::MAX && crate::library::loaded_at(at).is_none()
    }

    /// The frames of a stack that a client wants to see.
    struct ClientFrames<'a> {
        frames: &'a [*mut c_void],
        /// The first is the instruction that a signal has interrupted. The others hold return
        /// addresses: their calls are before these.
        is_interrupted: bool,
    }

    impl ClientFrames<'_> {
        /// The addresses of the calls, and of the instruction that was interrupted.
        fn addresses(&self) -> impl Iterator<Item = usize> {
            let is_exact = |i| i == 0 && self.is_interrupted;
            self.frames.iter().enumerate().map(move |(i, frame)| {
                let address = frame.addr();
                if is_exact(i) { address } else { address.wrapping_sub(1) }
            })
        }
    }

    /// The stack of this thread, in this buffer; none if the C library cannot walk it.
    fn client_frames(buffer: &mut [*mut c_void]) -> ClientFrames<'_> {
        let n = match has_lost_its_code() {
            true => 0,
            // SAFETY: a live buffer of that many entries.
            false => unsafe { backtrace(buffer.as_mut_ptr(), buffer.len() as c_int) },
        };
        callers(&buffer[..usize::try_from(n).unwrap_or(0)])
    }

    pub(super) fn print(fd: c_int) -> bool {
        let mut buffer = [core::ptr::null_mut(); DEEPEST];
        let ClientFrames { frames, .. } = client_frames(&mut buffer);
        print_symbols(fd, frames);
        !frames.is_empty()
    }

    fn print_symbols(fd: c_int, frames: &[*mut c_void]) {
        // SAFETY: the slice has that many entries, which are addresses of code.
        unsafe { backtrace_symbols_fd(frames.as_ptr(), frames.len() as c_int, fd) };
    }

    /// Whether this is the code to which signal handlers return.
    fn is_trampoline(address: usize) -> bool {
        // mov $__NR_rt_sigreturn, %rax; syscall
        const CODE: [u8; 9] = [0x48, 0xc7, 0xc0, 0x0f, 0, 0, 0, 0x0f, 0x05];
        let code = core::ptr::with_exposed_provenance::<[u8; 9]>(address);
        // SAFETY: an address of a stack's frame in the C library, whose code goes on after it.
        cfg!(target_arch = "x86_64") && unsafe { code.read_unaligned() } == CODE
    }

    /// The frames without those of this library at their beginning, and without that from which
    /// the C library calls signal handlers. All frames where the program has the library's code in
    /// its own file.
    fn callers<'a>(frames: &'a [*mut c_void]) -> ClientFrames<'a> {
        let base = |address: usize| crate::library::loaded_at(address).map(|file| file.base);
        let (own, libc) =
            (base(callers as *const () as usize), base(backtrace as *const () as usize));
        // A frame holds the return address; the call is before it.
        let at =
            |i: usize| frames.get(i).and_then(|frame| base((*frame as usize).wrapping_sub(1)));
        let mut first = frames.iter().enumerate().take_while(|&(i, _)| at(i) == own).count();
        let from = |first: usize, is_interrupted| {
            let frames: &'a [*mut c_void] = &frames[first..];
            ClientFrames { frames, is_interrupted }
        };
        let after = frames.get(first).filter(|_| first > 0 && at(first) == libc);
        if after.is_some_and(|frame| is_trampoline(frame.addr())) {
            return from(first + 1, true);
        }
        let is_in_own_file = (first..frames.len()).all(|i| at(i) == libc || at(i).is_none());
        if first == 0 || is_in_own_file {
            return from(0, false);
        }
        if at(first) == libc {
            first += 1;
        }
        from(first, false)
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

    /// Where the program was loaded: the file that has its first instruction.
    fn program_base() -> Option<usize> {
        let vector = std::fs::read("/proc/self/auxv").ok()?;
        let (words, _) = vector.as_chunks::<{ size_of::<usize>() }>();
        let words: Vec<usize> = words.iter().map(|word| usize::from_ne_bytes(*word)).collect();
        let (entries, _) = words.as_chunks::<2>();
        let entry = entries.iter().find(|[kind, _]| *kind == libc::AT_ENTRY as usize)?[1];
        crate::library::loaded_at(entry).map(|file| file.base)
    }

    /// The file that a call address was loaded from, and the address as that file counts it.
    fn place(address: usize) -> Option<(*const c_char, usize)> {
        let mut file = crate::library::loaded_at(address)?;
        if let Some(program) = PROGRAM.get()
            && program.base == Some(file.base)
        {
            file.name = program.path.as_ptr();
        }
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
        let mut buffer = [core::ptr::null_mut(); DEEPEST];
        let of_client = client_frames(&mut buffer);
        let (mut file, mut batch, mut first) = (core::ptr::null(), [0usize; BATCH], 0);
        let mut count = 0;
        // The frames of the batch are those from `first` to before `end`.
        let show = |file, batch: &[usize], first, end| {
            // SAFETY: the name of a loaded file, or of the program.
            if !batch.is_empty() && !unsafe { look_up(fd, program, file, batch) } {
                // That file cannot be read.
                print_symbols(fd, &of_client.frames[first..end]);
            }
        };
        for (i, at) in of_client.addresses().enumerate() {
            let place = place(at);
            let ends = count == BATCH || place.is_none_or(|(of, _)| of != file);
            if ends {
                show(file, &batch[..count], first, first + count);
                (first, count) = (i, 0);
            }
            let Some((of, address)) = place else {
                print_symbols(fd, &of_client.frames[i..=i]);
                (first, file) = (i + 1, core::ptr::null());
                continue;
            };
            file = of;
            batch[count] = address;
            count += 1;
        }
        show(file, &batch[..count], first, first + count);
        !of_client.frames.is_empty()
    }

    pub(super) fn prepare() {
        let mut frame = [core::ptr::null_mut(); 1];
        // SAFETY: a live buffer of one entry.
        unsafe { backtrace(frame.as_mut_ptr(), 1) };
        PROGRAM.get_or_init(|| {
            let link = format!("/proc/{}/exe", crate::process::pid());
            // A file that was deleted can be read through the link.
            let path = std::fs::read_link(&link).ok().filter(|path| path.exists());
            let path = path.unwrap_or_else(|| link.into()).into_os_string().into_vec();
            ProgramFile { path: CString::new(path).unwrap_or_default(), base: program_base() }
        });
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

    pub(super) fn note_interrupted(_context: *const core::ffi::c_void) {}

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

/// Records what a signal that ends the process has interrupted, by the context of its handler.
pub fn note_interrupted(context: *const core::ffi::c_void) {
    imp::note_interrupted(context);
}

/// Loads what [`print()`] needs; this allocates.
pub fn prepare() {
    imp::prepare();
}
