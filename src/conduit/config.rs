//! The parameters of the conduit, from the environment, and what follows from them. That is
//! how much memory peers must reach, and how long the event queues are.
//!
//! Made by `runtime::start` before the Portals interface is opened, whose size they determine.
//! Read by every file of the conduit. Invariant: all ranks of a job compute the same
//! parameters, since what one may send is what the other has space for.

use super::credits::policy::CreditLimits;
use super::credits::{self, CreditSetup, sizing};
use super::message::{LARGEST_STASH, SHORT_PART, STASH_GAP};
use super::pinned_config::{PinnedConfig, RegisteredOnDemand};
use super::{CHUNK, MAX_EAGER};
use crate::limits::MAX_RANKS;
use crate::{env, fault, report};
use sys::byte_count::ByteCount;
use sys::limits::page_size;

/// Parameters of the conduit; see `GASNET_PORTAL_*` in `src/env/table/portals.rs`.
#[derive(Clone, Debug)]
pub struct Config {
    /// Processes of the job.
    pub nodes: u32,
    /// Threads that may call at the same time; 1 means that no two ever do, and no locks are
    /// taken.
    pub threads: usize,
    /// Messages of ours under way at once.
    pub msg_limit: u32,
    /// Temporary memory descriptors at once.
    pub num_tmpmd: u32,
    /// Largest payload of a Long that travels as one message, in bytes; 0 if none with a payload
    /// does.
    pub packed_limit: usize,
    /// Whether requests need credits.
    pub flow_control: bool,
    /// Whether what the network can do within a call is done so, without events.
    pub at_once: bool,
    /// Whether credits move to where they are needed.
    pub dynamic_credits: bool,
    /// Whether movements of credits are kept for [`super::Conduit::write_credit_stats`].
    pub credit_stats: bool,
    /// Requests received that make an epoch of the dynamic credits.
    pub epoch_duration: u32,
    /// Most credits that one process lends to another.
    pub max_cred_per_node: u16,
    /// Chunks for requests and bounce buffers.
    pub sb_chunks: u32,
    /// Areas of the outbox.
    pub outbox_areas: u32,
    /// Largest Medium in bytes.
    pub max_medium: usize,
    /// Bytes of the ring for Mediums that do not fit into one message.
    pub large_areas: usize,
    /// Chunks for replies.
    pub rpl_chunks: u32,
    /// Events of SAFE_EQ per poll, 0 for all.
    pub safe_limit: u32,
    /// Events of AM_EQ per poll, 0 for all.
    pub am_limit: u32,
    /// Events of SYS_EQ per poll, 0 for all.
    pub sys_limit: u32,
    /// Largest put that goes through a bounce buffer, in bytes.
    pub put_bounce: usize,
    /// Largest get that goes through a bounce buffer, in bytes.
    pub get_bounce: usize,
    /// Credits that each process gives to each process.
    pub credits_each: u32,
    /// How many processes, from rank 0, hold one credit more of each process.
    pub credits_extra: u32,
    /// Credits that each process keeps in its bank at first.
    pub banked_credits: u32,
    /// Request receive buffers.
    pub reqrb_buffers: u32,
    /// Chunks of one of them.
    pub reqrb_chunks: u32,
    /// Largest payload of one Portals message to a segment, in bytes; 0 if there are none.
    pub max_transfer: usize,
    /// Whether a thread of the library delivers what other hosts send.
    pub wire_thread: bool,
    /// Whether the network demands that memory is registered.
    pub registers: bool,
    /// How memory is registered on demand, if puts and gets need that.
    pub pinned: Option<PinnedConfig>,
    /// Portal table entry of the descriptors that cover the segment.
    pub pt_rar: u32,
    /// Portal table entry of the active message and system descriptors.
    pub pt_am: u32,
}

/// Portal table entries that the user does not choose; a network with a smaller table chooses
/// others.
const PT_RAR: u32 = 38;
const PT_AM: u32 = 39;
/// Fewest send tickets: those of a request handler's reply, and some to send with.
const MIN_MSG_LIMIT: u32 = 12;
/// Bytes of the ring for large Mediums, unless no payload stays at its sender. In a program
/// without the library, between near CPUs, rings of 1 to 3 MiB gave the shortest round trips of
/// 16 to 64 KiB. With 256 KiB they took up to three times as long, with 8 MiB up to twice. Between
/// far CPUs only more than 4 MiB made a difference.
const LARGE_AREAS: usize = 2 << 20;
/// Largest get through a chunk.
const MAX_GET_BOUNCE: usize = CHUNK - 8;

