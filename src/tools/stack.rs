//! Printing the call stack: with the means of the C library, and before that with the client's own, if it defines
//! `gasnett_backtrace_user`. Called by `capi::tools` and after fatal errors.
//!
//! GASNET_BACKTRACE_TYPE is a comma-separated list of the means to try, in order.

use crate::{env, os, report};
use core::ffi::c_int;
use core::sync::atomic::{AtomicBool, Ordering};

/// A way to print the stack that the client supplies.
#[derive(Clone, Copy, Debug)]
pub struct UserMeans<'a> {
    /// Its name in GASNET_BACKTRACE_TYPE.
    pub name: &'a str,
    /// Prints the stack to a file; returns 0 if it could.
    pub print: unsafe extern "C" fn(c_int) -> c_int,
}

/// Writes the stack of the calling thread to `fd`; false if no means could.
pub fn print(fd: c_int, user: Option<UserMeans<'_>>) -> bool {
    let by_user = |u: UserMeans<'_>| {
        // SAFETY: the client promises that its function may be called with a file descriptor.
        unsafe { (u.print)(fd) == 0 }
    };
    match env::text("GASNET_BACKTRACE_TYPE") {
        None => user.is_some_and(by_user) || os::stack::print(fd),
        Some(list) => list.split(',').map(str::trim).any(|name| match user {
            Some(u) if name.eq_ignore_ascii_case(u.name) => by_user(u),
            _ => name.eq_ignore_ascii_case("EXECINFO") && os::stack::print(fd),
        }),
    }
}

/// Whether GASNET_BACKTRACE asks for stacks of this process; tells once how to get them if not.
pub fn enabled() -> bool {
    static TOLD: AtomicBool = AtomicBool::new(false);
    let on = env::yes("GASNET_BACKTRACE");
    if !on && !TOLD.swap(true, Ordering::Relaxed) {
        report::note(format_args!("set GASNET_BACKTRACE=1 in the environment to get the call stack"));
    }
    on && env::text("GASNET_BACKTRACE_NODES")
        .is_none_or(|list| report::rank().is_none_or(|r| in_list(r, &list)))
}

/// Whether a list such as `0,2-4` or `*` names this rank.
fn in_list(rank: u32, list: &str) -> bool {
    list.split(',').map(str::trim).any(|item| match item.split_once('-') {
        _ if item == "*" => true,
        Some((a, b)) => {
            a.trim().parse().is_ok_and(|a: u32| a <= rank) && b.trim().parse().is_ok_and(|b: u32| rank <= b)
        }
        None => item.parse() == Ok(rank),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_ranks() {
        assert!(in_list(3, "0,2-4"));
        assert!(in_list(0, "0,2-4"));
        assert!(!in_list(1, "0,2-4"));
        assert!(in_list(9, "*"));
        assert!(!in_list(0, "none"));
    }
}
