#!/bin/sh
# The pages that docs/SUMMARY.md lists, as a book in build/book/html. Installs mdbook into
# build/tools where it is missing. `ci/book.sh --pages` only collects the pages.
#
# mdBook wants all pages below one folder with SUMMARY.md in it. So the pages are copied to
# build/book/src at their places in the repository. Links to files that are no pages (sources,
# scripts) become plain text there; links to a README.md name the index that mdBook makes of it.
set -eu
cd "$(dirname "$0")/.."
version=0.4.52
src=$PWD/build/book/src
rm -rf "$src" build/book/html
mkdir -p "$src"

sed -n 's/.*](\([^)]*\)).*/docs\/\1/p' docs/SUMMARY.md | sed 's|^docs/\.\./||' >build/book/pages
find docs -name '*.svg' -o -name '*.png' | cat build/book/pages - >build/book/files
while read -r file; do
    mkdir -p "$src/$(dirname "$file")"
    cp "$file" "$src/$file"
done <build/book/files
sed -e 's|](\.\./|](|' -e 't' -e 's|](|](docs/|' docs/SUMMARY.md >"$src/SUMMARY.md"

while read -r page; do
    awk -v page="$page" -v list=build/book/files '
        function resolve(folder, path,    parts, out, n, i, top) {
            n = split(folder "/" path, parts, "/")
            top = 0
            for (i = 1; i <= n; i++) {
                if (parts[i] == "" || parts[i] == ".") continue
                if (parts[i] == "..") { top--; continue }
                out[++top] = parts[i]
            }
            path = ""
            for (i = 1; i <= top; i++) path = path (i > 1 ? "/" : "") out[i]
            return path
        }
        BEGIN {
            while ((getline file < list) > 0) known[file] = 1
            folder = page
            if (!sub(/\/[^\/]*$/, "", folder)) folder = ""
        }
        /^    / { print; next }
        {
            done = ""
            while (match($0, /\[[^]]*\]\([^) ]*\)/)) {
                link = substr($0, RSTART, RLENGTH)
                text = link; sub(/\]\(.*/, "", text); sub(/^\[/, "", text)
                target = link; sub(/.*\]\(/, "", target); sub(/\)$/, "", target)
                path = target; sub(/#.*/, "", path)
                keep = target ~ /^[a-z+]+:/ || path == "" || resolve(folder, path) in known
                done = done substr($0, 1, RSTART - 1) (keep ? link : text)
                $0 = substr($0, RSTART + RLENGTH)
            }
            print done $0
        }' "$page" | sed 's|](\([^):]*\)README\.md|](\1index.md|g' >"$src/$page"
done <build/book/pages
[ "${1-}" != --pages ] || exit 0

PATH=$PATH:$PWD/build/tools/bin
command -v mdbook >/dev/null 2>&1 ||
    "${CARGO:-cargo}" install --locked mdbook --no-default-features --version $version --root build/tools
mdbook build .
echo "build/book/html/index.html"
