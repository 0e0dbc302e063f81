//! Whether bindgen has seen the header as the C compiler of the target does. bindgen does not know
//! the macros that this compiler predefines, by which a header may choose widths and members.
//!
//! Called by `libportals`. Invariant: a binding that differs from the header ends the build.

use super::{Line, Probe};
use std::fmt::Write;
use std::fs;

/// What C calls the array that has a negative length if a size, an offset or a value differs.
const SEEN: &str = "gasneti_seen_";

/// Members whose names are words of Rust, as bindgen spells them.
const KEYWORDS: &[&str] = &["type_", "match_", "ref_", "in_", "use_", "move_"];

impl Probe {
    /// Compiles the sizes, offsets and values of the binding as assertions in C.
    pub(super) fn same_layout(&self) -> Result<(), Line> {
        let path = self.out.join("portals3.rs");
        let made = fs::read_to_string(&path).map_err(|e| format!("{}: {e}", path.display()))?;
        let asserted = assertions(&made);
        let out = format!("-I{}", self.out.display());
        let flags = ["-fsyntax-only", &out, "-Isrc/conduit/portals/binding"];
        let compiled = self.cc(&asserted, &flags)?;
        if compiled.status.success() {
            return Ok(());
        }
        let said = String::from_utf8_lossy(&compiled.stderr);
        let what = said.split(SEEN).nth(1).map_or("its layout", |name| {
            name.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').next().unwrap_or_default()
        });
        Err(format!(
            "{}: bindgen and the C compiler of the target see it differently: {}; give the macros that this compiler \
             predefines in PORTALS_INCLUDE too (\"<folder> -DNAME=VALUE\")",
            self.file,
            what.replace("__", " of ")
        ))
    }
}

/// C that compiles if the target has what bindgen has made.
fn assertions(made: &str) -> String {
    let (mut values, mut layouts) = (String::new(), String::new());
    for item in made.split("pub const GASNETI_PTL_").skip(1) {
        let name = item.split(':').next().unwrap_or_default().trim();
        let value = item.split('=').nth(1).and_then(|v| v.split(';').next()).unwrap_or_default();
        let _ = writeln!(values, "#define GASNETI_SEEN_{name} {}LL", value.trim());
    }
    // ["Size of ptl_md_t"][... - 56usize]; and ["Offset of field: ptl_md_t::start"][... - 0usize];
    for item in made.split("[\"").skip(1) {
        let (Some((what, _)), Some(number)) =
            (item.split_once("\"]"), number_before(item, "usize]"))
        else {
            continue;
        };
        let (check, name) = if let Some(of) = what.strip_prefix("Size of ") {
            let Some(c) = in_c(made, of) else { continue };
            (format!("sizeof({c})"), format!("size__{of}"))
        } else if let Some(field) = what.strip_prefix("Offset of field: ") {
            let Some((of, member)) = field.split_once("::") else { continue };
            let Some(c) = in_c(made, of) else { continue };
            // What bindgen has made for bit fields and for members without a name.
            if member.starts_with("_bitfield") || member.starts_with("__bindgen") {
                continue;
            }
            let member =
                if KEYWORDS.contains(&member) { &member[..member.len() - 1] } else { member };
            (format!("offsetof({c}, {member})"), format!("{member}__{of}"))
        } else {
            continue;
        };
        let _ = writeln!(layouts, "typedef char {SEEN}{name}[{check} == {number} ? 1 : -1];");
    }
    format!(
        "{values}#define GASNETI_VALUE(name, value) \\\n    \
         typedef char {SEEN}value__##name[(long long)(value) == GASNETI_SEEN_##name ? 1 : -1]\n\
         #include \"shim.h\"\n#include <stddef.h>\n{layouts}"
    )
}

/// How C names a type of the header: bindgen names that of a typedef by its tag, if it has one.
fn in_c(made: &str, name: &str) -> Option<String> {
    if name == "gasneti_ptl_types" {
        return Some(format!("struct {name}"));
    }
    let types = ["ptl_md_t", "ptl_event_t", "ptl_process_id_t", "ptl_ni_limits_t"];
    let is_named = |alias: &&str| {
        *alias == name || made.replace(' ', "").contains(&format!("pubtype{alias}={name};"))
    };
    types.iter().find(|alias| is_named(alias)).map(|alias| alias.to_string())
}

/// The number that ends just before `end`.
fn number_before<'a>(text: &'a str, end: &str) -> Option<&'a str> {
    let head = &text[..text.find(end)?];
    let start = head.rfind(|c: char| !c.is_ascii_digit())? + 1;
    Some(&head[start..])
}
