//! The portals3 emulation as the conduit sees it.
