//! The binding to a libportals: finds the library, checks its header, runs bindgen.
//!
//! Part of build.rs with the feature `libportals`. Invariant: what the binding needs and does not
//! find is one error line that names file and symbol.
//!
//! The library is found by `PORTALS_INCLUDE` and `PORTALS_LIBS` (a directory or compiler flags,
//! linker flags), by `PORTALS_PREFIX`, or by pkg-config `portals3`, in this order. Vendors'
//! headers differ in what the specification leaves open, so small C programs are compiled to
//! see what this one has.
//!
//! Leaves in OUT_DIR: `gasneti_portals_config.h`, `portals3.rs` (by bindgen), and, for programs
//! that link the static archive themselves, the linker flags of the libportals
//! (`libportals.link`) and of the functions that start jobs (`libportals.system`).

use std::env;
use std::fs;
use std::panic;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

mod interface;
mod layout;
mod system;

use interface::DEFAULT_INTERFACE;

type Line = String;

/// Functions that the binding calls.
const FUNCTIONS: &[&str] = &[
    "PtlInit",
    "PtlNIInit",
    "PtlNIStatus",
    "PtlGetId",
    "PtlMEAttach",
    "PtlMEInsert",
    "PtlMEUnlink",
    "PtlMDAttach",
    "PtlMDBind",
    "PtlMDUnlink",
    "PtlEQAlloc",
    "PtlEQFree",
    "PtlEQGet",
    "PtlPut",
    "PtlPutRegion",
    "PtlGetRegion",
];

/// Constants that it cannot do without.
const CONSTANTS: &[&str] = &[
    "PTL_OK",
    "PTL_EQ_EMPTY",
    "PTL_EQ_DROPPED",
    "PTL_MD_INVALID",
    "PTL_MD_IN_USE",
    "PTL_NI_OK",
    "PTL_EVENT_GET_END",
    "PTL_EVENT_PUT_END",
    "PTL_EVENT_REPLY_END",
    "PTL_EVENT_SEND_END",
    "PTL_EVENT_ACK",
    "PTL_EVENT_UNLINK",
    "PTL_RETAIN",
    "PTL_UNLINK",
    "PTL_INS_BEFORE",
    "PTL_INS_AFTER",
    "PTL_ACK_REQ",
    "PTL_MD_THRESH_INF",
    "PTL_MD_OP_PUT",
    "PTL_MD_OP_GET",
    "PTL_MD_MANAGE_REMOTE",
    "PTL_MD_TRUNCATE",
    "PTL_MD_ACK_DISABLE",
    "PTL_MD_MAX_SIZE",
    "PTL_MD_EVENT_START_DISABLE",
    "PTL_MD_EVENT_END_DISABLE",
    "PTL_NID_ANY",
    "PTL_PID_ANY",
    "PTL_SR_DROP_COUNT",
];

/// Errors that are reported by name where the header has them.
const ERRORS: &[&str] = &[
    "PTL_OK",
    "PTL_AC_INDEX_INVALID",
    "PTL_EQ_DROPPED",
    "PTL_EQ_EMPTY",
    "PTL_EQ_INVALID",
    "PTL_FAIL",
    "PTL_HANDLE_INVALID",
    "PTL_IFACE_INVALID",
    "PTL_MD_ILLEGAL",
    "PTL_MD_INVALID",
    "PTL_MD_IN_USE",
    "PTL_MD_NO_UPDATE",
    "PTL_ME_INVALID",
    "PTL_ME_IN_USE",
    "PTL_ME_LIST_TOO_LONG",
    "PTL_NI_INVALID",
    "PTL_NO_INIT",
    "PTL_NO_SPACE",
    "PTL_PID_INVALID",
    "PTL_PROCESS_INVALID",
    "PTL_PT_FULL",
    "PTL_PT_INDEX_INVALID",
    "PTL_SEGV",
    "PTL_SR_INDEX_INVALID",
    "PTL_UNKNOWN_ERROR",
    "PTL_IFACE_DUP",
    "PTL_VAL_FAILED",
    "PTL_EQ_IN_USE",
    "PTL_NAL_FAILED",
    "PTL_IOV_TOO_MANY",
    "PTL_IOV_TOO_SMALL",
    "PTL_INVALID_EQ",
];

