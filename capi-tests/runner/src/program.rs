//! The C test programs and the settings in their head lines, which `capi-tests/check.h`
//! describes.

use crate::build_trees::{ClientMode, root};
use crate::matrix::SegmentPath;
use std::fs;
use std::path::{Path, PathBuf};

/// A planted fault that must make a program fail, and the settings in which it does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlantedFault {
    /// Value of GASNET_TEST_FAULT.
    pub name: String,
    /// Only in PAR.
    pub par: bool,
    /// Only on this path.
    pub path: Option<SegmentPath>,
}

/// The numbers of ranks that a program runs with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Nodes {
    /// Any.
    Any,
    /// One, or an even number.
    Even,
    /// At least this many.
    From(u32),
    /// Exactly this many.
    Exactly(u32),
}

impl Nodes {
    /// Whether `n` is one of them.
    pub fn allow(self, n: u32) -> bool {
        match self {
            Nodes::Any => true,
            Nodes::Even => n == 1 || n.is_multiple_of(2),
            Nodes::From(least) => n >= least,
            Nodes::Exactly(wanted) => n == wanted,
        }
    }
}

/// One test program.
#[derive(Clone, Debug)]
pub struct TestProgram {
    /// Its source file.
    pub source: PathBuf,
    /// Its name.
    pub name: String,
    /// Arguments of a quick run.
    pub args: Vec<String>,
    /// Variables that it needs.
    pub env: Vec<(String, String)>,
    /// Numbers of ranks.
    pub nodes: Nodes,
    /// Thread modes that it compiles for.
    pub modes: Vec<ClientMode>,
    /// Compiled with GASNET_SEGMENT_EVERYTHING.
    pub everything: bool,
    /// Faults that it must detect.
    pub faults: Vec<PlantedFault>,
    /// Whether it calls a get of any form, so that the network interface must have counted
    /// gets.
    pub gets: bool,
    /// Its segments are created by its ranks, each of which maps its own only.
    pub creates_segments: bool,
}

/// All programs, `capi-tests/test*.c`, by name.
pub fn all() -> Vec<TestProgram> {
    let Ok(dir) = fs::read_dir(root().join("capi-tests")) else { return Vec::new() };
    let mut sources: Vec<PathBuf> = dir
        .flatten()
        .map(|e| e.path())
        .filter(|p| {
            p.file_name()
                .and_then(|n| n.to_str())
                .is_some_and(|n| n.starts_with("test") && n.ends_with(".c"))
        })
        .collect();
    sources.sort();
    sources.iter().filter_map(|s| fs::read_to_string(s).ok().map(|text| parse(s, &text))).collect()
}

/// The program of that name.
pub fn named(name: &str) -> Option<TestProgram> {
    all().into_iter().find(|p| p.name == name)
}

/// The settings in the text of `source`. A line that cannot be parsed is a mistake in the
/// source.
pub fn parse(source: &Path, text: &str) -> TestProgram {
    let name = source.file_stem().expect("a source has a name").to_string_lossy().into_owned();
    let mut program = TestProgram {
        source: source.to_path_buf(),
        name: name.clone(),
        args: Vec::new(),
        env: Vec::new(),
        nodes: Nodes::Any,
        modes: vec![ClientMode::Seq, ClientMode::Par],
        everything: false,
        faults: Vec::new(),
        gets: ["gasnet_get(", "gex_RMA_Get", "gasnet_get_nb", "gasnet_get_val", "gasnet_get_bulk"]
            .iter()
            .any(|g| text.contains(g)),
        creates_segments: false,
    };
    for line in text.lines().take(40) {
        let Some((key, value)) = line
            .trim()
            .strip_prefix("/*")
            .and_then(|l| l.strip_suffix("*/"))
            .and_then(|l| l.trim().split_once(':'))
        else {
            continue;
        };
        let value = value.trim();
        match key {
            "args" => program.args = words(value),
            "env" => {
                program.env = words(value)
                    .iter()
                    .filter_map(|w| w.split_once('='))
                    .map(|(k, v)| (k.to_string(), v.to_string()))
                    .collect();
            }
            "nodes" => {
                program.nodes = match value {
                    "any" => Nodes::Any,
                    "even" => Nodes::Even,
                    _ => match value.strip_suffix('+').and_then(|n| n.parse().ok()) {
                        Some(n) => Nodes::From(n),
                        None => panic!("{name}.c: nodes: {value}"),
                    },
                }
            }
            "threads" => {
                program.modes = match value {
                    "both" => vec![ClientMode::Seq, ClientMode::Par],
                    "par" => vec![ClientMode::Par],
                    "seq" => vec![ClientMode::Seq],
                    _ => panic!("{name}.c: threads: {value}"),
                }
            }
            "segments" => match value {
                "everything" => program.everything = true,
                "created" => program.creates_segments = true,
                _ => panic!("{name}.c: segments: {value}"),
            },
            "faults" => {
                program.faults = words(value)
                    .iter()
                    .map(|w| {
                        let mut parts = w.split(':');
                        let mut fault = PlantedFault {
                            name: parts.next().unwrap_or("").to_string(),
                            par: false,
                            path: None,
                        };
                        for p in parts {
                            match p {
                                "par" => fault.par = true,
                                "portals" => fault.path = Some(SegmentPath::Portals),
                                "cross-mapped" => fault.path = Some(SegmentPath::CrossMapped),
                                _ => panic!("{name}.c: faults: {w}"),
                            }
                        }
                        fault
                    })
                    .collect();
            }
            _ => {}
        }
    }
    program
}

/// Words between blanks; double quotes group words.
pub fn words(text: &str) -> Vec<String> {
    let mut all = Vec::new();
    let mut word = String::new();
    let mut quoted = false;
    let mut begun = false;
    for c in text.chars() {
        match c {
            '"' => {
                quoted = !quoted;
                begun = true;
            }
            c if c.is_whitespace() && !quoted => {
                if begun {
                    all.push(std::mem::take(&mut word));
                    begun = false;
                }
            }
            c => {
                word.push(c);
                begun = true;
            }
        }
    }
    if begun {
        all.push(word);
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn head_lines() {
        let p = parse(
            Path::new("x/testenv.c"),
            "/* Says what it does.\n */\n/* args: GASNet is \"Global Address Space Networking\" */\n/* nodes: 3+ */\n\
             /* threads: par */\n/* faults: lose_env skip_lock:par flip_put:portals */\n/* env: GASNET_DUMMY=\"a b\" */\n\
             /* segments: everything */\n",
        );
        assert_eq!(p.name, "testenv");
        assert_eq!(p.args, ["GASNet", "is", "Global Address Space Networking"]);
        assert_eq!(p.nodes, Nodes::From(3));
        assert_eq!(p.modes, [ClientMode::Par]);
        assert_eq!(p.env, [("GASNET_DUMMY".to_string(), "a b".to_string())]);
        assert!(p.everything);
        assert_eq!(p.faults.len(), 3);
        assert!(p.faults[1].par && p.faults[1].path.is_none());
        assert_eq!(p.faults[2].path, Some(SegmentPath::Portals));
        assert!(!p.gets);
    }

    #[test]
    fn even_means_one_or_even() {
        let allowed: Vec<u32> =
            [1, 2, 3, 4, 8].into_iter().filter(|&n| Nodes::Even.allow(n)).collect();
        assert_eq!(allowed, [1, 2, 4, 8]);
    }
}
