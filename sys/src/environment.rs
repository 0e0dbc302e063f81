//! The environment of this process. Called by `env`, which is the table of the variables, and
//! by `boot`, which sets some for the programs that it starts.

use core::ffi::{CStr, c_char};

/// The value of a variable, NUL-terminated; null if it is not set. It is valid until the
/// process changes its environment.
pub fn get(name: &CStr) -> *mut c_char {
    // SAFETY: the name is NUL-terminated.
    unsafe { libc::getenv(name.as_ptr()) }
}

/// A copy of the value of a variable; `None` if it is not set.
pub fn value(name: &CStr) -> Option<String> {
    let value = get(name);
    if value.is_null() {
        return None;
    }
    // SAFETY: not null, so it is a NUL-terminated string of the C library; it is copied at once.
    Some(unsafe { CStr::from_ptr(value) }.to_string_lossy().into_owned())
}

/// Sets a variable.
///
/// # Safety
/// No other thread may use the environment at the same time.
pub unsafe fn set(name: &CStr, value: &CStr) {
    // SAFETY: both are NUL-terminated, and the caller keeps other threads away.
    unsafe { libc::setenv(name.as_ptr(), value.as_ptr(), 1) };
}

/// Removes a variable.
///
/// # Safety
/// No other thread may use the environment at the same time.
pub unsafe fn unset(name: &CStr) {
    // SAFETY: the name is NUL-terminated, and the caller keeps other threads away.
    unsafe { libc::unsetenv(name.as_ptr()) };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values() {
        assert_eq!(value(c"PATH"), std::env::var("PATH").ok());
        assert_eq!(value(c"GASNET_TEST_NO_SUCH_VARIABLE"), None);
    }
}
