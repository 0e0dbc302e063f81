//! Traces and statistics of a job. Each call of a program with known calls is recorded once,
//! with its source line. Masks, ranks and file names; nothing is recorded unasked; every kind
//! of exit writes the trace.

mod ends;
mod files;

use crate::build_trees;
use crate::job_launcher::JobLauncher;
use crate::outcome::JobOutcome;
use crate::test_job::TestJob;
use crate::{Failure, TestCase};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// Makes known numbers of calls to the next rank, and exits as its argument says.
const PROGRAM: &str = r#"
#include <gasnet.h>
#include <gasnet_coll.h>
#include <gasnet_tools.h>
#include <gasnet_vis.h>
#include <signal.h>
static volatile int pongs, asked;
static void pong(gasnet_token_t t, gasnet_handlerarg_t a) { (void)t; (void)a; pongs++; }
static void ping(gasnet_token_t t, gasnet_handlerarg_t a) { asked++; gasnet_AMReplyShort1(t, 202, a + 1); }
static void data(gasnet_token_t t, void *p, size_t n) { (void)p; (void)n; asked++; gasnet_AMReplyShort1(t, 202, 0); }
static void statistics(void (*format)(const char *, ...)) { format("pongs=%d", pongs); }
static void meet(void) {
    gasnet_barrier_notify(0, GASNET_BARRIERFLAG_ANONYMOUS);
    gasnet_barrier_wait(0, GASNET_BARRIERFLAG_ANONYMOUS);
}
int main(int argc, char **argv) {
    gasnet_handlerentry_t handlers[3];
    gasnet_seginfo_t segments[64];
    static char buffer[4096];
    static gasnet_hsl_t lock = GASNET_HSL_INITIALIZER;
    gasnet_node_t peer;
    char *there;
    int i, sum = 0;
    handlers[0].index = 201; handlers[0].fnptr = (void (*)())ping;
    handlers[1].index = 202; handlers[1].fnptr = (void (*)())pong;
    handlers[2].index = 203; handlers[2].fnptr = (void (*)())data;
    if (gasnet_init(&argc, &argv) || gasnet_attach(handlers, 3, 16 * GASNET_PAGESIZE, 0)) return 9;
    gasnet_getSegmentInfo(segments, (int)gasnet_nodes());
    peer = (gasnet_mynode() + 1) % gasnet_nodes();
    there = (char *)segments[peer].addr;
    GASNETT_STATS_INIT(statistics);
    for (i = 0; i < 7; i++) gasnet_put(peer, there, buffer, 8);
    for (i = 0; i < 5; i++) gasnet_get_bulk(buffer, peer, there, 100 + i);
#line 1000 "elsewhere/loop.c"
    for (i = 0; i < 4; i++) gasnet_wait_syncnb(gasnet_put_nb(peer, there, buffer, 16));
    gasnet_put_nbi(peer, there, buffer, 32);
    gasnet_wait_syncnbi_puts();
    sum += (int)gasnet_get_val(peer, there, 4);
    gasnet_memset(peer, there, 1, 64);
    {
        gasnet_memvec_t from, to;
        from.addr = buffer; from.len = 24; to.addr = there; to.len = 24;
        gasnet_putv_bulk(peer, 1, &to, 1, &from);
    }
    for (i = 0; i < 3; i++) gasnet_AMRequestShort1(peer, 201, i);
    gasnet_AMRequestMedium0(peer, 203, buffer, 33);
    GASNET_BLOCKUNTIL(pongs == 4 && asked == 4);
    for (i = 0; i < 6; i++) gasnet_AMPoll();
    gasnet_hsl_lock(&lock);
    gasnet_hsl_unlock(&lock);
    GASNETT_TRACE_SETSOURCELINE("program.upc", 77);
    GASNETT_TRACE_PRINTF("message %d of %s", 1, "the client");
    gasnet_put(peer, there, buffer, 8);
    GASNETT_TRACE_SETMASK("");
    gasnet_put(peer, there, buffer, 8);
    GASNETT_TRACE_PRINTF("not this");
    GASNETT_TRACE_PRINTF_FORCE("but this");
    GASNETT_TRACE_SETMASK("^X");
    gasnet_coll_init(0, 0, 0, 0, 0);
    gasnet_coll_broadcast(GASNET_TEAM_ALL, there == NULL ? NULL : buffer, 0, buffer + 2048, 40,
                          GASNET_COLL_LOCAL | GASNET_COLL_IN_MYSYNC | GASNET_COLL_OUT_MYSYNC);
    meet();
    if (argc > 1 && !strcmp(argv[1], "gasnet_exit")) gasnet_exit(0);
    if (argc > 1 && !strcmp(argv[1], "abort")) abort();
    if (argc > 1 && !strcmp(argv[1], "peer")) {
        if (gasnet_mynode() == 0) gasnet_exit(0);
        for (;;) gasnet_AMPoll();
    }
    return sum < 0;
}
"#;

