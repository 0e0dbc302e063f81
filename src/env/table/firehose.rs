//! Variables of memory that a network registers before puts and gets use it.

use crate::env::kinds::{Bytes, Integer, YesNo};
use crate::env::real_number::Fraction;
use crate::env::variable::variables;

/// Largest amount of memory that a variable may name.
const MOST: usize = 1 << 47;

variables! {
    /// The emulation demands that memory is registered before a put or get uses it, apart from
    /// segments of FAST: it is locked (mlock), within `ulimit -l` and GASNET_PHYSMEM_MAX. All
    /// ranks must have the same.
    PORTAL_PIN: YesNo = false;

    /// Register memory on demand and keep it registered (firehose), where the network demands
    /// registration: segments of LARGE, and memory outside of segments. Without it, in EVERYTHING
    /// puts and gets are active messages. In LARGE segments are registered whole. In LARGE and
    /// FAST each operation locks its local side.
    USE_FIREHOSE: YesNo = true;

    /// Memory of one rank that other ranks may keep registered, in equal shares. The default is
    /// 3/4 of what a rank may register, but at most 16,384 regions, and at most as many as an
    /// eighth of vm.max_map_count.
    FIREHOSE_M: Bytes(4096..=MOST);

    /// Memory beyond GASNET_FIREHOSE_M that one rank may keep registered for its own puts and
    /// gets. The default is the rest of what it may register.
    FIREHOSE_MAXVICTIM_M: Bytes(4096..=MOST);

    /// Number of regions of one rank that other ranks may keep registered, in equal shares. The
    /// default follows from GASNET_FIREHOSE_M and GASNET_FIREHOSE_MAXREGION_SIZE; over a
    /// libportals it is at most 1024.
    FIREHOSE_R: Integer(1..=16384);

    /// Number of regions that one rank may keep registered for its own puts and gets. The default
    /// follows from GASNET_FIREHOSE_MAXVICTIM_M and GASNET_FIREHOSE_MAXREGION_SIZE; over a
    /// libportals it is at most 1024.
    FIREHOSE_MAXVICTIM_R: Integer(1..=16384);

    /// Largest region that is registered as one. It is rounded down to a power of two, and is a
    /// page at least. The default is 128KB, or less where GASNET_FIREHOSE_M is small; 4MB for a
    /// segment of LARGE that libfabric's remote memory access reaches.
    FIREHOSE_MAXREGION_SIZE: Bytes(4096..=1 << 30);

    /// Each rank prints the limits of registered memory at attach.
    FIREHOSE_VERBOSE: YesNo = false;

    /// Memory that all ranks of a host may register together. The default is
    /// GASNET_PHYSMEM_PINNABLE_RATIO of the memory of the host. If it is set, it bounds segments
    /// that a libportals registers whole, too.
    PHYSMEM_MAX: Bytes(4096..=MOST);

    /// Trust GASNET_PHYSMEM_MAX: neither compare it with `ulimit -l` nor try in gasnet_init
    /// whether the system lets a rank lock a page more than that. Without GASNET_PHYSMEM_MAX it
    /// has no effect.
    PHYSMEM_NOPROBE: YesNo = false;

    /// Fraction of the memory of a host that its ranks may register together.
    PHYSMEM_PINNABLE_RATIO: Fraction = 0.7;

    /// Largest put that travels with the request to register its destination. A longer one
    /// follows the answer.
    PUTINMOVE_LIMIT: Bytes(0..=1024) = 1024;

    /// Notice that the program unmaps or remaps registered memory, and register it anew. A thread
    /// of the library waits for reports of the kernel (userfaultfd). It has no effect where the
    /// kernel has none, or forbids it.
    FIREHOSE_MONITOR: YesNo = true;

    /// Keep memory that the program frees: `free` gives no pages back to the system. For programs
    /// whose unmapping the library does not notice.
    DISABLE_MUNMAP: YesNo = false;

    /// Gets read registered memory of their source. Without it the source sends the data by active
    /// messages.
    RDMA_GETS: YesNo = true;
}
