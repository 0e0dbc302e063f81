#!/bin/sh
# Files that import each other in a circle are found, and the pictures of ARCHITECTURE.md are
# checked (--write: drawn anew). See ci/imports.py, which is run by Python 3.9 or later.
command -v python3 >/dev/null || {
    echo "python3 is not installed (Debian package python3)"
    exit 77
}
exec python3 "$(dirname "$0")/imports.py" "$@"