/// Calls of GASNet-EX in known numbers, and statistics in between.
const EX_PROGRAM: &str = r#"
#include <gasnetex.h>
#include <gasnet.h>
#include <gasnet_tools.h>
static void nothing(gex_Token_t token) { (void)token; }
int main(int argc, char **argv) {
    gex_AM_Entry_t entry = {200, (gex_AM_Fn_t)nothing, GEX_FLAG_AM_SHORT | GEX_FLAG_AM_REQUEST, 0, NULL, NULL};
    gex_Client_t client; gex_EP_t ep; gex_TM_t tm; gex_Segment_t segment; gex_AD_t ad;
    static uint64_t word, sum;
    static gex_HSL_t lock = GEX_HSL_INITIALIZER;
    void *there;
    int i;
    gex_Client_Init(&client, &ep, &tm, "TRACED", &argc, &argv, 0);
    gex_EP_RegisterHandlers(ep, &entry, 1);
    gex_Segment_Attach(&segment, tm, GASNET_PAGESIZE);
    const gex_Rank_t peer = (gex_TM_QueryRank(tm) + 1) % gex_TM_QuerySize(tm);
    gex_Event_Wait(gex_EP_QueryBoundSegmentNB(tm, peer, &there, NULL, NULL, 0));
    for (i = 0; i < 3; i++) gex_RMA_PutBlocking(tm, peer, there, &word, 8, 0);
    for (i = 0; i < 2; i++) gex_RMA_GetNBI(tm, &word, peer, there, 8, 0);
    gex_NBI_Wait(GEX_EC_GET, 0);
    GASNETT_STATS_PRINTF("line %d", 1);
    GASNETT_STATS_DUMP(1);
    sum += gex_RMA_GetBlockingVal(tm, peer, there, 4, 0);
    gex_HSL_Lock(&lock);
    gex_HSL_Unlock(&lock);
    if (gex_HSL_Trylock(&lock)) return 1;
    (void)GASNETT_TRACE_PRINTF("%s", "locked");
    gasnet_begin_nbi_accessregion();
    gasnet_wait_syncnb(gasnet_end_nbi_accessregion());
    gasnet_AMRequestShort(peer, 200, 0);
    gex_NBI_BeginAccessRegion(0);
    gex_Event_Wait(gex_NBI_EndAccessRegion(0));
    gex_RMA_PutBlockingVal(tm, peer, there, 5, 4, 0);
    gex_AD_Create(&ad, tm, GEX_DT_U64, GEX_OP_FADD, 0);
    gex_Event_t done = gex_AD_OpNB_U64(ad, &word, peer, there, GEX_OP_FADD, 1, 0, 0);
    gex_Event_WaitAll(&done, 1, 0);
    gex_AM_RequestShort0(tm, peer, 200, 0);
    gex_AM_RequestShort(tm, peer, 200, 0);
    gex_VIS_IndexedPutBlocking(tm, peer, 1, &there, 8, 1, (void *const[]){&word}, 8, 0);
    done = gex_Coll_ReduceToAllNB(tm, &sum, &word, GEX_DT_U64, 8, 1, GEX_OP_ADD, NULL, NULL, 0);
    gex_Event_Wait(done);
    gex_Coll_BarrierBlocking(tm, 0);
    gasnet_exit(0);
}
"#;

