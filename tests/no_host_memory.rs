//! The runtime starts from a bootstrap without host memory: no rank maps memory of another, so
//! puts and gets go through Portals.
//!
//! One test, since a process has one job.

use gasnet::boot::bootstrap::Bootstrap;
use gasnet::boot::single;
use gasnet::client_memory::{Dst, Src};
use gasnet::extended::{self, rma};
use gasnet::rank::JobRank;
use gasnet::runtime::client::{GasnetClient, SegmentMode};
use gasnet::runtime::{GasnetJob, ThreadMode, segment};

#[test]
fn a_job_without_host_memory_goes_through_portals() {
    let boot = Bootstrap { host_memory: None, ..single::start().expect("a job of one rank") };
    let choice =
        GasnetClient { threads: ThreadMode::Par, segments: SegmentMode::Fast, max_segsize: 0 };
    let job = GasnetJob::start_from("gasnet_init", boot, choice);
    extended::open(job);
    job.attach_segment("a test", 16 * segment::PAGE).expect("attach");
    extended::attached(job);

    assert!(job.common_scratch().is_none(), "there is no shared memory");
    assert!(!job.placement().shares_memory(JobRank(0)), "not even with itself");
    assert!(
        !job.endpoint.segments()[JobRank(0)].is_mapped(),
        "the segment is reached through Portals"
    );

    let sent: &[u8] = (0..40_000).map(|i| (i % 251) as u8).collect::<Vec<u8>>().leak();
    let segment = &job.endpoint.segments()[JobRank(0)];
    let target = segment.resolve(segment.base(), sent.len()).expect("bytes of the segment");
    assert!(target.mapped().is_none());
    let before = job.endpoint.conduit.counters();
    rma::put(job, target, Src::from(sent));
    let arrived = Dst::from(vec![0u8; sent.len()].leak());
    rma::get(job, arrived, target);
    let after = job.endpoint.conduit.counters();
    let mut received = vec![0; sent.len()];
    Dst::from(&mut received[..]).copy_from(arrived.into());
    assert_eq!(received, sent);
    assert!(after.puts > before.puts && after.gets > before.gets, "{before:?} {after:?}");
    assert!(after.bytes - before.bytes >= 2 * sent.len() as u64, "{before:?} {after:?}");

    extended::barrier(job.ctx()).both(job.ctx(), 0, 0).expect("a barrier of one rank");
}
