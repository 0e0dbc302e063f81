//! The configuration as users see it. Tested are strings in objects and libraries, the `ENV
//! parameter:` lines of GASNET_VERBOSEENV, rejected values, and warnings about names that
//! are probably misspelt.
use crate::build_trees::{self, ClientMode, compiler, root, succeed};
use crate::job_launcher::JobLauncher;
use crate::outcome::JobOutcome;
use crate::test_job::TestJob;
use crate::{Failure, TestCase};
use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

/// One entry per test.
pub fn cases() -> Vec<TestCase> {
    let mut all = Vec::new();
    let mut add = |name: &str, run: fn() -> Result<(), Failure>| {
        all.push(TestCase::new(format!("configuration::{name}"), true, run));
    };
    add("strings_in_objects", strings_in_objects);
    add("strings_in_libraries", strings_in_libraries);
    add("lines_of_verboseenv", lines_of_verboseenv);
    add("misspelt_names", misspelt_names);
    add("values_that_are_refused", values_that_are_refused);
    add("files_that_cannot_be_written", files_that_cannot_be_written);
    add("limits_that_are_named", limits_that_are_named);
    add("values_that_are_refused_after_setenv", refused_after_setenv);
    add("numbers_that_are_refused", numbers_that_are_refused);
    all
}

fn dir() -> Result<PathBuf, Failure> {
    build_trees::require(&build_trees::build())?;
    let dir = build_trees::build().join("capi-tests/configuration");
    fs::create_dir_all(&dir).map_err(|e| format!("{}: {e}", dir.display()))?;
    Ok(dir)
}

fn program(name: &str, source: &str) -> Result<PathBuf, Failure> {
    let dir = dir()?;
    let (file, program) = (dir.join(format!("{name}.c")), dir.join(name));
    fs::write(&file, source).map_err(|e| format!("{}: {e}", file.display()))?;
    let mut cc = compiler();
    cc.args(ClientMode::Par.defines())
        .arg("-I")
        .arg(build_trees::build().join("include"))
        .arg(file)
        .arg("-o")
        .arg(&program);
    cc.arg("-L").arg(build_trees::build().join("lib")).arg("-lgasnet");
    succeed(cc)?;
    Ok(program)
}

/// A program that reads variables of its own of every kind, then exits.
const ASKS: &str = "#include <gasnet.h>\n#include <gasnet_tools.h>\n\
    int main(int argc, char **argv) {\n\
    \x20   if (gasnet_init(&argc, &argv) || gasnet_attach(NULL, 0, 65536, 0)) return 1;\n\
    \x20   gasnett_getenv_int_withdefault(\"MY_SIZE\", 4096, 1);\n\
    \x20   gasnett_getenv_int_withdefault(\"MY_SIZE\", 4096, 1);\n\
    \x20   gasnett_getenv_int_withdefault(\"MY_COUNT\", 7, 0);\n\
    \x20   gasnett_getenv_yesno_withdefault(\"MY_CHOICE\", 1);\n\
    \x20   gasnett_getenv_withdefault(\"MY_TEXT\", NULL);\n\
    \x20   gasnett_getenv_withdefault(\"MY_EMPTY\", \"\");\n\
    \x20   gasnett_getenv_dbl_withdefault(\"MY_FRACTION\", 0.5);\n\
    \x20   gasnet_barrier_notify(0, GASNET_BARRIERFLAG_ANONYMOUS);\n\
    \x20   gasnet_barrier_wait(0, GASNET_BARRIERFLAG_ANONYMOUS);\n\
    \x20   gasnet_exit(0);\n\
    }\n";

fn run(
    source: (&str, &str),
    launcher: JobLauncher,
    vars: &[(&str, &str)],
) -> Result<JobOutcome, Failure> {
    let nodes = if launcher == JobLauncher::Alone { 1 } else { 2 };
    let mut job =
        TestJob::new(&build_trees::build(), &program(source.0, source.1)?, &[], launcher, nodes);
    for (name, value) in vars {
        job = job.env(name, value);
    }
    let ended = job.watchdog(Duration::from_secs(60)).run()?;
    ended.tidy()?;
    Ok(ended)
}

