//! Jobs whose launcher is this test. It speaks PMI-1 with processes of tests/jobs/exit_probe.rs,
//! and delays an answer to one of them, so that it stays between the exchange and the job. Then
//! that process ends, or other processes connect to the supervisor.

mod jobs;

use gasnet::boot::control_message::{ControlHead, ControlKind, HEAD_BYTES};
use jobs::{marked, new_mark, probe};
use std::collections::HashMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use sys::signal::Signal;
use sys::{process, socket};

const WATCHDOG: Duration = Duration::from_secs(60);
/// The descriptor on which the processes reach the launcher.
const PMI_FD: i32 = 40;

/// What happens to the process whose answer is delayed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Keep {
    /// It waits.
    Waiting,
    /// It gets its answer.
    Answer,
    /// It gets an error.
    Error,
}

/// What the processes sent to the launcher.
#[derive(Debug)]
struct LauncherState {
    words: HashMap<String, String>,
    here: u32,
    /// The process whose first question after the exchange is not answered, whether it has
    /// asked, and what happens to it.
    kept: u32,
    asked: bool,
    keep: Keep,
    /// The other ranks learn that this one, or the process that started it, has exited.
    ended: Option<(u32, Ended)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ended {
    Process,
    Launcher,
}

/// The word of a process, or of one that has exited instead.
fn changed(word: &str, ended: Ended) -> String {
    let mut child = Command::new("true").spawn().unwrap();
    let gone = sys::process::ProcessIdentity::of(child.id()).unwrap();
    child.wait().unwrap();
    let mut parts: Vec<String> = word.split('.').map(str::to_string).collect();
    let at = if ended == Ended::Process { 1 } else { 3 };
    (parts[at], parts[at + 1]) = (gone.pid.to_string(), gone.start.to_string());
    parts.join(".")
}

struct Played {
    mark: String,
    state: Arc<(Mutex<LauncherState>, Condvar)>,
    ranks: Vec<Child>,
    output: Vec<JoinHandle<String>>,
    begun: Instant,
}

/// Answers the questions of one process until it hangs up.
fn serve(rank: u32, size: u32, line: UnixStream, (state, bell): &(Mutex<LauncherState>, Condvar)) {
    let wait = |state: MutexGuard<'_, LauncherState>, until: &dyn Fn(&LauncherState) -> bool| {
        drop(bell.wait_timeout_while(state, WATCHDOG, |t| !until(t)).unwrap());
    };
    let mut answers = line.try_clone().unwrap();
    for question in BufReader::new(line).lines().map_while(Result::ok) {
        let value = |name: &str| {
            question
                .split(' ')
                .find_map(|p| p.strip_prefix(name)?.strip_prefix('='))
                .unwrap_or_default()
        };
        let answer = match value("cmd") {
            "init" => "cmd=response_to_init rc=0".to_string(),
            "get_my_kvsname" => "cmd=my_kvsname kvsname=played".to_string(),
            "put" => {
                state
                    .lock()
                    .unwrap()
                    .words
                    .insert(value("key").to_string(), value("value").to_string());
                "cmd=put_result rc=0".to_string()
            }
            "barrier_in" => {
                let mut t = state.lock().unwrap();
                t.here += 1;
                bell.notify_all();
                wait(t, &|t| t.here == size);
                "cmd=barrier_out".to_string()
            }
            "get" => {
                let mut t = state.lock().unwrap();
                // Asked before the exchange. This launcher does not know it.
                let of_hosts = value("key") == "PMI_process_mapping";
                if t.kept == rank && !of_hosts {
                    t.asked = true;
                    bell.notify_all();
                    wait(t, &|t| t.keep != Keep::Waiting);
                    t = state.lock().unwrap();
                }
                let ended = t.ended.filter(|(r, _)| value("key") == format!("gasnet-process-{r}"));
                match t.words.get(value("key")) {
                    Some(word) if ended.is_some() => {
                        format!("cmd=get_result rc=0 value={}", changed(word, ended.unwrap().1))
                    }
                    Some(word) if t.kept != rank || t.keep == Keep::Answer => {
                        format!("cmd=get_result rc=0 value={word}")
                    }
                    _ => "cmd=get_result rc=-1".to_string(),
                }
            }
            "finalize" => "cmd=finalize_ack".to_string(),
            other => panic!("{other}?"),
        };
        if writeln!(answers, "{answer}").is_err() {
            return;
        }
    }
}

