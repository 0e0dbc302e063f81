//! A declared variable: its name, kind, default and description, and how it is read.
//!
//! Used by the table, which declares the variables, and by every reader of one. Invariant: a value
//! returned by `get` was accepted by the variable's kind; an invalid one has ended the job.

use super::environ::{lookup, lookup_bytes};
use super::kinds::{FreeText, ValueKind};
use crate::one_line::LineBegin;
use crate::report;
use std::ffi::CString;

/// What every variable has.
#[derive(Debug)]
struct Declaration<K> {
    name: &'static str,
    help: &'static str,
    kind: K,
}

/// A variable with a default: [`Variable::get`] always returns a value.
#[derive(Debug)]
pub struct Variable<K: ValueKind> {
    declared: Declaration<K>,
    default: K::Default,
}

/// A variable without a default: [`OptionalVariable::get`] returns `None` if it is not set.
#[derive(Debug)]
pub struct OptionalVariable<K>(Declaration<K>);

/// The text of a variable that its kind does not accept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InvalidValue(pub String);

impl<K: ValueKind> Declaration<K> {
    fn read(&self) -> Result<Option<K::Value>, InvalidValue> {
        let Some(text) = lookup(self.name).filter(|t| !t.is_empty()) else { return Ok(None) };
        self.kind.parse(&text).map(Some).ok_or(InvalidValue(text))
    }

    /// The value, if it is set. Ends the job if it is invalid.
    fn get(&self) -> Option<K::Value> {
        self.read().unwrap_or_else(|InvalidValue(text)| {
            report::fatal(
                format_args!("{}={} cannot be used", self.name, LineBegin(&text)),
                format_args!("Give {}, or unset it.", self.kind.accepted()),
            )
        })
    }

    /// The state of a variable whose default is shown as this.
    fn state(&self, default: Option<String>) -> VariableState {
        let set = lookup(self.name);
        let mut state = VariableState { shown: default, is_set: set.is_some(), refused: None };
        match set {
            Some(raw) if raw.is_empty() => state.shown = Some(raw),
            Some(raw) => match self.kind.parse(&raw) {
                Some(value) => state.shown = Some(self.kind.shown(&raw, &value)),
                None => {
                    state.shown = Some(raw);
                    state.refused = Some(self.kind.accepted());
                }
            },
            None => {}
        }
        state
    }
}

impl<K: ValueKind> Variable<K> {
    pub(super) const fn new(
        name: &'static str,
        help: &'static str,
        kind: K,
        default: K::Default,
    ) -> Variable<K> {
        Variable { declared: Declaration { name, help, kind }, default }
    }

    /// The value, or the default. Ends the job if the value is invalid.
    pub fn get(&self) -> K::Value {
        self.declared.get().unwrap_or_else(|| self.declared.kind.default_value(self.default))
    }

    /// The value, or the default.
    ///
    /// # Errors
    /// The text, if it is invalid.
    pub fn read(&self) -> Result<K::Value, InvalidValue> {
        let read = self.declared.read()?;
        Ok(read.unwrap_or_else(|| self.declared.kind.default_value(self.default)))
    }

    /// The name, with its prefix.
    pub const fn name(&self) -> &'static str {
        self.declared.name
    }

    /// What values look like.
    pub const fn kind(&self) -> &K {
        &self.declared.kind
    }
}

impl<K: ValueKind> OptionalVariable<K> {
    pub(super) const fn new(
        name: &'static str,
        help: &'static str,
        kind: K,
    ) -> OptionalVariable<K> {
        OptionalVariable(Declaration { name, help, kind })
    }

    /// The value, if it is set. Ends the job if it is invalid.
    pub fn get(&self) -> Option<K::Value> {
        self.0.get()
    }

    /// The value, if it is set.
    ///
    /// # Errors
    /// The text, if it is invalid.
    pub fn read(&self) -> Result<Option<K::Value>, InvalidValue> {
        self.0.read()
    }

    /// The name, with its prefix.
    pub const fn name(&self) -> &'static str {
        self.0.name
    }

    /// Whether it is set, even to an empty value.
    pub fn is_present(&self) -> bool {
        lookup(self.0.name).is_some()
    }
}