/// The events of [`EX_PROGRAM`].
const EX_EVENTS: [(&str, usize); 10] = [
    ("(P) GEX_RMA_PUTBLOCKING", 3),
    ("(G) GEX_RMA_GETNBI", 2),
    ("(S) GEX_NBI_WAIT", 1),
    ("(P) GEX_RMA_PUTBLOCKINGVAL", 1),
    ("(P) GEX_AD_OPNB_U64", 1),
    ("(S) GEX_EVENT_WAITALL", 1),
    ("(P) GEX_VIS_INDEXEDPUTBLOCKING", 1),
    ("(W) GEX_COLL_REDUCETOALLNB", 1),
    ("(B) GEX_COLL_BARRIERBLOCKING", 1),
    ("(I) END", 1),
];

/// Calls of [`EX_PROGRAM`], whose events have its lines.
const EX_LINES: [(&str, &str); 19] = [
    ("gex_RMA_PutBlocking(", "(P) GEX_RMA_PUTBLOCKING"),
    ("gex_AM_RequestShort0(", "(A) AMREQUESTSHORT"),
    ("gex_AM_RequestShort(", "(A) AMREQUESTSHORT"),
    ("gex_AD_OpNB_U64(", "(P) GEX_AD_OPNB_U64"),
    ("gex_Event_WaitAll(", "(S) GEX_EVENT_WAITALL"),
    ("gex_VIS_IndexedPutBlocking(", "(P) GEX_VIS_INDEXEDPUTBLOCKING"),
    ("gex_Coll_ReduceToAllNB(", "(W) GEX_COLL_REDUCETOALLNB"),
    ("gex_Coll_BarrierBlocking(", "(B) GEX_COLL_BARRIERBLOCKING"),
    ("gex_Segment_Attach(", "(I) GEX_SEGMENT_ATTACH"),
    ("gex_RMA_GetBlockingVal(", "(G) GEX_RMA_GETBLOCKINGVAL"),
    ("gex_HSL_Lock(", "(L) HSL_LOCK"),
    ("gex_HSL_Unlock(", "(L) HSL_UNLOCK"),
    ("gex_HSL_Trylock(", "(L) HSL_TRYLOCK"),
    ("gex_NBI_BeginAccessRegion(", "(S) GEX_NBI_BEGINACCESSREGION"),
    ("gex_NBI_EndAccessRegion(", "(S) GEX_NBI_ENDACCESSREGION"),
    ("gasnet_begin_nbi_accessregion(", "(S) BEGIN_NBI_ACCESSREGION"),
    ("gasnet_end_nbi_accessregion(", "(S) END_NBI_ACCESSREGION"),
    ("gasnet_AMRequestShort(", "(A) AMREQUESTSHORT"),
    ("GASNETT_TRACE_PRINTF(", "(H) locked"),
];

