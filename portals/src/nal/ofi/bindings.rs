//! The part of libfabric's C interface, version 1.17, that is used here.
//!
//! Written by hand, used by [`super::library`] and [`super::endpoint`] only. Invariant: the layout
//! of each structure is that of the C headers; `super::headers` compares it with those of this
//! machine. Later versions of libfabric keep the layout for programs of this version.

use core::ffi::{c_char, c_int, c_void};
use std::os::raw::c_long;

/// Packed as the library expects it: major and minor.
pub(super) const API_VERSION: u32 = 1 << 16 | 17;

/// A function that is never called.
type UnusedFunction = *const c_void;

pub(super) const FI_RMA: u64 = 1 << 2;
pub(super) const FI_TAGGED: u64 = 1 << 3;
pub(super) const FI_READ: u64 = 1 << 8;
pub(super) const FI_WRITE: u64 = 1 << 9;
pub(super) const FI_RECV: u64 = 1 << 10;
pub(super) const FI_SEND: u64 = 1 << 11;
pub(super) const FI_TRANSMIT: u64 = FI_SEND;
pub(super) const FI_REMOTE_READ: u64 = 1 << 12;
pub(super) const FI_REMOTE_WRITE: u64 = 1 << 13;
pub(super) const FI_COMPLETION: u64 = 1 << 24;
pub(super) const FI_DELIVERY_COMPLETE: u64 = 1 << 28;
pub(super) const FI_NAMED_RX_CTX: u64 = 1 << 58;
pub(super) const FI_REMOTE_COMM: u64 = 1 << 52;
pub(super) const FI_CONTEXT: u64 = 1 << 59;
pub(super) const FI_CONTEXT2: u64 = 1 << 52;
/// Of `fi_getinfo`: node and service are those of this process. The value of FI_SOURCE.
pub(super) const FI_SOURCE: u64 = 1 << 57;
pub(super) const FI_NUMERICHOST: u64 = 1 << 55;
pub(super) const FI_ADDR_UNSPEC: u64 = u64::MAX;
pub(super) const FI_KEY_NOTAVAIL: u64 = u64::MAX;

/// Alone: it means FI_MR_VIRT_ADDR, FI_MR_ALLOCATED and FI_MR_PROV_KEY.
pub(super) const FI_MR_BASIC: c_int = 1;
pub(super) const FI_MR_LOCAL: c_int = 1 << 2;
pub(super) const FI_MR_VIRT_ADDR: c_int = 1 << 4;
pub(super) const FI_MR_ALLOCATED: c_int = 1 << 5;
pub(super) const FI_MR_PROV_KEY: c_int = 1 << 6;
pub(super) const FI_MR_ENDPOINT: c_int = 1 << 9;

pub(super) const FI_THREAD_SAFE: c_int = 1;
pub(super) const FI_THREAD_DOMAIN: c_int = 3;
pub(super) const FI_RM_ENABLED: c_int = 2;
pub(super) const FI_AV_TABLE: c_int = 2;
pub(super) const FI_EP_RDM: c_int = 3;
pub(super) const FI_WAIT_NONE: c_int = 0;
pub(super) const FI_WAIT_FD: c_int = 3;
pub(super) const FI_CQ_FORMAT_TAGGED: c_int = 4;
pub(super) const FI_GETWAIT: c_int = 5;
pub(super) const FI_ENABLE: c_int = 6;

pub(super) const FI_EAGAIN: c_int = 11;
pub(super) const FI_EADDRINUSE: c_int = 98;
pub(super) const FI_ENODATA: c_int = 61;
pub(super) const FI_EAVAIL: c_int = 259;
pub(super) const FI_ENOKEY: c_int = 266;

/// Numbers of errors with which an operation fails after the peer has closed.
pub(super) const CLOSED: [c_int; 9] = [2, 5, 32, 103, 104, 107, 108, 111, 125];

/// Space that a provider may use until an operation is complete.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct FiContext2 {
    internal: [usize; 8],
}

#[repr(C)]
pub(super) struct FiTxAttr {
    pub(super) caps: u64,
    pub(super) mode: u64,
    pub(super) op_flags: u64,
    pub(super) msg_order: u64,
    pub(super) comp_order: u64,
    pub(super) inject_size: usize,
    pub(super) size: usize,
    pub(super) iov_limit: usize,
    pub(super) rma_iov_limit: usize,
    pub(super) tclass: u32,
}

