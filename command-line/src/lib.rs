//! The options of the programs, one table each, and what follows from a table. That is the
//! usage text, the version line, and the completion of bash, zsh and fish.
//!
//! Called by the programs, which read their options themselves. Invariant: the files below
//! `completions` are what the tables say (`UPDATE=1 cargo test -p command-line`).
//!
//! | file | what it owns |
//! |---|---|
//! | `programs` | the tables |
//! | `completion` | the files for the shells |

mod completion;
mod programs;

pub use completion::{SHELLS, ShellFile};
pub use programs::{GASNET_INFO, GASNET_TRACE, GASNETRUN, PTLRUN};

/// All programs that are installed.
pub const ALL: [&ProgramTable; 4] = [&GASNETRUN, &GASNET_INFO, &GASNET_TRACE, &PTLRUN];

/// A program and its options, without those that every program has: -h, --help and --version.
#[derive(Clone, Copy, Debug)]
pub struct ProgramTable {
    /// Its name.
    pub name: &'static str,
    /// Further names of its file.
    pub links: &'static [&'static str],
    /// What follows the name in the first line of the usage.
    pub synopsis: &'static str,
    /// What it does, one or more lines.
    pub purpose: &'static str,
    /// Its options, in the order of the usage.
    pub options: &'static [OptionRow],
    /// What follows the options.
    pub operands: Operands,
    /// The last lines of the usage.
    pub notes: &'static str,
}

/// An option.
#[derive(Clone, Copy, Debug)]
pub struct OptionRow {
    /// How it is written; with a final `=` if the value is part of the same word.
    pub names: &'static [&'static str],
    /// Its value.
    pub value: OptionValue,
    /// What it does, a line.
    pub help: &'static str,
}

/// The value of an option, and its name in the usage.
#[derive(Clone, Copy, Debug)]
pub enum OptionValue {
    /// There is none.
    Nothing,
    /// Anything.
    Any(&'static str),
    /// One of these words.
    OneOf(&'static str, &'static [&'static str]),
    /// A file.
    File(&'static str),
    /// A folder.
    Folder(&'static str),
}

/// What follows the options.
#[derive(Clone, Copy, Debug)]
pub enum Operands {
    /// Some of these words, which this name describes.
    Words(&'static str, &'static [&'static str]),
    /// A program and its arguments.
    Command,
    /// One of these words, then its options and files.
    Subcommands(&'static [SubcommandRow]),
}

/// A subcommand, which has files as operands.
#[derive(Clone, Copy, Debug)]
pub struct SubcommandRow {
    /// Its name.
    pub name: &'static str,
    /// What follows the name.
    pub synopsis: &'static str,
    /// What it does, a line.
    pub help: &'static str,
    /// Its options.
    pub options: &'static [OptionRow],
}

/// The options that every program has.
const COMMON: [OptionRow; 2] = [
    OptionRow { names: &["-h", "--help"], value: OptionValue::Nothing, help: "print this text" },
    OptionRow { names: &["--version"], value: OptionValue::Nothing, help: "print the version" },
];

impl OptionValue {
    /// Its name in the usage.
    fn name(self) -> Option<&'static str> {
        match self {
            OptionValue::Nothing => None,
            OptionValue::Any(name)
            | OptionValue::OneOf(name, _)
            | OptionValue::File(name)
            | OptionValue::Folder(name) => Some(name),
        }
    }
}

impl OptionRow {
    /// The names with the value, as the usage has them.
    fn written(&self) -> String {
        let one = |name: &&str| match (self.value.name(), name.ends_with('=')) {
            (None, _) => name.to_string(),
            (Some(value), true) => format!("{name}{value}"),
            (Some(value), false) => format!("{name} {value}"),
        };
        self.names.iter().map(one).collect::<Vec<_>>().join(", ")
    }

    /// The names as words, without a final `=`.
    fn words(&self) -> impl Iterator<Item = &'static str> {
        self.names.iter().map(|name| name.trim_end_matches('='))
    }
}

impl ProgramTable {
    /// All options.
    fn all_options(&self) -> impl Iterator<Item = &OptionRow> {
        self.options.iter().chain(&COMMON)
    }

    /// The long options without their dashes.
    pub fn long_names(&self) -> impl Iterator<Item = &'static str> {
        self.all_options().flat_map(OptionRow::words).filter_map(|word| word.strip_prefix("--"))
    }

    /// The text of --help.
    pub fn usage(&self) -> String {
        let mut text = format!("usage: {} {}\n\n{}\n\n", self.name, self.synopsis, self.purpose);
        if let Operands::Subcommands(rows) = self.operands {
            for row in rows {
                text += &format!("  {} {}\n      {}\n", row.name, row.synopsis, row.help);
            }
            text.push('\n');
        }
        let width = self.all_options().map(|o| o.written().len()).max().unwrap_or_default();
        for option in self.all_options() {
            text += &format!("  {:width$}  {}\n", option.written(), option.help);
        }
        if !self.notes.is_empty() {
            text += &format!("\n{}\n", self.notes);
        }
        text
    }

    /// The text of --version.
    pub fn version(&self) -> String {
        format!("{} {}\n", self.name, env!("CARGO_PKG_VERSION"))
    }

    /// What to do after wrong usage.
    pub fn remedy(&self) -> String {
        format!("Try {} --help.", self.name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn usage_fits_a_terminal() {
        for program in ALL {
            for line in program.usage().lines() {
                assert!(line.len() < 100, "{line}");
            }
            assert!(program.usage().contains("-h, --help"));
        }
    }

    #[test]
    fn options_are_written_with_their_values() {
        let option = |names, value| OptionRow { names, value, help: "" };
        assert_eq!(option(&["-n", "-np"], OptionValue::Any("N")).written(), "-n N, -np N");
        assert_eq!(option(&["-spawner="], OptionValue::Any("S")).written(), "-spawner=S");
        assert_eq!(option(&["-v"], OptionValue::Nothing).written(), "-v");
        assert!(GASNETRUN.long_names().any(|name| name == "bind"));
    }
}
