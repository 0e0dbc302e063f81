//! Strided shapes: sections of arrays of any number of dimensions.
//!
//! Made by `capi` from the arrays of a client, which are read once and not kept. Invariant:
//! levels of one element are dropped, and levels that are contiguous on both sides are
//! folded into one. So each level that is left at least doubles the number of bytes, and
//! there are fewer than 64.

use super::pieces::{VisPiece, VisRun, VisShape};
use smallvec::SmallVec;

/// Levels that need no memory of their own.
const USUAL: usize = 4;

/// A level of the loop nest over a section.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct StrideLevel {
    count: usize,
    /// Bytes from one element to the next on the remote side.
    remote: usize,
    /// The same on the local side.
    local: usize,
}

/// A transfer between two sections with the same counts.
#[derive(Clone, Debug)]
pub struct StridedTransfer {
    remote: *mut u8,
    local: *mut u8,
    /// Bytes of a run; 0 if the section is empty.
    n: usize,
    levels: SmallVec<[StrideLevel; USUAL]>,
    /// Bytes from the first to the end of the last on the remote side.
    span: usize,
}

impl StridedTransfer {
    /// A section with `n` contiguous bytes and `count[i]` elements in the dimension whose strides
    /// in bytes are `remote_strides[i]` and `local_strides[i]`. Any count of 0 makes it empty.
    /// `None` if its bytes, or the distance from the first to the last of the remote side, do not
    /// fit in 64 bits.
    ///
    /// # Safety
    /// The elements of the local side must be accessible until the operation is synced.
    pub unsafe fn new(
        remote: *mut u8,
        remote_strides: &[usize],
        local: *mut u8,
        local_strides: &[usize],
        n: usize,
        count: &[usize],
    ) -> Option<StridedTransfer> {
        StridedTransfer::upwards(remote, remote_strides, local, local_strides, n, count)
    }

    /// As `new`, for strides that may be negative: an element of a level lies that many bytes
    /// after the one before, in wrapping arithmetic.
    ///
    /// # Safety
    /// As of `new`.
    pub unsafe fn signed(
        remote: *mut u8,
        remote_strides: &[isize],
        local: *mut u8,
        local_strides: &[isize],
        n: usize,
        count: &[usize],
    ) -> Option<StridedTransfer> {
        StridedTransfer::turned(remote, remote_strides, local, local_strides, n, count)
    }

    /// What `new` returns.
    fn upwards(
        remote: *mut u8,
        remote_strides: &[usize],
        local: *mut u8,
        local_strides: &[usize],
        n: usize,
        count: &[usize],
    ) -> Option<StridedTransfer> {
        let strides = remote_strides.iter().zip(local_strides);
        let levels = strides.zip(count).map(|((&remote, &local), &count)| StrideLevel {
            count,
            remote,
            local,
        });
        StridedTransfer::fold(remote, local, n, levels)
    }

    /// What `signed` returns: a level that runs downwards on the remote side is walked from its
    /// other end, on both sides.
    fn turned(
        mut remote: *mut u8,
        remote_strides: &[isize],
        mut local: *mut u8,
        local_strides: &[isize],
        n: usize,
        count: &[usize],
    ) -> Option<StridedTransfer> {
        let levels = remote_strides.iter().zip(local_strides).zip(count);
        for ((&there, &here), &count) in levels.clone().filter(|((there, _), _)| **there < 0) {
            let last = count.saturating_sub(1) as isize;
            remote = remote.wrapping_offset(there.checked_mul(last)?);
            local = local.wrapping_offset(here.checked_mul(last)?);
        }
        let levels = levels.map(|((&there, &here), &count)| match there < 0 {
            true => StrideLevel {
                count,
                remote: there.unsigned_abs(),
                local: here.wrapping_neg() as usize,
            },
            false => StrideLevel { count, remote: there as usize, local: here as usize },
        });
        StridedTransfer::fold(remote, local, n, levels)
    }

