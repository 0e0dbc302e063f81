//! The figures of the conduit, from the environment, and what follows from them: how much memory peers must reach and
//! how long the event queues are, so that the Portals interface can be sized before it is opened.
//!
//! Made by the core room before the network; read by every file of the conduit. Invariant: all processes of a job
//! compute the same figures, since what one may send is what the other has room for.

use super::credits;
use super::{CHUNK, MAX_NODES};
use crate::{env, report};

/// Figures of the conduit; see `GASNET_PORTAL_*` in [`crate::env::TABLE`].
#[derive(Clone, Debug)]
pub struct Config {
    /// Processes of the job.
    pub nodes: u32,
    /// Threads that may call at the same time; 1 means that no two ever do, and no locks are taken.
    pub threads: usize,
    /// Messages of ours under way at once.
    pub msg_limit: u32,
    /// Temporary memory descriptors at once.
    pub num_tmpmd: u32,
    /// Whether small Longs travel as one message.
    pub packed_long: bool,
    /// Whether requests need credits.
    pub flow_control: bool,
    /// Chunks for requests and bounce buffers.
    pub sb_chunks: u32,
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
    /// How many processes, from rank 0, hold one credit more of everybody.
    pub credits_extra: u32,
    /// Request receive buffers.
    pub reqrb_buffers: u32,
    /// Chunks of one of them.
    pub reqrb_chunks: u32,
    /// Largest payload of one Portals message, in bytes.
    pub max_transfer: usize,
}

/// Fewest send tickets: those of a request handler's reply, and some to send with.
const MIN_MSG_LIMIT: u32 = 12;

impl Config {
    /// The figures for a job of `nodes` processes with up to `threads` calling threads each, from the environment.
    /// Ends the process with a line that says why if they cannot work.
    pub fn from_env(nodes: u32, threads: usize) -> Config {
        let int = |name| env::int(name).and_then(|n| u32::try_from(n).ok());
        let must = |name| int(name).unwrap_or_else(|| unreachable!("{name} has a default and bounds"));
        let bytes = |name| env::mem(name).unwrap_or_else(|| unreachable!("{name} has a default")) as usize;
        if nodes > MAX_NODES {
            report::fatal(
                format_args!("a job of {nodes} processes is too large"),
                format_args!("Start at most {MAX_NODES}."),
            );
        }
        let mut config = Config {
            nodes,
            threads,
            msg_limit: must("GASNET_PORTAL_MSG_LIMIT").max(MIN_MSG_LIMIT),
            num_tmpmd: must("GASNET_PORTAL_NUM_TMPMD"),
            packed_long: env::yes("GASNET_PORTAL_PACKED_LONG"),
            flow_control: env::yes("GASNET_PORTAL_FLOW_CONTROL"),
            sb_chunks: must("GASNET_PORTAL_SB_CHUNKS"),
            rpl_chunks: must("GASNET_PORTAL_RPL_CHUNKS"),
            safe_limit: must("GASNET_PORTAL_SAFE_LIMIT"),
            am_limit: must("GASNET_PORTAL_AM_LIMIT"),
            sys_limit: must("GASNET_PORTAL_SYS_LIMIT"),
            put_bounce: bytes("GASNET_PORTAL_PUT_BOUNCE_LIMIT"),
            get_bounce: bytes("GASNET_PORTAL_GET_BOUNCE_LIMIT"),
            credits_each: 0,
            credits_extra: 0,
            reqrb_buffers: 0,
            reqrb_chunks: 1024,
            max_transfer: 1 << 30,
        };
        config.share_credits(
            int("GASNET_PORTAL_CRED_PER_NODE"),
            int("GASNET_PORTAL_BANKED_CREDITS"),
            env::mem("GASNET_PORTAL_AMRECV_SPACE"),
        );
        config
    }

    /// Decides how many request receive buffers there are, and who may fill how much of them.
    ///
    /// The credits of all processes and of the bank make a number of buffers, rounded up, beside the spare ones.
    /// `space` overrides their number unless both credit figures are given too. Without `each`, nothing stays in the
    /// bank, because nothing would ever leave it: all credits are spread, one more to the lowest ranks if they do not
    /// divide.
    pub fn share_credits(&mut self, each: Option<u32>, bank: Option<u32>, space: Option<u64>) {
        let nodes = u64::from(self.nodes);
        let (table_each, table_bank) = credits::initial(nodes);
        let wanted = each.map_or(table_each, u64::from) * nodes + bank.map_or(table_bank, u64::from);
        let per_buffer = self.credits_per_buffer();
        let mut buffers = wanted.div_ceil(per_buffer);
        if let (Some(space), false) = (space, each.is_some() && bank.is_some()) {
            let fit = space / self.buffer_bytes() as u64;
            buffers = fit.saturating_sub(u64::from(self.spare_buffers())).max(1);
        }
        let total = buffers * per_buffer;
        let (share, extra) = match each {
            Some(each) => (u64::from(each), 0),
            None => (total / nodes, total % nodes),
        };
        let least = u64::from(credits::MIN_CREDITS);
        if share < least || share * nodes > total {
            report::fatal(
                format_args!(
                    "request receive buffers for {total} credits are too small for {nodes} processes with {} credits each",
                    share.max(least)
                ),
                format_args!(
                    "Raise GASNET_PORTAL_AMRECV_SPACE to at least {} bytes, or lower GASNET_PORTAL_CRED_PER_NODE (at least {least}).",
                    ((share.max(least) * nodes).div_ceil(per_buffer) + u64::from(self.spare_buffers()))
                        * self.buffer_bytes() as u64
                ),
            );
        }
        self.credits_each = share as u32;
        self.credits_extra = extra as u32;
        self.reqrb_buffers = buffers as u32 + self.spare_buffers();
    }

