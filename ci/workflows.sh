#!/bin/sh
# The files of .github agree with the published schemas, which check-jsonschema carries with it
# (pip install check-jsonschema); ends with 77 where that is not installed. The scripts and make
# targets that the workflows name must exist.
set -eu
cd "$(dirname "$0")/.."
for script in $(sed -n 's/^ *\(- \)\{0,1\}run: *\(.*\)/\2/p' .github/workflows/*.yml | grep -oE '(\.ci|ci)/[a-z.-]+' | sort -u); do
    [ -x "$script" ] || {
        echo "$script: a workflow runs it, but it is not there"
        exit 1
    }
done
for target in $(sed -n 's/^ *\(- \)\{0,1\}run: *make \([a-z-]*\).*/\2/p' .github/workflows/*.yml | sort -u); do
    grep -q "^$target:" Makefile || {
        echo "make $target: a workflow runs it, but the Makefile has no such target"
        exit 1
    }
done
command -v check-jsonschema >/dev/null 2>&1 || {
    echo "check-jsonschema is not installed (pip install check-jsonschema)"
    exit 77
}
check-jsonschema --builtin-schema vendor.github-workflows .github/workflows/*.yml
for form in .github/ISSUE_TEMPLATE/*.yml; do
    case $form in
    */config.yml) ;;
    *) check-jsonschema --builtin-schema vendor.github-issue-forms "$form" ;;
    esac
done