impl Config {
    /// The parameters for a job of `nodes` processes with up to `threads` calling threads each,
    /// from the environment. Ends the process with a line that says why if they cannot work.
    pub fn from_env(nodes: u32, threads: usize) -> Config {
        if nodes > MAX_RANKS {
            report::fatal(
                format_args!("a job of {nodes} processes is too large"),
                format_args!("Start at most {MAX_RANKS}."),
            );
        }
        let bounce = env::PORTAL_PUTGET_BOUNCE_LIMIT.get();
        // Its only value is its default.
        env::PORTAL_ACCEL.get();
        // Networks that have a use for them read them; all networks refuse wrong values.
        env::PORTAL_THREADSAFE.get();
        env::PORTAL_BYPASS.get();
        let mut config = Config {
            nodes,
            threads,
            msg_limit: env::PORTAL_MSG_LIMIT.get().max(MIN_MSG_LIMIT),
            num_tmpmd: env::PORTAL_NUM_TMPMD.get(),
            packed_limit: if env::PORTAL_PACKED_LONG.get() {
                env::PACKEDLONG_LIMIT.get()
            } else {
                0
            },
            flow_control: env::PORTAL_FLOW_CONTROL.get(),
            // Planted faults of events would not be met.
            at_once: env::PORTAL_AT_ONCE.get() && !fault::any(),
            dynamic_credits: env::PORTAL_DYNAMIC_CREDITS.get(),
            credit_stats: env::PORTAL_CREDIT_STATS.get(),
            epoch_duration: env::PORTAL_EPOCH_DURATION.get(),
            max_cred_per_node: env::PORTAL_MAX_CRED_PER_NODE.get() as u16,
            sb_chunks: env::PORTAL_SB_CHUNKS.get(),
            outbox_areas: env::PORTAL_OUTBOX_AREAS.get(),
            max_medium: env::AM_MAX_MEDIUM.get(),
            large_areas: LARGE_AREAS,
            rpl_chunks: env::PORTAL_RPL_CHUNKS.get(),
            safe_limit: env::PORTAL_SAFE_LIMIT.get(),
            am_limit: env::PORTAL_AM_LIMIT.get(),
            sys_limit: env::PORTAL_SYS_LIMIT.get(),
            put_bounce: env::PORTAL_PUT_BOUNCE_LIMIT.get().unwrap_or(bounce),
            get_bounce: env::PORTAL_GET_BOUNCE_LIMIT.get().unwrap_or(bounce.min(MAX_GET_BOUNCE)),
            credits_each: 0,
            credits_extra: 0,
            banked_credits: 0,
            reqrb_buffers: 0,
            reqrb_chunks: 1024,
            max_transfer: 1 << 30,
            wire_thread: false,
            registers: false,
            pinned: None,
            pt_rar: env::PORTAL_PTE_RAR.get().unwrap_or(PT_RAR),
            pt_am: env::PORTAL_PTE_AM.get().unwrap_or(PT_AM),
        };
        config.share_credits(
            env::PORTAL_CRED_PER_NODE.get(),
            env::PORTAL_BANKED_CREDITS.get(),
            env::PORTAL_AMRECV_SPACE.get().map(|n| n as u64),
        );
        config
    }

    /// Prepares for a network that demands registration, and ranks of which `host_ranks` share
    /// this host. A rank has up to twice `most` regions, unless the user says how many.
    /// `least_of_host` returns the least of what the ranks of this host give it. Ends the process
    /// with a line that says why if the limits cannot hold.
    pub fn register_on_demand(
        &mut self,
        on_demand: RegisteredOnDemand,
        host_ranks: u32,
        most: u32,
        least_of_host: impl FnOnce(u64) -> u64,
    ) {
        self.registers = true;
        let behind = self.pt_rar.max(self.pt_am);
        let (ranks, most) = ((self.nodes, host_ranks), (most, self.room_for_regions()));
        let pinned = PinnedConfig::from_env(on_demand, ranks, most, behind, least_of_host);
        if !pinned.targets_regions() {
            // Without regions, a local side is registered for each operation; that of the data of
            // a reply Long always.
            self.bound_temporary(pinned.for_operations());
            self.pinned = Some(pinned).filter(|pinned| pinned.firehose.is_some());
            return;
        }
        self.pinned = Some(pinned);
        // Longs whose payload travels with them need no registered memory.
        self.packed_limit = CHUNK;
        self.max_transfer = 0;
    }