/// Calls of GASNet-EX are recorded, and GASNETT_STATS_DUMP writes and resets what was counted.
fn ex_calls() -> Result<(), Failure> {
    let dir = folder("ex_calls")?;
    let program = compiled_from(EX_PROGRAM, "ex", "PAR")?;
    let file = |name: &str| dir.join(format!("{name}-%")).display().to_string();
    let ended = TestJob::new(&build_trees::build(), &program, &[], JobLauncher::Gasnetrun, 2)
        .env("GASNET_TRACEFILE", file("trace"))
        .env("GASNET_STATSFILE", file("stats"))
        .watchdog(Duration::from_secs(120))
        .run()?;
    ended.tidy()?;
    if ended.code != Some(0) {
        return Err(ended.failure("expected exit code 0"));
    }
    for rank in 0..2 {
        let trace = read(&ended, &dir.join(format!("trace-{rank}")))?;
        let counts = events(&trace);
        for (event, n) in EX_EVENTS {
            if counts.get(event).copied().unwrap_or(0) != n {
                return Err(ended.failure(format!("rank {rank}: not {n} times {event}:\n{trace}")));
            }
        }
        for (call, event) in EX_LINES {
            let line = 1 + EX_PROGRAM.lines().take_while(|l| !l.contains(call)).count();
            if !trace.contains(&format!("[ex.c:{line}] {event}")) {
                let why = format!("rank {rank}: {event} has not the line {line}:\n{trace}");
                return Err(ended.failure(why));
            }
        }
        let stats = read(&ended, &dir.join(format!("stats-{rank}")))?;
        let puts = stats.matches("(P) GEX_RMA_PUTBLOCKING: count=3 ").count();
        let parts = stats.matches("STATISTICS: ").count();
        if puts != 1 || parts != 2 || !stats.contains("(H) line 1\n") {
            return Err(ended.failure(format!("rank {rank}: {parts} statistics:\n{stats}")));
        }
    }
    Ok(())
}

/// All cases.
pub fn cases() -> Vec<TestCase> {
    let mut all = Vec::new();
    let mut add = |name: &str, run: fn() -> Result<(), Failure>| {
        all.push(TestCase::new(format!("tracing::{name}"), true, run));
    };
    add("counts::cross-mapped", || counts(2, "cross-mapped", &[]));
    add("counts::portals", || counts(3, "portals", &[("GASNET_SUPERNODE_MAXSIZE", "1")]));
    add("counts::checked", || counts(2, "checked", &[("GASNET_DEBUG_CHECKS", "1")]));
    add("ex_calls", ex_calls);
    add("ways_out", ways_out);
    add("ranks_and_masks", ranks_and_masks);
    add("local", local);
    add("one_file", one_file);
    add("unwritable", unwritable);
    add("off", off);
    add("lines_of_other_texts", files::lines_of_other_texts);
    add("no_rank_is_named", files::no_rank_is_named);
    add("stuck_reader", ends::stuck_reader);
    add("full_pipe", ends::full_pipe);
    add("endless_statistics", ends::endless_statistics);
    add("other_states", ends::other_states);
    add("names_of_bytes", ends::names_of_bytes);
    add("tool", tool);
    all
}

/// The program, compiled for one thread or many.
fn compiled(mode: &str) -> Result<PathBuf, Failure> {
    compiled_from(PROGRAM, "known", mode)
}

fn compiled_from(text: &str, name: &str, mode: &str) -> Result<PathBuf, Failure> {
    build_trees::require(&build_trees::build())?;
    let dir = build_trees::build().join("capi-tests/tracing");
    fs::create_dir_all(&dir).map_err(|e| format!("{}: {e}", dir.display()))?;
    let (file, program) = (dir.join(format!("{name}.c")), dir.join(format!("{name}-{mode}")));
    fs::write(&file, text).map_err(|e| format!("{}: {e}", file.display()))?;
    let lib = build_trees::build().join("lib");
    let mut cc = build_trees::compiler();
    cc.args(["-g", "-O2", "-Wall", "-Wextra", "-Werror", "-D_GNU_SOURCE=1", "-I"])
        .arg(build_trees::build().join("include"))
        .arg(format!("-DGASNET_{mode}"))
        .arg(&file)
        .arg("-o")
        .arg(&program);
    cc.arg("-L")
        .arg(&lib)
        .arg(format!("-Wl,-rpath,{}", lib.display()))
        .args(["-lgasnet", "-lpthread"]);
    build_trees::succeed(cc)?;
    Ok(program)
}