fn contains(path: PathBuf, texts: &[String]) -> Result<(), Failure> {
    let bytes = fs::read(&path).map_err(|e| format!("{}: {e}", path.display()))?;
    let has = |t: &String| bytes.windows(t.len()).any(|w| w == t.as_bytes());
    match texts.iter().find(|t| !has(t)) {
        Some(text) => Err(format!("{} does not contain {text:?}", path.display())),
        None => Ok(()),
    }
}

/// Every object that includes gasnet.h contains the strings of its configuration, at every
/// optimisation level.
fn strings_in_objects() -> Result<(), Failure> {
    let object = dir()?.join("strings.o");
    for (mode, segment, name) in [
        (ClientMode::Seq, "-DGASNET_SEGMENT_FAST", "FAST"),
        (ClientMode::Par, "-DGASNET_SEGMENT_LARGE", "LARGE"),
        (ClientMode::Parsync, "-DGASNET_SEGMENT_FAST", "FAST"),
    ] {
        for optimisation in ["-O0", "-O3"] {
            let mut cc = compiler();
            cc.args(mode.defines()).args([segment, optimisation, "-c", "-I"]);
            cc.arg(build_trees::build().join("include"))
                .arg(root().join("capi-tests/clients/hello.c"));
            cc.arg("-o").arg(&object);
            succeed(cc)?;
            let threads = mode.name().to_uppercase();
            let config = format!(
                "$GASNetConfig: (client) RELEASE=1.29.3,SPEC=1.8,CONDUIT=PORTALS(PORTALS-0.1/PORTALS-0.1),\
                 THREADMODEL={threads},SEGMENT={name},PTR=64bit,noalign,pshm,nodebug,trace,stats,nodebugmalloc,\
                 srclines,timers_posixrt,membars_native,atomics_native,atomic32_native,atomic64_native $"
            );
            let others = [
                "$GASNetConduitName: PORTALS $".to_string(),
                format!("$GASNetThreadModel: GASNET_{threads} $"),
                format!("$GASNetSegment: GASNET_SEGMENT_{name} $"),
            ];
            contains(object.clone(), &[&[config][..], &others].concat())?;
        }
    }
    Ok(())
}

fn strings_in_libraries() -> Result<(), Failure> {
    build_trees::require(&build_trees::build())?;
    let texts = [
        "$GASNetLibrary: libgasnet ",
        "$GASNetConduitName: PORTALS $",
        "$GASNetToolsConfig: RELEASE=",
    ];
    for file in ["lib/libgasnet.so.0", "lib/libgasnet.a"] {
        contains(build_trees::build().join(file), &texts.map(str::to_string))?;
    }
    Ok(())
}

fn lines(ended: &JobOutcome) -> Vec<&str> {
    ended.output.lines().filter(|l| l.starts_with("ENV parameter: ")).collect()
}

/// Only rank 0 prints the lines, in GASNet's columns, one per name.
fn lines_of_verboseenv() -> Result<(), Failure> {
    let vars = [
        ("GASNET_VERBOSEENV", "1"),
        ("MY_SIZE", "8K"),
        ("MY_FRACTION", "1/4"),
        ("GASNET_PORTAL_MSG_LIMIT", "100"),
        ("GASNET_MAX_SEGSIZE", "64M"),
    ];
    for launcher in [JobLauncher::Gasnetrun, JobLauncher::PshmNodes, JobLauncher::Alone] {
        let ended = run(("asks", ASKS), launcher, &vars)?;
        if ended.code != Some(0) {
            return Err(ended.failure("expected exit code 0".to_string()));
        }
        let wanted = [
            ("MY_SIZE = 8K (8 KB)", false),
            ("MY_COUNT = 7", true),
            ("MY_CHOICE = YES", true),
            ("MY_TEXT = *not set*", true),
            ("MY_EMPTY = *empty*", true),
            ("MY_FRACTION = 1/4 (0.25)", false),
            ("GASNET_PORTAL_MSG_LIMIT = 100", false),
            ("GASNET_MAX_SEGSIZE = 64M (64 MB)", false),
            ("GASNET_PORTAL_PACKED_LONG = YES", true),
            ("GASNET_WAITMODE = *not set*", true),
        ];
        for (text, is_default) in wanted {
            let key = text.split(' ').next().unwrap_or_default();
            let of_key = |l: &&&str| l.starts_with(&format!("ENV parameter: {key} = "));
            let all = lines(&ended);
            let found: Vec<_> = all.iter().filter(of_key).collect();
            let [line] = found[..] else {
                return Err(ended.failure(format!("{} lines of {key}, expected one", found.len())));
            };
            let mark = if is_default { "(default)" } else { "" };
            // 55 columns for name, value and mark; three more for " = ".
            let width = 55usize.saturating_sub(text.len() - 3).max(12);
            if **line != format!("ENV parameter: {text}{mark:>width$}") {
                return Err(
                    ended.failure(format!("{line:?} is not {text:?} with {mark:?} at its end"))
                );
            }
        }
    }
    Ok(())
}

