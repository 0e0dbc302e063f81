//! Put, get and get-put.
//!
//! All of them return when the operation has started; events report its end. `PTL_MD_INVALID`:
//! the descriptor is inactive or not valid; `PTL_PROCESS_INVALID`: the target is not a process
//! of the job, or its interface is not open.

use crate::abi::*;
use crate::calls;
use crate::convert::{ack_in, md_in};
use crate::state;

calls! {
    /// Sends the bytes of a descriptor.
    fn PtlPut(
        md: CHandle,
        ack: CEnum,
        target: PtlProcessId,
        pt_index: u32,
        ac_index: u32,
        match_bits: u64,
        remote_offset: u64,
        hdr_data: u64,
    ) {
        let ni = state::open_ni(PTL_MD_INVALID)?;
        let (md, ack) = (md_in(md)?, ack_in(ack)?);
        Ok(ni.interface.put(md, ack, target, pt_index, ac_index, match_bits, remote_offset, hdr_data)?)
    }

    /// Sends a part of a descriptor's bytes. `PTL_MD_ILLEGAL`: the part exceeds the descriptor.
    fn PtlPutRegion(
        md: CHandle,
        local_offset: u64,
        length: u64,
        ack: CEnum,
        target: PtlProcessId,
        pt_index: u32,
        ac_index: u32,
        match_bits: u64,
        remote_offset: u64,
        hdr_data: u64,
    ) {
        let ni = state::open_ni(PTL_MD_INVALID)?;
        let (md, ack) = (md_in(md)?, ack_in(ack)?);
        let interface = &ni.interface;
        Ok(interface.put_region(
            md, local_offset, length, ack, target, pt_index, ac_index, match_bits, remote_offset, hdr_data,
        )?)
    }

    /// Fetches bytes into a descriptor.
    fn PtlGet(
        md: CHandle,
        target: PtlProcessId,
        pt_index: u32,
        ac_index: u32,
        match_bits: u64,
        remote_offset: u64,
    ) {
        let ni = state::open_ni(PTL_MD_INVALID)?;
        Ok(ni.interface.get(md_in(md)?, target, pt_index, ac_index, match_bits, remote_offset)?)
    }

    /// Fetches bytes into a part of a descriptor. `PTL_MD_ILLEGAL`: the part exceeds the
    /// descriptor.
    fn PtlGetRegion(
        md: CHandle,
        local_offset: u64,
        length: u64,
        target: PtlProcessId,
        pt_index: u32,
        ac_index: u32,
        match_bits: u64,
        remote_offset: u64,
    ) {
        let interface = &state::open_ni(PTL_MD_INVALID)?.interface;
        let md = md_in(md)?;
        Ok(interface.get_region(
            md, local_offset, length, target, pt_index, ac_index, match_bits, remote_offset,
        )?)
    }

    /// Sends the bytes of `put_md` and fetches the target's previous bytes into `get_md`,
    /// atomically with other get-puts. `PTL_MD_ILLEGAL`: more bytes than `max_getput_md`, or
    /// `get_md` is shorter.
    fn PtlGetPut(
        get_md: CHandle,
        put_md: CHandle,
        target: PtlProcessId,
        pt_index: u32,
        ac_index: u32,
        match_bits: u64,
        remote_offset: u64,
        hdr_data: u64,
    ) {
        let interface = &state::open_ni(PTL_MD_INVALID)?.interface;
        let (get, put) = (md_in(get_md)?, md_in(put_md)?);
        Ok(interface.get_put(get, put, target, pt_index, ac_index, match_bits, remote_offset, hdr_data)?)
    }
}
