"""The imports between the source files of a folder: no circles, and the picture in ARCHITECTURE.md.

usage: ci/imports.sh [--write] [--arrows] [FOLDER...]
Without a FOLDER: those that ARCHITECTURE.md has pictures of.

An arrow A -> B means that A names something that B defines:
- by a `use` or a path;
- by calling a method that is visible in the crate, whose name has two words or more, and that only
  B defines;
- by calling a method of `self` in an `impl` of a type, where only B has that method of that type.
A re-export is followed to the file that defines the name and is no arrow. Tests are left out.

Without --write, fails if files of a folder import each other in a circle. Also fails if a picture
in ARCHITECTURE.md (between `<!-- imports FOLDER -->` and `<!-- end -->`) is not what the code says
or has a circle.
--write draws the pictures anew. --arrows prints every arrow between files, with the names behind it.
"""

import os
import re
import sys

ARCHITECTURE = "ARCHITECTURE.md"
PICTURE = re.compile(r"<!-- imports (\S+) -->\n.*?<!-- end -->", re.S)
IMPL = re.compile(r"^(?:unsafe )?impl\b([^{;]*)\{(.*?)^\}", re.M | re.S)
SELF_CALL = re.compile(r"\b(?:self\.|Self::)(\w+)(?:::<[^>]*>)?\(")
# Methods whose names may as well be those of the standard library: one word, or a conversion.
COMMON = re.compile(r"[^_]*|(?:as|to|into|from|with|try)_.*|read_exact|write_all|get_mut|is_empty|new_unchecked|set_len")


def plain(text):
    """The code without comments, strings, characters, and what is compiled for tests only."""
    text = re.sub(r'b?"(?:\\.|[^"\\])*"|//[^\n]*|/\*.*?\*/', lambda m: '""' if '"' in m[0][:2] else "", text, flags=re.S)
    text = re.sub(r"'(?:\\.[^']*|[^'\\])'", "' '", text)
    out, at = "", 0
    for test in re.finditer(r"#\[cfg\((?:test|all\(test[^\n]*)\)\]", text):
        if test.start() < at:
            continue
        out += text[at:test.start()]
        brace, semicolon = text.find("{", test.end()), text.find(";", test.end())
        if brace < 0 or 0 <= semicolon < brace:
            at = semicolon + 1
            continue
        depth, at = 1, brace + 1
        while depth:
            depth += {"{": 1, "}": -1}.get(text[at], 0)
            at += 1
    return out + text[at:]


def leaves(tree):
    """The paths of a `use` tree: (path, name here)."""
    tree = tree.strip()
    brace = tree.find("{")
    if brace < 0:
        path, _, alias = tree.partition(" as ")
        path = path.strip()
        return [(path, alias.strip() or path.split("::")[-1])]
    prefix, depth, part, parts = tree[:brace], 0, "", []
    for letter in tree[brace + 1 : tree.rindex("}")]:
        depth += {"{": 1, "}": -1}.get(letter, 0)
        if letter == "," and depth == 0:
            parts.append(part)
            part = ""
        else:
            part += letter
    found = []
    for part in parts + [part]:
        for path, name in leaves(part) if part.strip() else []:
            path = prefix + path
            if path.endswith("::self"):
                path = path[: -len("::self")]
                name = path.split("::")[-1] if name == "self" else name
            found.append((path, name))
    return found


def implemented(head):
    """The name of the type that an `impl` is of, without its parameters."""
    text, depth = "", 0
    for letter in head.replace("->", "").split(" where ")[0]:
        depth += {"<": 1, ">": -1}.get(letter, 0)
        text += letter if depth == 0 else ""
    return (re.findall(r"\w+", text.split(" for ")[-1]) or [""])[-1]


