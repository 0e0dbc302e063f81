//! The tables of the programs.
//!
//! Read by the programs through [`super::ProgramTable`]. Invariant: a program accepts the options
//! of its table and no others.

use super::OptionValue::{Any, File, Folder, Nothing, OneOf};
use super::{Operands, OptionRow, OptionValue, ProgramTable, SubcommandRow};

const fn row(names: &'static [&'static str], value: OptionValue, help: &'static str) -> OptionRow {
    OptionRow { names, value, help }
}

/// The launcher.
pub const GASNETRUN: ProgramTable = ProgramTable {
    name: "gasnetrun",
    links: &["gasnetrun_portals"],
    synopsis: "-n N [options] [--] program [arguments]",
    purpose: "Starts the program as a job of N ranks on this host, or on those that are named.",
    options: &[
        row(&["-n", "-np"], Any("N"), "number of ranks"),
        row(
            &["-H", "--host"],
            Any("HOSTS"),
            "start ranks on these hosts by ssh: A:R,B:R, each with at most R of them",
        ),
        row(&["--hostfile"], File("FILE"), "the same from a file, a host on each line: A or A:R"),
        row(&["-N"], Any("N"), "use only the first N of the hosts"),
        row(&["--ranks-per-host"], Any("R"), "start at most R ranks on each host"),
        row(
            &["--map-by"],
            OneOf("M", &["core", "host"]),
            "core (fill one host, then the next) or host (in turn)",
        ),
        row(&["-c"], Any("N"), "CPUs per rank: cores of each rank with --bind core"),
        row(&["-E"], Any("A,B,..."), "variables to pass on (ranks inherit all variables)"),
        row(&["--env"], Any("A=B"), "set a variable for the ranks; --env A is -E A"),
        row(&["--wdir"], Folder("DIR"), "start the ranks in this folder"),
        row(&["-v"], Nothing, "print what is run, each rank's process, and how the job ended"),
        row(&["-t"], Nothing, "print what would be run, and run nothing"),
        row(&["-k"], Nothing, "keep temporary files (there are none)"),
        row(
            &["-spawner="],
            OneOf("S", &["fork", "ssh", "mpi", "pmi"]),
            "what starts the ranks: fork (on this host), ssh, mpi, pmi",
        ),
        row(
            &["--bind"],
            OneOf("B", &["none", "core", "numa"]),
            "bind each rank to CPUs: none (the default), core, numa",
        ),
        row(&["--prefix"], Nothing, "print [rank] in front of each line of output"),
        row(
            &["--output"],
            Folder("DIR"),
            "send the output of rank R to DIR/rank-R.out and DIR/rank-R.err",
        ),
        row(
            &["--timeout"],
            Any("S"),
            "after S seconds print what ranks wait for, and end with code 124",
        ),
        row(&["--no-cut-off"], Nothing, "when a rank has ended with 0, wait for the others"),
        row(
            &["--gdb"],
            Any("RANKS"),
            "start these ranks (0,2-3 or *) under gdb, in xterms or this terminal",
        ),
        row(&["--no-aslr"], Nothing, "load all ranks at the same addresses"),
        row(&["--remote"], Nothing, "used by gasnetrun of another host"),
    ],
    operands: Operands::Command,
    notes: "SIGUSR1 to gasnetrun prints what each rank is waiting for.

Environment: GASNET_SPAWN_TIMEOUT, GASNET_EXITTIMEOUT; for -spawner=mpi and pmi the command
templates MPIRUN_CMD (default: mpirun -np %N %C) and PMIRUN_CMD (default: srun --mpi=pmi2 -n %N
%C), where %N is the number of ranks, %M of hosts, %P the program, %A its arguments, %C both, %D
the current directory.
Set for each rank: GASNET_RANK, GASNET_SIZE, GASNET_LOCAL_RANK.",
};

/// What the library is, and what it knows of the system.
pub const GASNET_INFO: ProgramTable = ProgramTable {
    name: "gasnet_info",
    links: &[],
    synopsis: "[-v] [-b] [-c] [-n] [-s] [--json] [SECTION ...]",
    purpose: "Prints what this libgasnet is, and how it would behave on this host.",
    options: &[
        row(&["-v", "--versions"], Nothing, "versions of the library and of its interfaces"),
        row(&["-b", "--build"], Nothing, "compiler, target and options of the build"),
        row(
            &["-c", "--environment"],
            Nothing,
            "each environment variable of the library: its value and where it comes from",
        ),
        row(&["-n", "--networks"], Nothing, "networks of the library"),
        row(&["-s", "--system"], Nothing, "CPUs, memory and limits of this host"),
        row(&["--json"], Nothing, "print JSON"),
    ],
    operands: Operands::Words(
        "section",
        &["versions", "build", "environment", "networks", "system"],
    ),
    notes: "A section can also be named by its word: `gasnet_info networks`. Without a section, all are
printed. The exit code is 1 if the environment is printed and gasnet_init would reject the value
of a variable.",
};

const OUT: &str = "write this file, or standard output if it is -";

/// The reader of traces.
pub const GASNET_TRACE: ProgramTable = ProgramTable {
    name: "gasnet_trace",
    links: &[],
    synopsis: "SUBCOMMAND ...",
    purpose: "Summarises or draws the files that the ranks of a job wrote.",
    options: &[],
    operands: Operands::Subcommands(&[
        SubcommandRow {
            name: "summary",
            synopsis: "[--by line|operation|rank] FILE...",
            help: "sums up counts, bytes and times of the files of GASNET_TRACEFILE and GASNET_STATSFILE",
            options: &[row(
                &["--by"],
                OneOf("ROW", &["line", "operation", "rank"]),
                "what a row stands for",
            )],
        },
        SubcommandRow {
            name: "perfetto",
            synopsis: "FILE... -o OUT.json",
            help: "converts a trace of GASNET_TRACEFILE for ui.perfetto.dev or chrome://tracing",
            options: &[row(&["-o", "--output"], File("OUT.json"), OUT)],
        },
        SubcommandRow {
            name: "credits",
            synopsis: "FILE... -o OUT.svg",
            help: "draws the files of GASNET_PORTAL_CREDIT_STATS (gasnet_credits.RANK)",
            options: &[row(&["-o", "--output"], File("OUT.svg"), OUT)],
        },
        SubcommandRow {
            name: "firehose",
            synopsis: "FILE... -o OUT.svg",
            help: "draws registered memory and hit rates of a trace of GASNET_TRACEFILE",
            options: &[row(&["-o", "--output"], File("OUT.svg"), OUT)],
        },
    ]),
    notes: "",
};

/// The launcher of libportals3.
pub const PTLRUN: ProgramTable = ProgramTable {
    name: "ptlrun",
    links: &[],
    synopsis: "-n N program [arguments]",
    purpose: "Starts the processes of a job over libportals3 on this host, and waits for them.",
    options: &[row(&["-n"], Any("N"), "number of processes, 1 to 1024")],
    operands: Operands::Command,
    notes: "",
};
