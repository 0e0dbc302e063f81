//! Compiles src/capi/shim.c, what stable Rust cannot define. Tells gasnet_info with what the
//! library is built. With feature `libportals`, finds a libportals and makes the binding to it
//! (buildscript/libportals.rs).

use std::process::Command;

#[cfg(feature = "libportals")]
#[path = "buildscript/libportals.rs"]
mod libportals;

/// Names of the variables from which the crate cc takes flags.
fn variables_of_flags() -> [String; 5] {
    let target = std::env::var("TARGET").unwrap_or_default();
    [
        "CFLAGS".into(),
        "HOST_CFLAGS".into(),
        "TARGET_CFLAGS".into(),
        format!("CFLAGS_{target}"),
        format!("CFLAGS_{}", target.replace(['-', '.'], "_")),
    ]
}

/// Adds the flag `-fno-lto` to the flags of the user, which follow ours. ci/archive.sh makes one
/// object of all objects. If one of them had code for link-time optimisation, the compiler's
/// linker plugin would take this code for all there is.
fn no_link_time_optimisation() {
    for name in variables_of_flags() {
        if let Some(mut flags) = std::env::var_os(&name) {
            flags.push(" -fno-lto");
            // SAFETY: this process has no other thread yet.
            unsafe { std::env::set_var(name, flags) };
        }
    }
}

fn main() {
    no_link_time_optimisation();
    let var = |name| std::env::var(name).unwrap_or_default();
    let rustc = Command::new(var("RUSTC")).arg("--version").output();
    let rustc =
        rustc.map(|o| String::from_utf8_lossy(&o.stdout).trim().to_string()).unwrap_or_default();
    println!("cargo::rustc-env=GASNET_BUILD_RUSTC={rustc}");
    println!("cargo::rustc-env=GASNET_BUILD_TARGET={}", var("TARGET"));
    println!(
        "cargo::rustc-env=GASNET_BUILD_PROFILE={}, opt-level {}",
        var("PROFILE"),
        var("OPT_LEVEL")
    );
    println!("cargo::rerun-if-changed=src/capi/shim.c");
    println!("cargo::rerun-if-changed=include");
    println!("cargo::rerun-if-changed=build.rs");
    // The path of this folder stays out of the library.
    let here = std::env::current_dir().expect("a build script has a current folder");
    let no_paths = format!("-ffile-prefix-map={}=.", here.display());
    cc::Build::new()
        .file("src/capi/shim.c")
        .include("include")
        .define("_GNU_SOURCE", None)
        .std("c99")
        .flag("-fno-lto")
        .pic(true)
        .warnings(true)
        .extra_warnings(true)
        .flag_if_supported(no_paths)
        .compile("gasnet_shim");
    #[cfg(feature = "libportals")]
    if let Err(line) = libportals::bind() {
        // Cargo shows this line, and none of what the compilers said.
        println!("cargo::error={}", line.replace('\n', " "));
    }
    #[cfg(not(feature = "libportals"))]
    for name in ["PORTALS_INCLUDE", "PORTALS_LIBS", "PORTALS_PREFIX"] {
        println!("cargo::rerun-if-env-changed={name}");
        if std::env::var_os(name).is_some_and(|value| !value.is_empty()) {
            println!(
                "cargo::error={name} is set, but this is a build without a libportals; unset it, or add --features libportals \
                 (make does)"
            );
        }
    }
}