class File:
    def __init__(self, path, module):
        with open(path) as source:
            text = plain(source.read())
        self.path, self.module = path, module
        self.children = set(re.findall(r"^\s*(?:pub(?:\([^)]*\))? )?mod (\w+);", text, re.M))
        self.uses, self.exports = [], []
        for public, tree in re.findall(r"^\s*(pub(?:\([^)]*\))? )?use ([^;]+);", text, re.M):
            (self.exports if public else self.uses).extend(leaves(tree))
        self.body = re.sub(r"^\s*(?:pub(?:\([^)]*\))? )?use [^;]+;", "", text, flags=re.M)
        self.defines = set(
            re.findall(r"\b(?:struct|enum|union|trait|type|fn|const|static|mod|macro_rules!) (?:mut )?(\w+)", self.body)
        )
        self.visible = set(re.findall(r"\bpub(?:\([^)]*\))? (?:const )?(?:unsafe )?fn (\w+)", self.body))
        for trait in re.findall(r"^(?:pub(?:\([^)]*\))? )?(?:unsafe )?trait .*?^}", self.body, re.M | re.S):
            self.visible |= set(re.findall(r"\bfn (\w+)", trait))
        # By type: the methods that are defined here, and those that they call of `self`.
        self.methods, self.calls = {}, {}
        for head, body in IMPL.findall(self.body):
            kind = implemented(head)
            self.methods.setdefault(kind, set()).update(re.findall(r"\bfn (\w+)", body))
            self.calls.setdefault(kind, set()).update(SELF_CALL.findall(body))


class Folder:
    def __init__(self, folder):
        self.folder = folder.rstrip("/")
        root = self.folder
        while not os.path.exists(os.path.join(root, "lib.rs")):
            root = os.path.dirname(root)
            if not root:
                sys.exit(f"{folder}: no lib.rs above it")
        self.files = {}
        for place, _, names in os.walk(root):
            for name in names:
                if name.endswith(".rs") and "/bin/" not in place + "/" and name != "build.rs":
                    path = os.path.join(place, name)
                    parts = os.path.relpath(path, root)[: -len(".rs")].split(os.sep)
                    if parts[-1] in ("lib", "main", "mod"):
                        parts.pop()
                    self.files[tuple(parts)] = File(path, tuple(parts))
        # What only tests declare is no part of the library.
        for module in sorted(self.files, key=len):
            if module and (module[:-1] not in self.files or module[-1] not in self.files[module[:-1]].children):
                del self.files[module]
        self.owner, self.method_owner = {}, {}
        for file in self.files.values():
            for name in file.visible:
                self.owner.setdefault(name, set()).add(file)
            for kind, names in file.methods.items():
                for name in names:
                    self.method_owner.setdefault((kind, name), set()).add(file)
        inside = os.path.relpath(self.folder, root).split(os.sep)
        self.inside = () if inside == ["."] else tuple(inside)
        self.arrows = {}
        for file in self.files.values():
            self.read(file)

    def resolve(self, file, path, seen=()):
        """The file that a path leads to, and the name there; None if it leads out of the crate."""
        parts = path.split("::")
        if parts[0] == "crate":
            module, parts = (), parts[1:]
        elif parts[0] in ("self", "super"):
            module = file.module
            while parts and parts[0] in ("self", "super"):
                module = module[:-1] if parts[0] == "super" else module
                parts = parts[1:]
        elif parts[0] in file.children:
            module = file.module
        else:
            for known, name in file.uses + file.exports:
                if name == parts[0] and known != parts[0] and (file, path) not in seen:
                    return self.resolve(file, "::".join([known] + parts[1:]), seen + ((file, path),))
            return None
        while parts and module + (parts[0],) in self.files:
            module, parts = module + (parts[0],), parts[1:]
        found = self.files.get(module)
        if found is None or not parts:
            return found and (found, "")
        name = parts[0]
        if name not in found.defines and (found, name) not in seen:
            for known, here in found.exports:
                if here == name or here == "*":
                    other = self.resolve(found, known[: -len("::*")] if here == "*" else known, seen + ((found, name),))
                    if other and (here != "*" or name in other[0].defines):
                        return other[0], name
        return found, name

    def draw(self, source, target, name):
        inside = len(self.inside)
        if source is target or not all(f.module[:inside] == self.inside for f in (source, target)):
            return
        self.arrows.setdefault((source.path, target.path), set()).add(name)

    def read(self, file):
        paths = [path for path, _ in file.uses] + re.findall(r"\b[a-z_]\w*(?:::\w+)+", file.body)
        for path in paths:
            glob = path.endswith("::*")
            found = self.resolve(file, path[: -len("::*")] if glob else path)
            if not found:
                continue
            target, name = found
            if glob:
                used = [(n, f) for n, f in self.names(target) if re.search(rf"\b{n}\b", file.body)]
                for name, owner in used:
                    self.draw(file, owner, name)
            # A module that is imported by name is used by paths, which are read themselves.
            elif name:
                self.draw(file, target, name)
        for name in set(re.findall(r"(?:\.|Self::)(\w+)(?:::<[^>]*>)?\(", file.body)):
            owners = self.owner.get(name, set())
            if not COMMON.fullmatch(name) and len(owners) == 1 and name not in file.defines:
                self.draw(file, *owners, name + "()")
        for kind, calls in file.calls.items():
            for name in calls - file.methods[kind]:
                owners = self.method_owner.get((kind, name), set())
                if len(owners) == 1:
                    self.draw(file, *owners, name + "()")

    def names(self, file, seen=()):
        """What a glob import of a file brings: (name, file that defines it)."""
        found = [(name, file) for name in file.defines]
        for known, here in file.exports if file not in seen else []:
            other = self.resolve(file, known[: -len("::*")] if here == "*" else known)
            if other:
                found += self.names(other[0], seen + (file,)) if here == "*" else [(here, other[0])]
        return found

    def short(self, path):
        return os.path.relpath(path, self.folder)

    def part(self, path):
        """The folder or file of a picture that a file belongs to."""
        return self.short(path).split(os.sep)[0].removesuffix(".rs")

    def circles(self, name=lambda path: path):
        """Groups of files, or of what `name` makes of them, that reach each other (Tarjan, 1972)."""
        edges = {}
        for source, target in self.arrows:
            if name(source) != name(target):
                edges.setdefault(name(source), set()).add(name(target))
        number, low, stack, groups = {}, {}, [], []

        def visit(node):
            number[node] = low[node] = len(number)
            stack.append(node)
            for other in sorted(edges.get(node, ())):
                if other not in number:
                    visit(other)
                if other in stack:
                    low[node] = min(low[node], low[other])
            if low[node] == number[node]:
                at = stack.index(node)
                if len(stack) - at > 1:
                    groups.append(sorted(stack[at:]))
                del stack[at:]

        sys.setrecursionlimit(10000)
        for node in sorted(edges):
            if node not in number:
                visit(node)
        return groups

    def picture(self):
        """A Mermaid graph by folder; an arrow that other arrows imply is not drawn."""
        edges = {}
        for source, target in self.arrows:
            if self.part(source) != self.part(target):
                edges.setdefault(self.part(source), set()).add(self.part(target))

        def reaches(node, goal, skip):
            todo, seen = [n for n in edges.get(node, ()) if (node, n) != skip], set()
            while todo:
                at = todo.pop()
                if at == goal:
                    return True
                if at not in seen:
                    seen.add(at)
                    todo += edges.get(at, ())
            return False

        lines = ["```mermaid", "graph TD"]
        for source in sorted(edges):
            for target in sorted(edges[source]):
                if reaches(target, source, None) or not reaches(source, target, (source, target)):
                    lines.append(f"    {source} --> {target}")
        return "\n".join(lines + ["```"])


