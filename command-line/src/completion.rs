//! The files by which bash, zsh and fish complete the options of a program.
//!
//! Written by the test of this file. Invariant: a file contains nothing but what the table of its
//! program says.

use super::{Operands, OptionRow, OptionValue, ProgramTable, SubcommandRow};

/// A shell: its name, the name of its file for a program, and the text of that file.
pub type ShellFile = (&'static str, fn(&ProgramTable) -> String, fn(&ProgramTable) -> String);

/// The shells.
pub const SHELLS: [ShellFile; 3] = [
    ("bash", |p| p.name.to_string(), bash),
    ("zsh", |p| format!("_{}", p.name), zsh),
    ("fish", |p| format!("{}.fish", p.name), fish),
];

const GENERATED: &str = "Generated from command-line/src by: UPDATE=1 cargo test -p command-line";

/// The options of the program and of all its subcommands.
fn options(program: &ProgramTable) -> Vec<&OptionRow> {
    let mut all: Vec<&OptionRow> = program.all_options().collect();
    if let Operands::Subcommands(rows) = program.operands {
        all.extend(rows.iter().flat_map(|row| row.options));
    }
    all
}

/// The words of all options, each once.
fn words<'a>(options: impl IntoIterator<Item = &'a OptionRow>) -> Vec<&'static str> {
    let mut once = Vec::new();
    for word in options.into_iter().flat_map(OptionRow::words) {
        if !once.contains(&word) {
            once.push(word);
        }
    }
    once
}

const BASH: &str = r#"# bash completion of @NAME@. @GENERATED@
_@NAME@() {
    local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]} i=1 IFS=$'\n'
    COMPREPLY=()
    # bash makes a word of each = of an argument.
    [ "$cur" != = ] || cur=
    [ "$prev" != = ] || prev=${COMP_WORDS[COMP_CWORD - 2]}
    # The first word that is neither an option nor the value of one.
    while [ "$i" -lt "$COMP_CWORD" ]; do
        case ${COMP_WORDS[i]} in
@SKIP@        --)
            i=$((i + 1))
            break
            ;;
        -*) ;;
        *) break ;;
        esac
        i=$((i + 1))
    done
@BEHIND@    case $prev in
@VALUES@    esac
@REPLY@}
complete -F _@NAME@ @NAMES@
"#;

const BASH_SKIP: &str = r#"        @VALUED@)
            [ "${COMP_WORDS[i + 1]}" != = ] || i=$((i + 1))
            i=$((i + 1))
            ;;
"#;

const BASH_BEHIND_COMMAND: &str = r#"    if [ "$i" -lt "$COMP_CWORD" ]; then
        if declare -F _command_offset >/dev/null; then
            unset IFS
            _command_offset "$i"
        else
            compopt -o filenames 2>/dev/null
            COMPREPLY=($(compgen -f -- "$cur"))
        fi
        return
    fi
"#;

const BASH_COMMAND: &str = r#"    case $cur in
    -*) @OPTIONS@ ;;
    *)
        compopt -o filenames 2>/dev/null
        COMPREPLY=($(compgen -c -- "$cur") $(compgen -f -- "$cur"))
        ;;
    esac
"#;

const BASH_SUBCOMMAND: &str = r#"    if [ "$i" -lt "$COMP_CWORD" ] && [ "${COMP_WORDS[i]}" = @SUBCOMMAND@ ]; then
        case $cur in
        -*) @OPTIONS@ ;;
        *)
            @FILES@
            ;;
        esac
        return
    fi
"#;

/// Completes one of these words.
fn one_of(words: &[&str]) -> String {
    format!("COMPREPLY=($(compgen -W $'{}' -- \"$cur\"))", words.join("\\n"))
}

/// Completes files (-f) or folders (-d).
fn paths(kind: &str, indent: &str) -> String {
    format!("compopt -o filenames 2>/dev/null\n{indent}COMPREPLY=($(compgen {kind} -- \"$cur\"))")
}

