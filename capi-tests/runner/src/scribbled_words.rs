//! The words of a running job that all of its processes can write: where they are, and their
//! names. Used by `scribbles`.
//!
//! The memory files of the job are found in `/proc/<pid>/maps` of a rank, by their names. They are
//! read and written through `/proc/<pid>/mem`, so that the write is one of that process. Sizes and
//! orders of the structures are those of `portals/src/arena/cells.rs`, `portals/src/nal/shm.rs`,
//! `src/boot/control_memory.rs`, `src/runtime/scratch.rs` and `src/extended/scratch.rs`.
//! [`JobMemory::open`] fails if they have moved: if the process of a rank is not where its record
//! and its arena say it, or if the scratch memory has another size.

use crate::Failure;
use crate::sample::SampleRandom;
use std::fs::{self, File, OpenOptions};
use std::ops::Range;
use std::os::unix::fs::FileExt;

/// What a word belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum WordClass {
    /// Magic, cookie and size of the control memory.
    ControlHead,
    /// The decision to end the job, and the order.
    ControlExit,
    /// Status requests, and what each rank answers.
    ControlRank,
    /// Arrivals of the barrier of the job.
    Barrier,
    /// Counts of collectives that copy, of both streams.
    Movement,
    /// Slots of collectives that copy small data, and the offsets behind the slots.
    Eager,
    /// Short messages of collectives.
    CollRing,
    /// The owner and the layout of an arena.
    Ident,
    /// Drop counter, doorbell, lock of swaps.
    Counter,
    /// Descriptors in use.
    Hazard,
    /// Portal table entries.
    PtEntry,
    /// Access control entries.
    AcEntry,
    /// Match entries.
    MeCell,
    /// Descriptors, but their state.
    MdCell,
    /// States of descriptors.
    MdState,
    /// Position and size of event queues.
    EqShape,
    /// Consumers and losses of event queues.
    EqHead,
    /// Slots of events: whether one is there, of which descriptor and process.
    EventSlot,
    /// Slots of events: what they say of their messages.
    EventMessage,
    /// Buffers of the library: messages that have arrived, payloads in the outbox.
    Buffer,
    /// Heads, flags and slots of the rings of frames.
    Inbox,
}

/// All of them.
pub const CLASSES: [WordClass; 21] = [
    WordClass::ControlHead,
    WordClass::ControlExit,
    WordClass::ControlRank,
    WordClass::Barrier,
    WordClass::Movement,
    WordClass::Eager,
    WordClass::CollRing,
    WordClass::Ident,
    WordClass::Counter,
    WordClass::Hazard,
    WordClass::PtEntry,
    WordClass::AcEntry,
    WordClass::MeCell,
    WordClass::MdCell,
    WordClass::MdState,
    WordClass::EqShape,
    WordClass::EqHead,
    WordClass::EventSlot,
    WordClass::EventMessage,
    WordClass::Buffer,
    WordClass::Inbox,
];

impl WordClass {
    /// Whether its words are in use only where the ranks map each other's segments.
    pub fn is_of_mapped(self) -> bool {
        use WordClass::{Barrier, CollRing, Eager, Movement};
        matches!(self, Barrier | Movement | Eager | CollRing)
    }
}

/// A word: where it is, and its name.
#[derive(Clone, Debug)]
pub struct SharedWord {
    address: u64,
    /// 4 or 8.
    pub bytes: usize,
    /// As in `MdCell[3].length of rank 1`.
    pub name: String,
}

