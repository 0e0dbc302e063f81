//! Memory descriptors.

use core::ptr;

use crate::abi::{self, *};
use crate::calls;
use crate::convert::{
    Code, descriptor_in, descriptor_out, eq_or_none_in, md_in, md_out, me_in, out, unlink_in,
};
use crate::state;

calls! {
    /// Attaches a descriptor to a match entry that has none, else `PTL_ME_IN_USE`.
    fn PtlMDAttach(me: CHandle, md: abi::CMd, unlink: CEnum, made: *mut CHandle) {
        let ni = state::open_ni(PTL_ME_INVALID)?;
        let made = out(made)?;
        let (me, md, unlink) = (me_in(me)?, descriptor_in(&md)?, unlink_in(unlink)?);
        // SAFETY: that of the crate.
        unsafe { made.write(md_out(ni.interface.md_attach(me, &md, unlink)?)) };
        Ok(())
    }

    /// Makes a descriptor that operations start from; it is never a target.
    fn PtlMDBind(ni: CHandle, md: abi::CMd, unlink: CEnum, made: *mut CHandle) {
        let ni = state::ni(ni)?;
        let made = out(made)?;
        let (md, unlink) = (descriptor_in(&md)?, unlink_in(unlink)?);
        // SAFETY: that of the crate.
        unsafe { made.write(md_out(ni.interface.md_bind(&md, unlink)?)) };
        Ok(())
    }

    /// `PTL_MD_IN_USE` while operations are under way. Posts no event.
    fn PtlMDUnlink(md: CHandle) {
        Ok(state::open_ni(PTL_MD_INVALID)?.interface.md_unlink(md_in(md)?)?)
    }

    /// Tells the present state in `old`, and replaces it by `new`; each may be null.
    /// `PTL_MD_NO_UPDATE` if there is an event in `test_eq`, or one is about to come;
    /// `PTL_EQ_NONE` asks for no test.
    fn PtlMDUpdate(md: CHandle, old: *mut abi::CMd, new: *const abi::CMd, test_eq: CHandle) {
        let ni = state::open_ni(PTL_MD_INVALID)?;
        let md = md_in(md)?;
        // SAFETY: that of the crate; both may be the same, so `new` is copied first.
        let new = unsafe { new.as_ref() }.map(descriptor_in).transpose()?;
        let test_eq = eq_or_none_in(test_eq)?;
        let mut now = NOTHING;
        let wants_old = !old.is_null();
        // SAFETY: that of the crate.
        let result = unsafe { ni.interface.md_update(md, wants_old.then_some(&mut now), new.as_ref(), test_eq) };
        let told = match result {
            Ok(()) => true,
            Err(error) => error == portals3::PtlError::MdNoUpdate,
        };
        if wants_old && told {
            // SAFETY: that of the crate.
            unsafe { old.write(descriptor_out(&now)) };
        }
        result.map_err(Code::from)
    }
}

/// A descriptor of nothing, to be overwritten.
const NOTHING: portals3::MemoryDescriptor = portals3::MemoryDescriptor {
    start: ptr::null_mut(),
    length: 0,
    threshold: 0,
    max_size: 0,
    options: 0,
    user_ptr: ptr::null_mut(),
    eq: portals3::EqHandle::NONE,
};
