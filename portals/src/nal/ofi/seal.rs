//! What travels with a frame: its sender, number and credits, and the seal that proves them.
//!
//! Used by [`super::network`]. Invariant: [`SealedFrame::open`] accepts any bytes. It checks the
//! seal only when the number of the frame is known, which depends on the sender.
//!
//! The lead has 62 bits: the position of the sender (30), the number of the frame (16), and the
//! frames of data that the receiver may send in all (16), each modulo its range. The
//! seal has 64 bits. Where they travel is the same in all processes of a job:
//!
//! | mode | lead | seal |
//! |---|---|---|
//! | full | libfabric's tag | remote CQ data |
//! | 1 | libfabric's tag | before the frame |
//! | 2 | before the frame | before the frame |
//!
//! So in the mode `full` a put of 8 bytes is a message of 60.

use handshake::FrameKey;

use super::batch::MARK;
use super::endpoint::MessageTag;
use super::library::ProviderInfo;
use super::limits::SEALED;

/// Bits of a lead.
const LEAD_BITS: u32 = 62;

/// Where lead and seal travel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OfiTagMode {
    /// Both outside of the message.
    Full,
    /// The lead outside.
    One,
    /// Both in the message.
    Two,
}

impl OfiTagMode {
    /// Its value of GASNET_OFI_TAG_MODE.
    pub fn name(self) -> &'static str {
        match self {
            OfiTagMode::Full => "full",
            OfiTagMode::One => "1",
            OfiTagMode::Two => "2",
        }
    }

    /// The best mode that a provider allows.
    pub(super) fn of(info: &ProviderInfo) -> OfiTagMode {
        let tag_bits = u64::BITS - info.endpoint().mem_tag_format.leading_zeros();
        match (tag_bits >= LEAD_BITS, info.domain().cq_data_size >= 8) {
            (true, true) => OfiTagMode::Full,
            (true, false) => OfiTagMode::One,
            (false, _) => OfiTagMode::Two,
        }
    }

    /// Whether a provider that allows `best` allows this.
    pub(super) fn is_allowed_by(self, best: OfiTagMode) -> bool {
        self as u8 >= best as u8
    }

    /// Bytes before a frame.
    pub(super) fn lead_bytes(self) -> usize {
        match self {
            OfiTagMode::Full => 0,
            OfiTagMode::One => 8,
            OfiTagMode::Two => 16,
        }
    }
}

/// What travels with a frame, but for the seal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SealedLead {
    /// The position of the sender among all processes.
    pub(super) source: u32,
    /// The number of the frame, modulo 2^16.
    pub(super) number: u16,
    /// Frames of data that the receiver may send to the sender in all, modulo 2^16.
    pub(super) granted: u16,
}

impl SealedLead {
    fn word(self) -> u64 {
        u64::from(self.source) << 32 | u64::from(self.number) << 16 | u64::from(self.granted)
    }

    /// `None`: no process sends this.
    fn of(word: u64) -> Option<SealedLead> {
        let (number, granted) = ((word >> 16) as u16, word as u16);
        (word >> LEAD_BITS == 0).then_some(SealedLead {
            source: (word >> 32) as u32,
            number,
            granted,
        })
    }
}

/// The target of a frame, and its number since the first.
#[derive(Clone, Copy, Debug)]
pub(super) struct FrameCount {
    pub(super) target: u32,
    pub(super) number: u64,
}

/// The seal of a frame with this lead.
fn seal(key: &FrameKey, lead: SealedLead, count: FrameCount, frame: &[u8]) -> u64 {
    let mut head = [0; 32];
    let words = [lead.word(), u64::from(count.target), count.number, frame.len() as u64];
    for (to, word) in head.chunks_exact_mut(8).zip(words) {
        to.copy_from_slice(&word.to_le_bytes());
    }
    // Of frames that share a message, each has a header to be sealed.
    let sealed = match frame.first() {
        Some(&MARK) => frame,
        _ => &frame[..frame.len().min(SEALED)],
    };
    key.tag(&[&head, sealed])
}

/// Seals the frame that begins behind the lead bytes of `message`, and writes these. Returns what
/// travels outside.
pub(super) fn close(
    key: &FrameKey,
    mode: OfiTagMode,
    lead: SealedLead,
    count: FrameCount,
    message: &mut [u8],
) -> MessageTag {
    let (before, frame) = message.split_at_mut(mode.lead_bytes());
    let seal = seal(key, lead, count, frame);
    let word = lead.word();
    match mode {
        OfiTagMode::Full => MessageTag { tag: word, data: Some(seal) },
        OfiTagMode::One => {
            before.copy_from_slice(&seal.to_le_bytes());
            MessageTag { tag: word, data: None }
        }
        OfiTagMode::Two => {
            before[..8].copy_from_slice(&seal.to_le_bytes());
            before[8..].copy_from_slice(&word.to_le_bytes());
            MessageTag { tag: 0, data: None }
        }
    }
}

/// A frame whose seal has not been checked.
#[derive(Clone, Copy, Debug)]
pub(super) struct SealedFrame<'a> {
    pub(super) lead: SealedLead,
    seal: u64,
    pub(super) frame: &'a [u8],
}