/// Bytes of a cache line.
const LINE: u64 = 64;
/// Hazard words of an arena.
const HAZARDS: u64 = 64;
/// Bytes of the header of an arena: identity, three counters, hazards.
const HEADER: u64 = (5 + HAZARDS) * LINE;
/// Slots of an inbox, and bytes of one.
const FRAMES: u64 = 32;
const FRAME: u64 = 4096;
const INBOX: u64 = (FRAMES + 1) * FRAME;
/// Words of the header and of a record of the control memory.
const CONTROL_HEADER: u64 = 40;
const CONTROL_RECORD: u64 = 56;
/// Bytes of the scratch page of a rank, the distance of its lines, and where the lines begin.
const SCRATCH_PAGE: u64 = 4096;
const SCRATCH_LINE: u64 = 128;
const MOVEMENT: u64 = 7 * SCRATCH_LINE;
const RINGS: u64 = 8 * SCRATCH_LINE;
/// Slots of one of the two eager areas behind the page, among up to 16 ranks: a line each. Behind
/// them are their offsets, and the counts are the last lines of whole pages.
const SLOTS: u64 = 4096;
const EAGER_AREA: u64 = (SLOTS * (LINE + 8) + SCRATCH_LINE).next_multiple_of(SCRATCH_PAGE);
/// Bytes of the scratch memory of a rank.
const SCRATCH: u64 = SCRATCH_PAGE + 2 * EAGER_AREA;

/// Fields of the structures: offset, bytes, name.
type Fields = &'static [(u64, usize, &'static str)];

const IDENT: Fields = &[
    (0, 8, "magic"),
    (8, 8, "secret_at"),
    (16, 8, "secret"),
    (24, 4, "os_pid"),
    (28, 4, "max_mes"),
    (32, 4, "max_mds"),
    (36, 4, "max_eqs"),
    (40, 4, "max_ac_index"),
    (44, 4, "max_pt_index"),
    (48, 8, "bell"),
];
const COUNTERS: Fields = &[(64, 8, "drops"), (128, 4, "doorbell"), (192, 4, "swap_lock")];
const PT: Fields = &[(0, 8, "version"), (8, 4, "head")];
const AC: Fields =
    &[(0, 8, "version"), (8, 8, "process"), (16, 8, "ids"), (24, 4, "pt_index"), (28, 4, "valid")];
const ME: Fields = &[
    (0, 8, "match_bits"),
    (8, 8, "ignore_bits"),
    (16, 8, "match_id"),
    (24, 4, "next"),
    (28, 4, "md"),
];
const MD: Fields = &[
    (0, 8, "traits"),
    (8, 8, "length"),
    (16, 8, "max_size"),
    (24, 8, "start"),
    (32, 8, "address"),
    (40, 8, "iov"),
    (48, 8, "eq_key"),
    (56, 4, "generation"),
    (60, 4, "seal"),
];
const MD_STATE: Fields = &[(64, 8, "state")];
const EQ_SHAPE: Fields = &[(0, 8, "key"), (8, 8, "ring"), (16, 8, "size")];
const EQ_HEAD: Fields = &[
    (64, 8, "head"),
    (128, 8, "losses.count"),
    (136, 8, "losses.last"),
    (144, 8, "losses.claimed"),
];
const SLOT: Fields = &[(0, 8, "control"), (8, 8, "what")];
const SLOT_MESSAGE: Fields = &[
    (16, 8, "match_bits"),
    (24, 8, "hdr_data"),
    (32, 8, "rlength"),
    (40, 8, "mlength"),
    (48, 8, "offset"),
    (56, 8, "link"),
];
const FRAME_SLOT: Fields = &[
    (0, 8, "control"),
    (8, 4, "sender"),
    (12, 4, "length"),
    (16, 8, "checksum"),
    (64, 8, "bytes"),
    (72, 8, "bytes"),
];

/// A mapped memory file.
#[derive(Clone, Copy, Debug)]
struct MappedFile {
    start: u64,
    bytes: u64,
}

/// The tables of an arena: where each begins, and its number of elements.
#[derive(Clone, Copy, Debug)]
struct ArenaTables {
    pt: (u64, u64),
    ac: (u64, u64),
    me: (u64, u64),
    md: (u64, u64),
    eq: (u64, u64),
    end: u64,
}