fn bash(program: &ProgramTable) -> String {
    let all = options(program);
    let valued = words(all.iter().copied().filter(|o| o.value.name().is_some()));
    let skip = match valued.is_empty() {
        true => String::new(),
        false => BASH_SKIP.replace("@VALUED@", &valued.join(" | ")),
    };
    let mut values = String::new();
    for option in all.iter().filter(|o| o.value.name().is_some()) {
        let reply = match option.value {
            OptionValue::OneOf(_, words) => one_of(words),
            OptionValue::File(_) => paths("-f", "        "),
            OptionValue::Folder(_) => paths("-d", "        "),
            _ => String::new(),
        };
        let reply = if reply.is_empty() { reply } else { format!("        {reply}\n") };
        let names = words([*option]).join(" | ");
        let case = format!("    {names})\n{reply}        return\n        ;;\n");
        if !values.contains(&case) {
            values += &case;
        }
    }
    let own = words(program.all_options());
    let (behind, reply) = match program.operands {
        Operands::Words(_, words) => {
            let all: Vec<&str> = words.iter().copied().chain(own).collect();
            (String::new(), format!("    {}\n", one_of(&all)))
        }
        Operands::Command => {
            (BASH_BEHIND_COMMAND.to_string(), BASH_COMMAND.replace("@OPTIONS@", &one_of(&own)))
        }
        Operands::Subcommands(rows) => {
            let of = |row: &SubcommandRow| {
                BASH_SUBCOMMAND
                    .replace("@SUBCOMMAND@", row.name)
                    .replace("@OPTIONS@", &one_of(&words(row.options)))
                    .replace("@FILES@", &paths("-f", "            "))
            };
            let names: Vec<&str> = rows.iter().map(|row| row.name).chain(own).collect();
            let subcommands: String = rows.iter().map(of).collect();
            (String::new(), format!("{subcommands}    {}\n", one_of(&names)))
        }
    };
    BASH.replace("@SKIP@", &skip)
        .replace("@BEHIND@", &behind)
        .replace("@VALUES@", &values)
        .replace("@REPLY@", &reply)
        .replace("@GENERATED@", GENERATED)
        .replace("@NAMES@", &names(program))
        .replace("@NAME@", program.name)
}

/// The names of the program's file.
fn names(program: &ProgramTable) -> String {
    let names: Vec<&str> = [program.name].iter().chain(program.links).copied().collect();
    names.join(" ")
}

/// A text in single quotes of zsh, within a specification of _arguments.
fn zsh_text(text: &str) -> String {
    let escaped = |c: char| match c {
        '[' | ']' | ':' => format!("\\{c}"),
        '\'' => "'\\''".to_string(),
        c => c.to_string(),
    };
    text.chars().map(escaped).collect()
}

/// The lines of _arguments for options.
fn zsh_options<'a>(options: impl IntoIterator<Item = &'a OptionRow>) -> String {
    let mut text = String::new();
    for option in options {
        let action = match option.value {
            OptionValue::Nothing => String::new(),
            OptionValue::Any(name) => format!(":{}: ", zsh_text(name)),
            OptionValue::OneOf(name, words) => format!(":{name}:({})", words.join(" ")),
            OptionValue::File(name) => format!(":{name}:_files"),
            OptionValue::Folder(name) => format!(":{name}:_files -/"),
        };
        let valued = option.value.name().is_some();
        let specs: Vec<String> = option
            .names
            .iter()
            .map(|name| match valued && name.starts_with("--") {
                true => format!("{name}="),
                false => name.to_string(),
            })
            .collect();
        let others = words([option]).join(" ");
        let help = zsh_text(option.help);
        for spec in specs {
            // -E and --env may be given several times.
            let before = match option.names {
                ["-E" | "--env"] => "*".to_string(),
                _ => format!("({others})"),
            };
            text += &format!("    '{before}{spec}[{help}]{action}' \\\n");
        }
    }
    text
}

