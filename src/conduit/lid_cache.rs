//! Long ids: a long id joins the header and the data of a two-message Long, in either order.
//!
//! Called for both halves where an event of AM_EQ (requests) or SAFE_EQ (replies) is taken. The
//! half that arrives first waits here; the arrival of the other one runs the handler. The id of a
//! request is the number of its chunk in the sender's ReqSB. That of a reply is the number of the
//! chunk that it answers, with [`super::match_bits::REPLY_LID`] set. Invariant: a chunk is in use
//! until both halves have met, so an id and its sender's rank are unique among the Longs under
//! way.

use super::par_lists::ParLists;
use crate::rank::JobRank;

/// One half of a Long that waits for the other; `H` is what its header leaves behind, `D` its
/// data.
enum LongHalf<H, D> {
    /// The data has arrived.
    Data(D),
    /// The header has arrived.
    Header(H),
}

struct LidEntry<H, D> {
    source: JobRank,
    id: u32,
    half: LongHalf<H, D>,
}

/// The halves that wait.
pub(super) struct LidCache<H, D> {
    entries: ParLists<LidEntry<H, D>>,
}

impl<H, D> LidCache<H, D> {
    pub(super) fn new(par: bool) -> Self {
        LidCache { entries: ParLists::new(par) }
    }

    /// The header of a Long has arrived: its data, if that has arrived before; otherwise what
    /// `header` makes waits for it.
    pub(super) fn header(
        &self,
        source: JobRank,
        id: u32,
        header: impl FnOnce() -> H,
    ) -> Option<D> {
        match self.meet(source, id, || LongHalf::Header(header()))? {
            LongHalf::Data(data) => Some(data),
            LongHalf::Header(_) => twice(source, id),
        }
    }

    /// The data of a Long has arrived: what its header left, if that has arrived before; otherwise
    /// the data waits for it.
    pub(super) fn data(&self, source: JobRank, id: u32, data: D) -> Option<H> {
        match self.meet(source, id, || LongHalf::Data(data))? {
            LongHalf::Header(h) => Some(h),
            LongHalf::Data(_) => twice(source, id),
        }
    }

    fn meet(
        &self,
        source: JobRank,
        id: u32,
        half: impl FnOnce() -> LongHalf<H, D>,
    ) -> Option<LongHalf<H, D>> {
        let number = (id as usize).wrapping_add(source.index() * 7);
        let mut entries = self.entries.list(number).lock();
        match entries.iter().position(|e| e.source == source && e.id == id) {
            Some(i) => Some(entries.swap_remove(i).half),
            None => {
                entries.push(LidEntry { source, id, half: half() });
                None
            }
        }
    }

    /// The sender of a header that waits for its data, one of those that `of` selects.
    pub(super) fn waiting_header(&self, of: impl Fn(JobRank) -> bool) -> Option<JobRank> {
        let is_header =
            |e: &&LidEntry<H, D>| matches!(e.half, LongHalf::Header(_)) && of(e.source);
        self.entries.iter().find_map(|list| list.lock().iter().find(is_header).map(|e| e.source))
    }
}

fn twice(source: JobRank, id: u32) -> ! {
    crate::report::fatal(
        format_args!("two messages of process {source} carry the same long id {id:#x}"),
        format_args!("Make sure that all processes run the same version of this library."),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn either_half_may_be_first() {
        let cache = LidCache::new(false);
        assert_eq!(cache.header(JobRank(1), 2048, || 'a'), None);
        assert_eq!(cache.data(JobRank(2), 2048, 3), None);
        assert_eq!(cache.data(JobRank(1), 4096, 4), None);
        assert_eq!(cache.data(JobRank(1), 2048, 5), Some('a'));
        assert_eq!(cache.header(JobRank(2), 2048, || 'b'), Some(3));
        assert_eq!(cache.header(JobRank(1), 4096, || 'c'), Some(4));
        assert_eq!(cache.header(JobRank(1), 2048, || 'd'), None);
        assert_eq!(cache.waiting_header(|_| true), Some(JobRank(1)));
        assert_eq!(cache.waiting_header(|rank| rank != JobRank(1)), None);
        assert_eq!(cache.data(JobRank(1), 2048, 6), Some('d'));
        assert_eq!(cache.data(JobRank(2), 2049, 7), None);
        assert_eq!(cache.waiting_header(|_| true), None);
    }
}
