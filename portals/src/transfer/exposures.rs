//! What processes have exposed: descriptors of this one, and those of peers that it knows.
//!
//! [`super::framer`] has one [`OwnExposures`] with a lock of its own, and [`super::exposed`] a
//! [`KnownExposures`] for each lane. A descriptor is registered with the network in blocks, each
//! when a peer first accesses it in frames. That peer is sent a notice of the block, as is each
//! further one when it does so.
//!
//! ```text
//! initiator                         target
//! put in frames ─────────────────>  block registered? no: registers it
//!    learns the block  <──────────  notice
//! put by remote access ──────────>  (no call)
//! ```
//!
//! Invariants: a block stays registered until the interface is closed; no more blocks are than
//! the descriptor allows. A notice names memory of the peer that sends it alone.

use alloc::collections::{BTreeMap, BTreeSet, VecDeque};
use alloc::string::String;
use alloc::vec::Vec;
use core::ops::RangeInclusive;

use super::framed::FramedTransfer;
use crate::descriptor::record::MdMemory;
use crate::message::MessageHeader;
use crate::nal::remote::{ExposedBlocks, RemoteMemory, RemoteRegion};
use crate::types::*;

/// Descriptors of one peer that are known here at most, and blocks of each.
const KNOWN_PER_PEER: usize = 8;
const KNOWN_BLOCKS: usize = 1 << 16;

/// The match entry by which peers address an exposed descriptor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ExposedEntry {
    pub(crate) pt_index: PtIndex,
    pub(crate) ac_index: AcIndex,
    pub(crate) match_bits: MatchBits,
    pub(crate) ignore_bits: MatchBits,
}

impl ExposedEntry {
    fn takes(&self, header: &MessageHeader) -> bool {
        self.pt_index == header.pt_index
            && self.ac_index == header.ac_index
            && (self.match_bits ^ header.match_bits) & !self.ignore_bits == 0
    }
}

/// A block of an exposed descriptor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ExposureNotice {
    pub(crate) entry: ExposedEntry,
    /// Where in the descriptor it begins.
    pub(crate) offset: Size,
    pub(crate) length: Size,
    pub(crate) region: RemoteRegion,
}

impl ExposureNotice {
    pub(crate) const BYTES: usize = 56;

    pub(crate) fn encode(&self) -> Vec<u8> {
        let ExposureNotice { entry, offset, length, region } = *self;
        let ExposedEntry { pt_index, ac_index, match_bits, ignore_bits } = entry;
        let mut bytes = Vec::with_capacity(Self::BYTES);
        bytes.extend([pt_index, ac_index].map(u32::to_le_bytes).as_flattened());
        let words = [match_bits, ignore_bits, offset, length, region.address, region.key];
        bytes.extend(words.map(u64::to_le_bytes).as_flattened());
        bytes
    }

    /// `None`: these bytes are no notice, or name no memory.
    pub(crate) fn decode(bytes: &[u8]) -> Option<ExposureNotice> {
        let (indexes, words) = bytes.split_first_chunk::<8>()?;
        let words: &[u8; Self::BYTES - 8] = words.try_into().ok()?;
        let (indexes, words) = (indexes.as_chunks().0, words.as_chunks().0);
        let [pt_index, ac_index] = [0, 1].map(|i: usize| u32::from_le_bytes(indexes[i]));
        let [match_bits, ignore_bits, offset, length, address, key] =
            [0, 1, 2, 3, 4, 5].map(|i: usize| u64::from_le_bytes(words[i]));
        address.checked_add(length)?;
        offset.checked_add(length)?;
        let entry = ExposedEntry { pt_index, ac_index, match_bits, ignore_bits };
        Some(ExposureNotice { entry, offset, length, region: RemoteRegion { address, key } })
    }
}

/// A descriptor of this process that is exposed.
#[derive(Debug)]
pub(crate) struct OwnExposure {
    md: MdHandle,
    entry: ExposedEntry,
    memory: MdMemory,
    length: Size,
    blocks: ExposedBlocks,
    /// By their numbers.
    registered: BTreeMap<Size, RegisteredBlock>,
    /// The network has refused a block: no further one is tried.
    is_refused: bool,
}

/// A block that is registered.
#[derive(Debug)]
struct RegisteredBlock {
    region: RemoteRegion,
    /// The peers that know it.
    peers: BTreeSet<u32>,
}