/// The memory of a job that its processes share, as one of them maps it.
#[derive(Debug)]
pub struct JobMemory {
    mem: File,
    ranks: u64,
    control: MappedFile,
    arena: MappedFile,
    scratch: MappedFile,
}

impl JobMemory {
    /// That of the job with these processes, by rank, as process `pid` of them maps it.
    ///
    /// # Errors
    /// The process has exited, cannot be written to, or has another layout.
    pub fn open(pid: u32, processes: &[u32]) -> Result<JobMemory, Failure> {
        let maps = fs::read_to_string(format!("/proc/{pid}/maps"))
            .map_err(|e| format!("/proc/{pid}/maps: {e}"))?;
        let file = |name: &str| {
            mapped(&maps, name).ok_or_else(|| format!("process {pid} does not map {name}"))
        };
        let mem = OpenOptions::new().read(true).write(true).open(format!("/proc/{pid}/mem"));
        let memory = JobMemory {
            mem: mem.map_err(|e| format!("/proc/{pid}/mem: {e}"))?,
            ranks: processes.len() as u64,
            control: file("gasnet-control")?,
            arena: file("gasnet-arena")?,
            scratch: file("gasnet-scratch")?,
        };
        for (rank, &process) in (0..).zip(processes) {
            let record = memory.control.start + 8 * (CONTROL_HEADER + rank * CONTROL_RECORD);
            if memory.read(record, 8)? != u64::from(process) {
                return Err("the control memory has another layout".to_string());
            }
            if memory.read(memory.arena_of(rank) + 24, 4)? != u64::from(process) {
                return Err("the arenas have another layout".to_string());
            }
        }
        if memory.scratch.bytes != memory.ranks * SCRATCH {
            return Err("the scratch memory has another layout".to_string());
        }
        Ok(memory)
    }

    /// Whether this process maps the memory of a job: it has not begun to exit.
    pub fn is_mapped_by(pid: u32) -> bool {
        fs::read_to_string(format!("/proc/{pid}/maps"))
            .is_ok_and(|maps| mapped(&maps, "gasnet-control").is_some())
    }

