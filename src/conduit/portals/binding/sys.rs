//! What bindgen made of `shim.h` and the header of the libportals, when this library was built.

#![allow(
    missing_docs,
    non_camel_case_types,
    non_snake_case,
    non_upper_case_globals,
    dead_code,
    unreachable_pub,
    clippy::all,
    clippy::undocumented_unsafe_blocks,
    clippy::missing_safety_doc
)]

include!(concat!(env!("OUT_DIR"), "/portals3.rs"));