/// What else the header must have, as C that compiles only then, and its name in an error.
const SHAPES: &[(&str, &str)] = &[
    ("ptl_process_id_t with nid and pid", "ptl_process_id_t p; p.nid = 0; p.pid = 0; (void)p;"),
    (
        "ptl_md_t with the members of Portals 3.3",
        "ptl_md_t d; d.start = 0; d.length = 0; d.threshold = 0; d.max_size = 0; d.options = 0; d.user_ptr = 0; \
         d.eq_handle = PTL_EQ_NONE; (void)d;",
    ),
    (
        "ptl_event_t with the members of Portals 3.3",
        "ptl_event_t e; e.type = PTL_EVENT_ACK; e.match_bits = e.rlength = e.mlength = e.offset = 0; e.hdr_data = 0; \
         e.md.start = e.md.user_ptr = 0; e.initiator.nid = 0; e.ni_fail_type = PTL_NI_OK; (void)e;",
    ),
    (
        "ptl_ni_limits_t with the members of Portals 3.3",
        "ptl_ni_limits_t l; l.max_mes = l.max_mds = l.max_eqs = l.max_ac_index = l.max_pt_index = l.max_md_iovecs = \
         l.max_me_list = l.max_getput_md = 1; (void)l;",
    ),
    (
        "PtlMDBind that takes its ptl_md_t by value",
        "ptl_handle_ni_t n; ptl_md_t d; ptl_handle_md_t h; (void)PtlMDBind(n, d, PTL_RETAIN, &h);",
    ),
];

/// Where a libportals is.
struct Place {
    /// How it was found, to be named in messages.
    by: String,
    /// Compiler flags.
    include: Vec<String>,
    /// Linker flags.
    libs: Vec<String>,
}

impl Place {
    /// Refuses relative folders: programs look for the library there from any folder.
    fn refuse_relative(&self) -> Result<(), Line> {
        const FOLDERS: &[&str] = &["-Wl,-rpath,", "-Wl,-rpath=", "-Wl,-R", "-I", "-L"];
        let folders = self.include.iter().chain(&self.libs).filter_map(|word| {
            let folder = FOLDERS.iter().find_map(|flag| word.strip_prefix(flag));
            folder.or_else(|| (word.ends_with(".a") || word.ends_with(".so")).then_some(word))
        });
        for folder in folders.filter(|f| !f.is_empty()) {
            // The dynamic linker replaces $ORIGIN, and the compiler = by its sysroot. With a dash
            // it is another flag, such as -l:NAME.
            if !folder.starts_with(['/', '$', '-', '=']) {
                return Err(format!(
                    "{}: {folder} is no absolute path; programs look for the library there from any folder, give the full path",
                    self.by
                ));
            }
        }
        Ok(())
    }
}

/// Finds it, looks at it, and writes the binding.
pub(crate) fn bind() -> Result<(), Line> {
    for name in [
        "PORTALS_INCLUDE",
        "PORTALS_LIBS",
        "PORTALS_PREFIX",
        "PKG_CONFIG_PATH",
        "PKG_CONFIG",
        "LIBCLANG_PATH",
    ] {
        println!("cargo::rerun-if-env-changed={name}");
    }
    println!("cargo::rerun-if-changed=src/conduit/portals/binding");
    println!("cargo::rerun-if-changed=buildscript");
    let place = find()?;
    place.refuse_relative()?;
    let out = PathBuf::from(env::var_os("OUT_DIR").ok_or("OUT_DIR is not set")?);
    let probe = Probe::new(place, out)?;
    let config = probe.config()?;
    probe.can_link()?;
    probe.write("gasneti_portals_config.h", &config)?;
    probe.bindgen()?;
    probe.same_layout()?;
    compile(&probe);
    link(&probe)
}

fn words(text: &str) -> Vec<String> {
    text.split_whitespace().map(str::to_string).collect()
}

