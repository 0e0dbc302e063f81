# Sourced by the scripts that install, with their arguments
#   DESTDIR PREFIX [NAME=folder]...
# NAME is BINDIR, LIBDIR, INCLUDEDIR, MANDIR or DOCDIR: where files are used. An empty folder means
# the default below PREFIX. Files are written below DESTDIR. Further names: KEEP_DEBUG=1, and TREE,
# the build tree, `build` by default.

# What root installs is for all users, whatever root's own files are.
umask 022

destdir=$1
prefix=$2
shift 2
bindir= libdir= includedir= mandir= docdir= keep_debug= tree=build
for argument in "$@"; do
    folder=${argument#*=}
    case $argument in
    BINDIR=*) bindir=$folder ;;
    LIBDIR=*) libdir=$folder ;;
    INCLUDEDIR=*) includedir=$folder ;;
    MANDIR=*) mandir=$folder ;;
    DOCDIR=*) docdir=$folder ;;
    KEEP_DEBUG=*) keep_debug=$folder ;;
    TREE=*) tree=$folder ;;
    *)
        echo "$0: $argument: the names are BINDIR, LIBDIR, INCLUDEDIR, MANDIR, DOCDIR, KEEP_DEBUG and TREE" >&2
        exit 2
        ;;
    esac
done
# plain FOLDER: without slashes that name nothing.
plain() {
    printf '%s\n' "$1" | sed 's|//*|/|g; s|\(.\)/$|\1|'
}
prefix=$(plain "$prefix")
below=${prefix%/}
bindir=$(plain "${bindir:-$below/bin}")
libdir=$(plain "${libdir:-$below/lib}")
includedir=$(plain "${includedir:-$below/include}")
mandir=$(plain "${mandir:-$below/share/man}")
docdir=$(plain "${docdir:-$below/share/doc/GASNet}")
for folder in "PREFIX=$prefix" "BINDIR=$bindir" "LIBDIR=$libdir" "INCLUDEDIR=$includedir" "MANDIR=$mandir" \
    "DOCDIR=$docdir"; do
    case $folder in
    *=/*) ;;
    *)
        echo "$folder is not an absolute path: programs look for the library there from any folder" >&2
        echo "  Give the full path, such as ${folder%%=*}=$PWD/${folder#*=}." >&2
        exit 2
        ;;
    esac
    # What the client files cannot hold; those of a build tree are not installed.
    case $prefix:$folder in
    "$PWD/$tree":*) ;;
    *:*[][:space:]\&\|\\,\;\$\#\"\'\`*?[\(\)\<\>]*)
        printf '%s\n' "$folder has a character that make fragments and pkg-config files cannot hold" \
            "  Give a path without blanks and without & | \\ , ; \$ # \" ' \` * ? [ ] ( ) < >." >&2
        exit 2
        ;;
    esac
done

# The dynamic linker searches these folders without a run path.
case $libdir in
/lib | /lib64 | /usr/lib | /usr/lib64 | /lib/*-linux-* | /usr/lib/*-linux-*) run_path=no ;;
*) run_path=yes ;;
esac

# rpath FOLDER: the linker's flag for a folder that needs one.
rpath() {
    [ $run_path = no ] || echo "-Wl,-rpath,$1"
}

# relative FOLDER REFERENCE: REFERENCE and the rest if the folder is below PREFIX; else FOLDER.
relative() {
    case $1 in
    "$prefix") echo "$2" ;;
    "$below"/*) echo "$2/${1#"$below"/}" ;;
    *) echo "$1" ;;
    esac
}

# back FOLDER: the path from a folder below PREFIX back to PREFIX; nothing for other folders.
back() {
    case $1 in
    "$prefix") echo . ;;
    "$below"/*) echo "${1#"$below"/}" | sed 's|[^/][^/]*|..|g' ;;
    esac
}

# built FILE...: refuses to install what was not built.
built() {
    for file in "$@"; do
        [ -e "$file" ] || {
            echo "$file is missing: this script only copies" >&2
            echo "  Run \`$make_first\` first, without root rights." >&2
            exit 1
        }
    done
}

# recorded NAME [DEFAULT]: what ci/build.sh has recorded of the build tree.
recorded() {
    value=$(sed -n "s/^$1=//p" "$tree/lib/.built" 2>/dev/null || true)
    printf '%s\n' "${value:-${2-}}"
}

# tool FILE: installs a program without its debug information, which goes to .debug/NAME.debug
# next to it; gdb and addr2line look there.
tool() {
    installed=$destdir$bindir/${1##*/}
    mkdir -p "$destdir$bindir"
    if [ -n "$keep_debug" ] || ! stripped "$1" "$installed.new"; then
        install -m 755 "$1" "$installed.new"
    fi
    mv "$installed.new" "$installed"
}

# stripped FILE TO: fails where no objcopy can do it, and says so.
stripped() {
    objcopy=${OBJCOPY:-$(${CC:-cc} -print-prog-name=objcopy 2>/dev/null || true)}
    command -v "$objcopy" >/dev/null 2>&1 || objcopy=objcopy
    folder=$destdir$bindir/.debug
    debug=$folder/${1##*/}.debug
    mkdir -p "$folder" &&
        "$objcopy" --only-keep-debug "$1" "$debug.new" &&
        chmod 644 "$debug.new" &&
        mv "$debug.new" "$debug" &&
        "$objcopy" --strip-all --remove-section=.gnu_debuglink --add-gnu-debuglink="$debug" "$1" "$2" &&
        chmod 755 "$2" &&
        return
    rm -f "$debug" "$debug.new" "$2"
    rmdir "$folder" 2>/dev/null || true
    echo "${1##*/} keeps its debug information: objcopy cannot strip it" >&2
    return 1
}

# completions PROGRAM...: installs the files by which shells complete the options of programs,
# where the shells look for files of packages.
completions() {
    for program in "$@"; do
        install -D -m 644 "completions/bash/$program" "$destdir$below/share/bash-completion/completions/$program"
        install -D -m 644 "completions/zsh/_$program" "$destdir$below/share/zsh/site-functions/_$program"
        install -D -m 644 "completions/fish/$program.fish" "$destdir$below/share/fish/vendor_completions.d/$program.fish"
    done
}

# completion_links PROGRAM NAME: the same files for another name of a program.
completion_links() {
    ln -sfn "$1" "$destdir$below/share/bash-completion/completions/$2"
    ln -sfn "$1.fish" "$destdir$below/share/fish/vendor_completions.d/$2.fish"
}
