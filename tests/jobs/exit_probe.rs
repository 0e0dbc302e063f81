//! A process of a job for tests/boot_exit.rs and its neighbours. It joins, meets the other
//! ranks, and prints a line. Then one rank ends while the others do something else. It drives
//! `boot` and `process` without the C interface.
//!
//! `exit_probe <rank|all> <end> <others>`
//!
//! | end | what that rank does |
//! |---|---|
//! | `return:N`, `exit:N`, `gasnet_exit:N`, `_exit:N` | ends with N |
//! | `delayed:N` | gasnet_exit(N) after two seconds |
//! | `kill:SIGNAL`, `null` | dies of a signal, of a null pointer |
//! | `thread:N` | gasnet_exit from a second thread while the first spins |
//! | `alarm:N` | gasnet_exit in a SIGALRM handler that interrupts printing |
//! | `exchange` | checks an exchange, then returns 0 |
//! | `nap` | ends with 1 if a sleep after a barrier is cut short |
//! | `orphan:N` | leaves a forked child that sleeps, then gasnet_exit |
//! | `childexit:N` | a forked child exits with N; later the rank returns 0 |
//! | `own` | returns its rank |
//! | `late:N` | exits with N before it joins |
//! | `fatal:N` | ends with a fatal error; the text has N parts, which ranks share |
//! | `warn:N` | prints such a warning; returns 0 half a second later |
//! | `numbers:N` | prints GASNET_RANK, GASNET_SIZE and GASNET_LOCAL_RANK, then returns N |
//! | `command:N` | runs the command in PROBE_COMMAND, which must succeed, then gasnet_exit |
//! | `long:N` | prints more than a pipe holds, which the C library still has, then gasnet_exit |
//! | `long_pending:N` | the same, with signals that are blocked and pending |
//!
//! | others | what the other ranks do |
//! |---|---|
//! | `barrier`, `poll`, `spin`, `sleep` | as they say |
//! | `blocks` | spin with SIGTERM blocked |
//! | `own_term:N` | handle SIGTERM and SIGINT; 200 ms after one, print a line and return N |
//! | `masked` | spin with all signals blocked |
//! | `stop` | stop themselves (SIGSTOP) |
//! | `traced` | have a debugger stop them for five seconds, notice no signal for 0.3 s, then spin |
//! | `after:MS:N` | sleep so long, then return N |
//! | `doze` | sleep two seconds, or until a signal, say so, then return 0 |
//! | `finish` | print another line 50 ms after the first exit, then return 0 |
//!
//! With `PROBE_QUIT=1` a SIGQUIT handler prints a line and calls gasnet_exit(4). With
//! `PROBE_HANDLER=1` a thread polls, until an exit handler that is older than the job joins it,
//! polls itself, and prints a line. With `PROBE_HANDLER=fails` the thread then calls
//! gasnet_exit(5), with `PROBE_HANDLER=late` the handler first sleeps two seconds, and with
//! `PROBE_HANDLER=exits` it calls _exit(7) at its end. With `PROBE_ALARM` the process has a timer
//! before it joins, whose handler calls gasnet_exit(7) after two seconds. With
//! `PROBE_ALARM=thread` it has another thread, too.

use gasnet::boot;
use gasnet::boot::bootstrap::Bootstrap;
use gasnet::boot::options::BootOptions;
use gasnet::env;
use gasnet::process::{exit, signals};
use gasnet::rank::JobRank;
use std::ffi::c_void;
use std::os::fd::{FromRawFd, OwnedFd};
use sys::signal::Signal;
use sys::{clock, process, signal};

unsafe extern "C" {
    static stdout: *mut c_void;
    fn setvbuf(stream: *mut c_void, buffer: *mut u8, mode: i32, size: usize) -> i32;
    fn atexit(handler: extern "C" fn()) -> i32;
    fn printf(format: *const core::ffi::c_char, ...) -> i32;
    fn system(command: *const core::ffi::c_char) -> i32;
}

fn print(rank: u32, what: &std::ffi::CStr) {
    // SAFETY: the format matches the arguments.
    unsafe { printf(c"rank %d %s\n".as_ptr(), rank, what.as_ptr()) };
}

extern "C" fn on_quit(_: Signal, _: &sys::signal::SignalInfo, _: *mut c_void) {
    sys::stdio::write_stderr(b"client's SIGQUIT handler\n");
    exit::exit(4)
}