fn zsh(program: &ProgramTable) -> String {
    let mut text = format!("#compdef {}\n# {GENERATED}\n", names(program));
    let own = zsh_options(program.all_options());
    match program.operands {
        Operands::Words(name, words) => {
            text += &format!("_arguments -S \\\n{own}    '*:{name}:({})'\n", words.join(" "));
        }
        Operands::Command => {
            text += &format!(
                "_arguments -S \\\n{own}    '(-)1:program: _command_names -e' \\\n    \
                 '*::arguments: _normal'\n"
            );
        }
        Operands::Subcommands(rows) => {
            text += &format!(
                "local curcontext=$curcontext state line\n\
                 _arguments -C -S \\\n{own}    '1:subcommand:(({}))' \\\n    '*::arguments:->arguments'\n\
                 [[ $state = arguments ]] || return\ncase $line[1] in\n",
                rows.iter()
                    .map(|r| format!("{}\\:\"{}\"", r.name, zsh_text(&zsh_text(r.help))))
                    .collect::<Vec<_>>()
                    .join(" ")
            );
            for row in rows {
                text += &format!(
                    "{})\n  _arguments -S \\\n{}    '*:file:_files'\n  ;;\n",
                    row.name,
                    zsh_options(row.options)
                );
            }
            text += "esac\n";
        }
    }
    text
}

/// A text in single quotes of fish.
fn fish_text(text: &str) -> String {
    text.replace('\\', "\\\\").replace('\'', "\\'")
}

/// A line of fish for an option, after these words.
fn fish_option(before: &str, option: &OptionRow) -> String {
    let mut text = before.to_string();
    for word in option.words() {
        text += &match (word.strip_prefix("--"), word.len()) {
            (Some(long), _) => format!(" -l {long}"),
            (None, 2) => format!(" -s {}", &word[1..]),
            (None, _) => format!(" -o {}", &word[1..]),
        };
    }
    text += &match option.value {
        OptionValue::Nothing => String::new(),
        OptionValue::Any(_) => " -x".to_string(),
        OptionValue::OneOf(_, words) => format!(" -x -a '{}'", words.join(" ")),
        OptionValue::File(_) => " -r -F".to_string(),
        OptionValue::Folder(_) => " -x -a '(__fish_complete_directories)'".to_string(),
    };
    text + &format!(" -d '{}'\n", fish_text(option.help))
}