/// Misspelt names are reported once, unless GASNET_QUIET is set; other names that the library does
/// not read only with GASNET_VERBOSEENV.
fn misspelt_names() -> Result<(), Failure> {
    const MEANT: &str = "GASNET_PORTALS_MSG_LIMIT is not a variable of this library; did you mean GASNET_PORTAL_MSG_LIMIT?\n";
    const OTHERS: &str =
        "GASNET_SPAWNER is a variable of other implementations of GASNet, without effect here\n";
    const NOBODYS: &str = "GASNET_ZZZ is not a variable of this library\n";
    let names =
        [("GASNET_PORTALS_MSG_LIMIT", "100"), ("GASNET_SPAWNER", "mpi"), ("GASNET_ZZZ", "1")];
    for (more, texts) in [
        (("GASNET_VERBOSEENV", ""), &[MEANT, OTHERS, NOBODYS][..]),
        (("MY_COUNT", "3"), &[MEANT]),
        (("GASNET_QUIET", "1"), &[]),
    ] {
        let vars = [&names[..], &[more]].concat();
        let ended = run(("asks", ASKS), JobLauncher::Gasnetrun, &vars)?;
        for text in [MEANT, OTHERS, NOBODYS] {
            let wanted = usize::from(texts.contains(&text));
            if ended.code != Some(0) || ended.output.matches(text).count() != wanted {
                return Err(ended.failure(format!("{more:?}: expected {wanted} times {text:?}")));
            }
        }
    }
    Ok(())
}

/// A file that is requested and cannot be made is an error of gasnet_init; one that takes no more
/// is reported at the end.
fn files_that_cannot_be_written() -> Result<(), Failure> {
    let program = program("asks", ASKS)?;
    let job = format!("exec gasnetrun -n 2 {}", program.display());
    for (script, code, text) in [
        (
            "export GASNET_TEST_COUNTERS=/no/such/x",
            1,
            "GASNET_TEST_COUNTERS: the files /no/such/x.RANK cannot be written: No such file or directory",
        ),
        (
            "mkdir gasnet_credits.1; export GASNET_PORTAL_CREDIT_STATS=1",
            1,
            "GASNET_PORTAL_CREDIT_STATS: the files gasnet_credits.RANK cannot be written: Is a directory",
        ),
        (
            "ln -s /dev/full full.0; export GASNET_TEST_COUNTERS=$PWD/full",
            0,
            "/full.0 is not complete: the file system took no more: No space left on device\n",
        ),
        (
            "export GASNET_TRACEFILE=/dev/full",
            0,
            "GASNET_TRACEFILE: /dev/full is not complete: the file system took no more: No space left \
             on device\n***   Name a file in a folder with more space.\n",
        ),
        (
            // A file of the system that refuses such text.
            "export GASNET_TRACEFILE=/proc/self/oom_score_adj",
            0,
            "oom_score_adj is not complete: it cannot be written: Invalid argument\n\
             ***   Name another file, or raise the limit of files (ulimit -f).\n",
        ),
        (
            "export GASNET_STATSFILE=/dev/full",
            0,
            "GASNET_STATSFILE: /dev/full is not complete: the file system took no more: ",
        ),
        ("export GASNET_TRACEFILE=/no/such/x.%", 1, "ranks 0-1: the same error, printed by rank"),
    ] {
        expect(&format!("{script}; {job}"), code, text)?;
    }
    let leaks = "#define GASNET_DEBUGMALLOC 1\n#include <gasnet.h>\n#include <gasnet_tools.h>\n\
        int main(int argc, char **argv) {\n\
        \x20   gasnet_init(&argc, &argv);\n\
        \x20   return gasnett_debug_malloc(100) == NULL;\n\
        }\n";
    let program = self::program("leaks", leaks)?;
    for (file, text) in [
        ("/no/such/x", "GASNET_MALLOCFILE: the report cannot be written to /no/such/x\n"),
        (
            "/dev/full",
            "GASNET_MALLOCFILE: /dev/full is not complete: the file system took no more: ",
        ),
    ] {
        let job = format!("export GASNET_MALLOCFILE={file}; exec {}", program.display());
        expect(&job, 0, text)?;
    }
    files_beyond_the_limit()
}