    /// A word of this class of any rank, mostly of a part that is in use. `None` if the class has
    /// none here.
    ///
    /// # Errors
    /// The process has exited.
    pub fn pick(
        &self,
        class: WordClass,
        random: &mut SampleRandom,
    ) -> Result<Option<SharedWord>, Failure> {
        let rank = random.below(self.ranks);
        let arena = self.arena_of(rank);
        let word = match class {
            WordClass::ControlHead => {
                let (i, name) = *random.pick(&[(0, "magic"), (1, "cookie"), (2, "ranks")]);
                return Ok(Some(self.control(i, name.to_string())));
            }
            WordClass::ControlExit => {
                let (i, name) = *random.pick(&[(8, "decision"), (16, "order")]);
                return Ok(Some(self.control(i, name.to_string())));
            }
            WordClass::ControlRank => return Ok(Some(self.control_rank(rank, random))),
            WordClass::Barrier => self.barrier(rank, random),
            WordClass::Movement => {
                let (i, name) = *random.pick(&[(0, "entered"), (1, "left")]);
                let stream = random.below(4) / 3;
                let counts = if stream == 0 { MOVEMENT } else { SCRATCH - SCRATCH_LINE };
                self.scratch(rank, counts + 8 * i, &format!("movement[{stream}].{name}"))
            }
            WordClass::Eager => self.eager(rank, random),
            WordClass::CollRing => {
                let line = random.below((SCRATCH_PAGE - RINGS) / LINE);
                let i = random.below(3) / 2 * random.below(8);
                self.scratch(rank, RINGS + line * LINE + 8 * i, &format!("ring[{line}].word[{i}]"))
            }
            WordClass::Ident => field(arena, IDENT, "Ident", random),
            WordClass::Counter => field(arena, COUNTERS, "ArenaHeader", random),
            WordClass::Hazard => {
                let i = random.below(4) / 3 * random.below(HAZARDS + 1);
                let name = match i.checked_sub(1) {
                    None => "Hazards.used".to_string(),
                    Some(slot) => format!("Hazards.slots[{slot}]"),
                };
                SharedWord { address: arena + (4 + i) * LINE, bytes: 8, name }
            }
            WordClass::PtEntry => {
                self.cell(arena, self.tables(arena)?.pt, LINE, PT, "PtEntry", random)?
            }
            WordClass::AcEntry => {
                field(self.tables(arena)?.ac.0 + arena, AC, "AcEntry[0]", random)
            }
            WordClass::MeCell => {
                self.cell(arena, self.tables(arena)?.me, LINE, ME, "MeCell", random)?
            }
            WordClass::MdCell => {
                self.cell(arena, self.tables(arena)?.md, 2 * LINE, MD, "MdCell", random)?
            }
            WordClass::MdState => {
                self.cell(arena, self.tables(arena)?.md, 2 * LINE, MD_STATE, "MdCell", random)?
            }
            WordClass::EqShape => {
                self.cell(arena, self.tables(arena)?.eq, 3 * LINE, EQ_SHAPE, "EqCell", random)?
            }
            WordClass::EqHead => {
                self.cell(arena, self.tables(arena)?.eq, 3 * LINE, EQ_HEAD, "EqCell", random)?
            }
            WordClass::EventSlot | WordClass::EventMessage => {
                let fields = if class == WordClass::EventSlot { SLOT } else { SLOT_MESSAGE };
                match self.event_slot(arena, fields, random)? {
                    Some(word) => word,
                    None => return Ok(None),
                }
            }
            WordClass::Buffer => self.buffer(arena, random)?,
            WordClass::Inbox => self.inbox(rank, random),
        };
        Ok(Some(SharedWord { name: format!("{} of rank {rank}", word.name), ..word }))
    }

    /// The value of a word.
    ///
    /// # Errors
    /// The process has exited.
    pub fn value(&self, word: &SharedWord) -> Result<u64, Failure> {
        self.read(word.address, word.bytes)
    }

    /// Overwrites a word.
    ///
    /// # Errors
    /// The process has exited.
    pub fn overwrite(&self, word: &SharedWord, value: u64) -> Result<(), Failure> {
        self.mem
            .write_all_at(&value.to_le_bytes()[..word.bytes], word.address)
            .map_err(|e| format!("{}: {e}", word.name))
    }

    fn read(&self, address: u64, bytes: usize) -> Result<u64, Failure> {
        let mut word = [0; 8];
        self.mem
            .read_exact_at(&mut word[..bytes], address)
            .map_err(|e| format!("{address:#x}: {e}"))?;
        Ok(u64::from_le_bytes(word))
    }

    fn arena_of(&self, rank: u64) -> u64 {
        self.arena.start + self.arena.bytes / self.ranks * rank
    }

    fn arena_bytes(&self) -> u64 {
        self.arena.bytes / self.ranks - INBOX
    }

    fn tables(&self, arena: u64) -> Result<ArenaTables, Failure> {
        let limit = |field: u64| self.read(arena + field, 4);
        let (mes, mds, eqs) = (limit(28)?, limit(32)?, limit(36)?);
        let (acs, pts) = (limit(40)? + 1, limit(44)? + 1);
        let ac = HEADER + pts * LINE;
        let me = ac + acs * LINE;
        let md = me + mes * LINE;
        let eq = md + mds * 2 * LINE;
        let end = eq + eqs * 3 * LINE;
        let whole = ArenaTables {
            pt: (HEADER, pts),
            ac: (ac, acs),
            me: (me, mes),
            md: (md, mds),
            eq: (eq, eqs),
            end,
        };
        if end < self.arena_bytes() { Ok(whole) } else { Err("an arena has no tables".into()) }
    }

