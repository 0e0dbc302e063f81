//! Prints the version and the build of this libgasnet, its environment variables, its networks,
//! and what it knows of this system. Starts no job.

use command_line::GASNET_INFO;
use gasnet::conduit::network::{networks, not_built};
use gasnet::env::{self, Contradiction, Likeness, UnknownVariable};
use gasnet::one_line::OneLine;
use gasnet::runtime::client::SegmentMode;
use gasnet::runtime::segment;
use lexopt::{Arg, Parser};
use std::collections::BTreeSet;
use std::fmt::Write;
use std::process::exit;
use sys::{attach, cpu, memory, stdio};

/// A value that is printed as text or as JSON.
enum Item {
    Text(String),
    Number(u64),
    Yes(bool),
    Nothing,
    List(Vec<Item>),
    Record(Vec<(&'static str, Item)>),
}

impl Item {
    fn text(text: impl Into<String>) -> Item {
        Item::Text(text.into())
    }

    fn json(&self, to: &mut String) {
        match self {
            Item::Text(t) => quote(t, to),
            Item::Number(n) => to.push_str(&n.to_string()),
            Item::Yes(yes) => to.push_str(if *yes { "true" } else { "false" }),
            Item::Nothing => to.push_str("null"),
            Item::List(items) => {
                to.push('[');
                for (i, item) in items.iter().enumerate() {
                    to.push_str(if i > 0 { "," } else { "" });
                    item.json(to);
                }
                to.push(']');
            }
            Item::Record(fields) => {
                to.push('{');
                for (i, (name, item)) in fields.iter().enumerate() {
                    to.push_str(if i > 0 { "," } else { "" });
                    quote(&name.to_lowercase().replace(' ', "_"), to);
                    to.push(':');
                    item.json(to);
                }
                to.push('}');
            }
        }
    }

    /// The value as text on one line.
    fn line(&self) -> String {
        match self {
            Item::Text(t) => OneLine(t).to_string(),
            Item::Number(n) => n.to_string(),
            Item::Yes(yes) => if *yes { "yes" } else { "no" }.to_string(),
            Item::Nothing => "-".to_string(),
            Item::List(items) => items.iter().map(Item::line).collect::<Vec<_>>().join(", "),
            Item::Record(fields) => fields
                .iter()
                .map(|(n, i)| format!("{n}: {}", i.line()))
                .collect::<Vec<_>>()
                .join("; "),
        }
    }
}

/// A JSON string.
fn quote(text: &str, to: &mut String) {
    to.push('"');
    for c in text.chars() {
        match c {
            '"' => to.push_str("\\\""),
            '\\' => to.push_str("\\\\"),
            c if c < ' ' => {
                let _ = write!(to, "\\u{:04x}", c as u32);
            }
            c => to.push(c),
        }
    }
    to.push('"');
}

/// The number after `#define NAME` in gasnet_config.h.
fn number(name: &str) -> u64 {
    let header = include_str!("../../include/gasnet_config.h");
    let mut words = header.lines().map(str::split_whitespace);
    let line = words
        .find_map(|mut w| (w.next() == Some("#define") && w.next() == Some(name)).then_some(w));
    line.and_then(|mut w| w.next()?.parse().ok()).unwrap_or_default()
}

fn version() -> Item {
    let part = |name| number(&format!("GASNET_RELEASE_VERSION_{name}"));
    Item::Record(vec![
        ("libgasnet", Item::text(env!("CARGO_PKG_VERSION"))),
        (
            "GASNet release",
            Item::Text(format!("{}.{}.{}", part("MAJOR"), part("MINOR"), part("PATCH"))),
        ),
        ("GASNet specification", Item::text("1.8")),
        ("GASNet tools specification", Item::text("1.20")),
        ("interface of headers and library", Item::Number(gasnet::capi::client::ABI.into())),
        ("conduit", Item::text("portals")),
        ("Portals specification", Item::text("3.3")),
        ("thread modes", Item::List(["SEQ", "PARSYNC", "PAR"].map(Item::text).into())),
        ("segment modes", Item::List(SegmentMode::ALL.map(|mode| Item::text(mode.name())).into())),
    ])
}

fn build() -> Item {
    Item::Record(vec![
        ("compiler", Item::text(env!("GASNET_BUILD_RUSTC"))),
        ("target", Item::text(env!("GASNET_BUILD_TARGET"))),
        ("profile", Item::text(env!("GASNET_BUILD_PROFILE"))),
        ("planted faults", Item::Yes(cfg!(feature = "faults"))),
        ("page size of the headers", Item::Number(segment::PAGE as u64)),
        ("client threads at most", Item::Number(number("GASNETI_MAX_THREADS"))),
        (
            "this program",
            std::env::current_exe().map_or(Item::Nothing, |p| Item::text(p.display().to_string())),
        ),
    ])
}

const UNREAD: &str = "environment, but not read by this library";
const OF_OTHERS: &str = "environment, of other implementations of GASNet, without effect here";

/// Valid values that `gasnet_init` rejects because of others, of the build or of the program.
fn contradictions() -> Vec<Contradiction> {
    let methods = env::BACKTRACE_TYPE.read().ok().flatten();
    let unknown = methods.and_then(|list| list.unknown_method(None)).map(|c| Contradiction {
        remedy: format!("{} A client's own method is not known here.", c.remedy),
        ..c
    });
    env::contradictions().chain(not_built()).chain(unknown).collect()
}

/// The library's variables and unknown ones; whether any would be rejected.
fn environment() -> (Vec<Item>, bool) {
    let contradictions = contradictions();
    let mut bad = !contradictions.is_empty();
    let mut all: Vec<Item> = env::all()
        .map(|v| {
            let s = v.state();
            bad |= s.refused.is_some();
            let source = match (s.is_set, &s.shown) {
                (true, _) => "environment",
                (false, Some(_)) => "default",
                (false, None) => "not set",
            };
            Item::Record(vec![
                ("name", Item::text(v.name())),
                ("value", s.shown.map_or(Item::Nothing, Item::Text)),
                ("source", Item::text(source)),
                ("accepted", s.refused.map_or(Item::Nothing, Item::Text)),
                (
                    "refused because",
                    contradictions
                        .iter()
                        .find(|c| c.variable == v.name())
                        .map_or(Item::Nothing, |c| {
                            Item::Text(format!("{}. {}", c.cause, c.remedy))
                        }),
                ),
                ("meaning", Item::text(v.help())),
            ])
        })
        .collect();
    all.extend(env::unknown().into_iter().map(|UnknownVariable { name, likeness }| {
        let (source, near) = match likeness {
            Likeness::Misspelt(near) => (UNREAD, Item::text(near)),
            Likeness::Upstream => (OF_OTHERS, Item::Nothing),
            Likeness::None => (UNREAD, Item::Nothing),
        };
        Item::Record(vec![
            ("name", Item::Text(name.clone())),
            ("value", env::lookup(&name).map_or(Item::Nothing, Item::Text)),
            ("source", Item::text(source)),
            ("did you mean", near),
        ])
    }));
    (all, bad)
}

fn all_networks() -> Vec<Item> {
    networks(attach::allowed_between_siblings())
        .into_iter()
        .map(|n| {
            let mut fields = vec![
                ("name", Item::text(n.name)),
                ("what", Item::text(n.what)),
                ("used by gasnet_init", Item::Yes(n.chosen)),
            ];
            fields.extend(n.facts.into_iter().map(|(name, text)| (name, Item::text(text))));
            Item::Record(fields)
        })
        .collect()
}

fn system() -> Item {
    let line = |path: &str| {
        std::fs::read_to_string(path)
            .map_or(Item::Nothing, |t| Item::text(t.lines().next().unwrap_or_default()))
    };
    let memory = memory::limits();
    let memory_files =
        memory::file_kind().unwrap_or_else(|e| format!("none, so ranks cannot share memory: {e}"));
    let granted = memory.total() / 8 * 7;
    Item::Record(vec![
        ("host", line("/proc/sys/kernel/hostname")),
        ("system", line("/proc/sys/kernel/ostype")),
        ("kernel", line("/proc/sys/kernel/osrelease")),
        ("CPUs that this process may use", Item::Number(cpu::usable() as u64)),
        ("memory in bytes", Item::Number(memory.physical)),
        ("memory available in bytes", Item::Number(memory.available)),
        ("control group limit in bytes", memory.cgroup.map_or(Item::Nothing, Item::Number)),
        ("largest segment in bytes", Item::Number(granted - granted % segment::PAGE as u64)),
        ("page size", Item::Number(memory::page_size() as u64)),
        ("memory files", Item::Text(memory_files)),
        (
            "processes may copy from each other's memory",
            Item::Yes(attach::allowed_between_siblings()),
        ),
    ])
}

/// The text of a section.
fn section(title: &str, item: &Item) -> String {
    let mut lines = vec![title.to_string()];
    match item {
        Item::Record(fields) => {
            for (name, value) in fields {
                lines.push(format!("  {name}: {}", value.line()));
            }
        }
        Item::List(items) if title == "environment" => {
            for item in items {
                let Item::Record(fields) = item else { continue };
                let field = |name: &str| {
                    let found =
                        fields.iter().find(|(n, i)| *n == name && !matches!(i, Item::Nothing));
                    found.map(|(_, i)| i.line())
                };
                let [name, value, source] = ["name", "value", "source"].map(field);
                let (name, source) = (name.unwrap_or_default(), source.unwrap_or_default());
                let refused = field("accepted").map(|r| format!("  REFUSED: give {r}"));
                let because = field("refused because").map(|why| format!("  REFUSED: {why}"));
                let meant = field("did you mean").map(|m| format!("  did you mean {m}?"));
                lines.push(format!(
                    "  {name} = {}  ({source}){}",
                    value.unwrap_or_else(|| "-".to_string()),
                    refused.or(because).or(meant).unwrap_or_default()
                ));
            }
        }
        Item::List(items) => {
            for (i, item) in items.iter().enumerate() {
                let Item::Record(fields) = item else { continue };
                if i > 0 {
                    lines.push(String::new());
                }
                for (name, value) in fields {
                    lines.push(format!("  {name}: {}", value.line()));
                }
            }
        }
        other => lines.push(format!("  {}", other.line())),
    }
    lines.join("\n") + "\n"
}

fn main() {
    stdio::end_on_closed_pipe();
    let mut sections = Vec::new();
    let mut json = false;
    let mut parser = Parser::from_env();
    let refuse = |what: String| -> ! {
        eprintln!("*** gasnet_info: {what}\n***   {}", GASNET_INFO.remedy());
        exit(2)
    };
    loop {
        match parser.next() {
            Ok(Some(Arg::Short('v') | Arg::Long("versions"))) => sections.push("version"),
            Ok(Some(Arg::Short('b') | Arg::Long("build"))) => sections.push("build"),
            Ok(Some(Arg::Short('c') | Arg::Long("environment"))) => sections.push("environment"),
            Ok(Some(Arg::Short('n') | Arg::Long("networks"))) => sections.push("networks"),
            Ok(Some(Arg::Short('s') | Arg::Long("system"))) => sections.push("system"),
            Ok(Some(Arg::Value(word))) => match word.to_str() {
                Some("versions" | "version") => sections.push("version"),
                Some("build") => sections.push("build"),
                Some("environment") => sections.push("environment"),
                Some("networks") => sections.push("networks"),
                Some("system") => sections.push("system"),
                _ => refuse(format!(
                    "{} is no section; these are: versions, build, environment, networks, system",
                    word.display()
                )),
            },
            Ok(Some(Arg::Long("json"))) => json = true,
            Ok(Some(Arg::Short('h') | Arg::Long("help"))) => {
                stdio::write(GASNET_INFO.name, &GASNET_INFO.usage());
                exit(0)
            }
            Ok(Some(Arg::Long("version"))) => {
                stdio::write(GASNET_INFO.name, &GASNET_INFO.version());
                exit(0)
            }
            Ok(Some(other)) => refuse(other.unexpected().to_string()),
            Ok(None) => break,
            Err(e) => refuse(e.to_string()),
        }
    }
    let mut seen = BTreeSet::new();
    sections.retain(|section| seen.insert(*section));
    if sections.is_empty() {
        sections = vec!["version", "build", "environment", "networks", "system"];
    }
    let mut bad = false;
    let printed: Vec<(&'static str, Item)> = sections
        .into_iter()
        .map(|s| {
            let item = match s {
                "version" => version(),
                "build" => build(),
                "environment" => {
                    let (items, refused) = environment();
                    bad |= refused;
                    Item::List(items)
                }
                "networks" => Item::List(all_networks()),
                _ => system(),
            };
            (s, item)
        })
        .collect();
    let mut text = String::new();
    if json {
        Item::Record(printed).json(&mut text);
        text += "\n";
    } else {
        text = printed.iter().map(|(title, item)| section(title, item)).collect();
    }
    stdio::write("gasnet_info", &text);
    exit(i32::from(bad));
}