/// Options of the compiler whose argument is the next word.
const TAKES_A_WORD: &[&str] = &[
    "-I",
    "-D",
    "-U",
    "-include",
    "-imacros",
    "-isystem",
    "-iquote",
    "-idirafter",
    "-isysroot",
    "--sysroot",
];

/// The words of `PORTALS_INCLUDE` as compiler options: a word that is neither an option nor the
/// argument of one is a folder.
fn compiler_options(words: &[String]) -> Vec<String> {
    let mut options: Vec<String> = Vec::new();
    for word in words {
        let is_argument = options.last().is_some_and(|o| TAKES_A_WORD.contains(&o.as_str()));
        let is_folder = !word.starts_with('-') && !is_argument;
        options.push(if is_folder { format!("-I{word}") } else { word.clone() });
    }
    options
}

fn variable(name: &str) -> Option<String> {
    env::var(name).ok().filter(|value| !value.trim().is_empty())
}

fn find() -> Result<Place, Line> {
    match (variable("PORTALS_INCLUDE"), variable("PORTALS_LIBS")) {
        (Some(include), Some(libs)) => {
            let include = compiler_options(&words(&include));
            let by = "PORTALS_INCLUDE and PORTALS_LIBS".into();
            return Ok(Place { by, include, libs: words(&libs) });
        }
        (None, None) => {}
        (Some(_), None) => {
            return Err("PORTALS_INCLUDE is set without PORTALS_LIBS; set both".into());
        }
        (None, Some(_)) => {
            return Err("PORTALS_LIBS is set without PORTALS_INCLUDE; set both".into());
        }
    }
    if let Some(prefix) = variable("PORTALS_PREFIX") {
        return in_prefix(&prefix);
    }
    let pkg_config = variable("PKG_CONFIG").unwrap_or_else(|| "pkg-config".into());
    let ask = |what: &str| {
        let output = Command::new(&pkg_config).args([what, "portals3"]).output().ok()?;
        output.status.success().then(|| words(&String::from_utf8_lossy(&output.stdout)))
    };
    match (ask("--cflags"), ask("--libs")) {
        (Some(include), Some(libs)) => Ok(Place { by: "pkg-config portals3".into(), include, libs }),
        _ => Err("no libportals is found: set PORTALS_PREFIX, or PORTALS_INCLUDE and PORTALS_LIBS, or have pkg-config know \
                  portals3; without feature libportals none is needed (make PORTALS=emulation)"
            .into()),
    }
}

fn in_prefix(prefix: &str) -> Result<Place, Line> {
    // Client files hold the folders among flags, and the linker's -rpath is followed by a comma.
    let cannot_be = |c: char| c.is_whitespace() || "&|\\,;$#\"'`*?[]()<>".contains(c);
    if let Some(c) = prefix.chars().find(|c| cannot_be(*c)) {
        return Err(format!(
            "PORTALS_PREFIX={prefix}: {c:?} cannot be in this path, which is passed on among the flags of compilers; give a \
             symbolic link without it"
        ));
    }
    let root = Path::new(prefix);
    let include = vec![format!("-I{}", root.join("include").display())];
    for dir in ["lib", "lib64"].map(|dir| root.join(dir)) {
        for name in ["portals3", "portals"] {
            for suffix in ["so", "a"] {
                if dir.join(format!("lib{name}.{suffix}")).exists() {
                    let dir = dir.display();
                    let mut libs = vec![format!("-L{dir}"), format!("-l{name}")];
                    if suffix == "so" {
                        libs.insert(1, format!("-Wl,-rpath,{dir}"));
                    }
                    return Ok(Place { by: format!("PORTALS_PREFIX={prefix}"), include, libs });
                }
            }
        }
    }
    Err(format!(
        "PORTALS_PREFIX={prefix}: neither libportals3 nor libportals is in its lib or lib64"
    ))
}

struct Probe {
    place: Place,
    out: PathBuf,
    /// The lines that include the header, and what some vendors have next to it.
    includes: String,
    /// The file that this is.
    file: String,
}

