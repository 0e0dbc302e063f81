//! The functions of CNOS and PMI that programs over this libportals can be linked with.
//!
//! Called by `libportals`. Invariant: what is passed on to programs has linked here.

use super::{Line, Probe};

/// Functions of CNOS, by which a system starts jobs; the first of them is always there.
const OF_CNOS: &[&str] = &[
    "cnos_get_rank",
    "cnos_get_size",
    "cnos_get_nidpid_map",
    "cnos_barrier_init",
    "cnos_register_ptlid",
    "cnos_barrier",
    "cnos_pm_barrier",
];
/// The same of PMI.
const OF_PMI: &[&str] = &[
    "PMI_Init",
    "PMI_Initialized",
    "PMI_Finalize",
    "PMI_Get_rank",
    "PMI_Get_size",
    "PMI_Barrier",
    "PMI_KVS_Get_my_name",
    "PMI_KVS_Put",
    "PMI_KVS_Commit",
    "PMI_KVS_Get",
    "PMI_CNOS_Get_nidpid_map",
];
/// The library of an XT-class system that has CNOS, if the linker does not know it.
const LIBRARY_OF_CNOS: &str = "-lpct";

impl Probe {
    /// The flags with which a program takes the functions of CNOS and PMI out of their archives,
    /// as far as they link. The library refers to them weakly, which takes nothing.
    pub(super) fn system(&self) -> Result<Vec<String>, Line> {
        let mut libraries: &[&str] = &[];
        if !self.links_with(OF_CNOS[0], &[])? && self.links_with(OF_CNOS[0], &[LIBRARY_OF_CNOS])? {
            libraries = &[LIBRARY_OF_CNOS];
        }
        let mut flags = Vec::new();
        for functions in [OF_CNOS, OF_PMI] {
            if !self.links_with(functions[0], libraries)? {
                continue;
            }
            for function in functions {
                if self.links_with(function, libraries)? {
                    flags.push(format!("-Wl,-u,{function}"));
                }
            }
        }
        flags.extend(libraries.iter().map(|library| library.to_string()));
        Ok(flags)
    }

    /// Whether a program with this function links, with these libraries in addition.
    fn links_with(&self, function: &str, libraries: &[&str]) -> Result<bool, Line> {
        let text = format!(
            "extern int probe(void) __asm__(\"{function}\");\nint main(void) {{ return probe(); }}\n"
        );
        let source = self.write("gasneti_system.c", &text)?;
        let program = self.out.join("gasneti_probe.out");
        let compiler = cc::Build::new().cargo_metadata(false).get_compiler();
        let mut command = compiler.to_command();
        command.arg("-o").arg(program).arg(source).args(libraries).args(&self.place.libs);
        let output = command.output();
        Ok(output.map_err(|e| format!("{}: {e}", compiler.path().display()))?.status.success())
    }
}