/// A file that has reached `ulimit -f` is reported too, not the end of the rank.
fn files_beyond_the_limit() -> Result<(), Failure> {
    const LIMITED: &str = "#define GASNET_DEBUGMALLOC 1\n#include <gasnet.h>\n\
        #include <gasnet_tools.h>\n#include <sys/resource.h>\n\
        int main(int argc, char **argv) {\n\
        \x20   struct rlimit files;\n\
        \x20   gasnet_init(&argc, &argv);\n\
        \x20   gasnet_attach(NULL, 0, 65536, 0);\n\
        \x20   getrlimit(RLIMIT_FSIZE, &files);\n\
        \x20   files.rlim_cur = 0;\n\
        \x20   gasnet_exit(setrlimit(RLIMIT_FSIZE, &files) || !gasnett_debug_malloc(100));\n\
        }\n";
    let program = program("limited", LIMITED)?;
    for variable in ["GASNET_TRACEFILE", "GASNET_STATSFILE", "GASNET_MALLOCFILE"] {
        let job = format!("export {variable}=lines; exec {}", program.display());
        let line = format!(
            "{variable}: lines is not complete: it cannot be written: File too large\n\
             ***   Name another file, or raise the limit of files (ulimit -f).\n"
        );
        expect(&job, 0, &line)?;
    }
    Ok(())
}

/// What limits memory is named.
fn limits_that_are_named() -> Result<(), Failure> {
    const LARGE: &str = "#include <gasnet.h>\n\
        int main(int argc, char **argv) {\n\
        \x20   if (gasnet_init(&argc, &argv)) return 2;\n\
        \x20   return gasnet_attach(NULL, 0, (uintptr_t)1 << 40, 0) ? 3 : 0;\n\
        }\n";
    let program = program("large", LARGE)?;
    let job = format!("exec {}", program.display());
    let limited = "what limits it is the address space of this process (ulimit -v)";
    expect(&format!("ulimit -v 1000000; {job}"), 3, limited)?;
    expect(
        &format!("ulimit -f 100000; {job}"),
        3,
        "the largest file of this process (ulimit -f)",
    )?;
    expect(
        &format!("export GASNET_MAX_SEGSIZE=1MB; {job}"),
        3,
        "limits it is GASNET_MAX_SEGSIZE",
    )?;
    expect(&job, 3, "what limits it is the memory of this host")?;
    let buffers = "export GASNET_PORTAL_SB_CHUNKS=4096 GASNET_PORTAL_AMRECV_SPACE=512MB";
    let left =
        " of address space that this process has left of 195.31MB (204800000 bytes) (ulimit -v)";
    expect(&format!("{buffers} GASNET_PSHM_NODES=2; ulimit -v 200000; {job}"), 1, left)
}

/// A script, run in a folder of its own, ends with this code and prints this text.
fn expect(script: &str, code: i32, text: &str) -> Result<(), Failure> {
    let (tree, dir) = (build_trees::build(), dir()?.join("work"));
    let _ = fs::remove_dir_all(&dir);
    fs::create_dir_all(&dir).map_err(|e| format!("{}: {e}", dir.display()))?;
    let path = std::env::var("PATH").unwrap_or_default();
    let o = Command::new("timeout")
        .args(["-k", "5", "60", "sh", "-c", &format!("exec 2>&1; {script}")])
        .current_dir(&dir)
        .env("PATH", format!("{}:{path}", tree.join("bin").display()))
        .env("LD_LIBRARY_PATH", tree.join("lib"))
        .output()
        .map_err(|e| format!("timeout: {e}"))?;
    let output = String::from_utf8_lossy(&o.stdout);
    if o.status.code() == Some(code) && output.contains(text) {
        return Ok(());
    }
    Err(format!("{script}\nexpected exit code {code} and {text:?}\n{:?}\n{output}", o.status))
}