    /// Regions that a rank can have besides what the conduit has without any. A network may have
    /// 16 bits for the numbers of match entries and of descriptors (`portals::emulation_limits`).
    fn room_for_regions(&self) -> u32 {
        const NUMBERS: usize = 0xfffe;
        let lists = PinnedConfig::LISTS as usize;
        let descriptors = 16 + self.reqrb_buffers as usize + self.descriptors() + 2 * lists;
        let entries = 16 + 2 * (self.match_entries() + lists);
        (NUMBERS.saturating_sub(descriptors.max(entries)) / 2) as u32
    }

    /// Lets temporary descriptors register this number of bytes together: there are fewer of them,
    /// and each covers less. Ends the process if that is too little; `bound` is what the user set.
    fn bound_temporary(&mut self, (bytes, bound): (u64, &str)) {
        if fault::on("lock_all") {
            return;
        }
        let page = page_size() as u64;
        let least = u64::from(Self::LEAST_TMPMD) * 2 * page;
        if bytes < least {
            report::fatal(
                format_args!(
                    "{} of registered memory for single operations of each rank ({bound}) are too \
                     little",
                    ByteCount(bytes)
                ),
                format_args!(
                    "Allow {} more for each rank of the host, or lower \
                     GASNET_FIREHOSE_MAXVICTIM_M.",
                    ByteCount(least - bytes)
                ),
            );
        }
        let wanted = bytes / Self::LEAST_TRANSFER;
        self.num_tmpmd = self.num_tmpmd.min(wanted.max(Self::LEAST_TMPMD.into()) as u32);
        // Bytes that begin within a page touch one more.
        let each = bytes / u64::from(self.num_tmpmd) / page * page - page;
        self.max_transfer = self.max_transfer.min(each as usize);
    }

    /// Temporary descriptors that there are at least.
    const LEAST_TMPMD: u32 = 2;
    /// Bytes of a transfer below which there are rather fewer temporary descriptors.
    const LEAST_TRANSFER: u64 = 128 << 10;

    /// Decides how many request receive buffers there are, and how much of them each peer may
    /// fill; see [`sizing`].
    ///
    /// `space` overrides the number of buffers unless both numbers of credits are given too. Ends
    /// the process with a line that says why if the parameters contradict each other.
    pub fn share_credits(&mut self, each: Option<u32>, bank: Option<u32>, space: Option<u64>) {
        let dynamic = self.flow_control && self.dynamic_credits;
        let most = u64::from(self.max_cred_per_node);
        let demand = sizing::CreditDemand {
            each: each.map(u64::from),
            bank: bank.map(u64::from),
            space,
            most_each: if dynamic { most } else { u16::MAX.into() },
            dynamic,
            ..self.demand()
        };
        let share = demand.share().unwrap_or_else(|e| {
            report::fatal(
                format_args!(
                    "request receive buffers for {} credits are too small for {} processes with {} credits each",
                    e.total, self.nodes, e.each
                ),
                format_args!(
                    "Raise GASNET_PORTAL_AMRECV_SPACE to at least {}, or lower GASNET_PORTAL_CRED_PER_NODE (at least {}).",
                    ByteCount(e.bytes),
                    credits::MIN_CREDITS
                ),
            )
        });
        self.credits_each = share.each as u32;
        self.credits_extra = share.extra as u32;
        self.banked_credits = share.bank as u32;
        self.reqrb_buffers = share.buffers as u32;
    }

    /// What the sizing of receive buffers starts from.
    fn demand(&self) -> sizing::CreditDemand {
        sizing::CreditDemand {
            nodes: self.nodes.into(),
            chunk: CHUNK,
            buffer_chunks: self.reqrb_chunks as usize,
            spares: self.spare_buffers(),
            each: None,
            bank: None,
            space: None,
            most_each: u16::MAX.into(),
            dynamic: self.dynamic_credits,
        }
    }

    /// Whether several threads may call at once.
    pub(super) fn par(&self) -> bool {
        self.threads > 1
    }

    /// Buffers beyond those that the credits fill. One replaces the buffer whose last message a
    /// handler is busy with. A process with threads has another, so that one slow handler does
    /// not stop the rest, if GASNET_PORTAL_AMRECV_SPACE has space for it.
    fn spare_buffers(&self) -> u64 {
        if self.par() { 2 } else { 1 }
    }

    /// Bytes of one request receive buffer.
    pub(super) fn buffer_bytes(&self) -> usize {
        self.reqrb_chunks as usize * CHUNK
    }

