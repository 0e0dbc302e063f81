//! `gasnet_trace perfetto`: a trace as a file for ui.perfetto.dev and chrome://tracing ("Trace
//! Event Format", JSON).
//!
//! A rank is a process with a row per thread. An operation is a slice. An active message is an
//! arrow from the call that sends it to its handler. The trace does not say which call belongs
//! to which run of a handler. The n-th message from one rank to another with one handler is
//! assumed to cause the n-th run. This holds unless messages overtake each other.

use crate::lines::{self, TraceEvent};
use crate::{Failure, Subcommand, files};
use lexopt::{Arg, Parser};
use std::collections::{BTreeSet, HashMap, VecDeque};
use std::fmt::Write;
use std::path::PathBuf;

pub(crate) const SUBCOMMAND: Subcommand = Subcommand { name: "perfetto", run };

fn run(args: &mut Parser) -> Result<(), Failure> {
    let (mut files, mut out) = (Vec::new(), None);
    while let Some(arg) = args.next()? {
        match arg {
            Arg::Short('h') | Arg::Long("help") => return Err(Failure::Help),
            Arg::Value(file) => files.push(PathBuf::from(file)),
            Arg::Short('o') | Arg::Long("output") => out = Some(PathBuf::from(args.value()?)),
            other => return Err(other.unexpected().into()),
        }
    }
    let Some(out) = out else {
        return Err(Failure::Usage("no -o OUT.json was given".to_string()));
    };
    if files.is_empty() {
        return Err(Failure::Usage("no file was given".to_string()));
    }
    files::check_output(&out, &files)?;
    let records = lines::read(files)?;
    if records.events.is_empty() {
        return Err(Failure::Work(
            "these files hold no trace".to_string(),
            "Name files that GASNET_TRACEFILE named.".to_string(),
        ));
    }
    if records.events.iter().all(|e| e.took.is_none()) {
        eprintln!("gasnet_trace: {}", lines::NOT_TIMED);
    }
    files::write(&out, &json(&records.events))
}

/// Text between quotes.
fn quoted(text: &str) -> String {
    let mut quoted = String::from("\"");
    for c in text.chars() {
        match c {
            '"' | '\\' => quoted.extend(['\\', c]),
            c if c < ' ' => {
                let _ = write!(quoted, "\\u{:04x}", c as u32);
            }
            c => quoted.push(c),
        }
    }
    quoted + "\""
}