/// A directory of its own for the files of a case.
fn folder(name: &str) -> Result<PathBuf, Failure> {
    let dir = build_trees::build().join("capi-tests/tracing").join(name);
    let _ = fs::remove_dir_all(&dir);
    fs::create_dir_all(&dir).map_err(|e| format!("{}: {e}", dir.display()))?;
    Ok(dir)
}

fn run(mode: &str, nodes: u32, way: &str, vars: &[(&str, &str)]) -> Result<JobOutcome, Failure> {
    let program = compiled(mode)?;
    let args = if way.is_empty() { vec![] } else { vec![way.to_string()] };
    let mut job =
        TestJob::new(&build_trees::build(), &program, &args, JobLauncher::Gasnetrun, nodes)
            .watchdog(Duration::from_secs(120));
    for (name, value) in vars {
        job = job.env(name, value);
    }
    let ended = job.run()?;
    ended.tidy()?;
    Ok(ended)
}

fn read(ended: &JobOutcome, file: &Path) -> Result<String, Failure> {
    fs::read_to_string(file).map_err(|e| ended.failure(format!("{}: {e}", file.display())))
}

/// The number of each event in a trace, by `(letter) NAME`.
fn events(trace: &str) -> BTreeMap<String, usize> {
    let mut counts = BTreeMap::new();
    for line in trace.lines() {
        if let Some((_, rest)) = line.split_once("> ") {
            let rest = rest
                .split_once("] ")
                .filter(|(place, _)| place.starts_with('['))
                .map_or(rest, |(_, r)| r);
            let event = rest.split(':').next().unwrap_or(rest);
            *counts.entry(event.to_string()).or_insert(0) += 1;
        }
    }
    counts
}

/// The program's events, with their numbers. The library's own handlers occur in other numbers.
const EVENTS: [(&str, usize); 22] = [
    ("(I) ATTACH", 1),
    ("(P) PUT", 8),
    ("(G) GET_BULK", 5),
    ("(P) PUT_NB", 4),
    ("(S) WAIT_SYNCNB", 4),
    ("(P) PUT_NBI", 1),
    ("(S) WAIT_SYNCNBI_PUTS", 1),
    ("(G) GET_VAL", 1),
    ("(P) MEMSET", 1),
    ("(P) PUTV_BULK", 1),
    ("(A) AMREQUESTSHORT", 3),
    ("(A) AMREQUESTMEDIUM", 1),
    ("(A) AMREPLYSHORT", 4),
    ("(A) HANDLERSHORT", 7),
    ("(A) HANDLERMEDIUM", 1),
    ("(X) BLOCKUNTIL", 1),
    ("(X) AMPOLL", 6),
    ("(L) HSL_LOCK", 1),
    ("(W) COLL_BROADCAST", 1),
    ("(B) BARRIER_NOTIFY", 1),
    ("(B) BARRIER_WAIT", 1),
    ("(U) but this", 1),
];