    /// What credits start from, with flow control.
    pub(super) fn credit_setup(&self) -> Option<CreditSetup> {
        let least = credits::MIN_CREDITS as u16;
        self.flow_control.then(|| CreditSetup {
            par: self.par(),
            ranks: self.nodes,
            limits: CreditLimits {
                dynamic: self.dynamic_credits,
                ..CreditLimits::new(least, self.max_cred_per_node, self.epoch_duration)
            },
            each: self.credits_each,
            extra: self.credits_extra,
            bank: self.banked_credits,
            stats: self.credit_stats,
        })
    }

    /// All credits of a process: those that it has given away, itself included, and those in its
    /// bank.
    pub(super) fn total_credits(&self) -> u64 {
        u64::from(self.credits_each) * u64::from(self.nodes)
            + u64::from(self.credits_extra)
            + u64::from(self.banked_credits)
    }

    /// Events of SAFE_EQ, AM_EQ and SYS_EQ that may be unread at once.
    pub fn event_counts(&self) -> [usize; 3] {
        // Each message under way: SEND and ACK (or REPLY). Each RplSB chunk: SEND. Each ReqSB
        // chunk: header and data of the reply.
        let safe = 2 * self.msg_limit + self.rpl_chunks + 2 * self.sb_chunks;
        // A credit is an event; each buffer has an UNLINK event.
        let buffers = u64::from(self.reqrb_buffers);
        let am = match self.flow_control {
            true => self.total_credits() + buffers,
            false => 500 + buffers * (self.demand().credits_per_buffer() + 1),
        };
        // Of each process: a CREDIT_REVOKE, a CREDIT_RETURN, a HANDLED_QUERY, a HANDLED_ANSWER,
        // two messages of its upper layer.
        [safe as usize, am as usize, 6 * self.nodes as usize + 10]
    }

    /// Bytes of the large areas; 0 if there are none.
    pub(super) fn large_area_bytes(&self) -> usize {
        match self.outbox_areas != 0 && self.max_medium > MAX_EAGER {
            true if self.large_areas != 0 => SHORT_PART + self.large_areas,
            _ => 0,
        }
    }

    /// How many small and large areas the outbox has at most.
    pub(super) fn outbox_counts(&self) -> [u32; 2] {
        let large = if self.large_area_bytes() != 0 { self.outbox_areas / 2 } else { 0 };
        [self.outbox_areas, large]
    }

    /// Bytes that [`super::Conduit::open`] takes from
    /// [`super::portals::SharedHost::alloc_library_memory`].
    pub fn library_bytes(&self) -> usize {
        let page = super::message::PAGE;
        let [small, large] = self.outbox_counts();
        let replies = if self.registers { self.rpl_chunks as usize * CHUNK } else { 0 };
        (self.sb_chunks as usize * CHUNK).next_multiple_of(page)
            + replies.next_multiple_of(page)
            + (small as usize * (MAX_EAGER + STASH_GAP)).next_multiple_of(page)
            + (large as usize * (LARGEST_STASH + STASH_GAP)).next_multiple_of(page)
            + self.large_area_bytes().next_multiple_of(page)
            + self.reqrb_buffers as usize * self.buffer_bytes().next_multiple_of(page)
    }

    /// Match entries that the conduit attaches: three of the segment, ReqSB, ReqHdr, catch basin,
    /// SYS, receive buffers.
    pub fn match_entries(&self) -> usize {
        7 + self.reqrb_buffers as usize + self.regions()
    }

    /// Memory descriptors that the conduit has at once: those of the match entries, RplSB, those
    /// that requests and system messages leave from, temporary ones.
    pub fn descriptors(&self) -> usize {
        self.match_entries() + 3 + self.num_tmpmd as usize + self.regions()
    }

    /// Whether puts and gets name memory of their targets that must be registered.
    pub fn targets_regions(&self) -> bool {
        self.pinned.as_ref().is_some_and(PinnedConfig::targets_regions)
    }

    /// Whether segments are registered on demand.
    #[cfg(feature = "libportals")]
    pub fn registers_segments(&self) -> bool {
        let pinned = self.pinned.as_ref();
        pinned.is_some_and(|pinned| pinned.on_demand == RegisteredOnDemand::Segments)
    }

    /// Bytes of the regions that this rank proposes, if peers name regions. All ranks use the
    /// least.
    pub fn region_bytes(&self) -> Option<usize> {
        let pinned = self.pinned.as_ref().filter(|pinned| pinned.targets_regions())?;
        pinned.firehose.map(|limits| limits.region_bytes)
    }