#[repr(C)]
pub(super) struct FiRxAttr {
    pub(super) caps: u64,
    pub(super) mode: u64,
    pub(super) op_flags: u64,
    pub(super) msg_order: u64,
    pub(super) comp_order: u64,
    pub(super) total_buffered_recv: usize,
    pub(super) size: usize,
    pub(super) iov_limit: usize,
}

#[repr(C)]
pub(super) struct FiEpAttr {
    pub(super) kind: c_int,
    pub(super) protocol: u32,
    pub(super) protocol_version: u32,
    pub(super) max_msg_size: usize,
    pub(super) msg_prefix_size: usize,
    pub(super) max_order_raw_size: usize,
    pub(super) max_order_war_size: usize,
    pub(super) max_order_waw_size: usize,
    pub(super) mem_tag_format: u64,
    pub(super) tx_ctx_cnt: usize,
    pub(super) rx_ctx_cnt: usize,
    pub(super) auth_key_size: usize,
    pub(super) auth_key: *mut u8,
}

#[repr(C)]
pub(super) struct FiDomainAttr {
    pub(super) domain: *mut FidDomain,
    pub(super) name: *mut c_char,
    pub(super) threading: c_int,
    pub(super) control_progress: c_int,
    pub(super) data_progress: c_int,
    pub(super) resource_mgmt: c_int,
    pub(super) av_type: c_int,
    pub(super) mr_mode: c_int,
    pub(super) mr_key_size: usize,
    pub(super) cq_data_size: usize,
    pub(super) cq_cnt: usize,
    pub(super) ep_cnt: usize,
    pub(super) tx_ctx_cnt: usize,
    pub(super) rx_ctx_cnt: usize,
    pub(super) max_ep_tx_ctx: usize,
    pub(super) max_ep_rx_ctx: usize,
    pub(super) max_ep_stx_ctx: usize,
    pub(super) max_ep_srx_ctx: usize,
    pub(super) cntr_cnt: usize,
    pub(super) mr_iov_limit: usize,
    pub(super) caps: u64,
    pub(super) mode: u64,
    pub(super) auth_key: *mut u8,
    pub(super) auth_key_size: usize,
    pub(super) max_err_data: usize,
    pub(super) mr_cnt: usize,
    pub(super) tclass: u32,
}

#[repr(C)]
pub(super) struct FiFabricAttr {
    pub(super) fabric: *mut FidFabric,
    pub(super) name: *mut c_char,
    pub(super) prov_name: *mut c_char,
    pub(super) prov_version: u32,
    pub(super) api_version: u32,
}

#[repr(C)]
pub(super) struct FiInfo {
    pub(super) next: *mut FiInfo,
    pub(super) caps: u64,
    pub(super) mode: u64,
    pub(super) addr_format: u32,
    pub(super) src_addrlen: usize,
    pub(super) dest_addrlen: usize,
    pub(super) src_addr: *mut c_void,
    pub(super) dest_addr: *mut c_void,
    pub(super) handle: *mut Fid,
    pub(super) tx_attr: *mut FiTxAttr,
    pub(super) rx_attr: *mut FiRxAttr,
    pub(super) ep_attr: *mut FiEpAttr,
    pub(super) domain_attr: *mut FiDomainAttr,
    pub(super) fabric_attr: *mut FiFabricAttr,
    pub(super) nic: *mut c_void,
}

#[repr(C)]
pub(super) struct Fid {
    pub(super) fclass: usize,
    pub(super) context: *mut c_void,
    pub(super) ops: *mut FiOps,
}

#[repr(C)]
pub(super) struct FiOps {
    pub(super) size: usize,
    pub(super) close: unsafe extern "C" fn(*mut Fid) -> c_int,
    pub(super) bind: unsafe extern "C" fn(*mut Fid, *mut Fid, u64) -> c_int,
    pub(super) control: unsafe extern "C" fn(*mut Fid, c_int, *mut c_void) -> c_int,
}

#[repr(C)]
pub(super) struct FidFabric {
    pub(super) fid: Fid,
    pub(super) ops: *mut FiOpsFabric,
    pub(super) api_version: u32,
}

