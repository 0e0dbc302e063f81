//! What the build finds out of the target: its interface, its compiler's macros, the functions of
//! its system.

use super::built::build_script;
use super::{include, place};
use crate::build_trees::{self, compiler, succeed};
use crate::{Failure, TestCase};
use std::fs;
use std::process::Command;

/// Cases of the build with both networks.
pub(super) fn cases() -> Vec<TestCase> {
    vec![TestCase::new(
        "libportals::functions_of_the_system_are_linked".into(),
        true,
        functions_of_the_system_are_linked,
    )]
}

/// Cases of the build over libportals-contrary.
pub(super) fn cases_of_contrary() -> Vec<TestCase> {
    vec![
        TestCase::new("contrary::the_interface_fits_the_target".into(), true, the_interface_fits),
        TestCase::new("contrary::macros_of_the_compiler".into(), true, macros_of_the_compiler),
    ]
}

/// The SeaStar's bridge of the target's kernel comes before the header's default. An interface
/// that the user's options define comes first.
fn the_interface_fits() -> Result<(), Failure> {
    let tree = build_trees::build_contrary();
    let lib = tree.join("portals/lib").display().to_string();
    let (include, libs) = (include(&tree).display().to_string(), format!("-L{lib} -lportals"));
    let bridge = |bridge| format!("IFACE_FROM_BRIDGE_AND_NALID({bridge}, PTL_IFACE_SS)");
    let (uk, qk) = (bridge("PTL_BRIDGE_UK"), bridge("PTL_BRIDGE_QK"));
    let default = "PTL_IFACE_DEFAULT".to_string();
    let linux: &[(&str, &str)] = &[("CARGO_FEATURE_HOSTED", "1")];
    let cases = [
        (linux, "", &uk),
        (&[], "", &qk),
        (linux, "-D__LIBCATAMOUNT__", &qk),
        (linux, "-D__QK_USER__", &qk),
        (linux, "-DCRAY_USER_NAL=7", &uk),
        (linux, "-DPTL_IFACE_DEFAULT=4711", &default),
    ];
    for (variables, options, wanted) in cases {
        let words = format!("{options} {include}");
        let mut all = vec![("PORTALS_INCLUDE", &*words), ("PORTALS_LIBS", &*libs)];
        all.extend(variables);
        let text = build_script(&all)?;
        let path = place()?.join("out/gasneti_portals_config.h");
        let config = fs::read_to_string(&path).map_err(|e| format!("{}: {e}", path.display()))?;
        if text.contains("cargo::error") || !config.contains(&format!("_IFACE {wanted}\n")) {
            return Err(format!("{options}: expected {wanted}\n{config}\n{text}"));
        }
    }
    Ok(())
}

