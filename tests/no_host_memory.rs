//! The runtime starts from a bootstrap without host memory: no rank maps memory of another, so
//! puts and gets go through Portals.
//!
//! One test, since a process has one job.

use gasnet::boot::bootstrap::Bootstrap;
use gasnet::boot::single;
use gasnet::client_memory::{Dst, Src};
use gasnet::extended::{self, rma};
use gasnet::rank::JobRank;
use gasnet::runtime::job::ClientChoice;
use gasnet::runtime::{GasnetJob, ThreadMode, segment};

#[test]
fn a_job_without_host_memory_goes_through_portals() {
    let boot = Bootstrap { host_memory: None, ..single::start().expect("a job of one rank") };
    let choice = ClientChoice { threads: ThreadMode::Par, max_segsize: 0 };
    let job = GasnetJob::start_from(boot, choice);
    job.attach(&mut [], extended::HANDLERS, 16 * segment::PAGE).expect("attach");
    extended::open(job);

    assert!(job.common_scratch().is_none(), "there is no shared memory");
    assert!(!job.placement().shares_memory(JobRank(0)), "not even with itself");
    assert!(!job.segments()[0].is_mapped(), "the segment is reached through Portals");

    let sent: Vec<u8> = (0..40_000).map(|i| (i % 251) as u8).collect();
    let target = job.remote_range("gasnet_put", 0, job.segments()[0].base, sent.len());
    assert!(target.mapped().is_none());
    let before = job.conduit.counters();
    rma::put(job, target, Src::from(&sent[..]));
    let mut received = vec![0; sent.len()];
    rma::get(job, Dst::from(&mut received[..]), target);
    let after = job.conduit.counters();
    assert_eq!(received, sent);
    assert!(after.puts > before.puts && after.gets > before.gets, "{before:?} {after:?}");
    assert!(after.bytes - before.bytes >= 2 * sent.len() as u64, "{before:?} {after:?}");

    extended::barrier(job.ctx()).both(job.ctx(), 0, 0).expect("a barrier of one rank");
}