/// An invalid value of each kind ends the job with one message that names the variable, the
/// value and the accepted values.
fn values_that_are_refused() -> Result<(), Failure> {
    let wrong = [
        ("GASNET_QUIET", "maybe", "Y, YES, 1, N, NO or 0"),
        ("GASNET_BACKTRACE", "2", "Y, YES, 1, N, NO or 0"),
        ("GASNET_PORTAL_MSG_LIMIT", "many", "a whole number from 12 to 65535"),
        ("GASNET_PORTAL_MSG_LIMIT", "11", "a whole number from 12 to 65535"),
        ("GASNET_PORTAL_ACCEL", "1", "Give 0,"),
        (
            "GASNET_MAX_SEGSIZE",
            "4 parsec",
            "Give a size from 4KB to 128TB or a part of memory such as 0.5, with /H for all ranks of a host, or unset it.",
        ),
        ("GASNET_VIS_MAXCHUNK", "-1", "a size from 1B to 1TB"),
        ("GASNET_MALLOC_INITVAL", "zz", "a whole number, NAN, qNAN or sNAN"),
        ("GASNET_COLL_BROADCAST_GEOM", "zz", "FLAT_TREE, NARY_TREE,n (n at least 1) or"),
        ("GASNET_COLL_ROOTED_GEOM", "KNOMIAL_TREE,1", "KNOMIAL_TREE,n (n at least 2)"),
        ("GASNET_TEST_FAULT", "lose_env", "a library with planted faults (make faults)"),
        ("GASNET_EXITTIMEOUT", "soon", "a number of seconds"),
        ("GASNET_WAITMODE", "sleep", "one of SPIN, BLOCK, SPINBLOCK"),
        ("GASNET_BACKTRACE_NODES", "0,two", "ranks separated by commas"),
        ("GASNET_NO_CATCH_SIGNAL", "SEGV,NOSUCH", "names or numbers of signals"),
        ("GASNET_BACKTRACE_TYPE", ",", "one or more of ADDR2LINE, EXECINFO, GDB, "),
        (
            "GASNET_FREEZE_SIGNAL",
            "KILL",
            "but not *, KILL, STOP, 32 or 33, which cannot be handled, nor ",
        ),
        (
            "GASNET_BACKTRACE_SIGNAL",
            "*",
            "but not *, KILL, STOP, 32 or 33, which cannot be handled",
        ),
        ("GASNET_TRACEMASK", "GP?", "letters out of GPSWXBLAICDNHU, or ^"),
        ("GASNET_NETWORK_PORTS", "zz", "ports from 1 to 65535, such as 50000-50100"),
    ];
    for (i, (name, value, accepted)) in wrong.into_iter().enumerate() {
        let launcher = [JobLauncher::Gasnetrun, JobLauncher::PshmNodes, JobLauncher::Alone][i % 3];
        let ended = run(("asks", ASKS), launcher, &[(name, value)])?;
        let once = ended.output.matches(&format!("{name}={value} cannot be used\n")).count() == 1;
        if ended.code != Some(1) || !once || !ended.output.contains(accepted) {
            return Err(ended
                .failure(format!("expected exit code 1, {name}={value} once, and {accepted:?}")));
        }
    }
    for launcher in [JobLauncher::PshmNodes, JobLauncher::Alone] {
        let ended = run(("asks", ASKS), launcher, &[("GASNET_PSHM_NODES", "two")])?;
        if ended.code != Some(1) || !ended.output.contains("GASNET_PSHM_NODES=two cannot be used")
        {
            return Err(
                ended.failure("expected exit code 1 and GASNET_PSHM_NODES=two".to_string())
            );
        }
    }
    // Values that exclude each other.
    for (i, (values, why)) in [
        (
            [("GASNET_OFI_PROVIDER_INCLUDE", "a"), ("GASNET_OFI_PROVIDER_EXCLUDE", "b")],
            "GASNET_OFI_PROVIDER_INCLUDE and GASNET_OFI_PROVIDER_EXCLUDE are both set\n\
             ***   Unset one of them.\n",
        ),
        (
            [("GASNET_BACKTRACE_SIGNAL", "USR1"), ("GASNET_FREEZE_SIGNAL", "USR2,SIGUSR1")],
            "GASNET_BACKTRACE_SIGNAL and GASNET_FREEZE_SIGNAL both name SIGUSR1(10)\n\
             ***   Give each a signal of its own, such as SIGUSR1 and SIGUSR2.\n",
        ),
        (
            [("GASNET_PORTAL_CRED_PER_NODE", "99"), ("GASNET_PORTAL_MAX_CRED_PER_NODE", "98")],
            "GASNET_PORTAL_CRED_PER_NODE=99 is more than GASNET_PORTAL_MAX_CRED_PER_NODE=98\n\
             ***   Give 8 to 98, or raise GASNET_PORTAL_MAX_CRED_PER_NODE.\n",
        ),
    ]
    .into_iter()
    .enumerate()
    {
        let launcher = [JobLauncher::Gasnetrun, JobLauncher::PshmNodes, JobLauncher::Alone][i % 3];
        let ended = run(("asks", ASKS), launcher, &values)?;
        if ended.code != Some(1) || ended.output.matches(why).count() != 1 {
            return Err(
                ended.failure(format!("{values:?}: expected exit code 1 and {why:?} once"))
            );
        }
    }
    // Whether a method exists depends on the client.
    let ended =
        run(("asks", ASKS), JobLauncher::Alone, &[("GASNET_BACKTRACE_TYPE", "GDB,SMOKE")])?;
    if ended.code != Some(1) || !ended.output.contains("SMOKE is not a method to print a stack") {
        return Err(ended.failure("expected exit code 1 and no method SMOKE".to_string()));
    }
    // An empty value counts as unset.
    let ended = run(
        ("asks", ASKS),
        JobLauncher::Gasnetrun,
        &[("GASNET_MAX_SEGSIZE", ""), ("GASNET_QUIET", "")],
    )?;
    if ended.code == Some(0) {
        Ok(())
    } else {
        Err(ended.failure("empty values were refused".to_string()))
    }
}