    /// How puts and gets reach memory that must be registered first, for the user; `None` if none
    /// must.
    pub fn registration(&self) -> Option<&'static str> {
        let pinned = self.pinned.as_ref().filter(|pinned| pinned.targets_regions())?;
        Some(access_to_registered(pinned.firehose.is_some()))
    }

    /// The highest portal table entry.
    pub fn last_list(&self) -> u32 {
        let regions = self.pinned.as_ref().map(|p| p.lists.end - 1);
        regions.unwrap_or(self.pt_rar.max(self.pt_am))
    }

    /// The portal table ends at `last`, and the other entries have been chosen.
    #[cfg(feature = "libportals")]
    pub fn place_lists(&mut self, last: u32) {
        let (segment, behind) = (self.pt_rar, self.pt_rar.max(self.pt_am));
        if let Some(pinned) = &mut self.pinned {
            pinned.place_lists(segment, behind, last);
        }
    }

    /// Regions of registered memory: each has a match entry and two descriptors. What catches late
    /// puts and gets counts too.
    fn regions(&self) -> usize {
        self.pinned.as_ref().map_or(0, |pinned| pinned.slots() + pinned.lists.len())
    }
}

/// How puts and gets reach memory that must be registered first, for the user.
pub(super) fn access_to_registered(with_firehose: bool) -> &'static str {
    match with_firehose {
        true => "where its owner has registered it (firehose), which it does at its next call",
        false => "by active messages (GASNET_USE_FIREHOSE is no), at the next call of its owner",
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::conduit::message::MAX_MEDIUM;
    use crate::rank::JobRank;

    /// Parameters for tests: everything as small as it can be.
    pub(in crate::conduit) fn tiny(nodes: u32, threads: usize) -> Config {
        let mut config = Config {
            nodes,
            threads,
            msg_limit: 12,
            num_tmpmd: 2,
            packed_limit: CHUNK,
            flow_control: true,
            at_once: true,
            dynamic_credits: true,
            credit_stats: true,
            epoch_duration: 16,
            max_cred_per_node: 400,
            sb_chunks: 2,
            outbox_areas: 0,
            max_medium: MAX_MEDIUM,
            large_areas: 2 << 16,
            rpl_chunks: 2,
            safe_limit: 12,
            am_limit: 8,
            sys_limit: 0,
            put_bounce: 2048,
            get_bounce: 2040,
            credits_each: 0,
            credits_extra: 0,
            banked_credits: 0,
            reqrb_buffers: 0,
            reqrb_chunks: 2,
            max_transfer: 5000,
            wire_thread: false,
            registers: false,
            pinned: None,
            pt_rar: 38,
            pt_am: 39,
        };
        config.share_credits(Some(8), Some(0), None);
        config
    }

    #[test]
    fn credits_make_buffers() {
        let mut c = tiny(2, 1);
        c.reqrb_chunks = 1024;
        // 2 x 200 + 400 credits: one buffer of 8184 credits, the rest of which is banked.
        c.share_credits(None, None, None);
        assert_eq!((c.credits_each, c.banked_credits, c.reqrb_buffers), (200, 7784, 2));
        assert_eq!((c.event_counts()[1], c.total_credits()), (8186, 8184));
        // Without dynamic credits all of it is spread.
        c.dynamic_credits = false;
        c.share_credits(None, None, None);
        assert_eq!((c.credits_each, c.credits_extra, c.banked_credits), (4092, 0, 0));
        c.nodes = 5;
        c.threads = 4;
        c.share_credits(None, None, None);
        assert_eq!((c.credits_each, c.credits_extra, c.reqrb_buffers), (1636, 4, 3));
        let setup = c.credit_setup().expect("flow control");
        let held = [3, 4].map(|rank| setup.held_by(JobRank(rank)));
        assert_eq!((held, c.total_credits()), ([1637, 1636], 8184));
        c.share_credits(Some(10), Some(10), Some(8 << 20));
        assert_eq!((c.credits_each, c.reqrb_buffers), (10, 3));
    }

    #[test]
    fn the_worked_figures() {
        let mut c = tiny(2, 1);
        (c.msg_limit, c.rpl_chunks, c.sb_chunks) = (250, 256, 2048);
        assert_eq!(c.event_counts()[0], 4852);
        assert_eq!(c.event_counts()[2], 22);
    }
}
