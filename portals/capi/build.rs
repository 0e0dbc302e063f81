//! Gives the shared library its name for the loader, and keeps it in a process that has loaded it.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,libportals3.so.0,-z,nodelete");
}
