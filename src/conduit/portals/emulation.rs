//! The portals3 emulation as the conduit sees it.
//!
//! Owns the translation between [`super::Portals`] and [`portals3::Interface`], nothing else. Made by the core room.
