//! The one place that resolves an address which a client names.
//!
//! Called by `capi` and the extended layer. Invariant: a [`RemoteRange`] that is made here lies
//! in the segment of its rank, or in memory of this process.

use super::checks;
use super::endpoint::Endpoint;
use crate::client_memory::{Dst, RemoteRange, UncheckedRange};
use crate::conduit::{NULL_BASE, is_near_null};
use crate::rank::JobRank;
use crate::report;
use sys::byte_count::ByteCount;

impl<C> Endpoint<C> {
    /// These bytes of a rank: in its segment or, for this process, in other memory of its
    /// own (`Endpoint::is_own_memory`). No bytes may be anywhere. Ends the job if they are
    /// elsewhere.
    #[inline(always)]
    pub fn remote_range(
        &self,
        function: &str,
        rank: JobRank,
        bytes: UncheckedRange,
    ) -> RemoteRange {
        match self.segments_for(function)[rank].resolve(bytes.as_ptr(), bytes.len()) {
            Some(range) => range,
            None => self.outside_segments(function, rank, bytes),
        }
    }

    /// The segment of this process.
    pub fn own_segment(&self) -> Dst<'static> {
        self.segments().own()
    }

    /// What [`Endpoint::remote_range`] returns for bytes that are in no segment.
    #[cold]
    #[inline(never)]
    fn outside_segments(
        &self,
        function: &str,
        rank: JobRank,
        bytes: UncheckedRange,
    ) -> RemoteRange {
        let (addr, n) = (bytes.as_ptr(), bytes.len());
        if n != 0 && !self.is_own_memory(rank, addr, n) {
            self.outside_segment(function, rank, addr, n);
        }
        // SAFETY: no bytes, or `is_own_memory` has compared rank and addresses.
        let memory = unsafe { bytes.of_this_process() };
        RemoteRange::mapped_at(rank, usize::MAX, memory)
    }

    /// The destination of a Long, `n` bytes at `addr` of a rank. Ends the job if they are
    /// outside its segment; no bytes may be anywhere.
    pub fn long_destination(
        &self,
        function: &str,
        rank: JobRank,
        addr: *mut u8,
        n: usize,
    ) -> RemoteRange {
        match self.segment_of(rank).and_then(|segment| segment.resolve(addr, n)) {
            Some(range) => range,
            None if n != 0 => self.outside_segment(function, rank, addr, n),
            None => RemoteRange::unmapped(rank, usize::MAX, 0),
        }
    }

    /// How far from their addresses at a rank this process addresses these pieces
    /// (address, bytes); `None` if it does not. Ends the job unless all that have any bytes lie
    /// in its segment, or in other memory of this process.
    pub fn distance(
        &self,
        function: &str,
        rank: JobRank,
        pieces: impl Iterator<Item = (*mut u8, usize)>,
    ) -> Option<usize> {
        let segment = &self.segments_for(function)[rank];
        let mut distance = segment.distance();
        for (addr, n) in pieces {
            if n != 0 && segment.resolve(addr, n).is_none() {
                if !self.is_own_memory(rank, addr, n) {
                    self.outside_segment(function, rank, addr, n);
                }
                distance = Some(0);
            }
        }
        distance
    }

    /// Whether `n` bytes at `addr` are memory of this process that needs no segment. That is so if
    /// `rank` is this process, `addr` is not null, and no byte is in a segment of this host. The
    /// specification leaves puts and gets of such memory undefined and debug checks refuse them;
    /// other implementations copy, and clients rely on it. The segments of other processes lie
    /// next to that of this one: an address there is an overrun.
    fn is_own_memory(&self, rank: JobRank, addr: *const u8, n: usize) -> bool {
        let (base, len) = self.segments().mapped();
        let (first, begin) = (addr.addr(), base.addr());
        let Some(end) = first.checked_add(n) else { return false };
        rank == self.rank
            && !addr.is_null()
            && !self.segments().is_everything()
            && !checks::on()
            && (end <= begin || first >= begin + len)
    }

    /// Ends the job: `n` bytes at `addr` are not in the segment of `rank`.
    fn outside_segment(&self, function: &str, rank: JobRank, addr: *const u8, n: usize) -> ! {
        let s = &self.segments_for(function)[rank];
        if self.segments().is_everything() {
            self.no_memory(function, rank, addr, n);
        }
        if !s.is_known() {
            report::fatal(
                format_args!(
                    "{function}(): {} at {addr:p} of rank {rank}, of which no segment is known here",
                    ByteCount(n as u64)
                ),
                format_args!(
                    "Bind a segment in that rank, and let a team of both ranks call \
                     gex_EP_PublishBoundSegment."
                ),
            )
        }
        report::fatal(
            format_args!(
                "{function}(): {} at {addr:p} are outside the segment of rank {rank}, which has {} from {:p}",
                ByteCount(n as u64),
                ByteCount(s.len() as u64),
                s.base()
            ),
            if rank == self.rank && checks::on() {
                format_args!(
                    "Pass an address inside the segment; without debug checks a put or get takes other memory of one's own too."
                )
            } else {
                format_args!(
                    "Pass an address inside the segment that gasnet_getSegmentInfo or gex_EP_QueryBoundSegmentNB reports for that rank."
                )
            },
        )
    }

    /// Ends the job: in EVERYTHING, `n` bytes at `addr` cannot be memory of `rank`.
    fn no_memory(&self, function: &str, rank: JobRank, addr: *const u8, n: usize) -> ! {
        let remedy = format_args!("Pass the address of memory that rank {rank} has.");
        let of_null = format_args!("{remedy} {NULL_BASE}");
        report::fatal(
            format_args!("{function}(): {n} bytes at {addr:p} are no memory of rank {rank}"),
            if is_near_null(addr.addr()) { of_null } else { remedy },
        )
    }
}
