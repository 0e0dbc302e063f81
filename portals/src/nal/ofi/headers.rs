//! The bindings compared with the C headers of this machine, if it has any.
//!
//! A C program prints each size, offset and constant; the same is computed here.

use super::bindings::*;
use core::mem::{offset_of, size_of};
use std::format;
use std::process::{Command, Stdio};
use std::string::String;
use std::vec::Vec;

/// Expressions in C and their values in Rust.
type Expected = Vec<(String, u64)>;

macro_rules! structures {
    ($($c:literal $rust:ident { $($c_field:ident $field:ident),* $(,)? })*) => {{
        let mut all: Expected = Vec::new();
        $(
            $(all.push((
                format!("offsetof({}, {})", $c, stringify!($c_field)),
                offset_of!($rust, $field) as u64,
            ));)*
        )*
        all
    }};
}

macro_rules! constants {
    ($($name:ident)*) => {
        [$((String::from(stringify!($name)), $name as u64)),*]
    };
}

fn expected() -> Expected {
    let mut all = structures! {
        "struct fi_tx_attr" FiTxAttr { op_flags op_flags, inject_size inject_size, size size,
            iov_limit iov_limit, tclass tclass }
        "struct fi_rx_attr" FiRxAttr { total_buffered_recv total_buffered_recv, size size,
            iov_limit iov_limit }
        "struct fi_ep_attr" FiEpAttr { type kind, max_msg_size max_msg_size,
            mem_tag_format mem_tag_format, tx_ctx_cnt tx_ctx_cnt,
            rx_ctx_cnt rx_ctx_cnt, auth_key auth_key }
        "struct fi_domain_attr" FiDomainAttr { name name, threading threading,
            control_progress control_progress, data_progress data_progress,
            resource_mgmt resource_mgmt, av_type av_type, mr_mode mr_mode,
            mr_key_size mr_key_size, cq_data_size cq_data_size,
            max_ep_tx_ctx max_ep_tx_ctx, max_ep_rx_ctx max_ep_rx_ctx, caps caps, mr_cnt mr_cnt, tclass tclass }
        "struct fi_fabric_attr" FiFabricAttr { name name, prov_name prov_name,
            api_version api_version }
        "struct fi_info" FiInfo { next next, caps caps, mode mode, addr_format addr_format,
            src_addrlen src_addrlen, src_addr src_addr, dest_addr dest_addr, handle handle,
            tx_attr tx_attr, rx_attr rx_attr, ep_attr ep_attr, domain_attr domain_attr,
            fabric_attr fabric_attr, nic nic }
        "struct fid" Fid { fclass fclass, context context, ops ops }
        "struct fi_ops" FiOps { close close, bind bind, control control }
        "struct fid_fabric" FidFabric { ops ops, api_version api_version }
        "struct fi_ops_fabric" FiOpsFabric { domain domain, trywait trywait }
        "struct fid_domain" FidDomain { ops ops, mr mr }
        "struct fi_ops_domain" FiOpsDomain { av_open av_open, cq_open cq_open,
            endpoint endpoint, scalable_ep scalable_ep }
        "struct fi_ops_mr" FiOpsMr { reg reg }
        "struct fid_mr" FidMr { mem_desc mem_desc, key key }
        "struct fi_av_attr" FiAvAttr { type kind, rx_ctx_bits rx_ctx_bits, count count,
            ep_per_node ep_per_node, name name, map_addr map_addr, flags flags }
        "struct fid_av" FidAv { ops ops }
        "struct fi_ops_av" FiOpsAv { insert insert, straddr straddr }
        "struct fi_cq_attr" FiCqAttr { size size, flags flags, format format, wait_obj wait_obj,
            signaling_vector signaling_vector, wait_cond wait_cond, wait_set wait_set }
        "struct fi_cq_tagged_entry" FiCqTaggedEntry { op_context op_context, flags flags, len len,
            buf buf, data data, tag tag }
        "struct fi_cq_err_entry" FiCqErrEntry { op_context op_context, flags flags, len len,
            buf buf, data data, tag tag, olen olen, err err, prov_errno prov_errno,
            err_data err_data, err_data_size err_data_size }
        "struct fid_cq" FidCq { ops ops }
        "struct fi_ops_cq" FiOpsCq { read read, readerr readerr }
        "struct fid_ep" FidEp { ops ops, cm cm, msg msg, rma rma, tagged tagged }
        "struct fi_ops_ep" FiOpsEp { cancel cancel, getopt getopt, setopt setopt, tx_ctx tx_ctx,
            rx_ctx rx_ctx }
        "struct fi_ops_cm" FiOpsCm { setname setname, getname getname }
        "struct fi_ops_tagged" FiOpsTagged { recv recv, send send, inject inject,
            senddata senddata, injectdata injectdata }
        "struct iovec" FiIovec { iov_base base, iov_len len }
        "struct fi_rma_iov" FiRmaIov { addr addr, len len, key key }
        "struct fi_msg_rma" FiMsgRma { msg_iov msg_iov, desc desc, iov_count iov_count, addr addr,
            rma_iov rma_iov, rma_iov_count rma_iov_count, context context, data data }
        "struct fi_ops_rma" FiOpsRma { readmsg readmsg, writemsg writemsg }
    };
    // Structures that this side makes.
    all.extend(
        [
            ("struct fi_av_attr", size_of::<FiAvAttr>()),
            ("struct fi_cq_attr", size_of::<FiCqAttr>()),
            ("struct fi_cq_tagged_entry", size_of::<FiCqTaggedEntry>()),
            ("struct fi_context2", size_of::<FiContext2>()),
            ("struct iovec", size_of::<FiIovec>()),
            ("struct fi_rma_iov", size_of::<FiRmaIov>()),
            ("struct fi_msg_rma", size_of::<FiMsgRma>()),
        ]
        .map(|(name, size)| (format!("sizeof({name})"), size as u64)),
    );
    all.extend(constants! {
        FI_RMA FI_TAGGED FI_READ FI_WRITE FI_RECV FI_SEND FI_TRANSMIT FI_REMOTE_READ
        FI_REMOTE_WRITE FI_COMPLETION FI_DELIVERY_COMPLETE FI_NAMED_RX_CTX FI_REMOTE_COMM FI_CONTEXT FI_CONTEXT2
        FI_SOURCE FI_NUMERICHOST FI_ADDR_UNSPEC FI_KEY_NOTAVAIL FI_MR_BASIC FI_MR_LOCAL FI_MR_VIRT_ADDR FI_MR_ALLOCATED FI_MR_PROV_KEY
        FI_MR_ENDPOINT FI_THREAD_SAFE FI_THREAD_DOMAIN FI_RM_ENABLED FI_AV_TABLE FI_EP_RDM FI_WAIT_NONE
        FI_WAIT_FD FI_CQ_FORMAT_TAGGED FI_GETWAIT FI_ENABLE FI_EAGAIN FI_EADDRINUSE FI_ENODATA
        FI_EAVAIL FI_ENOKEY
    });
    let closed =
        "ENOENT EIO EPIPE ECONNABORTED ECONNRESET ENOTCONN ESHUTDOWN ECONNREFUSED ECANCELED";
    all.extend(closed.split(' ').map(String::from).zip(CLOSED.map(|number| number as u64)));
    all
}