/// A variable that the client sets before gasnet_init counts like one of the shell.
fn refused_after_setenv() -> Result<(), Failure> {
    let source = "#include <gasnet.h>\n#include <stdlib.h>\n\
        int main(int argc, char **argv) {\n\
        \x20   setenv(\"GASNET_WAITMODE\", \"sleep\", 1);\n\
        \x20   return gasnet_init(&argc, &argv);\n\
        }\n";
    let ended = run(("sets", source), JobLauncher::Gasnetrun, &[])?;
    let line = "GASNET_WAITMODE=sleep cannot be used";
    if ended.code == Some(1) && ended.output.contains(line) {
        Ok(())
    } else {
        Err(ended.failure(format!("expected exit code 1 and {line:?}")))
    }
}

/// gasnett_parse_int says what is wrong with a text.
fn numbers_that_are_refused() -> Result<(), Failure> {
    let source = "#include <gasnet.h>\n#include <gasnet_tools.h>\n#include <stdio.h>\n\
        int main(int argc, char **argv) {\n\
        \x20   printf(\"%ld\\n\", (long)gasnett_parse_int(argv[argc - 1], 1));\n\
        \x20   return 0;\n\
        }\n";
    let program = program("parses", source)?.display().to_string();
    for (text, code, printed) in [
        ("9223372036854775807", 0, "9223372036854775807\n"),
        (
            "99999999999999999999",
            1,
            "'99999999999999999999' does not fit into 64 bits\n***   Give a ",
        ),
        ("9999999TB", 1, "'9999999TB' does not fit into 64 bits\n"),
        ("many", 1, "'many' is not a number\n***   Give a number with or without a suffix"),
    ] {
        expect(&format!("{program} {text}"), code, printed)?;
    }
    Ok(())
}
