#!/bin/sh
# Every relative link in a Markdown file of this repository names a file or folder that exists.
# Every anchor names a heading of its page, and every path of a source in `code` a file that
# exists. Each broken link is one line. Needs Python 3.
#   ci/links.sh           the pages of this repository
#   ci/links.sh FOLDER    the pages below a folder, without the paths of sources
set -eu
cd "$(dirname "$0")/.."
command -v python3 >/dev/null 2>&1 || {
    echo "python3 is not installed (Debian package python3)"
    exit 77
}
folder=${1-}
if [ -n "$folder" ]; then cd "$folder"; else . ci/checkout.sh; fi
if [ -n "$folder" ]; then find . -name '*.md'; else git ls-files -co --exclude-standard '*.md'; fi |
    SOURCES=${folder:+no} python3 -c '
import os, re, sys

def text(path):
    """The lines of a page without blocks of code and without code spans."""
    code = False
    lines = []
    for line in open(path, encoding="utf-8"):
        if line.lstrip().startswith("```"):
            code = not code
        elif not code and not line.startswith("    ") and not line.startswith("\t"):
            lines.append(re.sub(r"`[^`]*`", lambda m: " " * len(m.group()), line))
        else:
            lines.append("\n")
    return lines

def anchors(path):
    """The names that headings have: lower case, without punctuation, with - for blanks."""
    seen, names = {}, set()
    code = False
    for line in open(path, encoding="utf-8"):
        if line.startswith("```"):
            code = not code
        heading = re.match(r"#+ +(.*)", line)
        if heading and not code:
            name = re.sub(r"[^\w\- ]", "", heading.group(1).strip().lower()).replace(" ", "-")
            count = seen.get(name, 0)
            seen[name] = count + 1
            names.add(f"{name}-{count}" if count else name)
    return names

# Paths of sources: the folders that hold them, and nothing that stands for several files.
SOURCE = re.compile(r"`((?:src|portals/(?:src|capi|tests)|sys|ci|capi-tests|tests|models|buildscript)/[\w./-]+)`")

links = broken = 0
for page in sys.stdin.read().split("\n"):
    if not page or not os.path.exists(page):
        continue
    for number, line in enumerate(text(page), 1):
        for target in re.findall(r"\]\(([^)\s]+)[^)]*\)", line):
            if re.match(r"[a-z+]+:", target):
                continue
            links += 1
            path, _, anchor = target.partition("#")
            file = os.path.normpath(os.path.join(os.path.dirname(page), path)) if path else page
            why = None
            if not os.path.exists(file):
                why = "no such file"
            elif anchor and anchor not in anchors(file):
                why = "no such heading"
            if why:
                broken += 1
                print(f"{page}:{number}: {target}: {why}")
    for number, line in enumerate(open(page, encoding="utf-8"), 1):
        for path in [] if line.startswith("    ") or os.environ["SOURCES"] else SOURCE.findall(line):
            links += 1
            if not os.path.exists(path):
                broken += 1
                print(f"{page}:{number}: {path}: no such file")
print(f"{links} links, {broken} broken")
sys.exit(broken != 0 or links == 0)
'