#[test]
fn the_bindings_are_those_of_the_headers() {
    let expected = expected();
    let mut text = String::from(
        "#include <stdio.h>\n#include <stddef.h>\n#include <errno.h>\n#include <rdma/fabric.h>\n\
         #include <rdma/fi_cm.h>\n#include <rdma/fi_endpoint.h>\n#include <rdma/fi_tagged.h>\n\
         #include <rdma/fi_rma.h>\n#include <sys/uio.h>\n\
         #include <rdma/fi_errno.h>\nint main(void) {\n",
    );
    for (expression, _) in &expected {
        text += &format!("printf(\"%llu\\n\", (unsigned long long)({expression}));\n");
    }
    text += "return 0;\n}\n";
    let folder = std::env::temp_dir().join(format!("ofi-headers-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let (source, program) = (folder.join("headers.c"), folder.join("headers"));
    std::fs::write(&source, "#include <rdma/fabric.h>\n").unwrap();
    let compile = |output: &std::path::Path, stop: &[&str]| {
        let mut cc = Command::new("cc");
        cc.args(stop).arg("-o").arg(output).arg(&source).stderr(Stdio::piped());
        cc.output()
    };
    let has_headers = compile(&folder.join("none"), &["-E"]).is_ok_and(|o| o.status.success());
    if !has_headers {
        super::tests::skip(&"no C compiler, or no headers of libfabric (libfabric-dev)");
        let _ = std::fs::remove_dir_all(&folder);
        return;
    }
    std::fs::write(&source, text).unwrap();
    let compiled = compile(&program, &[]).unwrap();
    assert!(compiled.status.success(), "{}", String::from_utf8_lossy(&compiled.stderr));
    let printed = Command::new(&program).output().unwrap();
    let _ = std::fs::remove_dir_all(&folder);
    let printed = String::from_utf8(printed.stdout).unwrap();
    let values: Vec<u64> = printed.lines().map(|line| line.parse().unwrap()).collect();
    assert_eq!(values.len(), expected.len());
    for ((expression, ours), theirs) in expected.iter().zip(values) {
        assert_eq!(*ours, theirs, "{expression}");
    }
}
