//! The parts of a vector transfer: runs, pieces and rows of pieces.
//!
//! A shape (vector, indexed, strided) is walked as [`VisRun`]s, ranges that are contiguous on
//! both sides. Invariants: a run is never empty; the runs of a shape cover each of its bytes
//! once; only shapes make runs.

use crate::client_memory::{Dst, Src};
use crate::runtime::checks::check_local;
use alloc::vec::Vec;

/// Bytes of the remote side and as many of the local side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VisRun {
    /// First byte of the remote side, an address of its rank.
    pub(super) remote: *mut u8,
    local: *mut u8,
    /// Bytes, never 0.
    pub(super) n: usize,
}

impl VisRun {
    /// Part of a shape.
    #[inline(always)]
    pub(super) fn new(remote: *mut u8, local: *mut u8, n: usize) -> VisRun {
        VisRun { remote, local, n }
    }

    /// The local side.
    #[inline(always)]
    pub(super) fn local(&self) -> Dst<'static> {
        // SAFETY: part of the local side of a shape, whose constructor demands that it stays
        // accessible until the operation is synced.
        unsafe { Dst::new(self.local, self.n) }
    }

    /// Ends the job if the local side is null.
    pub(super) fn check_local(&self, function: &str) {
        check_local(function, ("a local address", self.local), self.n);
    }
}

/// The remote and the local side of a transfer.
pub trait VisShape {
    /// Calls `f` with each run.
    fn each(&self, f: impl FnMut(VisRun));

    /// Bytes of each run of [`VisShape::each_pair`], where all have as many by the kind of the
    /// shape.
    fn run_len(&self) -> Option<usize> {
        None
    }

    /// Whether [`VisShape::each_pair`] may be called.
    fn has_pairs(&self) -> bool {
        self.run_len().is_some()
    }

    /// As [`VisShape::each`], of runs of which some may adjoin on both sides: one for each piece
    /// of both sides that has bytes.
    fn each_pair(&self, f: impl FnMut(VisRun)) {
        self.each(f);
    }

    /// Pieces that hold all bytes of the remote side.
    fn remote_pieces(&self) -> impl Iterator<Item = VisPiece>;
}

/// One piece of one side: first byte and length.
pub type VisPiece = (*mut u8, usize);

/// Calls `f` with the runs of two lists of pieces of the same total; neighbours are one run.
pub(super) fn each_run(
    remote: impl Iterator<Item = VisPiece>,
    local: impl Iterator<Item = VisPiece>,
    mut f: impl FnMut(VisRun),
) {
    let mut remotes = remote.filter(|p| p.1 != 0);
    let mut locals = local.filter(|p| p.1 != 0);
    let (Some(mut r), Some(mut l)) = (remotes.next(), locals.next()) else { return };
    let mut run = VisRun::new(r.0, l.0, 0);
    loop {
        let n = r.1.min(l.1);
        if run.remote.wrapping_add(run.n) == r.0 && run.local.wrapping_add(run.n) == l.0 {
            run.n += n;
        } else {
            f(run);
            run = VisRun::new(r.0, l.0, n);
        }
        r = (r.0.wrapping_add(n), r.1 - n);
        l = (l.0.wrapping_add(n), l.1 - n);
        if r.1 == 0 {
            let Some(next) = remotes.next() else { break };
            r = next;
        }
        if l.1 == 0 {
            let Some(next) = locals.next() else { break };
            l = next;
        }
    }
    f(run);
}

/// `count` pieces of `n` bytes each, `stride` bytes from one to the next (modulo 2^64).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PieceRow {
    /// Address of the first.
    at: u64,
    /// Distance.
    stride: u64,
    /// Bytes of a piece.
    n: u32,
    /// Pieces.
    count: u32,
}

/// A row as it is kept and as it travels: address, distance, bytes and count.
type RowWords = [u64; 3];

/// Bytes of a row in a message.
pub(super) const ROW: usize = size_of::<RowWords>();

impl PieceRow {
    fn of([at, stride, last]: RowWords) -> PieceRow {
        PieceRow { at, stride, n: last as u32, count: (last >> 32) as u32 }
    }

    fn words(self) -> RowWords {
        [self.at, self.stride, u64::from(self.n) | u64::from(self.count) << 32]
    }

    /// From the [`ROW`] bytes of a message; `None` if the row has no bytes. No rank sends such a
    /// row, and one that was overwritten may have billions of pieces.
    pub(super) fn read(row: Src<'_>) -> Option<PieceRow> {
        let mut bytes = [0; ROW];
        Dst::from(&mut bytes[..]).copy_from(row);
        let words = bytes.as_chunks().0;
        let row = PieceRow::of([0, 1, 2].map(|i: usize| u64::from_ne_bytes(words[i])));
        (row.n != 0 && row.count != 0).then_some(row)
    }

    /// Its pieces.
    pub(super) fn pieces(self) -> impl Iterator<Item = VisPiece> {
        (0..u64::from(self.count)).map(move |i| {
            let at = self.at.wrapping_add(self.stride.wrapping_mul(i));
            (core::ptr::with_exposed_provenance_mut(at as usize), self.n as usize)
        })
    }
}

/// Pieces of one side, in order, in few words. Pieces of one length at equal distances share a
/// row, and so do any two of one length.
#[derive(Debug, Default)]
pub(super) struct PieceRows(Vec<RowWords>);

