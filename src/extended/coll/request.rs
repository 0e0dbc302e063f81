//! What a client requests of a collective: the operation, its sizes, the buffers of an image.
//!
//! Built by `capi` and by this module's own collectives; read by all of `coll`. Invariant: a
//! [`CollBuffers`] holds as many bytes as [`CollRequest::extents`] says.

use super::block_cyclic::BlockCyclic;
use super::operators::NumberFn;
use crate::client_memory::{Dst, Src};
use crate::conduit::OpId;
use crate::runtime::ops::Ops;
use alloc::vec::Vec;
use core::ffi::{c_int, c_void};
use core::ops::Range;
use core::sync::atomic::{AtomicBool, Ordering};
use parking_lot::Mutex;
use smallvec::SmallVec;

/// `gasnet_coll_reduce_fn_t`: results, their count, left operands, their count, right operands,
/// bytes of an element, flags, argument.
pub type ReduceFn = unsafe extern "C" fn(
    *mut c_void,
    usize,
    *const c_void,
    usize,
    *const c_void,
    usize,
    c_int,
    c_int,
);

/// What a collective does; the numbers index the tables of `tuning`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum CollOperation {
    /// One block to all images.
    Broadcast = 0,
    /// A block to each image.
    Scatter = 1,
    /// A block from each image.
    Gather = 2,
    /// The blocks of all images to all images.
    GatherAll = 3,
    /// A block from each image to each image.
    Exchange = 4,
    /// The combination of all operands to one image.
    Reduce = 5,
    /// To each image the combination of the operands of the images before it.
    Scan = 6,
    /// No data: complete when all images have called.
    Barrier = 7,
    /// The combination of all operands to all images.
    ReduceAll = 8,
}

/// `gex_Coll_ReduceFn_t`: left operands, right operands and results, their count, the argument.
pub type InPlaceFn = unsafe extern "C" fn(*const c_void, *mut c_void, usize, *const c_void);

/// How two operands are combined.
#[derive(Clone, Copy, Debug)]
pub enum ReduceOperator {
    /// By a function of the table of `gasnet_coll_init`.
    Registered {
        /// The function.
        function: ReduceFn,
        /// `GASNET_COLL_NONCOMM` if it was registered with that.
        flags: c_int,
        /// The caller's argument.
        arg: c_int,
    },
    /// By a function of a client of GASNet-EX. It is commutative.
    InPlace {
        /// The function.
        function: InPlaceFn,
        /// The address of its argument.
        cdata: usize,
    },
    /// By an operation of the library on numbers. It is commutative.
    Builtin {
        /// The function.
        function: NumberFn,
        /// Names type and operation, alike in all processes.
        code: u32,
    },
}

/// How operands are combined, and what they are.
#[derive(Clone, Copy, Debug)]
pub struct Reduction {
    /// What combines two of them.
    pub operator: ReduceOperator,
    /// Bytes of an element.
    pub elem_size: usize,
}

impl Reduction {
    /// `to = left op right`; each has the bytes of as many elements, and `to` overlaps neither.
    /// Without elements no function of the client is called.
    pub(super) fn combine(&self, to: Dst<'_>, left: Src<'_>, right: Src<'_>) {
        let n = to.len().checked_div(self.elem_size).unwrap_or(0);
        assert!(
            [to.len(), left.len(), right.len()] == [n * self.elem_size; 3],
            "areas of other sizes"
        );
        if n == 0 {
            return;
        }
        match self.operator {
            ReduceOperator::Registered { function, flags, arg } => {
                let (left, right) = (left.as_ptr().cast(), right.as_ptr().cast());
                let to = to.as_ptr().cast();
                // SAFETY: a function of the table of `gasnet_coll_init`, whose type says how it is
                // called; each area has `n` elements, as was checked.
                unsafe { function(to, n, left, n, right, self.elem_size, flags, arg) };
            }
            ReduceOperator::InPlace { function, cdata } => {
                to.copy_from(right);
                let cdata = core::ptr::with_exposed_provenance(cdata);
                // SAFETY: a function of the client, whose type says how it is called; each area
                // has `n` elements, as was checked.
                unsafe { function(left.as_ptr().cast(), to.as_ptr().cast(), n, cdata) };
            }
            ReduceOperator::Builtin { function, .. } => function(to, left, right),
        }
    }