impl OptionalVariable<FreeText> {
    /// The file that the variable names for a rank, which stands for each `%`; `None` if it names
    /// none.
    pub fn file_of(&self, rank: u32) -> Option<CString> {
        let name = lookup_bytes(self.0.name).filter(|name| !name.is_empty())?;
        let parts: Vec<&[u8]> = name.split(|&b| b == b'%').collect();
        CString::new(parts.join(rank.to_string().as_bytes())).ok()
    }
}

/// The state of a variable in the environment of this process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VariableState {
    /// The value as an `ENV parameter:` line shows it; `None` if there is neither value nor
    /// default.
    pub shown: Option<String>,
    /// Whether the value comes from the environment; otherwise it is the default.
    pub is_set: bool,
    /// The accepted values, if this one is invalid.
    pub refused: Option<String>,
}

/// A variable of any kind, as the lists of all variables see it.
pub trait AnyVariable {
    /// The name, with its prefix.
    fn name(&self) -> &'static str;
    /// What it does, one or more sentences.
    fn help(&self) -> &'static str;
    /// The accepted values, in a few words for a table.
    fn values(&self) -> String;
    /// The least and the greatest value, of kinds that have them.
    fn bounds(&self) -> Option<(i64, i64)>;
    /// The default as a user would write it.
    fn default(&self) -> Option<String>;
    /// The state in the environment of this process. Never ends the job.
    fn state(&self) -> VariableState;
    /// Ends the job if the value is invalid.
    fn check(&self);
}

impl<K: ValueKind> AnyVariable for Variable<K> {
    fn name(&self) -> &'static str {
        self.declared.name
    }

    fn help(&self) -> &'static str {
        self.declared.help.trim_start()
    }

    fn values(&self) -> String {
        self.declared.kind.values()
    }

    fn bounds(&self) -> Option<(i64, i64)> {
        self.declared.kind.bounds()
    }

    fn default(&self) -> Option<String> {
        Some(self.declared.kind.default_text(self.default))
    }

    fn state(&self) -> VariableState {
        let kind = &self.declared.kind;
        let understood = kind.understood(&kind.default_value(self.default));
        let default = understood.unwrap_or_else(|| kind.default_text(self.default));
        self.declared.state(Some(default))
    }

    fn check(&self) {
        self.declared.get();
    }
}

impl<K: ValueKind> AnyVariable for OptionalVariable<K> {
    fn name(&self) -> &'static str {
        self.0.name
    }

    fn help(&self) -> &'static str {
        self.0.help.trim_start()
    }

    fn values(&self) -> String {
        self.0.kind.values()
    }

    fn bounds(&self) -> Option<(i64, i64)> {
        self.0.kind.bounds()
    }

    fn default(&self) -> Option<String> {
        None
    }

    fn state(&self) -> VariableState {
        self.0.state(None)
    }

    fn check(&self) {
        self.0.get();
    }
}

/// Declares variables, and `ALL`, which lists them.
macro_rules! variables {
    (@one [$($help:literal)+] $name:ident [$kind:ty] [$new:expr]) => {
        #[doc = concat!($($help, "\n"),+)]
        pub const $name: $crate::env::OptionalVariable<$kind> =
            $crate::env::OptionalVariable::new(
                concat!("GASNET_", stringify!($name)), concat!($($help),+), $new,
            );
    };
    (@one [$($help:literal)+] $name:ident [$kind:ty] [$new:expr] $default:expr) => {
        #[doc = concat!($($help, "\n"),+)]
        pub const $name: $crate::env::Variable<$kind> = {
            assert!($new.admits($default), "the default is out of range");
            $crate::env::Variable::new(
                concat!("GASNET_", stringify!($name)), concat!($($help),+), $new, $default,
            )
        };
    };
    ($(
        $(#[doc = $help:literal])+
        $name:ident: $kind:ident $(<$of:ident>)? $(($range:expr))? $(= $default:expr)?;
    )+) => {
        $(variables!(@one [$($help)+] $name [$kind $(<$of>)?] [$kind $(($range))?] $($default)?);)+

        /// The variables of this file.
        pub(super) const ALL: &[&dyn $crate::env::AnyVariable] = &[$(&$name),+];
    };
}
pub(super) use variables;