static ALARM_CODE: std::sync::atomic::AtomicI32 = std::sync::atomic::AtomicI32::new(0);

extern "C" fn on_alarm(_: Signal, _: &sys::signal::SignalInfo, _: *mut c_void) {
    exit::exit(ALARM_CODE.load(std::sync::atomic::Ordering::Relaxed))
}

static TERM: std::sync::atomic::AtomicBool = std::sync::atomic::AtomicBool::new(false);

extern "C" fn on_term(_: Signal, _: &sys::signal::SignalInfo, _: *mut c_void) {
    TERM.store(true, std::sync::atomic::Ordering::Relaxed);
}

fn rank(boot: &Bootstrap) -> u32 {
    boot.placement.rank().0
}

/// The thread that polls, of which the exit handler asks an end.
static POLLER: std::sync::Mutex<Option<std::thread::JoinHandle<()>>> = std::sync::Mutex::new(None);
static STOP: std::sync::atomic::AtomicBool = std::sync::atomic::AtomicBool::new(false);

fn handler_is(what: &str) -> bool {
    std::env::var("PROBE_HANDLER").is_ok_and(|value| value == what)
}

extern "C" fn exit_handler() {
    // The thread has polled after the decision.
    let until = clock::now_ns() + if handler_is("late") { 2_000_000_000 } else { 50_000_000 };
    // The end of the job interrupts a sleep.
    while clock::now_ns() < until {
        clock::sleep_ns(until.saturating_sub(clock::now_ns()));
    }
    STOP.store(true, std::sync::atomic::Ordering::Relaxed);
    if let Some(poller) = POLLER.lock().unwrap().take() {
        poller.join().unwrap();
    }
    exit::follow_when_due();
    // SAFETY: the format has no arguments.
    unsafe { printf(c"handled\n".as_ptr()) };
    if handler_is("exits") {
        sys::exit_now(7);
    }
}

/// Polls in a second thread.
fn poll_beside(boot: &'static Bootstrap) {
    *POLLER.lock().unwrap() = Some(std::thread::spawn(|| {
        while !STOP.load(std::sync::atomic::Ordering::Relaxed) {
            if boot.exit.must_exit() {
                exit::follow_when_due();
            }
            sys::thread::yield_now();
        }
        if handler_is("fails") {
            exit::exit(5);
        }
    }));
}

fn spin(boot: &Bootstrap, polling: bool) -> ! {
    let mut rounds = 0u64;
    loop {
        rounds += 1;
        if polling && boot.exit.must_exit() {
            exit::follow();
        }
        // Two ranks that never yield would make a small machine wait for its time slices.
        if rounds.is_multiple_of(1 << 20) {
            sys::thread::yield_now();
        }
        std::hint::spin_loop();
    }
}

/// Blocks all signals that can be; returns what was blocked before.
fn block_all() -> signal::SignalSet {
    let all: Vec<Signal> = (1..=64).map(Signal::new).collect();
    signal::block(&signal::SignalSet::of(&all))
}

fn others(boot: &Bootstrap, what: &str) -> i32 {
    match what {
        "barrier" => loop {
            boot.barrier.barrier();
        },
        "poll" => spin(boot, true),
        "spin" => spin(boot, false),
        "sleep" => loop {
            clock::sleep_ns(3_600_000_000_000);
        },
        "masked" => {
            block_all();
            spin(boot, false)
        }
        "blocks" => {
            signal::block(&signal::SignalSet::of(&[Signal::TERM]));
            spin(boot, false)
        }
        "stop" => {
            process::kill(process::pid(), Signal::STOP);
            0
        }
        "traced" => {
            let pid = process::pid().to_string();
            let args = ["gdb", "-nx", "-batch", "-p", &pid, "-ex", "shell sleep 5"];
            let args = args.map(|a| std::ffi::CString::new(a).unwrap()).to_vec();
            let gdb = sys::helper::HelperProgram::new(c"/usr/bin/gdb".into(), args);
            let before = block_all();
            assert!(gdb.run(1, 30_000_000_000), "the debugger has not finished");
            // Thrice the time between two looks of the supervisor.
            clock::sleep_ns(300_000_000);
            signal::set_mask(&before);
            spin(boot, false)
        }
        "doze" => {
            clock::sleep_ns(2_000_000_000);
            print(rank(boot), c"woke");
            0
        }
        "finish" => {
            while boot.exit.decision().is_none() {
                clock::sleep_ns(1_000_000);
            }
            clock::sleep_ns(50_000_000);
            print(rank(boot), c"finishes");
            0
        }
        _ => {
            if let Some(code) = what.strip_prefix("own_term:") {
                for s in [Signal::TERM, Signal::INT] {
                    signal::handle(s, on_term, false);
                }
                while !TERM.load(std::sync::atomic::Ordering::Relaxed) {
                    assert!(!boot.exit.must_exit(), "the client handles the signal");
                }
                let began = clock::now_ns();
                while clock::now_ns() - began < 200_000_000 {
                    clock::sleep_ns(1_000_000);
                }
                print(rank(boot), c"saves");
                return code.parse().unwrap();
            }
            // The last rank is busy, the others poll.
            if let Some(last) = what.strip_prefix("poll_but_last:") {
                let is_last = rank(boot) + 1 == boot.placement.size();
                return if is_last { others(boot, last) } else { spin(boot, true) };
            }
            let after = what.strip_prefix("after:").and_then(|w| w.split_once(':'));
            let Some((ms, code)) = after else { panic!("{what}?") };
            let until = clock::now_ns() + ms.parse::<u64>().unwrap() * 1_000_000;
            // A status request interrupts a sleep.
            while clock::now_ns() < until {
                clock::sleep_ns(until.saturating_sub(clock::now_ns()));
            }
            code.parse().unwrap()
        }
    }
}