/// bindgen does not see the macros that the compiler of the target predefines. CFLAGS stand for
/// these.
fn macros_of_the_compiler() -> Result<(), Failure> {
    let tree = build_trees::build_contrary();
    let original = include(&tree).join("portals/portals3.h");
    let text =
        fs::read_to_string(&original).map_err(|e| format!("{}: {e}", original.display()))?;
    let dir = place()?.join("macros/portals");
    fs::create_dir_all(&dir).map_err(|e| format!("{}: {e}", dir.display()))?;
    let nal = original.with_file_name("nal.h");
    fs::copy(&nal, dir.join("nal.h")).map_err(|e| format!("{}: {e}", nal.display()))?;
    let libs = format!("-L{} -lportals", tree.join("portals/lib").display());
    let folder = place()?.join("macros").display().to_string();
    let if_macro = |is: &str, was: &str| format!("#ifdef XT\n{is}\n#else\n{was}\n#endif\n");
    let cases = [
        ("    void *bulk_handle;\n", "", "size of ptl_md_t"),
        ("    ptl_seq_t link;\n", "", "of ptl_event_t"),
        ("typedef uint64_t ptl_handle_any_t;\n", "typedef uint32_t ptl_handle_any_t;", "ptl_"),
        (
            "#define PTL_MD_THRESH_INF (-77)\n",
            "#define PTL_MD_THRESH_INF (-1)",
            "value of MD_THRESH_INF",
        ),
        (
            "typedef uint16_t ptl_ac_index_t;\n",
            "typedef uint32_t ptl_ac_index_t;",
            "gasneti_ptl_types",
        ),
    ];
    for (was, is, says) in cases {
        if !text.contains(was) {
            return Err(format!("{}: it has no {was:?}", original.display()));
        }
        let changed = text.replacen(was, &if_macro(is, was), 1);
        fs::write(dir.join("portals3.h"), changed).map_err(|e| e.to_string())?;
        let with = |include: &str, cflags: &str| {
            let variables =
                [("PORTALS_INCLUDE", include), ("PORTALS_LIBS", &libs), ("CFLAGS", cflags)];
            build_script(&variables)
        };
        let options = format!("-DXT {folder}");
        for (include, cflags) in [(&folder, ""), (&options, "-DXT")] {
            let said = with(include, cflags)?;
            if said.contains("cargo::error") {
                return Err(format!("{include} {cflags}: {said}"));
            }
        }
        let said = with(&folder, "-DXT")?;
        let error = said.lines().find_map(|l| l.strip_prefix("cargo::error=")).unwrap_or_default();
        if !error.contains("see it differently") || !error.contains(says) {
            return Err(format!("expected {says:?}: {said}"));
        }
    }
    Ok(())
}

/// A weak reference takes nothing out of an archive. So client files name the functions of CNOS
/// and PMI that link: with the libportals, or with libpct, and no others.
fn functions_of_the_system_are_linked() -> Result<(), Failure> {
    const CNOS: &str =
        "int cnos_get_rank(void) { return 0; }\nint cnos_get_size(void) { return 1; }\n";
    const PMI: &str = "int PMI_Init(int *spawned) { return *spawned = 0; }\n";
    let portals = build_trees::build_libportals().join("portals");
    let include = portals.join("include").display().to_string();
    let dir = place()?.join("system");
    let cases = [
        ("nothing", None, ""),
        ("pct", Some(("libpct.a", CNOS)), "-Wl,-u,cnos_get_rank -Wl,-u,cnos_get_size -lpct"),
        ("mine", Some(("libmine.a", CNOS)), "-Wl,-u,cnos_get_rank -Wl,-u,cnos_get_size"),
        ("pmi", Some(("libmine.a", PMI)), "-Wl,-u,PMI_Init"),
    ];
    for (name, archive, wanted) in cases {
        let own = dir.join(name);
        fs::create_dir_all(&own).map_err(|e| format!("{}: {e}", own.display()))?;
        let mut libs =
            format!("-L{} -lportals3 -L{}", portals.join("lib").display(), own.display());
        if let Some((file, text)) = archive {
            let (source, object) = (own.join("system.c"), own.join("system.o"));
            fs::write(&source, text).map_err(|e| format!("{}: {e}", source.display()))?;
            let mut cc = compiler();
            cc.arg("-c").arg(&source).arg("-o").arg(&object);
            succeed(cc)?;
            let mut ar = Command::new("ar");
            ar.arg("crs").arg(own.join(file)).arg(&object);
            succeed(ar)?;
            if file == "libmine.a" {
                libs += " -lmine";
            }
        }
        let text = build_script(&[("PORTALS_INCLUDE", &include), ("PORTALS_LIBS", &libs)])?;
        let path = place()?.join("out/libportals.system");
        let flags = fs::read_to_string(&path).map_err(|e| format!("{}: {e}", path.display()))?;
        if text.contains("cargo::error") || flags.trim() != wanted {
            return Err(format!("{name}: expected {wanted:?}, got {flags:?}\n{text}"));
        }
    }
    Ok(())
}
