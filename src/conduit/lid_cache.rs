//! Long ids: brings the header and the data of a two-message Long together, whichever comes first.
//!
//! Called for both halves by the takers of AM_EQ (requests) and SAFE_EQ (replies). A half that comes first waits here;
//! the other one takes it away and runs the handler. The id of a request is the offset of its chunk in the sender's
//! ReqSB, that of a reply the offset of the chunk it answers, with [`super::match_bits::REPLY_LID`] set: a chunk is in
//! use until both halves have met, so with the sender's rank an id is unique among those under way.

use super::sync::ParLock;
use alloc::boxed::Box;
use alloc::vec::Vec;

/// One half of a Long that waits for the other; `H` is what its header leaves behind.
enum Half<H> {
    /// The data has arrived: where, and how many bytes.
    Data(*mut u8, usize),
    /// The header has arrived.
    Header(H),
}

struct Entry<H> {
    source: u32,
    id: u32,
    half: Half<H>,
}

// SAFETY: the pointer is an address in our segment; the entry only carries it to whoever completes the Long.
unsafe impl<H: Send> Send for Entry<H> {}

/// The halves that wait.
pub(super) struct LidCache<H> {
    buckets: Box<[ParLock<Vec<Entry<H>>>]>,
}

const BUCKETS: usize = 64;

impl<H> LidCache<H> {
    pub(super) fn new(par: bool) -> Self {
        LidCache { buckets: (0..BUCKETS).map(|_| ParLock::new(par, Vec::new())).collect() }
    }

    /// The header of a Long has arrived: its data, if that is here already; else what `header` makes waits for it.
    pub(super) fn header(
        &self,
        source: u32,
        id: u32,
        header: impl FnOnce() -> H,
    ) -> Option<(*mut u8, usize)> {
        match self.meet(source, id, || Half::Header(header()))? {
            Half::Data(p, n) => Some((p, n)),
            Half::Header(_) => twice(source, id),
        }
    }

    /// The data of a Long has arrived: what its header left, if that is here already; else the data waits for it.
    pub(super) fn data(&self, source: u32, id: u32, p: *mut u8, n: usize) -> Option<H> {
        match self.meet(source, id, || Half::Data(p, n))? {
            Half::Header(h) => Some(h),
            Half::Data(..) => twice(source, id),
        }
    }

    fn meet(&self, source: u32, id: u32, half: impl FnOnce() -> Half<H>) -> Option<Half<H>> {
        let place = (id as usize / super::CHUNK).wrapping_add(source as usize * 7) % BUCKETS;
        let mut bucket = self.buckets[place].lock();
        match bucket.iter().position(|e| e.source == source && e.id == id) {
            Some(i) => Some(bucket.swap_remove(i).half),
            None => {
                bucket.push(Entry { source, id, half: half() });
                None
            }
        }
    }
}

#[cold]
fn twice(source: u32, id: u32) -> ! {
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
        let p = 64 as *mut u8;
        assert_eq!(cache.header(1, 2048, || 'a'), None);
        assert_eq!(cache.data(2, 2048, p, 3), None);
        assert_eq!(cache.data(1, 4096, p, 4), None);
        assert_eq!(cache.data(1, 2048, p, 5), Some('a'));
        assert_eq!(cache.header(2, 2048, || 'b'), Some((p, 3)));
        assert_eq!(cache.header(1, 4096, || 'c'), Some((p, 4)));
        assert_eq!(cache.header(1, 2048, || 'd'), None);
    }
}
