//! Words of an arena that only its owner writes, as values. A value is written into a cell, kept
//! in private memory, and compared with the cell later. Versions, links and heads are not among
//! them: `tables::check` compares those itself.
//!
//! Used by the calls that write cells, and by the check of the arena. Invariant: a value comes
//! from the arguments of a call or from private memory, never from a cell, which any process can
//! write.

use core::sync::atomic::Ordering;

use super::{AcEntry, EqShape, Ident, IovPiece, MdCell, MeCell};

/// A word that holds another value than its owner gave it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ChangedWord {
    pub(crate) word: &'static str,
    pub(crate) expected: u64,
    pub(crate) found: u64,
}

macro_rules! owner_words {
    ($(#[$doc:meta])* $name:ident, $cell:ty { $($word:ident: $type:ty,)+ }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default)]
        pub(crate) struct $name {
            $(pub(crate) $word: $type,)+
        }

        impl $name {
            /// Writes the words into their cell.
            pub(crate) fn store(&self, cell: &$cell) {
                $(cell.$word.store(self.$word, Ordering::Relaxed);)+
            }

            /// The first word of the cell that differs.
            pub(crate) fn changed(&self, cell: &$cell) -> Option<ChangedWord> {
                $({
                    let found = cell.$word.load(Ordering::Relaxed);
                    if found != self.$word {
                        return Some(ChangedWord {
                            word: stringify!($word),
                            expected: self.$word.into(),
                            found: found.into(),
                        });
                    }
                })+
                None
            }
        }
    };
}

owner_words! {
    /// Of [`Ident`], all but `magic`.
    IdentWords, Ident {
        secret_at: u64,
        secret: u64,
        os_pid: u32,
        max_mes: u32,
        max_mds: u32,
        max_eqs: u32,
        max_ac_index: u32,
        max_pt_index: u32,
        bell: u64,
    }
}

owner_words! {
    /// Of [`AcEntry`], all but its version.
    AcWords, AcEntry {
        process: u64,
        ids: u64,
        pt_index: u32,
        valid: u32,
    }
}

owner_words! {
    /// Of [`MeCell`], all but its links.
    MeWords, MeCell {
        match_bits: u64,
        ignore_bits: u64,
        match_id: u64,
    }
}

owner_words! {
    /// Of [`MdCell`], all but its state.
    MdWords, MdCell {
        traits: u64,
        length: u64,
        max_size: u64,
        start: u64,
        address: u64,
        iov: u64,
        eq_key: u64,
        generation: u32,
        seal: u32,
    }
}

owner_words! {
    /// Of [`IovPiece`].
    PieceWords, IovPiece {
        kind: u32,
        seal: u32,
        start: u64,
        address: u64,
        length: u64,
    }
}

owner_words! {
    /// Of [`EqShape`].
    ShapeWords, EqShape {
        ring: u64,
        size: u64,
        key: u64,
    }
}
