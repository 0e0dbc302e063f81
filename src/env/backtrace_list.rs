//! Lists of methods to print a stack (GASNET_BACKTRACE_TYPE).
//!
//! Used by the table and by `tools::backtrace`, which knows the client's own method. Invariant: a
//! list names a method.

use super::contradiction::Contradiction;
use super::kinds::shown_as_written;
use crate::one_line::LineBegin;

/// The methods of the library, in the order in which they are tried by default.
pub const BACKTRACE_METHODS: [&str; 6] =
    ["ADDR2LINE", "EXECINFO", "GDB", "GSTACK", "PSTACK", "EUSTACK"];

/// Names of methods to print a stack, separated by commas.
#[derive(Clone, Copy, Debug)]
pub struct BacktraceMethods;

/// The names of a list, in its order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BacktraceList(Vec<String>);

impl BacktraceList {
    fn parse(text: &str) -> Option<BacktraceList> {
        let names = text.split(',').map(str::trim).filter(|name| !name.is_empty());
        let names: Vec<String> = names.map(String::from).collect();
        (!names.is_empty()).then_some(BacktraceList(names))
    }

    /// The names.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(String::as_str)
    }

    /// What is wrong with the list in a program that has this method of its own: a name that
    /// is no method.
    pub fn unknown_method(&self, own: Option<&str>) -> Option<Contradiction> {
        let known = || BACKTRACE_METHODS.into_iter().chain(own);
        let unknown = |name: &&str| !known().any(|method| method.eq_ignore_ascii_case(name));
        let name = self.names().find(unknown)?;
        let list = self.0.join(",");
        let (list, name) = (LineBegin(&list), LineBegin(name));
        Some(Contradiction {
            variable: "GASNET_BACKTRACE_TYPE",
            cause: format!(
                "GASNET_BACKTRACE_TYPE={list}: {name} is not a method to print a stack"
            ),
            remedy: format!(
                "Give {}, separated by commas, or unset it.",
                known().collect::<Vec<_>>().join(", ")
            ),
        })
    }
}

shown_as_written!(
    BacktraceMethods,
    BacktraceList,
    BacktraceList::parse,
    format!("one or more of {}, separated by commas", BACKTRACE_METHODS.join(", ")),
    "names of methods"
);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::env::ValueKind;

    #[test]
    fn a_list_names_methods() {
        let parse = |text: &str| BacktraceMethods.parse(text);
        let unknown = |text: &str, own| parse(text).and_then(|list| list.unknown_method(own));
        for empty in ["", ",", " , "] {
            assert_eq!(parse(empty), None, "{empty}");
        }
        assert_eq!(unknown("gdb, EXECINFO", None), None);
        assert_eq!(unknown("GDB,MINE", Some("mine")), None);
        let cause = unknown("GDB,MINE", None).map(|c| c.cause);
        let wanted = "GASNET_BACKTRACE_TYPE=GDB,MINE: MINE is not a method to print a stack";
        assert_eq!(cause.as_deref(), Some(wanted));
    }
}
