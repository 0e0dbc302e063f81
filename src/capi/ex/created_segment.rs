//! Segments that clients make of memory (`gex_Segment_Create`).
//!
//! Used by `segment`, whose functions clients call. Invariants: of the created segments one is
//! bound to the endpoint at most; one that is bound is never freed.

use super::job::complain;
use super::objects::{ClientData, ExObject, ExTable};
use crate::client_memory::Dst;
use crate::report;
use crate::runtime::GasnetError;
use crate::runtime::segment::PAGE;
use core::ffi::c_void;
use sys::byte_count::ByteCount;
use sys::memory::Mapping;

/// A segment that `gex_Segment_Create` has made.
#[derive(Debug)]
pub(super) struct CreatedSegment {
    pub(super) memory: Dst<'static>,
    pub(super) data: ClientData,
    /// The memory, if the library has mapped it.
    _mapping: Option<Mapping>,
}

/// Those that are not destroyed.
pub(super) static CREATED: ExTable<CreatedSegment> = ExTable::of_segments();

/// Ends the job: there is no such segment.
#[cold]
pub(super) fn no_segment(function: &str, seg: ExObject) -> ! {
    let what = match CREATED.was_destroyed(seg) {
        true => "a segment that gex_Segment_Destroy has ended",
        false => "no segment",
    };
    report::fatal(
        format_args!("{function}(): {seg:?} is {what}"),
        format_args!("Pass the segment that gex_Segment_Attach or gex_Segment_Create gave."),
    )
}

impl CreatedSegment {
    /// One of `length` bytes at `address`; of memory that the library maps if that is null.
    ///
    /// # Errors
    /// With a message each: [`GasnetError::BadArg`] for no bytes, or more than addresses;
    /// [`GasnetError::Resource`] if no memory can be mapped.
    ///
    /// # Safety
    /// Unless `address` is null, `length` bytes there must be readable and writable until the
    /// segment is destroyed.
    pub(super) unsafe fn new(
        function: &str,
        address: *mut c_void,
        length: usize,
    ) -> Result<CreatedSegment, GasnetError> {
        let bad = |what: &str, remedy: &str| {
            complain(format_args!("{function}(): {what}"), format_args!("{remedy}"));
            GasnetError::BadArg
        };
        if length == 0 {
            return Err(bad("the segment has no bytes", "Pass a length from 1 up."));
        }
        let data = ClientData::new();
        if !address.is_null() {
            if address.addr().checked_add(length).is_none() {
                return Err(bad(
                    "the segment ends beyond all addresses",
                    "Pass a smaller length.",
                ));
            }
            // SAFETY: by this function's condition.
            let memory = unsafe { Dst::new(address.cast(), length) };
            return Ok(CreatedSegment { memory, data, _mapping: None });
        }
        let mapping = length
            .checked_next_multiple_of(PAGE)
            .and_then(|bytes| Mapping::anonymous_aligned(bytes, PAGE).ok());
        let Some(mapping) = mapping else {
            complain(
                format_args!(
                    "{function}(): this process has no memory for a segment of {}",
                    ByteCount(length as u64)
                ),
                format_args!("Pass a smaller length, or raise `ulimit -v`."),
            );
            return Err(GasnetError::Resource);
        };
        // SAFETY: pages of the mapping, which lives as long as the segment.
        let memory = unsafe { Dst::new(mapping.as_ptr(), mapping.len()) };
        Ok(CreatedSegment { memory, data, _mapping: Some(mapping) })
    }
}