    /// The section of these levels, the innermost first.
    #[inline(always)]
    fn fold(
        remote: *mut u8,
        local: *mut u8,
        n: usize,
        levels: impl Iterator<Item = StrideLevel> + Clone,
    ) -> Option<StridedTransfer> {
        let mut s = StridedTransfer { remote, local, n, levels: SmallVec::new(), span: n };
        if n == 0 || levels.clone().any(|level| level.count == 0) {
            (s.n, s.span) = (0, 0);
            return Some(s);
        }
        levels.clone().try_fold(n, |product, level| product.checked_mul(level.count))?;
        for outer in levels.filter(|level| level.count != 1) {
            let StrideLevel { count, remote, local } = outer;
            s.span = remote.checked_mul(count - 1)?.checked_add(s.span)?;
            let Some(inner) = s.levels.last_mut() else {
                if remote == s.n && local == s.n {
                    s.n *= count;
                } else {
                    s.levels.push(outer);
                }
                continue;
            };
            let folds = |stride: usize, inner_stride: usize| {
                inner_stride.checked_mul(inner.count) == Some(stride)
            };
            if folds(remote, inner.remote) && folds(local, inner.local) {
                inner.count *= count;
            } else {
                s.levels.push(outer);
            }
        }
        Some(s)
    }
}

impl VisShape for StridedTransfer {
    fn each(&self, mut f: impl FnMut(VisRun)) {
        let n = self.n;
        if n == 0 {
            return;
        }
        let Some((inner, outer)) = self.levels.split_first() else {
            return f(VisRun::new(self.remote, self.local, n));
        };
        let (mut remote, mut local) = (self.remote, self.local);
        let mut index: SmallVec<[usize; USUAL]> = SmallVec::from_elem(0, outer.len());
        loop {
            for i in 0..inner.count {
                f(VisRun::new(
                    remote.wrapping_add(i * inner.remote),
                    local.wrapping_add(i.wrapping_mul(inner.local)),
                    n,
                ));
            }
            // The next index of the outer levels: the innermost of them counts fastest.
            let mut at = 0;
            loop {
                let Some(level) = outer.get(at) else { return };
                index[at] += 1;
                if index[at] < level.count {
                    remote = remote.wrapping_add(level.remote);
                    local = local.wrapping_add(level.local);
                    break;
                }
                index[at] = 0;
                remote = remote.wrapping_sub((level.count - 1) * level.remote);
                local = local.wrapping_sub((level.count - 1).wrapping_mul(level.local));
                at += 1;
            }
        }
    }

    fn run_len(&self) -> Option<usize> {
        Some(self.n)
    }

