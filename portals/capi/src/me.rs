//! Match list entries.

use crate::abi::*;
use crate::calls;
use crate::convert::{me_in, me_out, out, position_in, unlink_in};
use crate::state;

calls! {
    /// Before the head or after the tail of a portal table entry's list.
    fn PtlMEAttach(
        ni: Handle,
        pt_index: u32,
        match_id: ProcessId,
        match_bits: u64,
        ignore_bits: u64,
        unlink: Enum,
        position: Enum,
        me: *mut Handle,
    ) {
        let ni = state::ni(ni)?;
        let me = out(me)?;
        let (unlink, position) = (unlink_in(unlink)?, position_in(position)?);
        let made = ni.interface.me_attach(pt_index, match_id, match_bits, ignore_bits, unlink, position)?;
        // SAFETY: that of the crate.
        unsafe { me.write(me_out(made)) };
        Ok(())
    }

    /// On a portal table entry that was never used.
    fn PtlMEAttachAny(
        ni: Handle,
        pt_index: *mut u32,
        match_id: ProcessId,
        match_bits: u64,
        ignore_bits: u64,
        unlink: Enum,
        me: *mut Handle,
    ) {
        let ni = state::ni(ni)?;
        let (pt_index, me) = (out(pt_index)?, out(me)?);
        let (pt, made) = ni.interface.me_attach_any(match_id, match_bits, ignore_bits, unlink_in(unlink)?)?;
        // SAFETY: that of the crate.
        unsafe {
            pt_index.write(pt);
            me.write(me_out(made));
        }
        Ok(())
    }

    /// Before or after another entry.
    fn PtlMEInsert(
        base: Handle,
        match_id: ProcessId,
        match_bits: u64,
        ignore_bits: u64,
        unlink: Enum,
        position: Enum,
        me: *mut Handle,
    ) {
        let ni = state::open_ni(PTL_ME_INVALID)?;
        let me = out(me)?;
        let (unlink, position) = (unlink_in(unlink)?, position_in(position)?);
        let made = ni.interface.me_insert(me_in(base)?, match_id, match_bits, ignore_bits, unlink, position)?;
        // SAFETY: that of the crate.
        unsafe { me.write(me_out(made)) };
        Ok(())
    }

    /// Takes an entry off its list; `PTL_ME_IN_USE` while operations on its descriptor are under way.
    fn PtlMEUnlink(me: Handle) {
        Ok(state::open_ni(PTL_ME_INVALID)?.interface.me_unlink(me_in(me)?)?)
    }
}
