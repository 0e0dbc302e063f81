//! Builds what stable Rust cannot define.
fn main() {}