    fn remote_pieces(&self) -> impl Iterator<Item = VisPiece> {
        core::iter::once((self.remote, self.span))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;
    use alloc::vec::Vec;

    fn section(remote: &[usize], local: &[usize], count: &[usize]) -> Option<StridedTransfer> {
        let at = core::ptr::without_provenance_mut;
        StridedTransfer::upwards(at(1000), remote, at(5000), local, count[0], &count[1..])
    }

    fn runs(s: &StridedTransfer) -> Vec<(usize, usize, usize)> {
        let mut all = Vec::new();
        s.each(|r| all.push((r.remote as usize, r.local().as_ptr() as usize, r.n)));
        all
    }

    /// Byte by byte, as the specification defines it.
    fn bytes(remote: &[usize], local: &[usize], count: &[usize]) -> Vec<(usize, usize)> {
        let mut all = vec![(1000, 5000)];
        for level in (0..count.len()).rev() {
            let stride = |s: &[usize]| if level == 0 { 1 } else { s[level - 1] };
            let (r, l) = (stride(remote), stride(local));
            all = all
                .iter()
                .flat_map(|&(a, b)| (0..count[level]).map(move |i| (a + i * r, b + i * l)))
                .collect();
        }
        all
    }

    #[test]
    fn every_byte_once_and_in_order() {
        let cases: &[(&[usize], &[usize], &[usize])] = &[
            (&[], &[], &[7]),
            (&[], &[], &[0]),
            (&[8], &[16], &[4, 3]),
            (&[8], &[8], &[8, 3]),
            (&[8, 24], &[8, 24], &[8, 3, 5]),
            (&[8, 24], &[8, 32], &[8, 3, 5]),
            (&[10, 30, 120], &[4, 12, 60], &[4, 3, 4, 2]),
            (&[10, 30, 120], &[4, 12, 60], &[4, 3, 0, 2]),
            (&[10, 99, 30, 120], &[4, 77, 12, 60], &[4, 3, 1, 4, 2]),
            (&[10, 30, 70, 150, 310, 630], &[2, 5, 10, 20, 40, 80], &[1, 2, 2, 2, 2, 2, 2]),
            (&[2; 20], &[3; 20], &[2, 1, 1, 1, 1, 1, 1, 1, 1, 1, 2, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1]),
        ];
        for &(remote, local, count) in cases {
            let s = section(remote, local, count).unwrap();
            let walked: Vec<_> = runs(&s)
                .into_iter()
                .flat_map(|(r, l, n)| (0..n).map(move |i| (r + i, l + i)))
                .collect();
            let want = bytes(remote, local, count);
            assert_eq!(walked, want, "{count:?}");
            let end = want.iter().map(|b| b.0 + 1).max().unwrap_or(1000);
            assert_eq!(
                s.remote_pieces().collect::<Vec<_>>(),
                [(core::ptr::without_provenance_mut(1000), end - 1000)],
                "{count:?}"
            );
        }
    }

    #[test]
    fn levels_may_run_downwards() {
        let at = core::ptr::without_provenance_mut;
        let cases: &[(&[isize], &[isize], &[usize])] = &[
            (&[-8], &[8], &[4, 3]),
            (&[8], &[-8], &[4, 3]),
            (&[-8, 100], &[8, -40], &[4, 3, 2]),
            (&[-4, -12], &[-4, -12], &[4, 3, 2]),
            (&[8], &[0], &[4, 3]),
        ];
        for &(remote, local, count) in cases {
            let (n, counts) = (count[0], &count[1..]);
            let s = StridedTransfer::turned(at(1000), remote, at(5000), local, n, counts).unwrap();
            let mut want = vec![(1000isize, 5000isize)];
            for level in 1..count.len() {
                let (r, l) = (remote[level - 1], local[level - 1]);
                let step = |&(a, b): &(isize, isize)| {
                    (0..count[level] as isize).map(move |i| (a + i * r, b + i * l))
                };
                want = want.iter().flat_map(step).collect();
            }
            let byte = |(a, b): (isize, isize)| {
                (0..count[0]).map(move |i| (a as usize + i, b as usize + i))
            };
            let mut want: Vec<_> = want.into_iter().flat_map(byte).collect();
            let mut walked: Vec<_> = runs(&s)
                .into_iter()
                .flat_map(|(r, l, n)| (0..n).map(move |i| (r + i, l + i)))
                .collect();
            want.sort_unstable();
            walked.sort_unstable();
            assert_eq!(walked, want, "{remote:?} {local:?} {count:?}");
            let (low, span) = s.remote_pieces().next().unwrap();
            assert_eq!(low.addr(), want[0].0);
            assert_eq!(low.addr() + span, want[want.len() - 1].0 + 1);
        }
    }

    #[test]
    fn contiguous_levels_are_one() {
        assert_eq!(runs(&section(&[8, 24], &[8, 24], &[8, 3, 5]).unwrap()), [(1000, 5000, 120)]);
        assert_eq!(section(&[10, 30], &[20, 60], &[4, 3, 5]).unwrap().levels.len(), 1);
        assert_eq!(section(&[10, 31], &[20, 60], &[4, 3, 5]).unwrap().levels.len(), 2);
    }

    #[test]
    fn what_cannot_be_counted_is_refused() {
        assert!(section(&[1 << 40], &[1 << 40], &[1 << 40, 1 << 40]).is_none());
        assert!(section(&[1 << 63, 1 << 63], &[1, 1], &[1, 2, 2]).is_none());
        assert!(section(&[1 << 63], &[1], &[0, 9]).is_some());
    }
}