impl Probe {
    fn new(place: Place, out: PathBuf) -> Result<Probe, Line> {
        let mut probe = Probe { place, out, includes: String::new(), file: String::new() };
        let mut trouble = None;
        for name in ["portals/portals3.h", "portals3.h"] {
            let text = format!("#include <{name}>\n");
            let listed = probe.cc(&text, &["-M"])?;
            let list = String::from_utf8_lossy(&listed.stdout).into_owned();
            if !listed.status.success() {
                continue;
            }
            let file =
                list.split_whitespace().find(|w| w.ends_with(name)).unwrap_or(name).to_string();
            let compiled = probe.cc(&text, &["-fsyntax-only"])?;
            if compiled.status.success() {
                (probe.includes, probe.file) = (text, file);
                probe.include_nal()?;
                return Ok(probe);
            }
            let said = String::from_utf8_lossy(&compiled.stderr).into_owned();
            let first = said
                .lines()
                .find(|l| l.contains("error"))
                .unwrap_or("no reason given")
                .to_string();
            trouble = trouble.or(Some(format!("{file} does not compile: {first}")));
        }
        if let Some(line) = trouble {
            return Err(line);
        }
        let places: Vec<&str> =
            probe.place.include.iter().filter_map(|w| w.strip_prefix("-I")).collect();
        let four = places.iter().map(|p| Path::new(p).join("portals4.h")).find(|p| p.exists());
        Err(match four {
            Some(file) => format!(
                "{}: this is Portals 4, which has no PtlMEInsert and no PtlMDAttach; the conduit needs Portals 3.3 (portals3.h)",
                file.display()
            ),
            None => format!(
                "{}: neither portals/portals3.h nor portals3.h is in {}",
                probe.place.by,
                if places.is_empty() {
                    "the compiler's own places".to_string()
                } else {
                    places.join(" ")
                }
            ),
        })
    }

    /// Cray's bridges and network abstraction layers are in a header of their own.
    fn include_nal(&mut self) -> Result<(), Line> {
        let both = format!("{}#include <portals/nal.h>\n", self.includes);
        if self.cc(&both, &["-fsyntax-only"])?.status.success() {
            self.includes = both;
        }
        Ok(())
    }

    fn write(&self, name: &str, text: &str) -> Result<PathBuf, Line> {
        let path = self.out.join(name);
        fs::write(&path, text).map_err(|e| format!("{}: {e}", path.display()))?;
        Ok(path)
    }

    /// Runs the C compiler of the target over a program.
    fn cc(&self, text: &str, flags: &[&str]) -> Result<Output, Line> {
        let source = self.write("gasneti_probe.c", text)?;
        let compiler = cc::Build::new().cargo_metadata(false).get_compiler();
        let mut command = compiler.to_command();
        command
            .args(&self.place.include)
            .arg("-Werror=implicit-function-declaration")
            .args(flags)
            .arg(&source);
        command.output().map_err(|e| format!("{}: {e}", compiler.path().display()))
    }

    fn compiles(&self, body: &str) -> Result<bool, Line> {
        let text = format!("{}void probe(void);\nvoid probe(void) {{ {body} }}\n", self.includes);
        Ok(self.cc(&text, &["-fsyntax-only"])?.status.success())
    }

    /// Whether the header has it as an integer.
    fn has(&self, constant: &str) -> Result<bool, Line> {
        self.compiles(&format!(
            "static const long long value = (long long)({constant}); (void)value;"
        ))
    }

    fn first_of(&self, spellings: &[&str]) -> Result<Option<String>, Line> {
        for s in spellings {
            if self.has(s)? {
                return Ok(Some(s.to_string()));
            }
        }
        Ok(None)
    }