/// What a call that sends a message and the run of its handler have in common: from, to,
/// handler, category.
type MessageRoute = (u64, u64, u64, &'static str);

/// The route of the message that an event sends (true) or handles (false).
fn route(e: &TraceEvent) -> Option<(bool, MessageRoute)> {
    let (node, handler) = (e.number("node")?, e.number("handler")?);
    let (sends, rest) = if let Some(rest) = e.name.strip_prefix("HANDLER") {
        (false, rest)
    } else {
        (true, e.name.strip_prefix("AMREQUEST").or_else(|| e.name.strip_prefix("AMREPLY"))?)
    };
    let category = ["SHORT", "MEDIUM", "LONG"].into_iter().find(|c| rest.starts_with(c))?;
    let (from, to) = if sends { (u64::from(e.rank), node) } else { (node, u64::from(e.rank)) };
    Some((sends, (from, to, handler, category)))
}

/// The file.
pub(crate) fn json(events: &[TraceEvent]) -> String {
    let mut text = String::from("{\"displayTimeUnit\":\"ns\",\"traceEvents\":[\n");
    for &(rank, thread) in &events.iter().map(|e| (e.rank, e.thread)).collect::<BTreeSet<_>>() {
        for (what, name) in
            [("process_name", format!("rank {rank}")), ("thread_name", format!("thread {thread}"))]
        {
            let _ = writeln!(
                text,
                "{{\"ph\":\"M\",\"pid\":{rank},\"tid\":{thread},\"name\":\"{what}\",\"args\":{{\"name\":{}}}}},",
                quoted(&name)
            );
        }
        let _ = writeln!(
            text,
            "{{\"ph\":\"M\",\"pid\":{rank},\"tid\":{thread},\"name\":\"process_sort_index\",\"args\":{{\"sort_index\":{rank}}}}},"
        );
    }
    let us = |ns: u64| format!("{}.{:03}", ns / 1000, ns % 1000);
    let mut sent: HashMap<MessageRoute, VecDeque<&TraceEvent>> = HashMap::new();
    let mut arrows = 0;
    for e in events {
        let at = format!("\"pid\":{},\"tid\":{},\"ts\":{}", e.rank, e.thread, us(e.start));
        let name = if e.name.is_empty() { &e.text } else { &e.name };
        let mut details = format!("\"type\":\"{}\"", e.letter);
        if let Some(place) = &e.place {
            let _ = write!(details, ",\"source\":{}", quoted(place));
        }
        if !e.name.is_empty() {
            for (key, value) in e.text.split(' ').filter_map(|w| w.split_once('=')) {
                let _ = write!(details, ",{}:{}", quoted(key), quoted(value));
            }
        }
        let (name, category) = (quoted(name), e.letter);
        let _ = match e.took {
            Some(took) => writeln!(
                text,
                "{{\"ph\":\"X\",{at},\"dur\":{},\"name\":{name},\"cat\":\"{category}\",\"args\":{{{details}}}}},",
                us(took)
            ),
            // Details would hide the operation that they belong to.
            None if e.letter == 'D' => Ok(()),
            None => writeln!(
                text,
                "{{\"ph\":\"i\",\"s\":\"t\",{at},\"name\":{name},\"cat\":\"{category}\",\"args\":{{{details}}}}},"
            ),
        };
        match route(e) {
            Some((true, route)) if e.took.is_some() => sent.entry(route).or_default().push_back(e),
            Some((false, route)) if e.took.is_some() => {
                let Some(s) = sent.get_mut(&route).and_then(VecDeque::pop_front) else { continue };
                arrows += 1;
                for (phase, e) in [("\"s\"", s), ("\"f\",\"bp\":\"e\"", e)] {
                    let _ = writeln!(
                        text,
                        "{{\"ph\":{phase},\"id\":{arrows},\"pid\":{},\"tid\":{},\"ts\":{},\"name\":\"message\",\"cat\":\"A\"}},",
                        e.rank,
                        e.thread,
                        us(e.start)
                    );
                }
            }
            _ => {}
        }
    }
    let text = text.trim_end().trim_end_matches(',').to_string();
    text + "\n]}\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(rank: u32, name: &str, start: u64, text: &str) -> TraceEvent {
        let (name, text) = (name.to_string(), text.to_string());
        TraceEvent { rank, thread: 0, start, took: Some(10), place: None, letter: 'A', name, text }
    }

    #[test]
    fn a_message_is_an_arrow() {
        let events = [
            event(0, "AMREQUESTSHORT", 0, "node=1 handler=201 args=0 bytes=0"),
            event(1, "HANDLERSHORT", 5000, "node=0 handler=201 args=0 bytes=0"),
            event(1, "HANDLERMEDIUM", 6000, "node=0 handler=201 args=0 bytes=0"),
        ];
        let text = json(&events);
        let lines: Vec<&str> = text.lines().filter(|l| l.contains("\"message\"")).collect();
        assert_eq!(lines.len(), 2);
        assert!(
            lines[0].contains("\"ph\":\"s\",\"id\":1,\"pid\":0")
                && lines[0].contains("\"ts\":0.000")
        );
        assert!(lines[1].contains("\"ph\":\"f\"") && lines[1].contains("\"ts\":5.000"));
        assert_eq!(text.matches("\"ph\":\"X\"").count(), 3);
        assert!(text.ends_with("}\n]}\n"));
    }

    #[test]
    fn quotes() {
        assert_eq!(quoted("a\"b\\c\u{1}"), "\"a\\\"b\\\\c\\u0001\"");
    }
}