/// A block that is to be registered.
#[derive(Debug)]
pub(super) struct OwnBlock {
    /// Which of the own descriptors.
    own: usize,
    number: Size,
    start: *mut u8,
    bytes: usize,
}

impl OwnBlock {
    /// Registers it.
    ///
    /// # Errors
    /// What the network says.
    ///
    /// # Safety
    /// The memory stays readable and writable until the interface is closed.
    pub(super) unsafe fn register(
        &self,
        remote: &dyn RemoteMemory,
    ) -> Result<RemoteRegion, String> {
        // SAFETY: the same contract.
        unsafe { remote.register(self.start, self.bytes) }
    }
}

impl OwnExposure {
    /// Of a descriptor over `length` bytes of one piece of memory.
    pub(crate) fn new(
        md: MdHandle,
        entry: ExposedEntry,
        (memory, length): (MdMemory, Size),
        blocks: ExposedBlocks,
    ) -> OwnExposure {
        let bytes = blocks.bytes.clamp(1, length.max(1));
        let blocks = ExposedBlocks { bytes, most: blocks.most.min(KNOWN_BLOCKS) };
        let (registered, is_refused) = (BTreeMap::new(), false);
        OwnExposure { md, entry, memory, length, blocks, registered, is_refused }
    }

    /// Registers the first block.
    ///
    /// # Errors
    /// What the network says.
    ///
    /// # Safety
    /// The memory stays readable and writable until the interface is closed.
    pub(crate) unsafe fn register_first(
        &mut self,
        remote: &dyn RemoteMemory,
    ) -> Result<(), String> {
        let block = self.block(0, 0);
        // SAFETY: the same contract.
        let region = unsafe { block.register(remote) }?;
        self.registered(&block, Ok(region));
        Ok(())
    }

    /// A block of this descriptor, which is the own one of number `own`.
    fn block(&self, own: usize, number: Size) -> OwnBlock {
        let (offset, length) = self.place_of(number);
        let start = self.memory.start.wrapping_add(offset as usize);
        OwnBlock { own, number, start, bytes: length as usize }
    }

    /// The network has registered a block, or refused it.
    fn registered(&mut self, block: &OwnBlock, region: Result<RemoteRegion, String>) {
        match region {
            Ok(region) => {
                let known = RegisteredBlock { region, peers: BTreeSet::new() };
                self.registered.insert(block.number, known);
            }
            Err(_) => self.is_refused = true,
        }
    }

    /// Where a block begins, and its length.
    fn place_of(&self, number: Size) -> (Size, Size) {
        let offset = number * self.blocks.bytes;
        (offset, self.blocks.bytes.min(self.length - offset))
    }

    /// The blocks that have the bytes of an access.
    fn blocks_of(&self, access: &FramedAccess) -> RangeInclusive<Size> {
        let FramedAccess { offset, length, .. } = *access;
        offset / self.blocks.bytes..=(offset + (length - 1)) / self.blocks.bytes
    }

    /// The first block of an access that is not registered, if another one may be.
    fn lacks(&self, access: &FramedAccess) -> Option<Size> {
        let may_register = !self.is_refused && self.registered.len() < self.blocks.most;
        let is_missing = |number: &Size| !self.registered.contains_key(number);
        may_register.then(|| self.blocks_of(access).find(is_missing))?
    }

    /// The notices of registered blocks that a peer accesses and does not know.
    fn news(&mut self, access: &FramedAccess) -> Vec<ExposureNotice> {
        let entry = ExposedEntry { ac_index: access.ac_index, ..self.entry };
        let mut news = Vec::new();
        for number in self.blocks_of(access) {
            let (offset, length) = self.place_of(number);
            let Some(block) = self.registered.get_mut(&number) else { continue };
            if block.peers.insert(access.peer) {
                news.push(ExposureNotice { entry, offset, length, region: block.region });
            }
        }
        news
    }
}

/// A message of a peer that came in frames, into a descriptor that is exposed.
#[derive(Clone, Copy, Debug)]
struct FramedAccess {
    peer: u32,
    /// Which of the own descriptors.
    own: usize,
    ac_index: AcIndex,
    offset: Size,
    /// Not 0.
    length: Size,
}

/// A descriptor of a peer.
#[derive(Debug)]
struct KnownExposure {
    entry: ExposedEntry,
    /// The length of each block, and where it is, by its offset in the descriptor.
    blocks: BTreeMap<Size, (Size, RemoteRegion)>,
}