impl Played {
    /// Starts a job in which the answer to this rank is delayed, and waits until it has asked.
    fn start(size: u32, kept: u32, args: [&str; 3]) -> Played {
        let state = LauncherState {
            words: HashMap::new(),
            here: 0,
            kept,
            asked: false,
            keep: Keep::Waiting,
            ended: None,
        };
        let state = Arc::new((Mutex::new(state), Condvar::new()));
        let begun = Instant::now();
        let mut p =
            Played { mark: new_mark(), state, ranks: Vec::new(), output: Vec::new(), begun };
        for rank in 0..size {
            let (ours, theirs) = UnixStream::pair().unwrap();
            let mut c = Command::new(probe());
            c.args(args).env("PROBE_MARK", &p.mark).env("PMI_FD", PMI_FD.to_string());
            c.env("PMI_RANK", rank.to_string()).env("PMI_SIZE", size.to_string());
            c.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
            // SAFETY: the closure makes one system call, which is async-signal-safe.
            unsafe {
                c.pre_exec(move || sys::descriptor::redirect(PMI_FD, theirs.as_fd()));
            }
            let mut child = c.spawn().unwrap();
            let streams: [Box<dyn Read + Send>; 2] =
                [Box::new(child.stdout.take().unwrap()), Box::new(child.stderr.take().unwrap())];
            for mut stream in streams {
                p.output.push(std::thread::spawn(move || {
                    let mut bytes = Vec::new();
                    let _ = stream.read_to_end(&mut bytes);
                    String::from_utf8_lossy(&bytes).into_owned()
                }));
            }
            p.ranks.push(child);
            let state = p.state.clone();
            std::thread::spawn(move || serve(rank, size, ours, &state));
        }
        p.until("it asks", |t| t.asked);
        p
    }

    fn until(&self, what: &str, there: impl Fn(&LauncherState) -> bool) {
        let (state, bell) = &*self.state;
        let t = bell.wait_timeout_while(state.lock().unwrap(), WATCHDOG, |t| !there(t)).unwrap().0;
        if !there(&t) {
            drop(t);
            self.kill_all();
            panic!("never happened: {what}");
        }
    }

    /// Makes it appear that this exited before the supervisor's first check.
    fn end(&self, rank: u32, what: Ended) {
        self.state.0.lock().unwrap().ended = Some((rank, what));
    }

    fn go_on(&self, keep: Keep) {
        self.state.0.lock().unwrap().keep = keep;
        self.state.1.notify_all();
    }

