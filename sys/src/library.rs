//! Shared libraries: those that are loaded while the program runs, and what holds an address of
//! code or data. Called by `boot`, `process`, `capi`, the binding to a libportals, and this crate.
//!
//! Invariant: a library that was loaded here is never unloaded, so its addresses stay valid.

use core::ffi::{CStr, c_char, c_void};
use core::ptr::NonNull;

/// A loaded library. It stays loaded until the process ends.
#[derive(Clone, Copy, Debug)]
pub struct Library(NonNull<c_void>);

impl Library {
    /// Loads a library, which the system finds by its name. Its names do not replace those of
    /// the program.
    ///
    /// # Errors
    /// The text of the system.
    pub fn load(name: &CStr) -> Result<Library, String> {
        // SAFETY: the name is NUL-terminated. The constructors of the library run; they are those
        // of an installed library.
        let handle = unsafe { libc::dlopen(name.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) };
        NonNull::new(handle).map(Library).ok_or_else(|| {
            // SAFETY: no arguments; it returns null or a NUL-terminated text of this thread.
            let text = unsafe { libc::dlerror() };
            if text.is_null() {
                return "it cannot be loaded".to_string();
            }
            // SAFETY: not null, so it is NUL-terminated; it is copied at once.
            unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned()
        })
    }

    /// The address of one of its functions.
    pub fn function(self, name: &CStr) -> Option<NonNull<c_void>> {
        // SAFETY: a handle that was never closed, and a NUL-terminated name.
        NonNull::new(unsafe { libc::dlsym(self.0.as_ptr(), name.as_ptr()) })
    }

    /// The address of this version of one of its functions.
    pub fn function_of_version(self, name: &CStr, version: &CStr) -> Option<NonNull<c_void>> {
        // SAFETY: a handle that was never closed, and NUL-terminated texts.
        NonNull::new(unsafe { libc::dlvsym(self.0.as_ptr(), name.as_ptr(), version.as_ptr()) })
    }
}

/// The address of a function or variable of the program or of a library that it has loaded.
pub fn symbol(name: &CStr) -> Option<NonNull<c_void>> {
    // SAFETY: the name is NUL-terminated.
    NonNull::new(unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) })
}

/// A file that is loaded in this process.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LoadedFile {
    /// Its name, NUL-terminated; valid while it is loaded.
    pub(crate) name: *const c_char,
    /// Where its first byte is loaded.
    pub(crate) base: usize,
}

/// The file that was loaded at an address. Async-signal-safe once a library was loaded or a
/// stack was printed.
pub(crate) fn loaded_at(address: usize) -> Option<LoadedFile> {
    // SAFETY: all-zero is a valid Dl_info.
    let mut info: libc::Dl_info = unsafe { core::mem::zeroed() };
    let address = core::ptr::without_provenance(address);
    // SAFETY: dladdr accepts any address; the record is live.
    let found = unsafe { libc::dladdr(address, &mut info) } != 0 && !info.dli_fname.is_null();
    found.then_some(LoadedFile { name: info.dli_fname, base: info.dli_fbase as usize })
}

/// The name of the file that holds this address of code or data of the process, as it was
/// loaded.
pub fn name_at(address: usize) -> Option<String> {
    let file = loaded_at(address)?;
    // SAFETY: a NUL-terminated name of the loader's; it is copied at once.
    Some(unsafe { CStr::from_ptr(file.name) }.to_string_lossy().into_owned())
}

/// The file that holds this address of code or data of the process, with all links followed.
pub fn file_at(address: usize) -> Option<String> {
    let name = name_at(address)?;
    Some(std::fs::canonicalize(&name).map_or(name, |path| path.display().to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn found_or_not() {
        let m = Library::load(c"libm.so.6").unwrap();
        assert!(m.function(c"cos").is_some() && m.function(c"no_such_function").is_none());
        assert!(
            Library::load(c"libno-such-library.so.9").unwrap_err().contains("no-such-library")
        );
        let printf = symbol(c"printf").unwrap().addr().get();
        assert!(file_at(printf).unwrap().contains("libc"));
        assert!(name_at(1).is_none());
    }
}