#[repr(C)]
pub(super) struct FiOpsFabric {
    pub(super) size: usize,
    pub(super) domain: unsafe extern "C" fn(
        *mut FidFabric,
        *mut FiInfo,
        *mut *mut FidDomain,
        *mut c_void,
    ) -> c_int,
    pub(super) passive_ep: UnusedFunction,
    pub(super) eq_open: UnusedFunction,
    pub(super) wait_open: UnusedFunction,
    pub(super) trywait: unsafe extern "C" fn(*mut FidFabric, *mut *mut Fid, c_int) -> c_int,
}

#[repr(C)]
pub(super) struct FidDomain {
    pub(super) fid: Fid,
    pub(super) ops: *mut FiOpsDomain,
    pub(super) mr: *mut FiOpsMr,
}

#[repr(C)]
pub(super) struct FiOpsDomain {
    pub(super) size: usize,
    pub(super) av_open:
        unsafe extern "C" fn(*mut FidDomain, *mut FiAvAttr, *mut *mut FidAv, *mut c_void) -> c_int,
    pub(super) cq_open:
        unsafe extern "C" fn(*mut FidDomain, *mut FiCqAttr, *mut *mut FidCq, *mut c_void) -> c_int,
    pub(super) endpoint:
        unsafe extern "C" fn(*mut FidDomain, *mut FiInfo, *mut *mut FidEp, *mut c_void) -> c_int,
    pub(super) scalable_ep:
        unsafe extern "C" fn(*mut FidDomain, *mut FiInfo, *mut *mut FidEp, *mut c_void) -> c_int,
}

#[repr(C)]
pub(super) struct FiOpsMr {
    pub(super) size: usize,
    pub(super) reg: unsafe extern "C" fn(
        *mut Fid,
        *const c_void,
        usize,
        u64,
        u64,
        u64,
        u64,
        *mut *mut FidMr,
        *mut c_void,
    ) -> c_int,
}

#[repr(C)]
pub(super) struct FidMr {
    pub(super) fid: Fid,
    pub(super) mem_desc: *mut c_void,
    pub(super) key: u64,
}

#[repr(C)]
pub(super) struct FiAvAttr {
    pub(super) kind: c_int,
    pub(super) rx_ctx_bits: c_int,
    pub(super) count: usize,
    pub(super) ep_per_node: usize,
    pub(super) name: *const c_char,
    pub(super) map_addr: *mut c_void,
    pub(super) flags: u64,
}

#[repr(C)]
pub(super) struct FidAv {
    pub(super) fid: Fid,
    pub(super) ops: *mut FiOpsAv,
}

#[repr(C)]
pub(super) struct FiOpsAv {
    pub(super) size: usize,
    pub(super) insert: unsafe extern "C" fn(
        *mut FidAv,
        *const c_void,
        usize,
        *mut u64,
        u64,
        *mut c_void,
    ) -> c_int,
    pub(super) insertsvc: UnusedFunction,
    pub(super) insertsym: UnusedFunction,
    pub(super) remove: UnusedFunction,
    pub(super) lookup: UnusedFunction,
    pub(super) straddr:
        unsafe extern "C" fn(*mut FidAv, *const c_void, *mut c_char, *mut usize) -> *const c_char,
}