    /// Waits for the supervisor.
    fn supervisor(&self) -> u32 {
        loop {
            let all = marked(&self.mark);
            if let Some(s) = all.iter().find(|&&pid| process::name_of(pid) == "gasnet-job") {
                return *s;
            }
            assert!(self.begun.elapsed() < WATCHDOG, "no supervisor among {all:?}");
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    fn kill(&self, rank: usize) {
        assert!(process::kill(self.ranks[rank].id(), Signal::KILL));
    }

    fn kill_all(&self) {
        for pid in marked(&self.mark) {
            process::kill(pid, Signal::KILL);
        }
    }

    /// Waits until no process of the job is left; the exit codes by rank, and the output.
    fn finish(mut self) -> (Vec<i32>, String) {
        while !marked(&self.mark).is_empty() {
            if self.begun.elapsed() > WATCHDOG {
                let all = marked(&self.mark);
                self.kill_all();
                let text: String = self.output.drain(..).map(|o| o.join().unwrap()).collect();
                panic!("processes {all:?} hang; {text}");
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        let codes = self.ranks.iter_mut().map(|r| {
            let status = r.wait().unwrap();
            status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or(0))
        });
        (codes.collect(), self.output.drain(..).map(|o| o.join().unwrap()).collect())
    }

    /// The name of the supervisor's socket, and the cookie.
    fn word(&self) -> (String, u64) {
        let state = self.state.0.lock().unwrap();
        let word: Vec<&str> = state.words["gasnet-job-0"].split(':').collect();
        (word[1].to_string(), u64::from_str_radix(word[2], 16).unwrap())
    }
}

#[test]
fn a_job() {
    let p = Played::start(3, 2, ["all", "return:0", "-"]);
    p.go_on(Keep::Answer);
    let (codes, text) = p.finish();
    assert_eq!(codes, [0, 0, 0], "{text}");
    assert!(text.contains("rank 2 runs"), "{text}");
}

/// The supervisor knows the processes that have not joined yet, and detects how they end.
#[test]
fn killed_between_the_exchange_and_the_job() {
    let p = Played::start(4, 2, ["all", "return:0", "-"]);
    p.supervisor();
    p.kill(2);
    let (codes, text) = p.finish();
    assert_eq!(codes[2], 137, "{text}");
    assert!(codes.iter().all(|&c| c != 0), "{codes:?} {text}");
    assert!(
        text.contains("rank 2 of 4 (pid ") && text.contains("was killed by signal 9"),
        "{text}"
    );
    assert!(text.contains("had not joined the job yet"), "{text}");
}

#[test]
fn trouble_between_the_exchange_and_the_job() {
    let p = Played::start(3, 1, ["all", "return:0", "-"]);
    p.supervisor();
    p.go_on(Keep::Error);
    let (codes, text) = p.finish();
    assert_eq!(codes[1], 9, "{text}");
    assert!(codes.iter().all(|&c| c != 0), "{codes:?} {text}");
    assert!(text.contains("ended with exit code 9 within gasnet_init"), "{text}");
}

/// Rank 0 is killed before the supervisor runs. The other ranks detect that.
#[test]
fn rank_0_killed_before_the_supervisor() {
    let p = Played::start(3, 0, ["all", "return:0", "-"]);
    std::thread::sleep(Duration::from_millis(100));
    p.kill(0);
    let (codes, text) = p.finish();
    assert_eq!(codes, [137, 9, 9], "{text}");
    assert_eq!(text.matches("cannot reach the supervisor of the job").count(), 2, "{text}");
}

/// A process that exits before the supervisor's first check is detected. The answer to rank 0,
/// which hands the processes to the supervisor, is delayed.
#[test]
fn gone_before_the_first_look() {
    for rank in [0, 1] {
        let p = Played::start(3, 0, ["none", "-", "barrier"]);
        p.end(rank, Ended::Process);
        p.go_on(Keep::Answer);
        let (codes, text) = p.finish();
        assert!(codes.iter().all(|&c| c != 0), "{codes:?} {text}");
        assert!(text.contains(&format!("rank {rank} (pid ")), "{text}");
        assert!(text.contains("ended without leaving the job"), "{text}");

        let p = Played::start(3, 0, ["none", "-", "barrier"]);
        p.end(rank, Ended::Launcher);
        p.go_on(Keep::Answer);
        let (codes, text) = p.finish();
        assert!(codes.iter().all(|&c| c != 0), "{codes:?} {text}");
        assert_eq!(text.matches("has exited, so the job ends").count(), 1, "{text}");
    }
}

/// The supervisor is killed while it waits for the last rank.
#[test]
fn supervisor_killed_before_all_have_joined() {
    let p = Played::start(3, 2, ["all", "return:0", "-"]);
    process::kill(p.supervisor(), Signal::KILL);
    p.go_on(Keep::Answer);
    let (codes, text) = p.finish();
    assert!(codes.iter().all(|&c| c != 0), "{codes:?} {text}");
}

/// A process outside the job that sends these bytes is disconnected.
fn turned_away(name: &str, words: &[u8]) {
    let stranger = socket::connect(name).unwrap();
    socket::send(stranger.as_fd(), words, true).unwrap();
    let mut answer = [0; HEAD_BYTES];
    match socket::receive_fds(stranger.as_fd(), &mut answer) {
        Ok((n, files)) => assert!(n == 0 && files.is_empty(), "{answer:?}"),
        Err(e) => assert_eq!(e.kind(), std::io::ErrorKind::ConnectionReset),
    }
}

/// Other processes of the same user that know the name of the socket are rejected; the job
/// goes on.
#[test]
fn strangers() {
    let p = Played::start(3, 2, ["all", "return:0", "-"]);
    p.supervisor();
    let (name, cookie) = p.word();
    let join = |rank: u32, cookie: u64| {
        let mut words =
            ControlHead { kind: ControlKind::JoinRequest, a: rank, b: 0 }.bytes().to_vec();
        words.extend_from_slice(&cookie.to_ne_bytes());
        words
    };
    turned_away(&name, &join(2, cookie ^ 1));
    turned_away(&name, &join(2, cookie)[..HEAD_BYTES]);
    turned_away(&name, &join(3, cookie));
    turned_away(&name, b"GET / HTTP/1.0\r\n\r\n");
    turned_away(&name, &[0; 200]);
    drop(socket::connect(&name).unwrap());
    p.go_on(Keep::Answer);
    let (codes, text) = p.finish();
    assert_eq!(codes, [0, 0, 0], "{text}");
    let own = format!("process {} tried to join this job", process::pid());
    assert_eq!(text.matches(&format!("{own} without its cookie")).count(), 5, "{text}");
    assert_eq!(text.matches(&format!("{own} as rank 3")).count(), 1, "{text}");
}

/// Connections that send nothing delay no rank, however many there are.
#[test]
fn silent_strangers() {
    let p = Played::start(3, 2, ["all", "return:0", "-"]);
    p.supervisor();
    let (name, _) = p.word();
    let silent: Vec<OwnedFd> = (0..100).map(|_| socket::connect(&name).unwrap()).collect();
    p.go_on(Keep::Answer);
    let (codes, text) = p.finish();
    assert_eq!(codes, [0, 0, 0], "{text}");
    assert!(silent.iter().all(|s| sys::poll::readable(s.as_fd())), "all were hung up on");
}
