#!/bin/sh
# Checks for the tools that a build needs, and for the tools named. As root on a system with
# apt-get, it installs missing tools. Otherwise it names all missing tools in one line and
# fails. A tool with a + in front is optional: tests that need it are skipped with a reason. One
# whose package has another name is written +package:tool.
#   ci/tools.sh [tool | +tool | +package:tool]...
set -eu

need=
# CC may have options, or begin with a wrapper such as ccache.
compiler=$(echo ${CC:-cc})
compiler=${compiler%% *}
named=
command -v "$compiler" >/dev/null 2>&1 || case $compiler in
cc | gcc) need="$need gcc" ;;
*) named=" $compiler, the compiler that CC names" ;;
esac
command -v make >/dev/null 2>&1 || need="$need make"
# A release has no history.
[ ! -e "$(dirname "$0")/../.git" ] || command -v git >/dev/null 2>&1 || need="$need git"
wished=
for tool in "$@"; do
    case $tool in
    +*)
        name=${tool#+}
        command -v "${name#*:}" >/dev/null 2>&1 || wished="$wished ${name%%:*}"
        ;;
    *) command -v "$tool" >/dev/null 2>&1 || need="$need $tool" ;;
    esac
done
if [ -n "$need$wished" ] && [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; then
    apt-get update -qq || true
    # shellcheck disable=SC2086 # a list of words
    [ -z "$need" ] || DEBIAN_FRONTEND=noninteractive apt-get install -y -qq $need libc6-dev >/dev/null || true
    for tool in $wished; do
        DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$tool" >/dev/null ||
            echo "not installed: $tool; the tests that need it are skipped" >&2
    done
    missing=
    for tool in $need; do
        command -v "$tool" >/dev/null 2>&1 || missing="$missing $tool"
    done
    need=$missing
fi
command -v "${CARGO:-cargo}" >/dev/null 2>&1 || need="$need cargo (a Rust toolchain, see https://rustup.rs)"
need=$need$named
if [ -n "$need" ]; then
    echo "needed, but not found:$need" >&2
    exit 1
fi
