//! Sets of GASNet-EX's constants as text: names between bars, a single 0 for none.
//!
//! Used by `capi::ex::format`, and for messages. Invariant: a bit without a name is written as a
//! number.

use core::fmt;

/// The names of bits; a bit without a name is written as a number.
type BitNames = &'static [(u32, &'static str)];

const TYPES: BitNames =
    &[(0, "I32"), (1, "U32"), (2, "I64"), (3, "U64"), (4, "FLT"), (5, "DBL"), (6, "USER")];

const OPERATIONS: BitNames = &[
    (0, "AND"),
    (1, "OR"),
    (2, "XOR"),
    (3, "ADD"),
    (4, "SUB"),
    (5, "MULT"),
    (6, "MIN"),
    (7, "MAX"),
    (8, "INC"),
    (9, "DEC"),
    (10, "SET"),
    (11, "CAS"),
    (15, "FAND"),
    (16, "FOR"),
    (17, "FXOR"),
    (18, "FADD"),
    (19, "FSUB"),
    (20, "FMULT"),
    (21, "FMIN"),
    (22, "FMAX"),
    (23, "FINC"),
    (24, "FDEC"),
    (25, "SWAP"),
    (26, "FCAS"),
    (27, "GET"),
    (30, "USER"),
    (31, "USER_NC"),
];

const TOKEN_FIELDS: BitNames =
    &[(0, "SRCRANK"), (1, "ENTRY"), (2, "IS_REQ"), (3, "IS_LONG"), (4, "EP")];

/// A set of types of data, `GEX_DT_*`.
#[derive(Clone, Copy, Debug)]
pub struct DataTypes(pub u32);

/// A set of operations, `GEX_OP_*`.
#[derive(Clone, Copy, Debug)]
pub struct Operations(pub u32);

/// A set of fields of a token, `GEX_TI_*`.
#[derive(Clone, Copy, Debug)]
pub struct TokenFields(pub u32);

fn write(f: &mut fmt::Formatter<'_>, prefix: &str, names: BitNames, set: u32) -> fmt::Result {
    if set == 0 {
        return f.write_str("0");
    }
    let mut bar = "";
    for bit in (0..32).filter(|bit| set >> bit & 1 != 0) {
        match names.iter().find(|(b, _)| *b == bit) {
            Some((_, name)) => write!(f, "{bar}{prefix}{name}")?,
            None => write!(f, "{bar}{:#x}", 1u32 << bit)?,
        }
        bar = "|";
    }
    Ok(())
}

impl fmt::Display for DataTypes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write(f, "GEX_DT_", TYPES, self.0)
    }
}

impl fmt::Display for Operations {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write(f, "GEX_OP_", OPERATIONS, self.0)
    }
}

impl fmt::Display for TokenFields {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write(f, "GEX_TI_", TOKEN_FIELDS, self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;

    #[test]
    fn sets_as_text() {
        assert_eq!(DataTypes(0).to_string(), "0");
        assert_eq!(Operations(1 << 3 | 1 << 12).to_string(), "GEX_OP_ADD|0x1000");
    }
}