fn fish(program: &ProgramTable) -> String {
    let mut text = format!("# {GENERATED}\n");
    for name in [program.name].into_iter().chain(program.links.iter().copied()) {
        let complete = format!("complete -c {name}");
        match program.operands {
            Operands::Words(_, words) => {
                text += &format!("{complete} -f -a '{}'\n", words.join(" "));
            }
            Operands::Command => {
                let valued =
                    words(program.options.iter().filter(|o| o.value.name().is_some())).join(" ");
                text += &format!(
                    "{complete} -x -a '(__fish_complete_subcommand -- {valued})' -d program\n"
                );
            }
            Operands::Subcommands(rows) => {
                text += &format!("{complete} -n __fish_use_subcommand -f\n");
                for row in rows {
                    text += &format!(
                        "{complete} -n __fish_use_subcommand -a {} -d '{}'\n",
                        row.name,
                        fish_text(row.help)
                    );
                    let in_it =
                        format!("{complete} -n '__fish_seen_subcommand_from {}'", row.name);
                    row.options.iter().for_each(|o| text += &fish_option(&in_it, o));
                }
            }
        }
        program.all_options().for_each(|o| text += &fish_option(&complete, o));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ALL;
    use std::fs;
    use std::path::PathBuf;
    use std::process::Command;

    fn folder(shell: &str) -> PathBuf {
        PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../completions").join(shell)
    }

    #[test]
    fn the_files_are_up_to_date() {
        for (shell, name, text) in SHELLS {
            for program in ALL {
                let (path, wanted) = (folder(shell).join(name(program)), text(program));
                if std::env::var_os("UPDATE").is_some() {
                    fs::create_dir_all(folder(shell)).unwrap();
                    fs::write(&path, &wanted).unwrap();
                }
                let stored = fs::read_to_string(&path).unwrap_or_default();
                assert!(
                    stored == wanted,
                    "{} is old: UPDATE=1 cargo test -p command-line",
                    path.display()
                );
            }
        }
    }

    /// Each shell that is installed reads its files.
    #[test]
    fn the_shells_read_the_files() {
        for (shell, name, _) in SHELLS {
            for program in ALL {
                let path = folder(shell).join(name(program));
                let option = if shell == "fish" { "--no-execute" } else { "-n" };
                let Ok(o) = Command::new(shell).arg(option).arg(&path).output() else { continue };
                assert!(o.status.success() && o.stderr.is_empty(), "{}: {o:?}", path.display());
            }
        }
    }

    /// What bash offers for the last of these words.
    fn bash_offers(words: &[&str]) -> Vec<String> {
        let quoted: Vec<String> = words.iter().map(|word| format!("'{word}'")).collect();
        let script = format!(
            ". {}\ncompopt() {{ :; }}\nCOMP_WORDS=({}) COMP_CWORD={}\n_{}\n\
             printf '%s\\n' \"${{COMPREPLY[@]}}\"",
            folder("bash").join(words[0]).display(),
            quoted.join(" "),
            words.len() - 1,
            words[0],
        );
        let o = Command::new("bash").args(["--norc", "-c", &script]).output().unwrap();
        assert!(o.stderr.is_empty(), "{o:?}");
        let text = String::from_utf8(o.stdout).unwrap();
        text.lines().filter(|l| !l.is_empty()).map(String::from).collect()
    }

    #[test]
    fn bash_completes() {
        assert_eq!(bash_offers(&["gasnetrun", "--ti"]), ["--timeout"]);
        assert_eq!(bash_offers(&["gasnetrun", "-n", "2", "--bind", "n"]), ["none", "numa"]);
        assert_eq!(bash_offers(&["gasnetrun", "-spawner", "=", "p"]), ["pmi"]);
        assert_eq!(bash_offers(&["gasnetrun", "-spawner", "="]), ["fork", "ssh", "mpi", "pmi"]);
        assert!(bash_offers(&["gasnetrun", "-n", ""]).is_empty());
        // The program, and what follows it.
        assert!(bash_offers(&["gasnetrun", "-n", "2", "ca"]).contains(&"cat".to_string()));
        assert_eq!(bash_offers(&["gasnetrun", "-n", "2", "cat", "/et"]), ["/etc"]);
        assert_eq!(bash_offers(&["gasnetrun", "--wdir", "/et"]), ["/etc"]);
        assert_eq!(bash_offers(&["gasnet_info", "--vers"]), ["--versions", "--version"]);
        assert_eq!(bash_offers(&["gasnet_trace", "s"]), ["summary"]);
        assert_eq!(bash_offers(&["gasnet_trace", "summary", "--by", "l"]), ["line"]);
        assert_eq!(bash_offers(&["gasnet_trace", "summary", "-"]), ["--by"]);
        assert_eq!(bash_offers(&["gasnet_trace", "credits", "/et"]), ["/etc"]);
        assert_eq!(bash_offers(&["ptlrun", "--h"]), ["--help"]);
    }

    /// What fish offers, if it is installed.
    #[test]
    fn fish_completes() {
        let offers = |program: &str, line: &str| {
            let file = folder("fish").join(format!("{program}.fish"));
            let script = format!("source {}; complete -C '{line}'", file.display());
            let o = Command::new("fish").args(["--no-config", "-c", &script]).output().ok()?;
            let text = String::from_utf8(o.stdout).unwrap();
            Some(
                text.lines()
                    .filter_map(|l| Some(l.split('\t').next()?.to_string()))
                    .collect::<Vec<_>>(),
            )
        };
        for (program, line, wanted) in [
            ("gasnetrun", "gasnetrun --ti", "--timeout"),
            ("gasnetrun", "gasnetrun -n 2 --bind nu", "numa"),
            ("gasnet_info", "gasnet_info --js", "--json"),
            ("gasnet_trace", "gasnet_trace su", "summary"),
            ("gasnet_trace", "gasnet_trace summary --by op", "operation"),
            ("ptlrun", "ptlrun --ver", "--version"),
        ] {
            if let Some(offered) = offers(program, line) {
                assert_eq!(offered, [wanted], "{line}");
            }
        }
    }
}
