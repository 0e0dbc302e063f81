//! Pieces: what the three kinds of shapes have in common. A [`VisShape`] is walked as [`VisRun`]s, ranges of bytes that are
//! contiguous on both sides; [`PieceRows`] are pieces of one side in few words.
//!
//! Invariant: a run is never empty, and the runs of a shape cover each of its bytes once.

use alloc::vec::Vec;

/// `n` bytes of the remote side and of the local side that belong together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VisRun {
    /// First byte there, as the owner addresses it.
    pub remote: *mut u8,
    /// First byte here.
    pub local: *mut u8,
    /// Bytes, never 0.
    pub n: usize,
}

/// The remote and the local side of a transfer.
pub trait VisShape {
    /// Calls `f` with each run.
    fn each(&self, f: impl FnMut(VisRun));
}

/// One piece of one side: first byte and length.
pub type VisPiece = (*mut u8, usize);

/// Calls `f` with the runs of two lists of pieces of the same total; neighbours are put together.
#[inline]
pub fn zip(
    remote: impl Iterator<Item = VisPiece>,
    local: impl Iterator<Item = VisPiece>,
    mut f: impl FnMut(VisRun),
) {
    let mut remotes = remote.filter(|p| p.1 != 0);
    let mut locals = local.filter(|p| p.1 != 0);
    let (Some(mut r), Some(mut l)) = (remotes.next(), locals.next()) else { return };
    let mut run = VisRun { remote: r.0, local: l.0, n: 0 };
    loop {
        let n = r.1.min(l.1);
        if run.remote.wrapping_add(run.n) == r.0 && run.local.wrapping_add(run.n) == l.0 {
            run.n += n;
        } else {
            f(run);
            run = VisRun { remote: r.0, local: l.0, n };
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
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PieceRow {
    /// Address of the first.
    pub at: u64,
    /// Distance.
    pub stride: u64,
    /// Bytes of a piece.
    pub n: u32,
    /// Pieces.
    pub count: u32,
}

impl PieceRow {
    /// Its pieces.
    pub fn pieces(self) -> impl Iterator<Item = VisPiece> {
        (0..u64::from(self.count)).map(move |i| {
            let at = self.at.wrapping_add(self.stride.wrapping_mul(i));
            (core::ptr::with_exposed_provenance_mut(at as usize), self.n as usize)
        })
    }
}

/// Pieces of one side, in order; those of one length that are at equal distances, and any two of one length, share a
/// row.
#[derive(Debug, Default)]
pub struct PieceRows(pub Vec<PieceRow>);

impl PieceRows {
    /// Bytes of the rows.
    pub fn bytes(&self) -> usize {
        self.0.len() * size_of::<PieceRow>()
    }

    /// Adds a piece of less than 4 GiB.
    #[inline]
    pub fn push(&mut self, at: *mut u8, n: usize) {
        let (at, n) = (at.expose_provenance() as u64, n as u32);
        if let Some(last) = self.0.last_mut().filter(|last| last.n == n) {
            if last.count == 1 {
                last.stride = at.wrapping_sub(last.at);
                last.count = 2;
                return;
            }
            if at == last.at.wrapping_add(last.stride.wrapping_mul(u64::from(last.count))) {
                last.count += 1;
                return;
            }
        }
        self.0.push(PieceRow { at, stride: 0, n, count: 1 });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;

    fn at(a: usize) -> *mut u8 {
        core::ptr::without_provenance_mut(a)
    }

    fn runs(remote: &[(usize, usize)], local: &[(usize, usize)]) -> Vec<(usize, usize, usize)> {
        let mut all = Vec::new();
        let side = |s: &[(usize, usize)]| {
            s.iter().map(|p| (at(p.0), p.1)).collect::<Vec<_>>().into_iter()
        };
        zip(side(remote), side(local), |r| all.push((r.remote as usize, r.local as usize, r.n)));
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
            let back: Vec<_> =
                rows.0.iter().flat_map(|r| r.pieces()).map(|p| (p.0 as usize, p.1)).collect();
            assert_eq!(back, list);
        }
        let mut rows = PieceRows::default();
        (0..1000).for_each(|i| rows.push(at(8 * i), 4));
        assert_eq!(rows.0, vec![PieceRow { at: 0, stride: 8, n: 4, count: 1000 }]);
    }
}
