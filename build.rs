//! Compiles src/capi/shim.c: what stable Rust cannot define.

fn main() {
    println!("cargo:rerun-if-changed=src/capi/shim.c");
    println!("cargo:rerun-if-changed=include");
    cc::Build::new()
        .file("src/capi/shim.c")
        .include("include")
        .define("_GNU_SOURCE", None)
        .std("c99")
        .pic(true)
        .warnings(true)
        .extra_warnings(true)
        .compile("gasnet_shim");
}