    /// What the header has, as macros for shim.h and shim.c.
    fn config(&self) -> Result<String, Line> {
        let lacks =
            |what: &str| format!("{}: it has no {what}, which the conduit needs", self.file);
        let needed: Vec<(&str, String)> = FUNCTIONS
            .iter()
            .map(|f| (*f, format!("(void)&{f};")))
            .chain(CONSTANTS.iter().map(|c| (*c, format!("(void)(long long)({c});"))))
            .chain(SHAPES.iter().map(|(what, body)| (*what, body.to_string())))
            .collect();
        let all: String = needed.iter().map(|(_, body)| format!("{{ {body} }} ")).collect();
        if !self.compiles(&all)? {
            for (what, body) in &needed {
                if !self.compiles(body)? {
                    return Err(lacks(what));
                }
            }
        }
        let mut text = self.includes.clone();
        let mut define =
            |name: &str, value: &str| text += &format!("#define GASNETI_HAS_{name} {value}\n");
        let no_ack = self.first_of(&["PTL_NO_ACK_REQ", "PTL_NOACK_REQ"])?;
        define("NO_ACK_REQ", &no_ack.ok_or_else(|| lacks("PTL_NO_ACK_REQ or PTL_NOACK_REQ"))?);
        let interface = self.interface()?.ok_or_else(|| {
            lacks("PTL_IFACE_DEFAULT or IFACE_FROM_BRIDGE_AND_NALID")
                + "; PORTALS_INCLUDE (with PORTALS_LIBS) supplies it: PORTALS_INCLUDE=\"/folder -include p3nal_utcp.h\", \
                   or \"/folder -DPTL_IFACE_DEFAULT=...\""
        })?;
        define("IFACE", interface);
        if interface != DEFAULT_INTERFACE {
            define("SEASTAR", "1");
        }
        let mut unlink = vec!["0"];
        for bit in ["PTL_MD_EVENT_AUTO_UNLINK_ENABLE", "PTL_MD_FLAG_AUTO_UNLINK"] {
            if self.has(bit)? {
                unlink.push(bit);
            }
        }
        define("AUTO_UNLINK", &format!("({})", unlink.join(" | ")));
        define(
            "MAX_TRANS_SZ",
            self.first_of(&["PTL_MAX_TRANS_SZ"])?.as_deref().unwrap_or("0x80000000LL"),
        );
        for (name, constant) in [
            ("IFACE_DUP", "PTL_IFACE_DUP"),
            ("EQ_IN_USE", "PTL_EQ_IN_USE"),
            ("INVALID_HANDLE", "PTL_INVALID_HANDLE"),
        ] {
            if self.has(constant)? {
                define(name, constant);
            }
        }
        if self.compiles("const char *s = PtlErrorStr(PTL_OK); (void)s;")? {
            define("ERROR_STR(error)", "PtlErrorStr(error)");
        } else if self.compiles("const char *s = ptl_err_str[PTL_OK]; (void)s;")? {
            define("ERROR_STR(error)", "ptl_err_str[error]");
        }
        let mut rows = String::new();
        for e in ERRORS {
            if self.has(e)? {
                rows += &format!(" X({e})");
            }
        }
        define("ERRORS(X)", &rows);
        Ok(text)
    }

    /// Whether a program with all functions links; if not, which one is missing where.
    fn can_link(&self) -> Result<(), Line> {
        let program = self.out.join("gasneti_probe.out").display().to_string();
        let linked = |functions: &[&str]| {
            let list = functions.join(", (void *)");
            let text = format!(
                "{}void *all[] = {{ (void *){list} }};\nint main(void) {{ return all[0] == 0; }}\n",
                self.includes
            );
            let mut flags = vec!["-o", &program];
            // Libraries come after what needs them, which is the source file.
            let source = self.write("gasneti_link.c", &text)?.display().to_string();
            flags.push(&source);
            flags.extend(self.place.libs.iter().map(String::as_str));
            let compiler = cc::Build::new().cargo_metadata(false).get_compiler();
            let mut command = compiler.to_command();
            command.args(&self.place.include).args(flags);
            command.output().map_err(|e| format!("{}: {e}", compiler.path().display()))
        };
        let all = linked(FUNCTIONS)?;
        if all.status.success() {
            return Ok(());
        }
        let libs = self.library();
        for f in FUNCTIONS {
            if !linked(&[f])?.status.success() {
                // With everything missing it is the library itself.
                if f == &FUNCTIONS[0] {
                    break;
                }
                return Err(format!(
                    "{libs}: the library has no {f}, which {} declares",
                    self.file
                ));
            }
        }
        let said = String::from_utf8_lossy(&all.stderr).into_owned();
        let first = said.lines().find(|l| !l.trim().is_empty()).unwrap_or("no reason given");
        Err(format!("{libs}: a program with PtlInit does not link: {first}"))
    }