fn check_exchange(boot: &Bootstrap) {
    for length in [0usize, 1, 8, 40_000] {
        let mine: Vec<u8> = (0..length).map(|i| (i as u32 * 7 + rank(boot)) as u8).collect();
        let all = boot.exchange.exchange(&mine);
        assert_eq!(all.as_slice().len(), boot.placement.size() as usize);
        for (JobRank(rank), theirs) in all.ranked() {
            assert_eq!(theirs.len(), length);
            assert!(theirs.iter().enumerate().all(|(i, &b)| b == (i as u32 * 7 + rank) as u8));
        }
        boot.barrier.barrier();
    }
}

fn end(boot: &'static Bootstrap, way: &str) -> i32 {
    let (way, code) = way.split_once(':').unwrap_or((way, "0"));
    let code = || code.parse::<i32>().unwrap();
    match way {
        "return" => code(),
        "own" => rank(boot) as i32,
        "fatal" => gasnet::report::fatal(
            format_args!("part {} is wrong", rank(boot) as i32 % code()),
            format_args!("Mend it."),
        ),
        "warn" => {
            gasnet::report::warn(
                format_args!("part {} is odd", rank(boot) as i32 % code()),
                format_args!("Look at it."),
            );
            clock::sleep_ns(500_000_000);
            boot.barrier.barrier();
            print(rank(boot), c"goes on");
            0
        }
        "numbers" => {
            let value = |v: env::RankVariable| sys::environment::value(v.name).unwrap_or_default();
            println!("numbers {:?}", env::RANK_VARIABLES.map(value));
            boot.barrier.barrier();
            code()
        }
        "exit" => std::process::exit(code()),
        "gasnet_exit" => exit::exit(code()),
        "delayed" => {
            clock::sleep_ns(2_000_000_000);
            exit::exit(code())
        }
        "_exit" => sys::exit_now(code()),
        "kill" => {
            process::kill(process::pid(), Signal::new(code()));
            spin(boot, false)
        }
        "null" => {
            // SAFETY: not sound at all, and meant to be so.
            unsafe { std::ptr::null_mut::<u32>().write_volatile(1) };
            0
        }
        "thread" => {
            let code = code();
            std::thread::spawn(move || exit::exit(code));
            spin(boot, false)
        }
        "alarm" => {
            ALARM_CODE.store(code(), std::sync::atomic::Ordering::Relaxed);
            signal::handle(Signal::ALRM, on_alarm, false);
            signal::alarm_us(1000 + clock::now_ns() % 3000);
            loop {
                drop(Box::new([0u8; 4000]));
                print(rank(boot), c"prints");
            }
        }
        "exchange" => {
            check_exchange(boot);
            0
        }
        "orphan" => {
            // SAFETY: this process has one thread.
            if unsafe { sys::child::fork() }.unwrap() == sys::child::Forked::Child {
                // Keeps every descriptor but the output, for which the test waits.
                for output in [1, 2] {
                    // SAFETY: nothing in this process writes to it from now on.
                    drop(unsafe { OwnedFd::from_raw_fd(output) });
                }
                clock::sleep_ns(20_000_000_000);
                sys::exit_now(0);
            }
            exit::exit(code())
        }
        "command" => {
            let command = std::ffi::CString::new(std::env::var("PROBE_COMMAND").unwrap()).unwrap();
            // SAFETY: a NUL-terminated text.
            assert_eq!(unsafe { system(command.as_ptr()) }, 0, "{command:?}");
            assert!(boot.exit.decision().is_none(), "the command has ended the job");
            exit::exit(code())
        }
        "long" | "long_pending" => {
            if way == "long_pending" {
                let pending = [Signal::ALRM, Signal::PIPE, Signal::HUP, Signal::INT];
                signal::block(&signal::SignalSet::of(&pending));
                pending.into_iter().for_each(signal::raise);
            }
            // SAFETY: the format matches the argument.
            unsafe { printf(c"%68000d\n".as_ptr(), 7) };
            exit::exit(code())
        }
        // A client's sleep after a barrier lasts as long as it says.
        "nap" => {
            for _ in 0..10 {
                boot.barrier.barrier();
                let began = clock::now_ns();
                clock::sleep_ns(3_000_000);
                if clock::now_ns() - began < 3_000_000 {
                    return 1;
                }
            }
            boot.barrier.barrier();
            0
        }
        "childexit" => {
            // SAFETY: this process has one thread.
            match unsafe { sys::child::fork() }.unwrap() {
                sys::child::Forked::Child => std::process::exit(code()),
                sys::child::Forked::Parent(child) => {
                    while sys::child::reap(child).is_none() {
                        clock::sleep_ns(1_000_000);
                    }
                    clock::sleep_ns(100_000_000);
                    assert!(boot.exit.decision().is_none(), "a child has ended the job");
                    0
                }
            }
        }
        _ => panic!("{way}?"),
    }
}

