//! Which interface of a libportals the binding opens.
//!
//! Called by `libportals`. Invariant: the interface is one that the header has.

use super::{Line, Probe};
use std::env;

/// The interfaces of the SeaStar: from user space of Linux, then of Catamount. A system has those
/// of the other in its header too.
const INTERFACES: [&str; 4] = [
    "IFACE_FROM_BRIDGE_AND_NALID(PTL_BRIDGE_UK, PTL_IFACE_SS)",
    "CRAY_USER_NAL",
    "IFACE_FROM_BRIDGE_AND_NALID(PTL_BRIDGE_QK, PTL_IFACE_SS)",
    "CRAY_QK_NAL",
];
/// How many of them are those of Linux.
const SEASTAR_OF_CNL: usize = 2;
pub(super) const DEFAULT_INTERFACE: &str = "PTL_IFACE_DEFAULT";

impl Probe {
    /// The interface to open, as C: that of the user's options, else that of the SeaStar, else the
    /// default of the header, which on a Cray XT is another one. An interface need not be a
    /// constant.
    pub(super) fn interface(&self) -> Result<Option<&'static str>, Line> {
        let mut order = INTERFACES.to_vec();
        if self.is_catamount()? {
            order.rotate_left(SEASTAR_OF_CNL);
        }
        if self.predefines("defined PTL_IFACE_DEFAULT")? {
            order.insert(0, DEFAULT_INTERFACE);
        }
        order.push(DEFAULT_INTERFACE);
        for interface in order {
            if self.compiles(&format!("ptl_interface_t i = {interface}; (void)i;"))? {
                return Ok(Some(interface));
            }
        }
        Ok(None)
    }

    /// Whether the target is a lightweight kernel: its library is built without `hosted`, or its
    /// compiler says so.
    fn is_catamount(&self) -> Result<bool, Line> {
        Ok(env::var_os("CARGO_FEATURE_HOSTED").is_none()
            || self.predefines("defined __LIBCATAMOUNT__ || defined __QK_USER__")?)
    }

    /// Whether this holds before any header is included.
    fn predefines(&self, condition: &str) -> Result<bool, Line> {
        let text = format!("#if !({condition})\n#error it does not hold\n#endif\n");
        Ok(self.cc(&text, &["-fsyntax-only"])?.status.success())
    }
}