    /// A field of an element that is in use, or of any.
    fn cell(
        &self,
        arena: u64,
        (table, count): (u64, u64),
        size: u64,
        fields: Fields,
        name: &str,
        random: &mut SampleRandom,
    ) -> Result<SharedWord, Failure> {
        let mut bytes = vec![0; (count * size) as usize];
        self.mem.read_exact_at(&mut bytes, arena + table).map_err(|e| format!("{name}: {e}"))?;
        let used: Vec<u64> = (0..count)
            .filter(|&i| bytes[(i * size) as usize..][..size as usize].iter().any(|&b| b != 0))
            .collect();
        let i = match used.is_empty() || random.below(16) == 0 {
            true => random.below(count),
            false => *random.pick(&used),
        };
        Ok(field(arena + table + i * size, fields, &format!("{name}[{i}]"), random))
    }

    /// Mostly of a slot that a consumer is near.
    fn event_slot(
        &self,
        arena: u64,
        fields: Fields,
        random: &mut SampleRandom,
    ) -> Result<Option<SharedWord>, Failure> {
        let (table, count) = self.tables(arena)?.eq;
        let queue = random.below(count.min(3));
        let Range { start, end } = self.rings(arena)?[queue as usize];
        let size = (end - start) / LINE;
        if size == 0 || end > self.arena_bytes() {
            return Ok(None);
        }
        let head = self.read(arena + table + queue * 3 * LINE + LINE, 8)?;
        let near = head.wrapping_add(random.below(8)).wrapping_sub(3);
        let i = if random.below(4) == 0 { random.below(size) } else { near % size };
        let name = format!("EventSlot[{i}] of queue {queue}");
        Ok(Some(field(arena + start + i * LINE, fields, &name, random)))
    }

    /// Mostly one that something was written to; none of an event slot.
    fn buffer(&self, arena: u64, random: &mut SampleRandom) -> Result<SharedWord, Failure> {
        let (first, end) = (self.tables(arena)?.end.next_multiple_of(LINE), self.arena_bytes());
        let rings = self.rings(arena)?;
        let mut offset = end - 8;
        for _ in 0..200 {
            let at = first + random.below((end - first) / 8) * 8;
            if rings.iter().any(|ring| ring.contains(&at)) {
                continue;
            }
            offset = at;
            if self.read(arena + offset, 8)? != 0 {
                break;
            }
        }
        Ok(SharedWord {
            address: arena + offset,
            bytes: 8,
            name: format!("arena byte {offset:#x}"),
        })
    }

    /// Where the slots of each event queue are in its arena.
    fn rings(&self, arena: u64) -> Result<Vec<Range<u64>>, Failure> {
        let (table, count) = self.tables(arena)?.eq;
        let ring = |queue: u64| {
            let cell = arena + table + queue * 3 * LINE;
            let (ring, size) = (self.read(cell + 8, 8)?, self.read(cell + 16, 8)?);
            Ok(ring..ring.saturating_add(size.saturating_mul(LINE)))
        };
        (0..count).map(ring).collect()
    }

    fn inbox(&self, rank: u64, random: &mut SampleRandom) -> SharedWord {
        let inbox = self.arena_of(rank) + self.arena_bytes();
        match random.below(3) {
            0 => SharedWord { address: inbox, bytes: 8, name: "FrameInbox.head".into() },
            1 => SharedWord { address: inbox + LINE, bytes: 4, name: "FrameInbox.flag".into() },
            _ => {
                let i = random.below(3) / 2 * random.below(FRAMES);
                let slot = inbox + 2 * LINE + i * FRAME;
                field(slot, FRAME_SLOT, &format!("FrameSlot[{i}]"), random)
            }
        }
    }

