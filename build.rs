//! Compiles src/capi/shim.c: what stable Rust cannot define; and tells gasnet_info with what the library is built.

use std::process::Command;

fn main() {
    let var = |name| std::env::var(name).unwrap_or_default();
    let rustc = Command::new(var("RUSTC")).arg("--version").output();
    let rustc = rustc.map(|o| String::from_utf8_lossy(&o.stdout).trim().to_string()).unwrap_or_default();
    println!("cargo:rustc-env=GASNET_BUILD_RUSTC={rustc}");
    println!("cargo:rustc-env=GASNET_BUILD_TARGET={}", var("TARGET"));
    println!("cargo:rustc-env=GASNET_BUILD_PROFILE={}, opt-level {}", var("PROFILE"), var("OPT_LEVEL"));
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