impl SealedFrame<'_> {
    /// A message that has arrived; `None`: no process of the job has sent it.
    pub(super) fn open(
        mode: OfiTagMode,
        tag: u64,
        data: u64,
        message: &[u8],
    ) -> Option<SealedFrame<'_>> {
        let (before, frame) = message.split_at_checked(mode.lead_bytes())?;
        let word = |at: usize| before.get(at..)?.first_chunk().map(|b| u64::from_le_bytes(*b));
        let (word, seal) = match mode {
            OfiTagMode::Full => (tag, data),
            OfiTagMode::One => (tag, word(0)?),
            OfiTagMode::Two => (word(8)?, word(0)?),
        };
        Some(SealedFrame { lead: SealedLead::of(word)?, seal, frame })
    }

    /// Whether its sender has sealed it so.
    pub(super) fn is_sealed(&self, key: &FrameKey, count: FrameCount) -> bool {
        seal(key, self.lead, count, self.frame) == self.seal
    }
}

/// The number near `expected` that has these last bits.
pub(super) fn nearest(expected: u64, last: u16) -> Option<u64> {
    let ahead = last.wrapping_sub(expected as u16) as i16;
    expected.checked_add_signed(i64::from(ahead))
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;
    use handshake::JobSecret;

    const MODES: [OfiTagMode; 3] = [OfiTagMode::Full, OfiTagMode::One, OfiTagMode::Two];
    const LEAD: SealedLead = SealedLead { source: (1 << 30) - 1, number: 0xfffe, granted: 0xffff };
    const COUNT: FrameCount = FrameCount { target: 5, number: 0x1_fffe };

    fn key() -> FrameKey {
        FrameKey::new(&JobSecret::from_bytes([3; 16]))
    }

    fn sealed(mode: OfiTagMode, length: usize) -> (Vec<u8>, MessageTag) {
        let mut message: Vec<u8> = (0..mode.lead_bytes() + length).map(|i| i as u8).collect();
        let tag = close(&key(), mode, LEAD, COUNT, &mut message);
        (message, tag)
    }

    fn is_right(mode: OfiTagMode, message: &[u8], tag: MessageTag, count: FrameCount) -> bool {
        let opened = SealedFrame::open(mode, tag.tag, tag.data.unwrap_or(0), message);
        opened.is_some_and(|frame| frame.is_sealed(&key(), count))
    }

    #[test]
    fn a_frame_opens_as_it_was_closed_and_no_bit_can_change() {
        for mode in MODES {
            for length in [0, 8, 60, SEALED] {
                let (message, tag) = sealed(mode, length);
                let data = tag.data.unwrap_or(0);
                let opened = SealedFrame::open(mode, tag.tag, data, &message).unwrap();
                assert_eq!((opened.lead, opened.frame), (LEAD, &message[mode.lead_bytes()..]));
                assert!(is_right(mode, &message, tag, COUNT));
                for bit in 0..message.len() * 8 {
                    let mut other = message.clone();
                    other[bit / 8] ^= 1 << (bit % 8);
                    assert!(!is_right(mode, &other, tag, COUNT), "{mode:?} {length} {bit}");
                }
                if let Some((_, shorter)) = message.split_last() {
                    assert!(!is_right(mode, shorter, tag, COUNT));
                }
                let later = FrameCount { number: COUNT.number + (1 << 16), ..COUNT };
                let elsewhere = FrameCount { target: 4, ..COUNT };
                assert!(!is_right(mode, &message, tag, later));
                assert!(!is_right(mode, &message, tag, elsewhere));
                if mode == OfiTagMode::Full {
                    for bit in 0..64 {
                        let data = tag.data.map(|data| data ^ 1 << bit);
                        assert!(!is_right(mode, &message, MessageTag { data, ..tag }, COUNT));
                        let other = MessageTag { tag: tag.tag ^ 1 << bit, ..tag };
                        assert!(!is_right(mode, &message, other, COUNT));
                    }
                }
            }
        }
    }

    /// Each frame of it has a header.
    #[test]
    fn all_of_a_message_of_several_frames_is_sealed() {
        for mode in MODES {
            let mut message: Vec<u8> =
                (0..mode.lead_bytes() + 4 * SEALED).map(|i| i as u8).collect();
            message[mode.lead_bytes()] = MARK;
            let tag = close(&key(), mode, LEAD, COUNT, &mut message);
            assert!(is_right(mode, &message, tag, COUNT));
            for at in 0..message.len() {
                let mut other = message.clone();
                other[at] ^= 0x10;
                assert!(!is_right(mode, &other, tag, COUNT), "{mode:?} {at}");
            }
        }
    }

    #[test]
    fn a_number_is_the_nearest_with_its_last_bits() {
        assert_eq!(nearest(0, 3), Some(3));
        assert_eq!(nearest(0, 0xffff), None);
        assert_eq!(nearest(0x1_0001, 0xffff), Some(0xffff));
        assert_eq!(nearest(0xffff, 2), Some(0x1_0002));
    }

    fn any_message(input: &[u8]) {
        let Some((head, message)) = input.split_at_checked(17) else { return };
        let word = |at: usize| head[at..].first_chunk().map_or(0, |b| u64::from_le_bytes(*b));
        let mode = MODES[usize::from(head[16]) % MODES.len()];
        if let Some(opened) = SealedFrame::open(mode, word(0), word(8), message) {
            assert!(opened.lead.source < 1 << 30);
            assert_eq!(opened.frame.len() + mode.lead_bytes(), message.len());
            // A fuzzer that sees the comparison finds the seal of one number.
            let next = FrameCount { number: COUNT.number + 1, ..COUNT };
            let is_sealed = |count| opened.is_sealed(&key(), count);
            assert!(!is_sealed(COUNT) || !is_sealed(next), "one seal for two frames");
        }
    }

    #[test]
    fn fuzz_ofi_frame() {
        fuzz::check("ofi_frame", 20_000, any_message);
    }
}
