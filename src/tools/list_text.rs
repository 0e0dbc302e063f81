//! Lists of memory, and strides, as text: the `gasnett_format_*` functions of vector, indexed
//! and strided operations. Called by `capi::vis`. Invariant: no text is longer than [`room`].

use crate::client_memory::{Dst, Src};
use core::fmt::{self, Write};

/// Bytes of the text of a list of `count` elements, with the text around it and the final NUL.
pub fn room(count: usize) -> usize {
    256 + count.saturating_mul(48)
}

/// Sizes and addresses of a list; zeros for an empty one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PieceStats {
    /// Bytes of the shortest element.
    pub shortest: usize,
    /// Bytes of the longest element.
    pub longest: usize,
    /// Bytes of all elements.
    pub total: usize,
    /// Lowest address of an element.
    pub lowest: usize,
    /// Highest address of the last byte of an element, or of an element without bytes.
    pub highest: usize,
}

/// Text in a caller's buffer, NUL-terminated after each write; what exceeds it is cut off.
#[derive(Debug)]
pub struct TextBuffer<'a>(Dst<'a>);

impl Write for TextBuffer<'_> {
    fn write_str(&mut self, s: &str) -> fmt::Result {
        let n = s.len().min(self.0.len() - 1);
        let (text, rest) = self.0.split_at(n);
        text.copy_from(Src::from(&s.as_bytes()[..n]));
        rest.part(0, 1).fill(0);
        self.0 = rest;
        Ok(())
    }
}

impl<'a> TextBuffer<'a> {
    /// An empty text in this memory.
    ///
    /// # Panics
    /// If it has no byte.
    pub fn new(memory: Dst<'a>) -> TextBuffer<'a> {
        let mut buffer = TextBuffer(memory);
        let _ = buffer.write_str("");
        buffer
    }

    /// Writes a list of addresses and lengths; returns its sizes.
    pub fn list(&mut self, pieces: impl Iterator<Item = (*mut u8, usize)> + Clone) -> PieceStats {
        let mut s = PieceStats::default();
        let mut count = 0usize;
        for (addr, n) in pieces.clone() {
            let (first, last) =
                (addr as usize, (addr as usize).saturating_add(n.saturating_sub(1)));
            let old = if count == 0 { PieceStats { shortest: n, lowest: first, ..s } } else { s };
            s = PieceStats {
                shortest: old.shortest.min(n),
                longest: old.longest.max(n),
                total: old.total.saturating_add(n),
                lowest: old.lowest.min(first),
                highest: old.highest.max(last),
            };
            count += 1;
        }
        let _ = write!(
            self,
            "{count} pieces of {} to {} bytes, {} in all, from {:#x} to {:#x}: {{",
            s.shortest, s.longest, s.total, s.lowest, s.highest
        );
        for (i, (addr, n)) in pieces.enumerate() {
            let _ = write!(self, "{}{addr:p}+{n}", if i == 0 { "" } else { ", " });
        }
        let _ = self.write_str("}");
        s
    }

    /// Writes the lists of a put or get; returns its bytes.
    pub fn both(
        &mut self,
        node: u32,
        dst: impl Iterator<Item = (*mut u8, usize)> + Clone,
        src: impl Iterator<Item = (*mut u8, usize)> + Clone,
    ) -> usize {
        let _ = write!(self, "rank {node}, destination: ");
        let total = self.list(dst).total;
        let _ = self.write_str(", source: ");
        self.list(src);
        total
    }

    /// Writes a list of numbers.
    pub fn numbers(&mut self, list: &[impl fmt::Display]) {
        let _ = self.write_str("{");
        for (i, n) in list.iter().enumerate() {
            let _ = write!(self, "{}{n}", if i == 0 { "" } else { ", " });
        }
        let _ = self.write_str("}");
    }

    /// Writes the sections of a put or get, each with its address and strides; returns its bytes.
    pub fn section<T: fmt::Display>(
        &mut self,
        node: u32,
        dst: (usize, &[T]),
        src: (usize, &[T]),
        count: &[usize],
    ) -> usize {
        let total = if count.contains(&0) {
            0
        } else {
            count.iter().fold(1usize, |n, &c| n.saturating_mul(c))
        };
        let _ = write!(self, "rank {node}, {} stride levels, {total} bytes, counts ", dst.1.len());
        self.numbers(count);
        for (side, (addr, strides)) in [("destination", dst), ("source", src)] {
            let _ = write!(self, ", {side} {addr:#x} with strides ");
            self.numbers(strides);
        }
        total
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ffi::CStr;

    fn text(n: usize, f: impl FnOnce(&mut TextBuffer<'_>)) -> String {
        let mut bytes = vec![b'x'; n + 1];
        f(&mut TextBuffer::new(Dst::from(&mut bytes[..n])));
        assert_eq!(bytes[n], b'x', "not a byte more");
        CStr::from_bytes_until_nul(&bytes[..n]).unwrap().to_str().unwrap().to_owned()
    }

    #[test]
    fn a_list_as_text() {
        let list = [(0x2000usize as *mut u8, 16usize), (0x1000 as *mut u8, 4)];
        let mut stats = PieceStats::default();
        let t = text(room(2), |b| stats = b.list(list.iter().copied()));
        assert_eq!(
            t,
            "2 pieces of 4 to 16 bytes, 20 in all, from 0x1000 to 0x200f: {0x2000+16, 0x1000+4}"
        );
        assert_eq!(
            stats,
            PieceStats { shortest: 4, longest: 16, total: 20, lowest: 0x1000, highest: 0x200f }
        );
        assert_eq!(
            text(room(0), |b| stats = b.list([].into_iter())),
            "0 pieces of 0 to 0 bytes, 0 in all, from 0x0 to 0x0: {}"
        );
        assert_eq!(stats, PieceStats::default());
    }

    #[test]
    fn the_longest_texts_have_room() {
        let big = usize::MAX;
        let list = [(big as *mut u8, big); 10];
        let t = text(2 * room(10), |b| {
            assert_eq!(b.both(u32::MAX, list.iter().copied(), list.iter().copied()), big)
        });
        assert!(t.ends_with('}') && t.len() < 2 * room(10) - 1);
        let (strides, count) = (vec![big; 20], vec![big; 21]);
        let t = text(3 * room(21), |b| {
            assert_eq!(b.section(u32::MAX, (big, &strides), (big, &strides), &count), big);
        });
        assert!(t.ends_with('}') && t.len() < 3 * room(21) - 1);
    }

    #[test]
    fn what_does_not_fit_is_cut() {
        assert_eq!(text(6, |b| b.numbers(&[1, 2, 3])), "{1, 2");
    }
}
