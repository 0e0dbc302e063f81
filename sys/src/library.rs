//! Libraries that are loaded while the program runs, if they are there at all. Called by `boot`.

use core::ffi::{CStr, c_void};
use core::ptr::NonNull;

/// A loaded library; stays loaded.
#[derive(Clone, Copy, Debug)]
pub struct Library(NonNull<c_void>);

impl Library {
    /// Loads it, found as the system finds libraries; its own names stay out of the way of the program's.
    pub fn load(name: &CStr) -> Result<Library, String> {
        // SAFETY: a NUL-terminated name; what the library does when it is loaded is its own business.
        let handle = unsafe { libc::dlopen(name.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) };
        NonNull::new(handle).map(Library).ok_or_else(|| {
            // SAFETY: dlerror returns null or a NUL-terminated text, which is copied at once.
            let text = unsafe { libc::dlerror() };
            if text.is_null() {
                return "it cannot be loaded".to_string();
            }
            // SAFETY: as above.
            unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned()
        })
    }

    /// The address of one of its functions.
    pub fn function(self, name: &CStr) -> Option<NonNull<c_void>> {
        // SAFETY: a handle that was never closed and a NUL-terminated name.
        NonNull::new(unsafe { libc::dlsym(self.0.as_ptr(), name.as_ptr()) })
    }
}

/// The address of a function of the program or of a library that it is linked with.
pub fn function(name: &CStr) -> Option<NonNull<c_void>> {
    // SAFETY: a NUL-terminated name.
    NonNull::new(unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) })
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
        assert!(function(c"printf").is_some());
    }
}