    /// The file of the library, if its flags name it; else the flags.
    fn library(&self) -> String {
        let libs = &self.place.libs;
        let dirs = libs.iter().filter_map(|w| w.strip_prefix("-L"));
        let names: Vec<&str> = libs.iter().filter_map(|w| w.strip_prefix("-l")).collect();
        for dir in dirs {
            for name in &names {
                for suffix in ["so", "a"] {
                    let file = Path::new(dir).join(format!("lib{name}.{suffix}"));
                    if name.contains("portals") && file.exists() {
                        return file.display().to_string();
                    }
                }
            }
        }
        libs.join(" ")
    }

    fn bindgen(&self) -> Result<(), Line> {
        // bindgen panics where libclang cannot be loaded.
        let loud = panic::take_hook();
        panic::set_hook(Box::new(|_| {}));
        let loaded = panic::catch_unwind(bindgen::clang_version);
        panic::set_hook(loud);
        if loaded.is_err() {
            return Err("libclang is missing, which makes the binding to a libportals: install the Debian package libclang-dev, or \
                        set LIBCLANG_PATH; PORTALS=emulation needs none"
                .into());
        }
        let edition = bindgen::RustTarget::stable(85, 0).map_err(|e| e.to_string())?;
        let made = bindgen::Builder::default()
            .header("src/conduit/portals/binding/shim.h")
            .clang_arg(format!("-I{}", self.out.display()))
            .clang_args(&self.place.include)
            .rust_target(edition)
            .rust_edition(bindgen::RustEdition::Edition2024)
            .use_core()
            .allowlist_function("Ptl.*|gasneti_ptl_.*")
            .allowlist_type("ptl_.*|gasneti_ptl_.*")
            .allowlist_var("GASNETI_PTL_.*")
            .derive_partialeq(true)
            .generate_comments(false)
            .formatter(bindgen::Formatter::None)
            .generate()
            .map_err(|e| format!("{}: bindgen cannot read it: {e}", self.file))?;
        let path = self.out.join("portals3.rs");
        made.write_to_file(&path).map_err(|e| format!("{}: {e}", path.display()))
    }
}

fn compile(probe: &Probe) {
    let mut build = cc::Build::new();
    for flag in &probe.place.include {
        build.flag(flag);
    }
    build
        .file("src/conduit/portals/binding/shim.c")
        .file("src/conduit/portals/binding/system.c")
        .include(&probe.out)
        .std("gnu99")
        .flag("-fno-lto")
        // Only this library calls it.
        .flag("-fvisibility=hidden")
        .pic(true)
        .warnings(true)
        .extra_warnings(true)
        .compile("gasnet_portals_shim");
}

/// Passes the linker flags to cargo, for programs and tests of this package, and leaves them for
/// programs that link the archive.
fn link(probe: &Probe) -> Result<(), Line> {
    for flag in &probe.place.libs {
        if let Some(dir) = flag.strip_prefix("-L") {
            println!("cargo::rustc-link-search=native={dir}");
        } else if let Some(name) = flag.strip_prefix("-l") {
            // The linker takes an archive of this name where there is no shared library.
            println!("cargo::rustc-link-lib=dylib={name}");
        } else {
            println!("cargo::rustc-link-arg={flag}");
        }
    }
    println!("cargo::rustc-env=GASNETI_PORTALS_HEADER={}", probe.file);
    probe.write("libportals.link", &(probe.place.libs.join(" ") + "\n"))?;
    probe.write("libportals.system", &(probe.system()?.join(" ") + "\n"))?;
    Ok(())
}
