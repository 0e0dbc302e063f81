//! The messages between a rank and its supervisor: a head of 16 bytes, for [`Kind::Part`] followed by data. One
//! message is one packet of the control socket, so neither side ever sees a part of one.

/// Largest number of data bytes in one message.
pub const DATA: usize = 32 << 10;

/// What a message says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Kind {
    /// Rank to supervisor: process `a` has become the rank.
    Hello = 1,
    /// Rank to supervisor: waiting in a barrier.
    Barrier,
    /// Supervisor to rank: everybody is in the barrier.
    Go,
    /// `a` bytes altogether, of which those from `b` on follow. To the supervisor: what the rank gives to an exchange;
    /// to the rank: what all gave, by rank.
    Part,
    /// Rank to supervisor: look at the exit word.
    Exit,
    /// Supervisor to rank: look at the leave word.
    Leave,
    /// Started process to supervisor: the program cannot be executed, error number `a`.
    ExecFailed,
    /// Process that has connected to supervisor: wants to be rank `a`; the cookie follows.
    Join,
    /// Supervisor to process that has connected: it is in, in a job of `a` ranks; the memory files come along.
    Seat,
}

/// The head of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Head {
    /// What it says.
    pub kind: Kind,
    /// See [`Kind`].
    pub a: u32,
    /// See [`Kind`].
    pub b: u32,
}

/// Bytes of a head.
pub const HEAD: usize = 16;

impl Head {
    /// A message without numbers.
    pub fn new(kind: Kind) -> Head {
        Head { kind, a: 0, b: 0 }
    }

    /// As sent.
    pub fn bytes(self) -> [u8; HEAD] {
        let mut m = [0; HEAD];
        m[0..4].copy_from_slice(&(self.kind as u32).to_ne_bytes());
        m[4..8].copy_from_slice(&self.a.to_ne_bytes());
        m[8..12].copy_from_slice(&self.b.to_ne_bytes());
        m
    }

    /// The head and the data of a message; `None` if it is not one.
    pub fn parse(message: &[u8]) -> Option<(Head, &[u8])> {
        let (head, data) = message.split_at_checked(HEAD)?;
        let word = |i: usize| u32::from_ne_bytes([head[i], head[i + 1], head[i + 2], head[i + 3]]);
        const KINDS: [Kind; 9] = [
            Kind::Hello,
            Kind::Barrier,
            Kind::Go,
            Kind::Part,
            Kind::Exit,
            Kind::Leave,
            Kind::ExecFailed,
            Kind::Join,
            Kind::Seat,
        ];
        let kind = KINDS.into_iter().find(|&k| k as u32 == word(0))?;
        Some((Head { kind, a: word(4), b: word(8) }, data))
    }
}

/// `data` as the messages that carry it; at least one.
pub fn parts(data: &[u8]) -> impl Iterator<Item = Vec<u8>> {
    let count = data.len().div_ceil(DATA).max(1);
    (0..count).map(move |i| {
        let at = i * DATA;
        let piece = &data[at..data.len().min(at + DATA)];
        let mut m = Head { kind: Kind::Part, a: data.len() as u32, b: at as u32 }.bytes().to_vec();
        m.extend_from_slice(piece);
        m
    })
}

/// Data put together from its parts.
#[derive(Debug, Default)]
pub struct Assembly {
    data: Vec<u8>,
    have: usize,
    begun: bool,
}

impl Assembly {
    /// Adds a part; true when the data is complete; `None` if the part does not fit.
    pub fn add(&mut self, head: Head, piece: &[u8]) -> Option<bool> {
        let (total, at) = (head.a as usize, head.b as usize);
        if !self.begun {
            self.begun = true;
            self.data = vec![0; total];
        }
        if self.data.len() != total || at != self.have {
            return None;
        }
        self.data.get_mut(at..at.checked_add(piece.len())?)?.copy_from_slice(piece);
        self.have += piece.len();
        Some(self.have == total)
    }

    /// The data, which starts anew afterwards.
    pub fn take(&mut self) -> Vec<u8> {
        core::mem::take(self).data
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn heads() {
        let h = Head { kind: Kind::Hello, a: 7, b: 9 };
        assert_eq!(Head::parse(&h.bytes()), Some((h, &[][..])));
        assert_eq!(Head::parse(&[0; HEAD]), None);
        assert_eq!(Head::parse(&[1, 0, 0]), None);
    }

    #[test]
    fn parts_make_a_whole() {
        for n in [0, 1, DATA, DATA + 1, 3 * DATA] {
            let data: Vec<u8> = (0..n).map(|i| i as u8).collect();
            let mut a = Assembly::default();
            let messages: Vec<_> = parts(&data).collect();
            for (i, m) in messages.iter().enumerate() {
                let (h, d) = Head::parse(m).unwrap();
                assert_eq!(a.add(h, d), Some(i + 1 == messages.len()));
            }
            assert_eq!(a.take(), data);
        }
    }

    #[test]
    fn parts_that_do_not_fit_are_refused() {
        let mut a = Assembly::default();
        assert_eq!(a.add(Head { kind: Kind::Part, a: 4, b: 0 }, &[1, 2]), Some(false));
        assert_eq!(a.add(Head { kind: Kind::Part, a: 5, b: 2 }, &[1]), None);
        assert_eq!(a.add(Head { kind: Kind::Part, a: 4, b: 2 }, &[1, 2, 3]), None);
    }
}