/// Each rank has traced and counted exactly the program's calls.
fn counts(nodes: u32, name: &str, vars: &[(&str, &str)]) -> Result<(), Failure> {
    for mode in ["SEQ", "PAR"] {
        let dir = folder(&format!("counts-{name}-{mode}"))?;
        let (trace, stats) = (dir.join("trace-%"), dir.join("stats-%"));
        let mut all = vars.to_vec();
        let (trace, stats) = (trace.display().to_string(), stats.display().to_string());
        all.extend([("GASNET_TRACEFILE", trace.as_str()), ("GASNET_STATSFILE", stats.as_str())]);
        let ended = run(mode, nodes, "gasnet_exit", &all)?;
        if ended.code != Some(0) {
            return Err(ended.failure("expected exit code 0"));
        }
        for rank in 0..nodes {
            let trace = read(&ended, &dir.join(format!("trace-{rank}")))?;
            let wrong = |why: String| ended.failure(format!("rank {rank}: {why}:\n{trace}"));
            let counts = events(&trace);
            for (event, n) in EVENTS {
                if counts.get(event).copied().unwrap_or(0) != n {
                    return Err(wrong(format!(
                        "{event} is there {:?} times, not {n}",
                        counts.get(event)
                    )));
                }
            }
            // Each line has its position in the source; a position that the client has set
            // stays.
            let at = |call: &str| 1 + PROGRAM.lines().take_while(|l| !l.contains(call)).count();
            let (put, get) = (at("gasnet_put(peer"), at("gasnet_get_bulk(buffer"));
            for text in [
                &*format!("[known.c:{put}] (P) PUT: "),
                &*format!("[known.c:{get}] (G) GET_BULK: "),
                "[loop.c:1000] (P) PUT_NB: ",
                "[loop.c:1000] (S) WAIT_SYNCNB: ",
                "[program.upc:77] (H) message 1 of the client\n",
                "[program.upc:77] (P) PUT: ",
                " bytes=104 took=",
                "(A) AMREQUESTMEDIUM: node=",
                " handler=203 args=0 bytes=33 took=",
                "(D) AMREQUESTSHORT: args=[2] ",
                "(I) END:",
            ] {
                if !trace.contains(text) {
                    return Err(wrong(format!("there is no {text:?}")));
                }
            }
            if trace.contains("not this") {
                return Err(wrong("a message that the mask leaves out is there".to_string()));
            }
            let stats = read(&ended, &dir.join(format!("stats-{rank}")))?;
            for text in [
                "(P) PUT: count=9 bytes=72 min=8 avg=8 max=8 ns=",
                "(G) GET_BULK: count=5 bytes=510 min=100 avg=102 max=104 ns=",
                "(A) AMREQUESTSHORT: count=3 ",
                "(L) HSL_UNLOCK: count=1 ",
                "(X) AMPOLL: count=6 ",
                "(H) pongs=4\n",
            ] {
                if !stats.contains(text) {
                    return Err(ended.failure(format!(
                        "rank {rank}: no {text:?} in the statistics:\n{stats}"
                    )));
                }
            }
        }
    }
    Ok(())
}

/// The trace is complete, however a process exits.
fn ways_out() -> Result<(), Failure> {
    for way in ["", "gasnet_exit", "abort", "peer"] {
        let dir = folder("ways-out")?;
        let file = dir.join("trace-%").display().to_string();
        let ended = run("SEQ", 2, way, &[("GASNET_TRACEFILE", &file), ("GASNET_BACKTRACE", "0")])?;
        // Of two ranks that abort, one may end the other first.
        let whole = (0..2).filter(|rank| {
            fs::read_to_string(dir.join(format!("trace-{rank}")))
                .is_ok_and(|t| t.ends_with("(I) END:\n"))
        });
        let (whole, wanted) = (whole.count(), if way == "abort" { 1 } else { 2 });
        if whole < wanted {
            return Err(
                ended.failure(format!("leaving by {way:?}: {whole} of 2 traces have their end"))
            );
        }
    }
    Ok(())
}

/// Only the ranks and the types that are named.
fn ranks_and_masks() -> Result<(), Failure> {
    let dir = folder("masks")?;
    let file = dir.join("trace-%").display().to_string();
    let vars = [
        ("GASNET_TRACEFILE", file.as_str()),
        ("GASNET_TRACENODES", "1-5"),
        ("GASNET_TRACEMASK", "GB"),
    ];
    let ended = run("SEQ", 2, "", &vars)?;
    if dir.join("trace-0").exists() {
        return Err(ended.failure("rank 0 traces, but was not named"));
    }
    // The program itself changes the mask later. Without N there are no source lines.
    let trace = read(&ended, &dir.join("trace-1"))?;
    let early: String =
        trace.lines().take_while(|l| !l.contains("but this")).map(|l| format!("{l}\n")).collect();
    let wanted = BTreeMap::from([("(G) GET_BULK".to_string(), 5), ("(G) GET_VAL".to_string(), 1)]);
    if events(&early) != wanted || early.contains('[') {
        return Err(ended.failure(format!("expected gets alone, without lines:\n{early}")));
    }
    for (name, value) in [("GASNET_TRACEMASK", "GPQ"), ("GASNET_STATSMASK", "x")] {
        let ended = run("SEQ", 1, "", &[(name, value)])?;
        let said = ended.output.contains(&format!("{name}={value} cannot be used"))
            && ended.output.contains("letters out of GPSWXBLAICDNHU,");
        if ended.code != Some(1) || !said {
            return Err(ended.failure(format!("{name}={value} was not refused with the letters")));
        }
    }
    Ok(())
}

