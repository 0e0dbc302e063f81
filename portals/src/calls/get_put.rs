//! `PtlGetPut`: a swap of up to 64 bytes.
//!
//! As a put and a get in one message (see [`super::put_get`]). Invariant: the swap is atomic
//! with other get-puts of the same target, by a lock word in the target's arena.

use super::NetworkInterface;
use super::put_get::{Region, TargetClaim, is_active};
use crate::deliver::claim_local;
use crate::message::{MessageHeader, OpHalf, OpKind, TargetAddress};
use crate::transfer::bytes::copy_own;
use crate::types::*;

impl NetworkInterface {
    /// `PtlGetPut`: the target's bytes go to `get_md`, those of `put_md` go to the target,
    /// atomically with other get-puts.
    #[allow(clippy::too_many_arguments)]
    pub fn get_put(
        &self,
        get_md: MdHandle,
        put_md: MdHandle,
        target: PtlProcessId,
        pt_index: PtIndex,
        ac_index: AcIndex,
        match_bits: MatchBits,
        remote_offset: Size,
        hdr_data: HdrData,
    ) -> Result<(), PtlError> {
        let to = TargetAddress { target, pt_index, ac_index, match_bits, remote_offset, hdr_data };
        let index = self.state.peers.index_of(target)?;
        loop {
            let (get, _, room) = Region { md: get_md, part: None }.resolve(self)?;
            let (put, _, length) = Region { md: put_md, part: None }.resolve(self)?;
            if length > u64::from(self.state.limits.max_getput_md) || room < length {
                return Err(PtlError::MdIllegal);
            }
            let header = self.state.header(OpKind::GetPut, &to, length);
            let own_mds = [get.index, put.index];
            let peer = self.direct(index)?;
            let (find, hold) = self.reach(peer, &header, own_mds);
            if !get.unchanged() || !put.unchanged() {
                hold.clear(false);
                continue;
            }
            let send = if is_active(&get) { claim_local(&put, 0, length) } else { None };
            let Some(send) = send else {
                hold.clear(false);
                return Err(PtlError::MdInvalid);
            };
            self.state.count(&hold, OpKind::GetPut, length);
            let matched = match self.claim_target(peer, &header, find, &hold, own_mds) {
                TargetClaim::At(peer, matched) => Some((peer, matched)),
                TargetClaim::Nowhere => None,
                TargetClaim::ByFrames => {
                    let source = self.state.transfer_begin(&send, &header, OpHalf::Send);
                    self.submit(hold, index, &header, Some(source), false, get_md, 0);
                    return Ok(());
                }
            };
            let own = &self.state.peers.own;
            let mut bytes = [0u8; 64];
            let link = self.state.peers.post_start(own, &send, &header, OpHalf::Send);
            let read = copy_own(put.record.memory(), 0, &mut bytes[..length as usize], true);
            self.state.peers.post_end(own, &send, &header, OpHalf::Send, link, read.is_ok());
            let mut rings = false;
            if let Some((peer, matched)) = &matched {
                rings = matched.traits.eq().is_some();
                let half = OpHalf::Arrival(OpKind::GetPut);
                let link = self.state.peers.post_start(peer, matched, &header, half);
                let swapped = &mut bytes[..matched.accepted.mlength as usize];
                let ok = self.state.swap_bytes(peer, matched, swapped);
                self.state.peers.post_end(peer, matched, &header, half, link, ok);
                let answer = MessageHeader { initiator: index, ..header };
                if let Some(reply) = claim_local(&get, 0, matched.accepted.mlength) {
                    let link = self.state.peers.post_start(own, &reply, &answer, OpHalf::Reply);
                    let ok = ok && copy_own(get.record.memory(), 0, swapped, false).is_ok();
                    self.state.peers.post_end(own, &reply, &answer, OpHalf::Reply, link, ok);
                } else {
                    self.state.dropped(own, header.pt_index, header.match_bits);
                }
            }
            self.state.peers.finish(hold, peer, rings, true);
            return Ok(());
        }
    }
}