    /// Element i of `to` is the combination of the elements 0 to i of `from`, which is not empty.
    pub(super) fn prefixes(&self, to: Dst<'_>, from: Src<'_>) {
        let n = self.elem_size;
        to.part(0, n).copy_from(from.part(0, n));
        for at in (n..from.len()).step_by(n) {
            self.combine(to.part(at, n), to.part(at - n, n).into(), from.part(at, n));
        }
    }

    /// Whether operands must be combined in the order of the images.
    pub(super) fn is_ordered(&self) -> bool {
        matches!(self.operator, ReduceOperator::Registered { flags, .. } if flags != 0)
    }
}

impl PartialEq for ReduceOperator {
    fn eq(&self, other: &ReduceOperator) -> bool {
        let address = |of: &ReduceOperator| match *of {
            ReduceOperator::Registered { function, .. } => function as usize,
            ReduceOperator::InPlace { function, .. } => function as usize,
            ReduceOperator::Builtin { function, .. } => function as usize,
        };
        let words = |of: &ReduceOperator| match *of {
            ReduceOperator::Registered { flags, arg, .. } => (flags, arg as usize),
            ReduceOperator::InPlace { cdata, .. } => (0, cdata),
            ReduceOperator::Builtin { code, .. } => (0, code as usize),
        };
        address(self) == address(other) && words(self) == words(other)
    }
}

impl PartialEq for Reduction {
    fn eq(&self, other: &Reduction) -> bool {
        self.operator == other.operator && self.elem_size == other.elem_size
    }
}

/// What all images pass alike.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CollRequest {
    /// What to do.
    pub operation: CollOperation,
    /// Bytes of a block; of all elements of an image where these are combined.
    pub nbytes: usize,
    /// Image number of the root; 0 where there is none.
    pub root: u32,
    /// No data may move before all images have called.
    pub in_allsync: bool,
    /// Complete at no image before all data are in place.
    pub out_allsync: bool,
    /// Complete at an image before its own data are in place and its memory is free: the client
    /// synchronises before it uses them.
    pub out_nosync: bool,
    /// The address of the source, the same at every rank that has one, if ranks may read it before
    /// its owner calls: `IN_NOSYNC` and `SINGLE`. And it stays until the client synchronises, or
    /// until all have read it.
    pub common_src: Option<usize>,
    /// The same for the destination, which ranks may write before its owner calls.
    pub common_dst: Option<usize>,
    /// For operations that combine.
    pub reduction: Option<Reduction>,
    /// For scans: with the operand of the image itself, or with the element itself.
    pub inclusive: bool,
    /// For operations that combine: the operands are the elements of one array of all images.
    /// `None` if each image has all elements and those of the same number are combined.
    pub src_array: Option<BlockCyclic>,
    /// For scans of an array: that of the results.
    pub dst_array: Option<BlockCyclic>,
}

impl CollRequest {
    /// With no root, no function, and the least synchronisation.
    pub fn new(operation: CollOperation, nbytes: usize) -> CollRequest {
        CollRequest {
            operation,
            nbytes,
            root: 0,
            in_allsync: false,
            out_allsync: false,
            out_nosync: false,
            common_src: None,
            common_dst: None,
            reduction: None,
            inclusive: false,
            src_array: None,
            dst_array: None,
        }
    }

    /// Bytes of an element, and the number of elements, of an operation that combines.
    pub(super) fn elements(&self) -> (usize, usize) {
        let size = self.reduction.map_or(0, |f| f.elem_size);
        (size, self.nbytes.checked_div(size).unwrap_or(0))
    }

    /// The number of the first element of an array that a scan writes.
    pub(super) fn first_written(&self) -> usize {
        usize::from(!self.inclusive).min(self.elements().1)
    }

