//! Limits that the C headers state to clients. Imports nothing; every layer may read them.

/// Largest number of ranks of a job (GASNET_MAXNODES).
pub const MAX_RANKS: u32 = 65_536;
/// Largest number of ranks of a job on one host.
pub const MAX_HOST_RANKS: u32 = 4096;
/// Largest number of client threads of a rank at a time (GASNETI_MAX_THREADS).
pub const MAX_THREADS: usize = 256;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_headers_agree() {
        let header = include_str!("../include/gasnet_common.h");
        assert!(header.contains(&format!("#define GASNET_MAXNODES {MAX_RANKS}\n")));
        let configuration = include_str!("../include/gasnet_config.h");
        assert!(configuration.contains(&format!("#define GASNETI_MAX_THREADS {MAX_THREADS}\n")));
    }
}