    /// Whether several threads may call at once.
    pub(super) fn par(&self) -> bool {
        self.threads > 1
    }

    /// Buffers beyond those that the credits fill: one whose last message a handler is busy with, and in a process
    /// with threads another, so that one slow handler does not stop the rest.
    fn spare_buffers(&self) -> u32 {
        if self.par() { 2 } else { 1 }
    }

    /// Bytes of one request receive buffer.
    pub(super) fn buffer_bytes(&self) -> usize {
        self.reqrb_chunks as usize * CHUNK
    }

    /// Credits that one buffer is good for: it goes out of use when less than a chunk is left, so its last chunk does
    /// not count.
    fn credits_per_buffer(&self) -> u64 {
        (self.buffer_bytes() - CHUNK) as u64 / credits::CREDIT_BYTES as u64
    }

    /// Credits that the process with this rank holds of each process.
    pub(super) fn credits_of(&self, rank: u32) -> u32 {
        self.credits_each + u32::from(rank < self.credits_extra)
    }

    /// Credits that a process has given away, itself included.
    pub(super) fn credits_given(&self) -> u64 {
        u64::from(self.credits_each) * u64::from(self.nodes) + u64::from(self.credits_extra)
    }

    /// Events of SAFE_EQ, AM_EQ and SYS_EQ that may be unread at once.
    pub fn event_counts(&self) -> [usize; 3] {
        // Each message under way: SEND and ACK (or REPLY). Each RplSB chunk: SEND. Each ReqSB chunk: SEND of the
        // request, header and data of the reply.
        let safe = 2 * self.msg_limit + self.rpl_chunks + 3 * self.sb_chunks;
        // A credit is an event; each buffer has an UNLINK event.
        let buffers = u64::from(self.reqrb_buffers);
        let am = match self.flow_control {
            true => self.credits_given() + buffers,
            false => 500 + buffers * (self.credits_per_buffer() + 1),
        };
        [safe as usize, am as usize, 2 * self.nodes as usize + 10]
    }

    /// Bytes that [`super::Conduit::open`] takes from [`super::portals::Extension::alloc_library_memory`].
    pub fn library_bytes(&self) -> usize {
        let page = super::PAGE;
        (self.sb_chunks as usize * CHUNK).next_multiple_of(page)
            + self.reqrb_buffers as usize * self.buffer_bytes().next_multiple_of(page)
    }

    /// Match entries that the conduit attaches: three of the segment, ReqSB, catch basin, SYS, receive buffers.
    pub fn match_entries(&self) -> usize {
        6 + self.reqrb_buffers as usize
    }

    /// Memory descriptors that the conduit has at once: those of the match entries, RplSB, the one that system
    /// messages leave from, temporary ones.
    pub fn descriptors(&self) -> usize {
        self.match_entries() + 2 + self.num_tmpmd as usize
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// Figures for tests: everything as small as it can be.
    pub(in crate::conduit) fn tiny(nodes: u32, threads: usize) -> Config {
        let mut config = Config {
            nodes,
            threads,
            msg_limit: 12,
            num_tmpmd: 2,
            packed_long: true,
            flow_control: true,
            sb_chunks: 2,
            rpl_chunks: 2,
            safe_limit: 12,
            am_limit: 8,
            sys_limit: 0,
            put_bounce: 2048,
            get_bounce: 2040,
            credits_each: 0,
            credits_extra: 0,
            reqrb_buffers: 0,
            reqrb_chunks: 2,
            max_transfer: 5000,
        };
        config.share_credits(Some(8), Some(0), None);
        config
    }

    #[test]
    fn credits_make_buffers() {
        let mut c = tiny(2, 1);
        c.reqrb_chunks = 1024;
        // 2 x 200 + 400 credits: one buffer of 8184 credits, all of which are spread.
        c.share_credits(None, None, None);
        assert_eq!((c.credits_each, c.credits_extra, c.reqrb_buffers), (4092, 0, 2));
        assert_eq!(c.event_counts()[1], 8186);
        c.nodes = 5;
        c.threads = 4;
        c.share_credits(None, None, None);
        assert_eq!((c.credits_each, c.credits_extra, c.reqrb_buffers), (1636, 4, 3));
        assert_eq!((c.credits_of(3), c.credits_of(4), c.credits_given()), (1637, 1636, 8184));
        // Said is said.
        c.share_credits(Some(8), None, None);
        assert_eq!((c.credits_each, c.credits_extra), (8, 0));
        // 8 MiB are four buffers, two of them spare.
        c.share_credits(None, None, Some(8 << 20));
        assert_eq!((c.reqrb_buffers, c.credits_given()), (4, 2 * 8184));
        // Both credit figures win over the space.
        c.share_credits(Some(10), Some(10), Some(8 << 20));
        assert_eq!(c.reqrb_buffers, 3);
    }

    #[test]
    fn the_worked_figures() {
        let mut c = tiny(2, 1);
        (c.msg_limit, c.rpl_chunks, c.sb_chunks) = (250, 256, 2048);
        assert_eq!(c.event_counts()[0], 6900);
        assert_eq!(c.event_counts()[2], 14);
    }
}