/// GASNET_TRACELOCAL=0 omits transfers of a rank to itself; otherwise they are recorded.
fn local() -> Result<(), Failure> {
    let dir = folder("local")?;
    let file = dir.join("trace").display().to_string();
    for (value, puts) in [("1", 8), ("0", 0)] {
        let ended =
            run("SEQ", 1, "", &[("GASNET_TRACEFILE", &file), ("GASNET_TRACELOCAL", value)])?;
        let trace = read(&ended, &dir.join("trace"))?;
        let counts = events(&trace);
        if counts.get("(P) PUT").copied().unwrap_or(0) != puts
            || counts.get("(A) AMREQUESTSHORT") != Some(&3)
        {
            return Err(ended.failure(format!(
                "expected {puts} puts with GASNET_TRACELOCAL={value}:\n{trace}"
            )));
        }
    }
    Ok(())
}

/// All ranks, trace and statistics in one file: lines are complete, and each rank has all of
/// its lines.
fn one_file() -> Result<(), Failure> {
    let dir = folder("one")?;
    let file = dir.join("all").display().to_string();
    fs::write(&file, "of an earlier job\n").map_err(|e| format!("{file}: {e}"))?;
    let ended = run("SEQ", 3, "", &[("GASNET_TRACEFILE", &file), ("GASNET_STATSFILE", &file)])?;
    let text = read(&ended, Path::new(&file))?;
    for rank in 0..3 {
        let of_rank = |l: &&str| l.starts_with(&format!("{rank}(")) && l.contains("(P) PUT: ");
        let count = text.lines().filter(of_rank).count();
        if count != 8 || !text.contains(&format!("\n{rank}> (P) PUT: count=9 ")) {
            return Err(
                ended.failure(format!("rank {rank} has {count} puts in the one file:\n{text}"))
            );
        }
    }
    if let Some(bad) = text.lines().find(|l| !l.contains("> ") || !l.starts_with(['0', '1', '2']))
    {
        return Err(ended.failure(format!("a line is not whole, or of an earlier job: {bad:?}")));
    }
    Ok(())
}

/// A file that cannot be written ends the job with a message that says what happened and what
/// to do.
fn unwritable() -> Result<(), Failure> {
    for name in ["GASNET_TRACEFILE", "GASNET_STATSFILE"] {
        let ended = run("SEQ", 2, "", &[(name, "/nowhere/trace-%")])?;
        let said = ended.output.contains(&format!("{name}: /nowhere/trace-"))
            && ended.output.contains("No such file or directory")
            && ended.output.contains("Name a file in a directory where you may write");
        if ended.code != Some(1) || !said {
            return Err(
                ended.failure(format!("expected exit code 1 and why {name} cannot be written"))
            );
        }
    }
    Ok(())
}

/// Nothing is written unasked.
fn off() -> Result<(), Failure> {
    let ended = run("PAR", 2, "", &[])?;
    if ended.code == Some(0) && ended.output.is_empty() {
        Ok(())
    } else {
        Err(ended.failure("expected exit code 0 and no word"))
    }
}