impl PieceRows {
    /// Bytes of the rows.
    pub(super) fn bytes(&self) -> usize {
        self.0.len() * ROW
    }

    /// The rows as they travel.
    pub(super) fn as_src(&self) -> Src<'_> {
        Src::from(self.0.as_flattened())
    }

    /// No more rows.
    pub(super) fn clear(&mut self) {
        self.0.clear();
    }

    /// The pieces, in order.
    fn pieces(&self) -> impl Iterator<Item = VisPiece> {
        self.0.iter().flat_map(|&row| PieceRow::of(row).pieces())
    }

    /// Adds a piece of less than 4 GiB.
    pub(super) fn push(&mut self, at: *mut u8, n: usize) {
        let (at, n) = (at.expose_provenance() as u64, n as u32);
        if let Some(last) = self.0.last_mut() {
            let mut row = PieceRow::of(*last);
            let step = row.stride.wrapping_mul(u64::from(row.count));
            if row.n == n && (row.count == 1 || at == row.at.wrapping_add(step)) {
                if row.count == 1 {
                    row.stride = at.wrapping_sub(row.at);
                }
                row.count += 1;
                *last = row.words();
                return;
            }
        }
        self.0.push(PieceRow { at, stride: 0, n, count: 1 }.words());
    }

    /// Adds a piece as [`PieceRows::push`]; makes it part of the last row's only piece if it
    /// follows that.
    pub(super) fn extend(&mut self, at: *mut u8, n: usize) {
        let next = at.expose_provenance() as u64;
        if let Some(last) = self.0.last_mut() {
            let mut row = PieceRow::of(*last);
            if row.count == 1 && row.at + u64::from(row.n) == next {
                row.n += n as u32;
                *last = row.words();
                return;
            }
        }
        self.push(at, n);
    }
}

/// The local sides of runs, as rows.
#[derive(Debug, Default)]
pub(super) struct LocalRows(PieceRows);

impl LocalRows {
    /// Adds that of a run.
    pub(super) fn push(&mut self, run: VisRun) {
        self.0.push(run.local, run.n);
    }

    /// The local sides, in order.
    pub(super) fn sides(&self) -> impl Iterator<Item = Dst<'static>> {
        self.0.pieces().map(|(at, n)| VisRun::new(core::ptr::null_mut(), at, n).local())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(a: usize) -> *mut u8 {
        core::ptr::without_provenance_mut(a)
    }

    fn runs(remote: &[(usize, usize)], local: &[(usize, usize)]) -> Vec<(usize, usize, usize)> {
        let mut all = Vec::new();
        let side = |s: &[(usize, usize)]| {
            s.iter().map(|p| (at(p.0), p.1)).collect::<Vec<_>>().into_iter()
        };
        each_run(side(remote), side(local), |r| {
            all.push((r.remote as usize, r.local as usize, r.n));
        });
        all
    }

    #[test]
    fn runs_end_where_either_side_ends() {
        assert_eq!(
            runs(&[(100, 10), (200, 6)], &[(1000, 4), (2000, 12)]),
            [(100, 1000, 4), (104, 2000, 6), (200, 2006, 6)]
        );
    }

    #[test]
    fn neighbours_on_both_sides_are_one_run() {
        assert_eq!(runs(&[(100, 10), (110, 6)], &[(50, 7), (57, 9)]), [(100, 50, 16)]);
        assert_eq!(
            runs(&[(100, 10), (110, 6)], &[(50, 10), (61, 6)]),
            [(100, 50, 10), (110, 61, 6)]
        );
    }

    #[test]
    fn empty_pieces_are_nowhere() {
        assert_eq!(
            runs(&[(0, 0), (100, 4), (0, 0)], &[(7, 2), (9, 0), (9, 2), (3, 0)]),
            [(100, 7, 4)]
        );
        assert_eq!(runs(&[(5, 0)], &[]), []);
        assert_eq!(runs(&[], &[]), []);
    }

    #[test]
    fn rows_are_what_was_pushed() {
        let lists: [&[(usize, usize)]; 5] = [
            &[(100, 8), (200, 8), (300, 8), (400, 8)],
            &[(400, 8), (300, 8), (200, 8), (201, 4), (900, 4), (13, 4), (12, 1)],
            &[(1, 1)],
            &[],
            &[(10, 2), (20, 3), (30, 2), (40, 3), (10, 3)],
        ];
        for list in lists {
            let mut rows = PieceRows::default();
            list.iter().for_each(|p| rows.push(at(p.0), p.1));
            let back: Vec<_> = rows.pieces().map(|p| (p.0 as usize, p.1)).collect();
            assert_eq!(back, list);
            let src = rows.as_src();
            let read = (0..rows.0.len()).map(|i| PieceRow::read(src.part(i * ROW, ROW)));
            assert!(read.eq(rows.0.iter().map(|&row| Some(PieceRow::of(row)))));
        }
        let mut rows = PieceRows::default();
        (0..1000).for_each(|i| rows.push(at(8 * i), 4));
        assert_eq!(rows.0, [PieceRow { at: 0, stride: 8, n: 4, count: 1000 }.words()]);
    }

    #[test]
    fn rows_without_bytes_are_no_rows() {
        for (n, count) in [(0, u32::MAX), (0, 0), (8, 0)] {
            let words = PieceRow { at: 64, stride: 0, n, count }.words();
            assert_eq!(PieceRow::read(Src::from([words].as_flattened())), None, "{n}, {count}");
        }
    }
}