def main():
    os.chdir(os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
    options = {argument for argument in sys.argv[1:] if argument.startswith("--")}
    if options - {"--write", "--arrows"}:
        sys.exit(__doc__)
    page = open(ARCHITECTURE).read() if os.path.exists(ARCHITECTURE) else ""
    pictures = [match[1] for match in PICTURE.finditer(page)]
    folders = {name: Folder(name) for name in [a for a in sys.argv[1:] if a not in options] or pictures}
    failed = False
    for name, folder in folders.items():
        if "--arrows" in options:
            for (source, target), names in sorted(folder.arrows.items()):
                print(f"{folder.short(source)} -> {folder.short(target)}: {', '.join(sorted(names))}")
        for group in folder.circles():
            failed = True
            print(f"{name}: {len(group)} files import each other: {' '.join(map(folder.short, group))}")
            for (source, target), names in sorted(folder.arrows.items()):
                if source in group and target in group:
                    print(f"    {folder.short(source)} -> {folder.short(target)}: {', '.join(sorted(names))}")
        for group in folder.circles(folder.part) if name in pictures else []:
            failed = True
            print(f"{name}: in the picture, these import each other: {' '.join(group)}")
    drawn = PICTURE.sub(
        lambda m: f"<!-- imports {m[1]} -->\n{folders[m[1]].picture()}\n<!-- end -->" if m[1] in folders else m[0], page
    )
    if drawn != page and "--write" in options:
        open(ARCHITECTURE, "w").write(drawn)
    elif drawn != page:
        failed = True
        print(f"{ARCHITECTURE}: a picture is not what the code says; run ci/imports.sh --write")
    sys.exit(failed)


main()