    fn barrier(&self, rank: u64, random: &mut SampleRandom) -> SharedWord {
        // The line of the own word, those of the nodes of the tree, that of the release.
        let line = if self.ranks <= 8 { random.below(4) / 3 } else { *random.pick(&[1, 2, 6]) };
        let parity = random.below(2);
        let name = match line {
            0 => "own".to_string(),
            6 => "release".to_string(),
            level => format!("tree[{}]", level - 1),
        };
        self.scratch(rank, line * SCRATCH_LINE + 8 * parity, &format!("barrier.{name}[{parity}]"))
    }

    /// A word of a slot of stream 0, mostly of the first ones, or of its offset.
    fn eager(&self, rank: u64, random: &mut SampleRandom) -> SharedWord {
        let slots = if random.below(4) == 0 { SLOTS } else { 64 };
        let slot = random.below(slots);
        match random.below(2) {
            0 => {
                let i = random.below(8);
                let offset = SCRATCH_PAGE + slot * LINE + 8 * i;
                self.scratch(rank, offset, &format!("eager.slot[{slot}].word[{i}]"))
            }
            _ => {
                let offset = SCRATCH_PAGE + SLOTS * LINE + 8 * slot;
                self.scratch(rank, offset, &format!("eager.offset[{slot}]"))
            }
        }
    }

    fn scratch(&self, rank: u64, offset: u64, name: &str) -> SharedWord {
        let address = self.scratch.start + rank * SCRATCH + offset;
        SharedWord { address, bytes: 8, name: name.to_string() }
    }

    fn control(&self, i: u64, name: String) -> SharedWord {
        let address = self.control.start + 8 * i;
        SharedWord { address, bytes: 8, name: format!("control.{name}") }
    }

    fn control_rank(&self, rank: u64, random: &mut SampleRandom) -> SharedWord {
        let record = CONTROL_HEADER + rank * CONTROL_RECORD;
        let error = 32 + random.below(8);
        let (i, name) = *random.pick(&[
            (24, "request"),
            (25, "requests"),
            (error, "error"),
            (record, "pid"),
            (record + 1, "sent"),
            (record + 2, "armed"),
            (record + 3, "answered"),
            (record + 4, "length"),
            (record + 5, "withheld"),
            (record + 6, "printing"),
            (record + 8, "polls_since"),
            (record + 9, "polls"),
            (record + 10, "waited"),
            (record + 11, "waits_since"),
            (record + 16, "answer[0]"),
        ]);
        let of = if i < CONTROL_HEADER { String::new() } else { format!(" of rank {rank}") };
        self.control(i, format!("{name}{of}"))
    }
}

/// One of the fields of a structure at this address.
fn field(at: u64, fields: Fields, name: &str, random: &mut SampleRandom) -> SharedWord {
    let &(offset, bytes, of) = random.pick(fields);
    SharedWord { address: at + offset, bytes, name: format!("{name}.{of}") }
}

/// The longest mapping of this memory file.
fn mapped(maps: &str, name: &str) -> Option<MappedFile> {
    let wanted = format!("/memfd:{name}");
    let ranges = maps.lines().filter_map(|line| {
        let mut words = line.split_whitespace();
        let (start, end) = words.next()?.split_once('-')?;
        (words.nth(4)? == wanted).then_some(())?;
        let start = u64::from_str_radix(start, 16).ok()?;
        Some(MappedFile { start, bytes: u64::from_str_radix(end, 16).ok()? - start })
    });
    ranges.max_by_key(|file| file.bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mappings_are_found_by_name() {
        let maps = "7000-9000 rw-s 00000000 00:01 7 /memfd:gasnet-arena (deleted)\n\
                    a000-b000 rw-p 00000000 00:00 0 [heap]\n";
        let file = mapped(maps, "gasnet-arena").unwrap();
        assert_eq!((file.start, file.bytes), (0x7000, 0x2000));
        assert!(mapped(maps, "gasnet-control").is_none());
    }
}
