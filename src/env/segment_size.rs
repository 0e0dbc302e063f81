//! The kind of GASNET_MAX_SEGSIZE: a size or a part of the host's memory, for a rank or for all
//! ranks of a host, as GASNet-EX writes it: `4GB/P`, `0.85/H`.
//!
//! Used by the declarations in the table and by the start of a job. Invariant: as of all kinds.

use super::kinds::{Bytes, ValueKind};

/// A limit of segments: see the head of this file.
#[derive(Clone, Debug)]
pub struct SegmentSize(pub Bytes);

/// How much memory there may be.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Amount {
    Bytes(usize),
    /// A part of the memory of the host, below 1.
    Part(f64),
}

/// Its value.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SegmentBound {
    amount: Amount,
    /// It is that of all ranks of a host together.
    is_of_host: bool,
}

impl SegmentBound {
    /// Bytes for one rank of a host with this number of ranks and bytes of memory. `None` for a
    /// part of memory of which the system says nothing, which is 0 bytes.
    pub fn of_rank(&self, ranks: u32, memory: u64) -> Option<u64> {
        let bytes = match self.amount {
            Amount::Bytes(bytes) => bytes as u64,
            Amount::Part(_) if memory == 0 => return None,
            Amount::Part(part) => (memory as f64 * part) as u64,
        };
        Some(if self.is_of_host { bytes / u64::from(ranks.max(1)) } else { bytes })
    }
}

impl ValueKind for SegmentSize {
    type Value = SegmentBound;
    type Default = SegmentBound;

    fn parse(&self, text: &str) -> Option<SegmentBound> {
        let text = text.trim().to_ascii_uppercase();
        let (amount, is_of_host) = match text.rsplit_once('/') {
            Some((amount, suffix)) if suffix.trim() == "H" => (amount, true),
            Some((amount, suffix)) if suffix.trim() == "P" => (amount, false),
            _ => (&*text, false),
        };
        let part = amount.trim().parse::<f64>().ok().filter(|&part| part > 0.0 && part < 1.0);
        let amount = match part {
            Some(part) => Amount::Part(part),
            None => Amount::Bytes(self.0.parse(amount)?),
        };
        Some(SegmentBound { amount, is_of_host })
    }

    fn accepted(&self) -> String {
        format!(
            "{} or a part of memory such as 0.5, with /H for all ranks of a host",
            self.0.accepted()
        )
    }

    fn values(&self) -> String {
        format!("{}, or a number below 1; /P or /H may follow", self.0.values())
    }

    fn default_value(&self, default: SegmentBound) -> SegmentBound {
        default
    }

    fn default_text(&self, default: SegmentBound) -> String {
        self.understood(&default).unwrap_or_default()
    }

    fn understood(&self, value: &SegmentBound) -> Option<String> {
        let amount = match value.amount {
            Amount::Bytes(bytes) => self.0.understood(&bytes)?,
            Amount::Part(part) => part.to_string(),
        };
        Some(if value.is_of_host { format!("{amount}/H") } else { amount })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_and_parts_for_a_rank_or_a_host() {
        let kind = SegmentSize(Bytes(4096..=1 << 40));
        let of_rank = |text: &str| kind.parse(text).and_then(|bound| bound.of_rank(4, 1 << 30));
        for (text, bytes) in [
            ("4MB", 4 << 20),
            ("4MB/P", 4 << 20),
            ("4mb/h", 1 << 20),
            ("0.5", 1 << 29),
            ("0.5/H", 1 << 27),
            (" 1.5 GB /P", 3 << 29),
        ] {
            assert_eq!(of_rank(text), Some(bytes), "{text}");
        }
        for bad in ["", "0", "1", "1X", "4GB/Q", "/H", "-0.5", "0.5/2", "2/3", "4GB/"] {
            assert_eq!(of_rank(bad), None, "{bad}");
        }
        let unknown = |text: &str| kind.parse(text).and_then(|bound| bound.of_rank(4, 0));
        assert_eq!((unknown("4MB/H"), unknown("0.5")), (Some(1 << 20), None));
        let shown = |text: &str| kind.understood(&kind.parse(text).unwrap()).unwrap();
        assert_eq!((&*shown("4096KB/h"), &*shown("0.85/P")), ("4 MB/H", "0.85"));
    }
}