/// gasnet_trace with these arguments: its exit code and its output.
pub(crate) fn gasnet_trace(args: &[&str]) -> Result<(Option<i32>, String), Failure> {
    let tool = build_trees::build().join("bin/gasnet_trace");
    let out =
        Command::new(&tool).args(args).output().map_err(|e| format!("{}: {e}", tool.display()))?;
    let text = [out.stdout, out.stderr].concat();
    Ok((out.status.code(), String::from_utf8_lossy(&text).into_owned()))
}

/// Sums by line and by operation, and arrows, of a job of 4 ranks match the program. Other
/// files are rejected.
fn tool() -> Result<(), Failure> {
    let dir = folder("tool")?;
    let (trace, stats) =
        (dir.join("trace-%").display().to_string(), dir.join("stats-%").display().to_string());
    let ended = run("PAR", 4, "", &[("GASNET_TRACEFILE", &trace), ("GASNET_STATSFILE", &stats)])?;
    let files = |of: &str| (0..4).map(|r| of.replace('%', &r.to_string())).collect::<Vec<_>>();
    let (traces, statistics) = (files(&trace), files(&stats));
    let with = |words: &[&str], files: &[String]| {
        let files = files.iter().map(String::as_str);
        gasnet_trace(&words.iter().copied().chain(files).collect::<Vec<_>>())
    };
    // (files, options, the row's first words, its last)
    let rows = [
        (&traces, "operation", "32 256 8 8 8", "PUT"),
        (&traces, "operation", "20 2040 100 102 104", "GET_BULK"),
        (&traces, "line", "4 32 8 8 8", "PUT program.upc:77"),
        (&traces, "line", "16 256 16 16 16", "PUT_NB loop.c:1000"),
        (&traces, "rank", "3 0 0 0 0", "AMREQUESTSHORT rank 2"),
        (&statistics, "operation", "36 288 8 8 8", "PUT"),
        (&statistics, "rank", "6 - - - -", "AMPOLL rank 3"),
    ];
    for (files, by, first, last) in rows {
        let (code, text) = with(&["summary", "--by", by], files)?;
        let words = |l: &str| l.split_whitespace().collect::<Vec<_>>().join(" ");
        let row = text
            .lines()
            .map(words)
            .any(|l| l.starts_with(first) && l.ends_with(&format!(" {last}")));
        if code != Some(0) || !row {
            return Err(ended.failure(format!("--by {by}: no row {first} ... {last}: {text}")));
        }
    }
    let out = dir.join("job.json").display().to_string();
    let (code, text) = with(&["perfetto", "-o", &out], &traces)?;
    let json = fs::read_to_string(&out).map_err(|e| format!("{out}: {e}: {text}"))?;
    let count = |text: &str| json.matches(text).count();
    let arrows = (count("\"ph\":\"s\""), count("\"ph\":\"f\""));
    let puts = count("\"name\":\"PUT\"");
    if code != Some(0) || arrows != (32, 32) || puts != 32 || count("\"name\":\"rank ") != 4 {
        return Err(ended.failure(format!("{arrows:?} ends of arrows, {puts} puts in {out}")));
    }
    let stranger = dir.join("stranger").display().to_string();
    fs::write(&stranger, "neither\n").map_err(|e| format!("{stranger}: {e}"))?;
    for (args, code, words) in [
        (&["summary", "/nowhere/trace"][..], 1, "cannot be read"),
        (&["summary", &stranger], 1, "stranger:1: this is no line of a trace"),
        (&["perfetto", &statistics[0], "-o", &out], 1, "hold no trace"),
        (&["perfetto", &traces[0], "-o", "/nowhere/job.json"], 1, "cannot be written"),
        (&["perfetto", &traces[0]], 2, "no -o"),
        (&["summary", "--by", "colour", &traces[0]], 2, "line, operation or rank"),
    ] {
        let (ended_with, text) = gasnet_trace(args)?;
        if ended_with != Some(code) || !text.contains(words) {
            return Err(format!(
                "gasnet_trace {args:?}: {ended_with:?}, expected {code} and {words:?}: {text}"
            ));
        }
    }
    Ok(())
}
