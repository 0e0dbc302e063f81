//! The numbers of records that can be used again: of match entries, descriptors or queues.
//!
//! Used under the owner lock. A record that was freed last is in a cache, so it is used next. But
//! a handle has 16 bits for its generation: after 65,536 uses of one record, an old handle would
//! name it again. Invariant: a record is used [`IN_A_ROW`] times in succession at most; then all
//! other free records come first.

use alloc::collections::VecDeque;

/// How often a record is used in succession.
const IN_A_ROW: u32 = 256;

/// Free records, the next one to use first.
#[derive(Debug)]
pub(crate) struct FreeIndexes(VecDeque<u32>);

impl FreeIndexes {
    /// All of `count` records.
    pub(crate) fn new(count: u32) -> FreeIndexes {
        FreeIndexes((0..count).collect())
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Takes a record.
    pub(crate) fn take(&mut self) -> Option<u32> {
        self.0.pop_front()
    }

    /// Gives a record back, whose last handle has this generation.
    pub(crate) fn give_back(&mut self, index: u32, generation: u32) {
        if (generation + 1).is_multiple_of(IN_A_ROW) {
            self.0.push_back(index);
        } else {
            self.0.push_front(index);
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::NetworkInterface;
    use crate::types::*;

    /// More uses than a handle has generations.
    const USES: u32 = 70_000;

    #[test]
    fn a_stale_handle_stays_invalid() {
        let ni = NetworkInterface::loopback(None).unwrap();
        let md = MemoryDescriptor {
            start: core::ptr::null_mut(),
            length: 0,
            threshold: THRESH_INF,
            max_size: 0,
            options: 0,
            user_ptr: core::ptr::null_mut(),
            eq: EqHandle::NONE,
        };
        // SAFETY: a descriptor without bytes.
        let bind = || unsafe { ni.md_bind(&md, Unlink::Retain) }.unwrap();
        let attach =
            || ni.me_attach(4, PtlProcessId::ANY, 0, 0, Unlink::Retain, InsPos::After).unwrap();
        let allocate = || ni.eq_alloc(1, None).unwrap();
        let (md, me, eq) = (bind(), attach(), allocate());
        ni.md_unlink(md).unwrap();
        ni.me_unlink(me).unwrap();
        ni.eq_free(eq).unwrap();
        for _ in 0..USES {
            let new = (bind(), attach(), allocate());
            assert!(new.0 != md && new.1 != me && new.2 != eq);
            ni.md_unlink(new.0).unwrap();
            ni.me_unlink(new.1).unwrap();
            ni.eq_free(new.2).unwrap();
        }
    }
}
