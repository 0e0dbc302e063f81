//! Memory descriptors: attach, bind, unlink, update.
//!
//! Invariant: the memory of a descriptor belongs to the caller, which keeps it valid until the
//! descriptor is unlinked.

use core::ptr;

use portals3::PtlError;

use crate::abi::{self, *};
use crate::calls;
use crate::convert::{
    Code, descriptor_in, descriptor_out, eq_or_none_in, md_in, md_out, me_in, out, unlink_in,
};
use crate::state;

calls! {
    /// Attaches a descriptor to a match entry and stores its handle in `made`. `PTL_ME_IN_USE`:
    /// the entry has one already; `PTL_MD_ILLEGAL`: options, length or start are not valid.
    fn PtlMDAttach(me: CHandle, md: abi::CMd, unlink: CEnum, made: *mut CHandle) {
        let ni = state::open_ni(PTL_ME_INVALID)?;
        let made = out(made)?;
        let (me, md, unlink) = (me_in(me)?, descriptor_in(&md)?, unlink_in(unlink)?);
        // SAFETY: not null, so valid, as the crate's safety section demands.
        unsafe { made.write(md_out(ni.interface.md_attach(me, &md, unlink)?)) };
        Ok(())
    }

    /// Makes a descriptor that operations start from and that is never a target; stores its
    /// handle in `made`. `PTL_MD_ILLEGAL`: options, length or start are not valid.
    fn PtlMDBind(ni: CHandle, md: abi::CMd, unlink: CEnum, made: *mut CHandle) {
        let ni = state::ni(ni)?;
        let made = out(made)?;
        let (md, unlink) = (descriptor_in(&md)?, unlink_in(unlink)?);
        // SAFETY: not null, so valid, as the crate's safety section demands.
        unsafe { made.write(md_out(ni.interface.md_bind(&md, unlink)?)) };
        Ok(())
    }

    /// Unlinks a descriptor; no event is posted. `PTL_MD_IN_USE`: operations on it are in
    /// progress.
    fn PtlMDUnlink(md: CHandle) {
        let (ni, md) = (state::open_ni(PTL_MD_INVALID)?, md_in(md)?);
        Ok(ni.unless_busy(PtlError::MdInUse, || ni.interface.md_unlink(md))?)
    }

    /// Stores the present state in `old`, and replaces it by `new`; either may be null.
    /// `PTL_MD_NO_UPDATE`: `test_eq` holds an event, or one is about to be posted; with
    /// `PTL_EQ_NONE` the queue is not tested. In both cases also: the reply to a get is to come.
    fn PtlMDUpdate(md: CHandle, old: *mut abi::CMd, new: *const abi::CMd, test_eq: CHandle) {
        let ni = state::open_ni(PTL_MD_INVALID)?;
        let md = md_in(md)?;
        // SAFETY: null or readable, as the crate's safety section demands. Both pointers may be
        // the same, so `new` is copied first.
        let new = unsafe { new.as_ref() }.map(descriptor_in).transpose()?;
        let test_eq = eq_or_none_in(test_eq)?;
        let mut now = NOTHING;
        let wants_old = !old.is_null();
        let result = ni.unless_busy(PtlError::MdNoUpdate, || {
            // SAFETY: not null, so valid, as the crate's safety section demands.
            unsafe { ni.interface.md_update(md, wants_old.then_some(&mut now), new.as_ref(), test_eq) }
        });
        let has_state = match result {
            Ok(()) => true,
            Err(error) => error == portals3::PtlError::MdNoUpdate,
        };
        if wants_old && has_state {
            // SAFETY: not null, so valid, as the crate's safety section demands.
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