fn main() {
    // What the Rust runtime installs would keep the library's handlers out.
    for s in [Signal::SEGV, Signal::BUS, Signal::PIPE] {
        signal::set_default(s);
    }
    let args: Vec<String> = std::env::args().collect();
    let [_, ranks, way, rest] = &args[..] else { panic!("exit_probe <rank|all> <way> <others>") };
    if let Some(code) = way.strip_prefix("late:") {
        std::process::exit(code.parse().unwrap());
    }
    if way.starts_with("long") {
        const FULL: i32 = 0;
        let buffer = vec![0; 1 << 17].leak();
        // SAFETY: the stream of the C library, before anything was printed.
        unsafe { setvbuf(stdout, buffer.as_mut_ptr(), FULL, buffer.len()) };
    }
    // SAFETY: the format has no arguments.
    unsafe { printf(c"before\n".as_ptr()) };
    let has_handler = std::env::var_os("PROBE_HANDLER").is_some();
    if has_handler {
        // SAFETY: a function that returns.
        unsafe { atexit(exit_handler) };
    }
    if let Ok(kind) = std::env::var("PROBE_ALARM") {
        ALARM_CODE.store(7, std::sync::atomic::Ordering::Relaxed);
        signal::handle(Signal::ALRM, on_alarm, false);
        signal::alarm_us(2_000_000);
        if kind == "thread" {
            std::thread::spawn(|| clock::sleep_ns(3_600_000_000_000));
        }
    }
    let mut boot = match boot::start(&BootOptions::from_env()) {
        Ok(b) => b,
        Err(e) => {
            eprintln!("{}: {}", e.cause, e.remedy);
            std::process::exit(9)
        }
    };
    gasnet::report::set_rank(rank(&boot));
    exit::install(&mut boot, env::EXITTIMEOUT.get());
    let spared = env::NO_CATCH_SIGNAL.get().unwrap_or_default();
    signals::install(|s| spared.has(s));
    let boot: &'static Bootstrap = Box::leak(Box::new(boot));
    if std::env::var_os("PROBE_QUIT").is_some() {
        signal::handle(Signal::QUIT, on_quit, false);
    }
    if has_handler {
        poll_beside(boot);
    }
    print(rank(boot), c"runs");
    boot.barrier.barrier();
    let code = match ranks.as_str() {
        "all" => end(boot, way),
        r if r.parse() == Ok(rank(boot)) => end(boot, way),
        _ => others(boot, rest),
    };
    std::process::exit(code)
}
