//! The processes of a job, found by the marker in their environment, and what a job may leave
//! behind. Used by `test_job`. Only processes that carry the marker of the job are signalled.

use crate::{build_trees, have, injector};
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::Duration;
use sys::signal::Signal;

/// The variable whose value names the job of a process.
pub(crate) const MARKER: &str = "CAPI_TESTS_JOB";
/// How long a supervisor may take to report what its ranks do.
const REPORT: Duration = Duration::from_millis(1500);

/// Living processes whose environment carries `marker`.
pub(crate) fn marked(marker: &str) -> Vec<i32> {
    let wanted = format!("{MARKER}={marker}");
    let Ok(proc) = fs::read_dir("/proc") else { return Vec::new() };
    proc.flatten()
        .filter_map(|e| e.file_name().to_str()?.parse::<i32>().ok())
        .filter(|pid| {
            fs::read(format!("/proc/{pid}/environ"))
                .is_ok_and(|env| env.split(|&b| b == 0).any(|v| v == wanted.as_bytes()))
        })
        .collect()
}

/// These processes, with their names.
pub(crate) fn described(pids: &[i32]) -> Vec<String> {
    let name = |pid: i32| fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
    pids.iter().map(|&pid| format!("process {pid} ({})", name(pid).trim())).collect()
}

/// Whether this process belongs to another job system's launcher.
pub(crate) fn is_theirs(pid: i32) -> bool {
    injector::is_theirs(&fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default())
}

/// Whether the first thread of a process has this signal blocked.
pub(crate) fn blocks(pid: i32, signal: Signal) -> bool {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let mask = status.lines().find_map(|l| l.strip_prefix("SigBlk:"));
    mask.and_then(|m| u64::from_str_radix(m.trim(), 16).ok())
        .is_some_and(|m| m >> (signal.number() - 1) & 1 == 1)
}

/// The names in /dev/shm that the library can have made. Other programs make names there too.
pub(crate) fn names_of_shared_memory() -> BTreeSet<OsString> {
    let names = fs::read_dir("/dev/shm").into_iter().flatten().flatten().map(|e| e.file_name());
    names.filter(|name| sys::memory::is_file_name(name)).collect()
}

/// Appends to the output the state of the processes that the watchdog finds, as supervisor and
/// kernel report it. Where a debugger exists, their stacks go to a file that is named there.
pub(crate) fn describe(marker: &str, output: &Path) {
    let Ok(mut output) = OpenOptions::new().append(true).open(output) else { return };
    let all = marked(marker);
    // The stacks first: SIGUSR1 interrupts waits.
    let stacks = stacks(marker, &all);
    // Our supervisors block SIGUSR1 to read it. Another launcher may block it too, but forwards
    // it to the ranks, which it would end.
    let ours = |pid: &&i32| blocks(**pid, Signal::USR1) && !is_theirs(**pid);
    for &pid in all.iter().filter(ours) {
        kill(pid, Signal::USR1);
        sleep(REPORT);
    }
    if let Some(file) = stacks {
        let _ = writeln!(output, "stacks are in {}", file.display());
    }
    for pid in all {
        let of =
            |file: &str| fs::read_to_string(format!("/proc/{pid}/{file}")).unwrap_or_default();
        let status = of("status");
        let wanted = ["Name:", "State:", "PPid:", "SigPnd:", "ShdPnd:", "SigBlk:", "SigCgt:"];
        let lines: Vec<String> = status
            .lines()
            .filter(|l| wanted.iter().any(|w| l.starts_with(w)))
            .map(|l| l.split_whitespace().collect::<Vec<_>>().join(" "))
            .collect();
        let _ = writeln!(
            output,
            "still there: process {pid}, {}, in {}, call {}",
            lines.join(", "),
            of("wchan"),
            of("syscall").split_whitespace().next().unwrap_or_default()
        );
    }
}

/// Writes the stacks of these processes to a file, if a debugger exists.
fn stacks(marker: &str, pids: &[i32]) -> Option<PathBuf> {
    if !have("gdb") {
        return None;
    }
    let dir = build_trees::build().join("capi-tests/hangs");
    fs::create_dir_all(&dir).ok()?;
    let path = dir.join(format!("{}.txt", marker));
    let mut file = File::create(&path).ok()?;
    for pid in pids {
        // A process that cannot be stopped would block the debugger.
        let mut gdb = Command::new("timeout");
        gdb.args([
            "--signal=KILL",
            "20",
            "gdb",
            "-q",
            "-nx",
            "-batch",
            "-ex",
            "thread apply all bt",
            "-p",
        ]);
        let text = gdb.arg(pid.to_string()).stdin(Stdio::null()).output().ok()?.stdout;
        let _ = writeln!(file, "process {pid}\n{}", String::from_utf8_lossy(&text));
    }
    Some(path)
}

/// Sends a signal to a process of the job.
pub(crate) fn kill(pid: i32, signal: Signal) {
    if let Ok(pid) = u32::try_from(pid) {
        sys::process::kill(pid, signal);
    }
}

/// Kills every process of the job, also those started meanwhile.
pub(crate) fn kill_all(marker: &str) {
    loop {
        let all = marked(marker);
        if all.is_empty() {
            return;
        }
        for pid in all {
            kill(pid, Signal::KILL);
        }
        sleep(Duration::from_millis(2));
    }
}
