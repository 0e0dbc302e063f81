//! What the tools tell on their standard output.

use std::io::Write;
use std::process::exit;

/// Writes all of `text`. Where that is not possible, a full file system for one, says so in the name of `tool` and ends the process with 1.
pub fn write(tool: &str, text: &str) {
    let mut out = std::io::stdout().lock();
    if let Err(e) = out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        eprintln!("*** {tool}: its standard output cannot be written: {e}");
        eprintln!("***   Make room there, or send it elsewhere.");
        exit(1)
    }
}

/// Ends this tool quietly when the reader of what it prints is closed. Called first in `main`.
pub fn end_on_closed_pipe() {
    crate::signal::set_default(libc::SIGPIPE);
}
