#!/bin/sh
# The reference of the C interface (docs/reference, docs/man/*.3) says what src/capi says (--write:
# written again). See ci/api.py, which needs Python 3.9 or later.
command -v python3 >/dev/null || {
    echo "python3 is not installed (Debian package python3)"
    exit 77
}
exec python3 "$(dirname "$0")/api.py" "$@"
