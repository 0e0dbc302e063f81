//! Variables of the vector, indexed and strided puts and gets, and of the collectives.

use crate::env::kinds::{Bytes, FreeText, Integer, TreeName, YesNo};
use crate::env::variable::variables;

const TB: usize = 1 << 40;

variables! {
    /// Pack the small pieces of vector, indexed and strided puts and gets into active messages.
    /// By default, where puts and gets complete only in calls of their target: those of other
    /// hosts with GASNET_PROGRESS=POLL, and EVERYTHING without cross-memory attach.
    VIS_AMPIPE: YesNo;

    /// Join pieces that are adjacent in remote memory: puts into larger puts, gets into packed
    /// ones. By default puts are joined, and gets where the network scatters what one get brings.
    VIS_REMOTECONTIG: YesNo;

    /// Largest piece that is packed, or copied to be joined with others. The payload of an active
    /// message is an upper bound.
    VIS_MAXCHUNK: Bytes(1..=TB) = 256;

    /// Tree of broadcasts, scatters, gathers and reductions to a root. The default depends on the
    /// size. Operations whose tree is set take messages, also where shared memory could serve
    /// them.
    COLL_ROOTED_GEOM: TreeName;

    /// Tree of broadcasts. The default is GASNET_COLL_ROOTED_GEOM.
    COLL_BROADCAST_GEOM: TreeName;

    /// Tree of scatters. The default is GASNET_COLL_ROOTED_GEOM.
    COLL_SCATTER_GEOM: TreeName;

    /// Tree of gathers. The default is GASNET_COLL_ROOTED_GEOM.
    COLL_GATHER_GEOM: TreeName;

    /// Bytes of a broadcast that an inner rank of the tree forwards at a time. 0 means all.
    COLL_PIPE_SEG_SIZE: Bytes(0..=TB) = 0;

    /// Largest block that gather_all moves by dissemination. The default is 256. With another
    /// limit gather_all takes messages, also where shared memory could serve it.
    COLL_GATHER_ALL_DISSEM_LIMIT: Bytes(0..=TB);

    /// The same, divided by the number of images of a rank.
    COLL_GATHER_ALL_DISSEM_LIMIT_PER_THREAD: Bytes(0..=TB);

    /// Largest block that exchange moves by dissemination. The default is 256. With another limit
    /// exchange takes messages, also where shared memory could serve it.
    COLL_EXCHANGE_DISSEM_LIMIT: Bytes(0..=TB);

    /// The same, divided by the number of images of a rank.
    COLL_EXCHANGE_DISSEM_LIMIT_PER_THREAD: Bytes(0..=TB);

    /// Radix of the dissemination of exchange.
    COLL_EXCHANGE_DISSEM_RADIX: Integer(2..=256) = 2;

    /// Largest memory for other ranks' blocks in one scatter or gather. If more is needed, the
    /// root serves all ranks itself.
    COLL_SCRATCH_SIZE: Bytes(0..=TB) = 2 << 20;

    /// Use trees, dissemination and shared memory for broadcasts, scatters, gathers, gather_all
    /// and exchange. Without it these send one message for each pair of ranks. Reductions and
    /// scans stay as they are.
    COLL_OPT: YesNo = true;

    /// The same for broadcasts. The default is GASNET_COLL_OPT.
    COLL_BROADCAST_OPT: YesNo;

    /// The same for scatters. The default is GASNET_COLL_OPT.
    COLL_SCATTER_OPT: YesNo;

    /// The same for gathers. The default is GASNET_COLL_OPT.
    COLL_GATHER_OPT: YesNo;

    /// The same for gather_all. The default is GASNET_COLL_OPT.
    COLL_GATHER_ALL_OPT: YesNo;

    /// The same for exchange. The default is GASNET_COLL_OPT.
    COLL_EXCHANGE_OPT: YesNo;

    /// File of algorithms. gasnet_coll_init reads it for all ranks if rank 0 finds it; the tuning
    /// calls use it if they name no other.
    COLL_TUNING_FILE: FreeText;

    /// Count the collectives by operation and size, for gasnet_coll_dumpProfile.
    COLL_ENABLE_PROFILE: YesNo = false;

    /// Number of runs of each candidate of gasnet_coll_tune_generic_op that are not timed.
    COLL_AUTOTUNE_WARM_ITERS: Integer(0..=1 << 30) = 2;

    /// Number of runs of each candidate of gasnet_coll_tune_generic_op that are timed.
    COLL_AUTOTUNE_PERF_ITERS: Integer(1..=1 << 30) = 10;
}
