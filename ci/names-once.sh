#!/bin/sh
# A type name has one meaning: no public or crate-visible type is defined twice in the workspace.
# A module in a folder `lightweight` has the names of the one that it replaces.
# Generated files are not in the repository, and C names carry their own prefix.
set -eu
cd "$(dirname "$0")/.."
. ci/checkout.sh
git ls-files '*.rs' ':!*/lightweight/*' | xargs grep -nHE '^[[:space:]]*pub(\([^)]*\))? (unsafe )?(struct|enum|union|trait|type) [A-Za-z0-9_]+' |
    sed -E 's/^([^:]+:[0-9]+):[[:space:]]*pub(\([^)]*\))? (unsafe )?(struct|enum|union|trait|type) ([A-Za-z0-9_]+).*/\5 \1/' |
    sort | awk '
        $1 == name { places = places " " $2; twice = 1; next }
        { flush(); name = $1; places = $2; twice = 0 }
        function flush() { if (twice) { print "defined more than once: " name ": " places; found = 1 } }
        END { flush(); exit found }'