impl KnownExposure {
    /// Where the byte at this offset is, and how many there follow it in its block.
    fn place(&self, offset: Size) -> Option<(RemoteRegion, Size)> {
        let (&start, &(length, region)) = self.blocks.range(..=offset).next_back()?;
        let at = offset - start;
        (at < length)
            .then(|| (RemoteRegion { address: region.address + at, ..region }, length - at))
    }
}

/// What this process has exposed.
#[derive(Debug, Default)]
pub(super) struct OwnExposures {
    own: Vec<OwnExposure>,
    /// Messages to blocks that are not registered: that waits until the wire is in no call.
    accesses: VecDeque<FramedAccess>,
}

impl OwnExposures {
    pub(super) fn expose(&mut self, own: OwnExposure) {
        self.own.push(own);
    }

    /// A message of a peer came in frames, by this access control entry. Returns the notices of
    /// blocks that are registered already.
    pub(super) fn accessed(
        &mut self,
        peer: u32,
        transfer: &FramedTransfer,
        ac_index: AcIndex,
    ) -> Vec<ExposureNotice> {
        let FramedTransfer { md, offset, mlength: length, .. } = *transfer;
        let own = self.own.iter().position(|own| own.md == md).filter(|_| length != 0);
        let Some(number) = own else { return Vec::new() };
        let access = FramedAccess { peer, own: number, ac_index, offset, length };
        let own = &mut self.own[number];
        if own.lacks(&access).is_some() {
            self.accesses.push_back(access);
        }
        own.news(&access)
    }

    /// The next block that is to be registered, because peers have accessed it. Adds the notices
    /// of those that have been, each with its peer.
    pub(super) fn next_block(
        &mut self,
        notices: &mut Vec<(u32, ExposureNotice)>,
    ) -> Option<OwnBlock> {
        while let Some(access) = self.accesses.front() {
            let own = &mut self.own[access.own];
            notices.extend(own.news(access).into_iter().map(|notice| (access.peer, notice)));
            if let Some(number) = own.lacks(access) {
                return Some(own.block(access.own, number));
            }
            self.accesses.pop_front();
        }
        None
    }

    /// The network has registered a block, or refused it: then messages stay in frames.
    pub(super) fn registered(&mut self, block: &OwnBlock, region: Result<RemoteRegion, String>) {
        self.own[block.own].registered(block, region);
    }

    /// Whether [`OwnExposures::next_block`] has anything to do.
    pub(super) fn has_accesses(&self) -> bool {
        !self.accesses.is_empty()
    }
}

/// What the peers of a lane have exposed, as far as this process knows.
#[derive(Debug, Default)]
pub(super) struct KnownExposures {
    known: BTreeMap<u32, Vec<KnownExposure>>,
}

impl KnownExposures {
    /// A peer has exposed a block.
    pub(super) fn learn(&mut self, peer: u32, notice: &ExposureNotice) {
        let ExposureNotice { entry, offset, length, region } = *notice;
        let known = self.known.entry(peer).or_default();
        let index = known.iter().position(|known| known.entry == entry).or_else(|| {
            (known.len() < KNOWN_PER_PEER).then(|| {
                known.push(KnownExposure { entry, blocks: BTreeMap::new() });
                known.len() - 1
            })
        });
        if let Some(index) = index
            && known[index].blocks.len() < KNOWN_BLOCKS
        {
            known[index].blocks.insert(offset, (length, region));
        }
    }

    /// Where the byte of a message to a peer is that is `at` bytes from its first, and how many
    /// follow it there.
    pub(super) fn place(
        &self,
        peer: u32,
        header: &MessageHeader,
        at: Size,
    ) -> Option<(RemoteRegion, Size)> {
        let known = self.known.get(&peer)?.iter().find(|known| known.entry.takes(header))?;
        known.place(header.remote_offset.checked_add(at)?)
    }