#[repr(C)]
pub(super) struct FiCqAttr {
    pub(super) size: usize,
    pub(super) flags: u64,
    pub(super) format: c_int,
    pub(super) wait_obj: c_int,
    pub(super) signaling_vector: c_int,
    pub(super) wait_cond: c_int,
    pub(super) wait_set: *mut c_void,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub(super) struct FiCqTaggedEntry {
    pub(super) op_context: *mut c_void,
    pub(super) flags: u64,
    pub(super) len: usize,
    pub(super) buf: *mut c_void,
    pub(super) data: u64,
    pub(super) tag: u64,
}

impl FiCqTaggedEntry {
    /// No completion.
    pub(super) const NONE: FiCqTaggedEntry = FiCqTaggedEntry {
        op_context: core::ptr::null_mut(),
        flags: 0,
        len: 0,
        buf: core::ptr::null_mut(),
        data: 0,
        tag: 0,
    };
}

#[repr(C)]
pub(super) struct FiCqErrEntry {
    pub(super) op_context: *mut c_void,
    pub(super) flags: u64,
    pub(super) len: usize,
    pub(super) buf: *mut c_void,
    pub(super) data: u64,
    pub(super) tag: u64,
    pub(super) olen: usize,
    pub(super) err: c_int,
    pub(super) prov_errno: c_int,
    pub(super) err_data: *mut c_void,
    pub(super) err_data_size: usize,
}

#[repr(C)]
pub(super) struct FidCq {
    pub(super) fid: Fid,
    pub(super) ops: *mut FiOpsCq,
}

#[repr(C)]
pub(super) struct FiOpsCq {
    pub(super) size: usize,
    pub(super) read: unsafe extern "C" fn(*mut FidCq, *mut c_void, usize) -> c_long,
    pub(super) readfrom: UnusedFunction,
    pub(super) readerr: unsafe extern "C" fn(*mut FidCq, *mut FiCqErrEntry, u64) -> c_long,
}

#[repr(C)]
pub(super) struct FidEp {
    pub(super) fid: Fid,
    pub(super) ops: *mut FiOpsEp,
    pub(super) cm: *mut FiOpsCm,
    pub(super) msg: *const c_void,
    pub(super) rma: *mut FiOpsRma,
    pub(super) tagged: *mut FiOpsTagged,
}

#[repr(C)]
pub(super) struct FiOpsEp {
    pub(super) size: usize,
    pub(super) cancel: UnusedFunction,
    pub(super) getopt: UnusedFunction,
    pub(super) setopt: UnusedFunction,
    pub(super) tx_ctx: unsafe extern "C" fn(
        *mut FidEp,
        c_int,
        *mut FiTxAttr,
        *mut *mut FidEp,
        *mut c_void,
    ) -> c_int,
    pub(super) rx_ctx: unsafe extern "C" fn(
        *mut FidEp,
        c_int,
        *mut FiRxAttr,
        *mut *mut FidEp,
        *mut c_void,
    ) -> c_int,
}

#[repr(C)]
pub(super) struct FiOpsCm {
    pub(super) size: usize,
    pub(super) setname: UnusedFunction,
    pub(super) getname: unsafe extern "C" fn(*mut Fid, *mut c_void, *mut usize) -> c_int,
}

#[repr(C)]
pub(super) struct FiOpsTagged {
    pub(super) size: usize,
    pub(super) recv: unsafe extern "C" fn(
        *mut FidEp,
        *mut c_void,
        usize,
        *mut c_void,
        u64,
        u64,
        u64,
        *mut c_void,
    ) -> c_long,
    pub(super) recvv: UnusedFunction,
    pub(super) recvmsg: UnusedFunction,
    pub(super) send: unsafe extern "C" fn(
        *mut FidEp,
        *const c_void,
        usize,
        *mut c_void,
        u64,
        u64,
        *mut c_void,
    ) -> c_long,
    pub(super) sendv: UnusedFunction,
    pub(super) sendmsg: UnusedFunction,
    pub(super) inject: unsafe extern "C" fn(*mut FidEp, *const c_void, usize, u64, u64) -> c_long,
    pub(super) senddata: unsafe extern "C" fn(
        *mut FidEp,
        *const c_void,
        usize,
        *mut c_void,
        u64,
        u64,
        u64,
        *mut c_void,
    ) -> c_long,
    pub(super) injectdata:
        unsafe extern "C" fn(*mut FidEp, *const c_void, usize, u64, u64, u64) -> c_long,
}

/// A piece of memory: `struct iovec`.
#[repr(C)]
#[derive(Clone, Copy)]
pub(super) struct FiIovec {
    pub(super) base: *mut c_void,
    pub(super) len: usize,
}

#[repr(C)]
pub(super) struct FiRmaIov {
    pub(super) addr: u64,
    pub(super) len: usize,
    pub(super) key: u64,
}

#[repr(C)]
pub(super) struct FiMsgRma {
    pub(super) msg_iov: *const FiIovec,
    pub(super) desc: *mut *mut c_void,
    pub(super) iov_count: usize,
    pub(super) addr: u64,
    pub(super) rma_iov: *const FiRmaIov,
    pub(super) rma_iov_count: usize,
    pub(super) context: *mut c_void,
    pub(super) data: u64,
}

#[repr(C)]
pub(super) struct FiOpsRma {
    pub(super) size: usize,
    pub(super) read: UnusedFunction,
    pub(super) readv: UnusedFunction,
    pub(super) readmsg: unsafe extern "C" fn(*mut FidEp, *const FiMsgRma, u64) -> c_long,
    pub(super) write: UnusedFunction,
    pub(super) writev: UnusedFunction,
    pub(super) writemsg: unsafe extern "C" fn(*mut FidEp, *const FiMsgRma, u64) -> c_long,
}
