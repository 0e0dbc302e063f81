//! What exactly was measured: versions, and how a GASNet was configured.
//!
//! Called by `bench_system` and `pages`. Invariant: a GASNet with debug checks is refused.

use crate::bench_system::Start;
use crate::building::cc;
use capi_tests::build_trees::succeed;
use std::process::Command;

/// The value of a macro in a header; `None` if it is not defined.
fn defined<'a>(header: &'a str, name: &str) -> Option<&'a str> {
    header.lines().find_map(|line| {
        let rest = line.strip_prefix("#define ")?.strip_prefix(name)?;
        if rest.is_empty() { Some("") } else { rest.strip_prefix(' ').map(str::trim) }
    })
}

/// Version, configuration and modes of a GASNet, by its `gasnet_config.h`. Where it was installed
/// says nothing of it.
pub(crate) fn of_gasnet(header: &str) -> Result<String, String> {
    if defined(header, "GASNET_DEBUG").is_some() {
        return Err(
            "this GASNet was configured with debug checks: compare with one without".into()
        );
    }
    let value = |name| defined(header, name).unwrap_or("unknown").trim_matches('"');
    let configured = value("GASNETI_CONFIGURE_ARGS").split(' ');
    let configured: Vec<_> = configured.filter(|word| !word.starts_with("'--prefix=")).collect();
    let on = |name, text| if defined(header, name).is_some() { text } else { "" };
    Ok(format!(
        "GASNet {}, configured with `{}`; PSHM {}, no debug checks{}{}",
        value("GASNETI_RELEASE_VERSION"),
        configured.join(" "),
        if defined(header, "GASNETI_PSHM_ENABLED").is_some() { "on" } else { "off" },
        on("GASNET_TRACE", ", with traces"),
        on("GASNET_STATS", ", with statistics"),
    ))
}

/// What a command prints, of which the line with this word counts.
fn line_of(command: &str, args: &[&str], word: &str) -> Result<String, String> {
    let mut asked = Command::new(command);
    asked.args(args);
    let printed = succeed(asked)?;
    let line = printed.lines().find(|line| line.contains(word)).unwrap_or("unknown version");
    Ok(line.split_whitespace().collect::<Vec<_>>().join(" "))
}

/// The version of the MPI or OpenSHMEM whose launcher this is.
pub(crate) fn of_launcher(start: &Start) -> Result<String, String> {
    let Start::JobLauncher(words) = start else { return Ok(String::new()) };
    if words[0].contains("mpich") {
        return Ok(format!("MPICH, {}", line_of(&words[0], &["--version"], "Version")?));
    }
    // "mpirun (Open MPI) 4.1.4", or (OpenRTE) by Debian.
    Ok(format!("Open MPI, {}", line_of(&words[0], &["--version"], "(Open")?))
}

/// The version of libfabric, by the program of its package.
pub(crate) fn of_libfabric() -> String {
    line_of("fi_info", &["--version"], "libfabric:").unwrap_or_default()
}

/// The C compiler of the programs.
pub(crate) fn of_compiler() -> String {
    line_of(&cc(), &["--version"], "").unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gasnet_is_named_by_its_header() {
        let header = "#define GASNETI_CONFIGURE_ARGS \"'--prefix=/p' '--enable-smp'\"\n\
                      #define GASNETI_RELEASE_VERSION 1.30.0\n#define GASNETI_PSHM_ENABLED 1\n\
                      /* #undef GASNET_DEBUG */\n#define GASNET_DEBUG_NONE 1\n";
        assert_eq!(
            of_gasnet(header).unwrap(),
            "GASNet 1.30.0, configured with `'--enable-smp'`; PSHM on, no debug checks"
        );
    }

    #[test]
    fn the_line_with_the_version_counts() {
        let line = line_of("printf", &["build:\\n    Version:   4.0.2\\nend\\n"], "Version");
        assert_eq!(line.unwrap(), "Version: 4.0.2");
        assert_eq!(line_of("echo", &["nothing"], "Version").unwrap(), "unknown version");
    }

    #[test]
    fn a_gasnet_with_debug_checks_is_refused() {
        assert!(of_gasnet("#define GASNET_DEBUG 1\n").is_err());
    }
}
