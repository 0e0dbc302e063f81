//! Match list entries: attach, insert, unlink.

use portals3::PtlError;

use crate::abi::*;
use crate::calls;
use crate::convert::{me_in, me_out, out, position_in, unlink_in};
use crate::state;

calls! {
    /// Makes an entry before the head or after the tail of a portal table entry's list, and
    /// stores its handle in `me`. `PTL_PT_INDEX_INVALID`, `PTL_ME_LIST_TOO_LONG`,
    /// `PTL_NO_SPACE`.
    fn PtlMEAttach(
        ni: CHandle,
        pt_index: u32,
        match_id: PtlProcessId,
        match_bits: u64,
        ignore_bits: u64,
        unlink: CEnum,
        position: CEnum,
        me: *mut CHandle,
    ) {
        let ni = state::ni(ni)?;
        let me = out(me)?;
        let (unlink, position) = (unlink_in(unlink)?, position_in(position)?);
        let made = ni.interface.me_attach(pt_index, match_id, match_bits, ignore_bits, unlink, position)?;
        // SAFETY: not null, so valid, as the crate's safety section demands.
        unsafe { me.write(me_out(made)) };
        Ok(())
    }

    /// Makes an entry on a portal table entry that was never used, and stores its index and the
    /// handle. `PTL_PT_FULL`: all have been used.
    fn PtlMEAttachAny(
        ni: CHandle,
        pt_index: *mut u32,
        match_id: PtlProcessId,
        match_bits: u64,
        ignore_bits: u64,
        unlink: CEnum,
        me: *mut CHandle,
    ) {
        let ni = state::ni(ni)?;
        let (pt_index, me) = (out(pt_index)?, out(me)?);
        let (pt, made) = ni.interface.me_attach_any(match_id, match_bits, ignore_bits, unlink_in(unlink)?)?;
        // SAFETY: not null, so valid, as the crate's safety section demands.
        unsafe {
            pt_index.write(pt);
            me.write(me_out(made));
        }
        Ok(())
    }

    /// Makes an entry before or after another, and stores its handle in `me`. `PTL_ME_INVALID`:
    /// `base` is not an entry.
    fn PtlMEInsert(
        base: CHandle,
        match_id: PtlProcessId,
        match_bits: u64,
        ignore_bits: u64,
        unlink: CEnum,
        position: CEnum,
        me: *mut CHandle,
    ) {
        let ni = state::open_ni(PTL_ME_INVALID)?;
        let me = out(me)?;
        let (unlink, position) = (unlink_in(unlink)?, position_in(position)?);
        let made = ni.interface.me_insert(me_in(base)?, match_id, match_bits, ignore_bits, unlink, position)?;
        // SAFETY: not null, so valid, as the crate's safety section demands.
        unsafe { me.write(me_out(made)) };
        Ok(())
    }

    /// Removes an entry from its list. `PTL_ME_IN_USE`: operations on its descriptor are in
    /// progress.
    fn PtlMEUnlink(me: CHandle) {
        let (ni, me) = (state::open_ni(PTL_ME_INVALID)?, me_in(me)?);
        Ok(ni.unless_busy(PtlError::MeInUse, || ni.interface.me_unlink(me))?)
    }
}