    /// Whether a message to a peer falls into blocks that are known, as a whole.
    pub(super) fn have(&self, peer: u32, header: &MessageHeader) -> bool {
        let mut at = 0;
        while at < header.rlength {
            match self.place(peer, header, at) {
                Some((_, length)) => at = at.saturating_add(length),
                None => return false,
            }
        }
        header.rlength != 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::OpKind;

    const NOTICE: ExposureNotice = ExposureNotice {
        entry: ExposedEntry { pt_index: 3, ac_index: 1, match_bits: 0x50, ignore_bits: !0xff },
        offset: 0,
        length: 100,
        region: RemoteRegion { address: 1000, key: 77 },
    };

    fn header(bits: MatchBits, remote_offset: Size, rlength: Size) -> MessageHeader {
        MessageHeader {
            kind: OpKind::Put,
            initiator: 0,
            uid: 0,
            jid: 0,
            pt_index: 3,
            ac_index: 1,
            match_bits: bits,
            remote_offset,
            rlength,
            hdr_data: 0,
        }
    }

    #[test]
    fn only_whole_messages_inside_of_known_blocks_have_a_place() {
        let mut exposures = KnownExposures::default();
        exposures.learn(7, &NOTICE);
        let place = |h: MessageHeader| {
            let first = exposures.place(7, &h, 0).map(|(region, _)| region.address);
            first.filter(|_| exposures.have(7, &h))
        };
        assert_eq!(place(header(0x1234_0050, 0, 100)), Some(1000));
        assert_eq!(place(header(0x50, 99, 1)), Some(1099));
        assert_eq!(place(header(0x50, 99, 2)), None);
        assert_eq!(place(header(0x50, 100, 0)), None);
        assert_eq!(place(header(0x51, 0, 1)), None);
        assert_eq!(place(header(0x50, u64::MAX, 2)), None);
        assert_eq!(place(MessageHeader { pt_index: 4, ..header(0x50, 0, 1) }), None);
        assert_eq!(place(MessageHeader { ac_index: 0, ..header(0x50, 0, 1) }), None);
        assert!(!exposures.have(6, &header(0x50, 0, 1)), "another peer");
    }

    #[test]
    fn a_message_may_cover_blocks_that_adjoin() {
        let mut exposures = KnownExposures::default();
        let region = |address| RemoteRegion { address, key: 1 };
        for (offset, address) in [(0, 1000), (100, 5000), (300, 9000)] {
            exposures.learn(7, &ExposureNotice { offset, region: region(address), ..NOTICE });
        }
        let place = |at| exposures.place(7, &header(0x50, 60, 140), at);
        assert!(exposures.have(7, &header(0x50, 60, 140)));
        assert_eq!(place(0), Some((region(1060), 40)));
        assert_eq!(place(40), Some((region(5000), 100)));
        assert_eq!(place(140), None, "beyond the second block");
        assert!(!exposures.have(7, &header(0x50, 60, 141)), "there is a gap");
        assert!(exposures.have(7, &header(0x50, 300, 100)));
        assert!(!exposures.have(7, &header(0x50, 300, 101)));
    }

    #[test]
    fn peers_name_a_bounded_number_of_descriptors() {
        let mut exposures = KnownExposures::default();
        for match_bits in 0..100 {
            let entry = ExposedEntry { match_bits, ignore_bits: 0, ..NOTICE.entry };
            exposures.learn(7, &ExposureNotice { entry, ..NOTICE });
        }
        let known = (0..100).filter(|&bits| exposures.have(7, &header(bits, 0, 1))).count();
        assert_eq!(known, KNOWN_PER_PEER);
    }

    fn any_bytes(input: &[u8]) {
        let Some(notice) = ExposureNotice::decode(input) else { return };
        assert_eq!(notice.encode(), input);
        assert!(notice.region.address.checked_add(notice.length).is_some());
        assert!(notice.offset.checked_add(notice.length).is_some());
    }

    #[test]
    fn fuzz_exposure_notice() {
        let bytes = NOTICE.encode();
        assert_eq!(bytes.len(), ExposureNotice::BYTES);
        assert_eq!(ExposureNotice::decode(&bytes), Some(NOTICE));
        for cut in 0..bytes.len() {
            assert_eq!(ExposureNotice::decode(&bytes[..cut]), None);
        }
        let beyond = ExposureNotice { length: u64::MAX, ..NOTICE };
        assert_eq!(ExposureNotice::decode(&beyond.encode()), None);
        let beyond = ExposureNotice { offset: u64::MAX, ..NOTICE };
        assert_eq!(ExposureNotice::decode(&beyond.encode()), None);
        fuzz::check("exposure_notice", 20_000, any_bytes);
    }
}