    /// Which bytes this operation writes from the destination address of `image` on, in a team of
    /// `images`, and which it reads from its source address on.
    pub fn extents(&self, image: u32, images: u32) -> (Range<usize>, Range<usize>) {
        let (size, count) = self.elements();
        let run = |array: BlockCyclic, first: usize| {
            let run = array.run(image as usize, images as usize, first..count);
            run.start * size..run.end * size
        };
        let (dst, src) = self.blocks(image, images);
        let dst = match self.src_array {
            Some(_) if image == self.root && count > 0 => size,
            Some(_) => 0,
            None => dst,
        };
        (
            self.dst_array.map_or(0..dst, |a| run(a, self.first_written())),
            self.src_array.map_or(0..src, |a| run(a, 0)),
        )
    }

    /// How many bytes it writes and reads, apart from those of arrays.
    fn blocks(&self, image: u32, images: u32) -> (usize, usize) {
        let one = self.nbytes;
        let all = one.saturating_mul(images as usize);
        let at_root = |n: usize| if image == self.root { n } else { 0 };
        match self.operation {
            CollOperation::Broadcast => (one, at_root(one)),
            CollOperation::Scatter => (one, at_root(all)),
            CollOperation::Gather => (at_root(all), one),
            CollOperation::GatherAll => (all, one),
            CollOperation::Exchange => (all, all),
            CollOperation::Reduce => (at_root(one), one),
            CollOperation::Scan | CollOperation::ReduceAll => (one, one),
            CollOperation::Barrier => (0, 0),
        }
    }
}

/// The memory of one image that a collective uses.
#[derive(Clone, Copy, Debug)]
pub struct CollBuffers {
    /// Where its result goes.
    pub dst: Dst<'static>,
    /// Its operand.
    pub src: Src<'static>,
}

impl CollBuffers {
    /// No memory.
    pub(super) fn none() -> CollBuffers {
        CollBuffers { dst: Dst::empty(), src: Src::empty() }
    }
}

/// Memory of the library that a collective uses, zero at first and aligned for any element. Its
/// owner keeps it until the collective is done.
#[derive(Debug)]
pub(super) struct CollMemory {
    words: Vec<u128>,
    bytes: usize,
}

impl CollMemory {
    /// `n` bytes.
    pub(super) fn new(n: usize) -> CollMemory {
        CollMemory { words: alloc::vec![0; n.div_ceil(size_of::<u128>())], bytes: n }
    }

    /// The bytes.
    pub(super) fn bytes(&mut self) -> Dst<'static> {
        // SAFETY: the words have this many bytes. They are not freed while they are in use: a
        // plan owns those of its rounds, and `Coll::split` waits for its collective.
        unsafe { Dst::new(self.words.as_mut_ptr().cast(), self.bytes) }
    }
}

/// Names a collective: the context of its team, and how many came before it there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct CollId {
    pub(super) context: u32,
    pub(super) number: u32,
}

/// Whether a collective is done, and the operations that wait for it: one of each image at most.
#[derive(Debug, Default)]
pub(super) struct CollStatus {
    done: AtomicBool,
    waiting: Mutex<SmallVec<[OpId; 1]>>,
}

impl CollStatus {
    /// Whether it is; what it wrote is visible afterwards. Acquire, pairs with the Release of
    /// `finish`.
    pub(super) fn done(&self) -> bool {
        self.done.load(Ordering::Acquire)
    }

    /// Has a fragment of `op` completed when the collective is done, at once if it is already.
    pub(super) fn complete(&self, op: OpId, ops: &Ops) {
        let mut waiting = self.waiting.lock();
        if self.done() {
            drop(waiting);
            ops.complete(op);
        } else {
            waiting.push(op);
        }
    }

    /// Marks it as done and completes the operations that wait for it.
    pub(super) fn finish(&self, ops: &Ops) {
        let waiting = {
            let mut waiting = self.waiting.lock();
            self.done.store(true, Ordering::Release);
            core::mem::take(&mut *waiting)
        };
        waiting.into_iter().for_each(|op| ops.complete(op));
    }
}
