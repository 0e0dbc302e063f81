//! The portals-conduit: GASNet's puts, gets and active messages in terms of Portals 3.3.
//!
//! Opened by `runtime::start`, called through [`network::JobConduit`]. Generic over
//! [`portals::Portals`]; what comes up from the network goes to the [`Upcall`] that every call is
//! handed. Invariant: the conduit imports nothing of the layers above it.
//!
//! One file for each noun of the README of GASNet's portals-conduit:
//!
//! | file | noun |
//! |---|---|
//! | `rar`, `reqsb`, `rplsb`, `reqrb`, `tmpmd`, `system` | the descriptors, and the memory behind them |
//! | `firehose`, `pinned`, `pinned_config` | memory that the network must have registered: the scheme, its use, its limits |
//! | `refused` | the report of an access to memory that is not there |
//! | `queue` | the event queues |
//! | `message` | what the conduit carries, as the layers above name it |
//! | `match_bits`, `user` | what travels in match bits; which descriptor an event is about |
//! | `am_body` | the bodies of active messages |
//! | `tickets`, `credits`, `lid_cache` | limits of the traffic; halves of Longs |
//! | `reply_token` | what a reply needs: the kit, the token |
//! | `implicit` | replies of handlers that sent none |
//! | `outbox` | payloads that stay at their sender |
//! | `large_areas`, `pieces` | payloads of large Mediums: in memory of their sender, in pieces |
//! | `arrived`, `client_thread` | messages that wait for their handlers; the calling threads |
//! | `prefetch` | the cache lines of a payload that has arrived |
//! | `hold` | what a chunk or a temporary descriptor is held for |
//! | `config`, `memory`, `sync`, `primitive` | parameters; buffers; locks and lists; atomics, which models replace |
//! | `upcall` | what the conduit asks of the layer above |
//! | `portals` | the Portals calls that the conduit makes, and their implementations |
//! | `start_exchange` | the exchange of bytes at a start without memory files |
//! | `state` | [`Conduit`]: all of these as one |
//!
//! And one for each thing that a conduit does:
//!
//! | file | what it does |
//! |---|---|
//! | `put`, `get` | puts and gets |
//! | `at_once`, `pinned_at_once` | those that the network completes within the call; the same of registered memory |
//! | `request`, `request_send`, `reply_send` | active messages that leave |
//! | `am_plan`, `am_send` | their form; what both share |
//! | `negotiated_request` | whether an active message that is prepared would wait |
//! | `large_medium` | Mediums that do not fit into one message |
//! | `own_messages` | active messages of a rank to itself |
//! | `request_recv`, `reply_recv`, `am_recv` | those that arrive; what both share |
//! | `pinned_transfer`, `pinned_messages`, `pinned_events` | puts and gets of registered memory; their messages; their events |
//! | `safe`, `system_messages` | what each event of SAFE_EQ and of SYS_EQ does |
//! | `lost`, `loss_search` | messages that a waiting rank proves lost; what proves it |
//! | `wait`, `poll` | waiting with SAFE polls; full polls, and waiting with them |
//! | `network` | the conduit over each Portals of the build |
//!
//! Each of these uses those to its right:
//!
//! ```text
//!   request_send ──> poll ──> request_recv ──> reply_send ──┐
//!                                                           ├──> wait ──> safe ──> reply_recv
//!                                          put, get ────────┘
//! ```
//!
//! A reply that arrives runs its handler and sends nothing, so the chain ends there. A handler
//! calls back through [`Upcall`].
//!
//! # Polling
//!
//! A poll serves SYS_EQ, then SAFE_EQ, then AM_EQ, each up to a limit (that of SYS_EQ is off by
//! default). Inside a handler it serves SAFE_EQ only. AM_EQ is served only after reserving all
//! that a handler's reply may need. SAFE_EQ may be served at any time: its events give resources
//! back and run reply handlers, and they need no resource. A thread waits with SAFE polls for what
//! its own events give back (tickets, temporary descriptors, SEND events). It waits with full
//! polls for what replies give back (credits, ReqSB chunks). Peers that wait for us in the same
//! state must get our replies. Handlers never nest on a thread and run with no lock held; any
//! thread may run any of them.
#![cfg_attr(not(test), deny(clippy::std_instead_of_core, clippy::std_instead_of_alloc))]

mod am_body;
mod am_plan;
mod am_recv;
mod am_send;
mod arrived;
mod at_once;
mod client_thread;
mod config;
pub mod credits;
pub mod firehose;
mod get;
mod hold;
mod implicit;
mod large_areas;
mod large_medium;
mod lid_cache;
mod loss_search;
mod lost;
mod match_bits;
mod memory;
mod message;
mod negotiated_request;
pub mod network;
mod outbox;
mod own_messages;
mod par_lists;
mod pieces;
mod pinned;
mod pinned_at_once;
mod pinned_config;
mod pinned_events;
mod pinned_messages;
mod pinned_transfer;
mod poll;
pub mod portals;
mod prefetch;
mod primitive;
mod put;
mod queue;
mod rar;
mod refused;
mod reply_recv;
mod reply_send;
mod reply_token;
mod reqrb;
mod reqsb;
mod request;
mod request_recv;
mod request_send;
mod rplsb;
mod safe;
#[cfg(any(feature = "libportals", test))]
mod start_exchange;
mod state;
mod sync;
mod system;
mod system_messages;
#[cfg(test)]
mod tests;
mod tickets;
mod tmpmd;
mod upcall;
mod user;
mod wait;

pub use at_once::RmaClaim;
pub use config::Config;
pub use credits::MIN_CREDITS;
pub use large_areas::PayloadArea;
pub use loss_search::{WaitStage, WaitingProcess};
pub use message::{
    AmMessage, CHUNK, Category, MAX_ARGS, MAX_EAGER, OpId, Outgoing, SystemMessage,
};
pub use negotiated_request::NegotiatedPayload;
pub use pinned_config::{PinnedConfig, RegisteredOnDemand, SegmentBlocks};
pub use pinned_messages::PINNED_HANDLERS;
pub use portals::{MOST_PIECES, SCATTERED, ScatteredRma};
pub use rar::ExposedMemory;
pub use refused::{NULL_BASE, RefusedAccess, is_near_null};
pub use reply_token::ReplyToken;
pub use state::{Conduit, ConduitStats};
pub use upcall::{ResourceNeed, Upcall};
