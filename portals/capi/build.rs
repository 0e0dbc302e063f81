//! Sets the soname of the shared library, and marks it so that it stays loaded.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,libportals3.so.0,-z,nodelete");
}
