#!/usr/bin/env python3
"""Writes the reference of the C interface, one page per family of functions.

The prototypes come from the headers. The texts are the doc comments of the exported functions in
src/capi, as rustdoc sees them; a file or folder of src/capi is a family. Without arguments, fails if
a function has no text, or a text describes a parameter that the prototype does not name. Also fails
if a page differs from the committed one. With --write, writes the pages:
  docs/reference/FAMILY.md   a chapter of the book
  docs/man/gasnet_FAMILY.3   a manual page
"""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BOOK = ROOT / "docs/reference"
MAN = ROOT / "docs/man"

# Family, the files or folders of src/capi, the header that a client includes, the title of its page.
FAMILIES = [
    ("job", ["init", "client"], "gasnet.h", "Start, attach, exit and queries"),
    ("am", ["am"], "gasnet.h", "Active messages"),
    ("hsl", ["hsl"], "gasnet.h", "Handler-safe locks and no-interrupt sections"),
    ("rma", ["rma"], "gasnet.h", "Put, get and memset"),
    ("value", ["value"], "gasnet.h", "Put and get of register values"),
    ("sync", ["sync"], "gasnet.h", "Completion of nonblocking operations"),
    ("barrier", ["barrier"], "gasnet.h", "Barrier"),
    ("vis", ["vis"], "gasnet_vis.h", "Vector, indexed and strided put and get"),
    ("coll", ["coll"], "gasnet_coll.h", "Collectives and teams"),
    ("tools", ["tools", "heap"], "gasnet_tools.h", "Portable tools"),
    ("ex_job", ["ex/job", "ex/segment", "ex/team", "ex/hsl"], "gasnetex.h", "GASNet-EX: start, objects and teams"),
    ("ex_rma", ["ex/rma", "ex/vis", "ex/event"], "gasnetex.h", "GASNet-EX: put, get and events"),
    ("ex_am", ["ex/am", "ex/negotiated"], "gasnetex.h", "GASNet-EX: active messages"),
    ("ex_coll", ["ex/coll", "ex/atomics", "ex/format"], "gasnetex.h", "GASNet-EX: collectives and atomics"),
]

# What a reader of a family must know before its functions: paragraphs of lines.
INTRODUCTIONS = {
    "am": [[
        "`M` in a name is the number of arguments, 0 to 16: `gasnet_AMRequestShort2(dest, handler, a, b)`.",
        "An argument is a `gasnet_handlerarg_t`, an integer of 32 bits. Handlers are registered with",
        "`gasnet_attach`. The handler of a Short is `void f(gasnet_token_t token, ...)` with the `M`",
        "arguments in place of the dots, that of a Medium or Long is",
        "`void f(gasnet_token_t token, void *payload, size_t nbytes, ...)`.",
    ], [
        "A handler runs on a thread that polls, in any call that does so. That of a request may reply once,",
        "to the rank that sent the request. No handler may send requests, wait or poll.",
    ]],
    "tools": [[
        "The atomics are inline. `gasnett_atomic_t` holds 32 bits, as `gasnett_atomic32_t` does, and",
        "`gasnett_atomic64_t` 64. Each type has the operations below under its own name, such as",
        "`gasnett_atomic64_add`. The strong forms, such as `gasnett_strongatomic_add`, are the same: every",
        "operation is atomic for all writers. `gasnett_atomic_init(value)` initialises an object in",
        "its definition.",
    ], [
        "The last argument of an operation says what it orders: `GASNETT_ATOMIC_NONE`, or a set of these.",
    ], [
        "- `GASNETT_ATOMIC_REL`, that is `_WMB_PRE`: earlier stores before the operation.",
        "- `GASNETT_ATOMIC_ACQ`, that is `_RMB_POST`: the operation before later loads. `_ACQ_IF_TRUE` and",
        "  `_ACQ_IF_FALSE` do so where a test returns that.",
        "- `GASNETT_ATOMIC_MB_PRE` and `_MB_POST`: all accesses before or after the operation.",
    ]],
    "ex_am": [[
        "The functions that send are inline. Each has the number of arguments, 0 to 16, in its name, or is a",
        "macro that counts them: `gex_AM_RequestShort2(tm, rank, handler, flags, a, b)` or",
        "`gex_AM_RequestShort(tm, rank, handler, flags, a, b)`. The families:",
    ], [
        "- `gex_AM_Request{Short,Medium,Long}`, `gex_AM_Reply{Short,Medium,Long}`: messages at once.",
        "- `gex_AM_Commit{Request,Reply}{Medium,Long}`, the same with `_v2` after the number: messages that",
        "  were prepared.",
    ]],
}

# Macros and inline functions of the headers, which src/capi does not have: by family, after which
# function they stand ("" for the end), name, declaration and text.
INLINE = {
    "am": [("gasnet_AMPoll", "GASNET_BLOCKUNTIL", "void GASNET_BLOCKUNTIL(condition)", [
        "Waits until a condition is true. Evaluates it and serves the network in turn, as `gasnet_AMPoll`",
        "does. In between it spins, yields or sleeps as `gasnet_set_waitmode` says. Afterwards the caller",
        "sees what was written before the condition became true.",
        "",
        "It also notices a condition that another thread, or a plain put of another rank, changes without a",
        "message: within 2 ms in the first second, within 5 ms later.",
        "",
        "A loop of `gasnet_AMPoll` instead never sleeps. With more ranks than CPUs, it gives up the CPU once",
        "in 128 polls that find nothing.",
        "",
        "- `condition`: an expression of C. What it reads must be volatile, atomic or the result of a call.",
        "- Context: after `gasnet_attach`; not in a handler or a no-interrupt section, and not while",
        "  a handler-safe lock is held.",
    ])],
    "tools": [
        ("", "gasnett_local_wmb", "void gasnett_local_wmb(void)", [
            "Orders the stores of this thread before it with the stores after it, as other threads and ranks of",
            "the host see them.",
            "",
            "- Context: anywhere.",
        ]),
        ("", "gasnett_local_rmb", "void gasnett_local_rmb(void)", [
            "Orders the loads of this thread before it with the loads after it.",
            "",
            "- Context: anywhere.",
        ]),
        ("", "gasnett_local_mb", "void gasnett_local_mb(void)", [
            "Orders all loads and stores of this thread before it with those after it.",
            "",
            "- Context: anywhere.",
        ]),
        *[("", f"gasnett_atomic_{name}", f"{result} gasnett_atomic_{name}({arguments}, int flags)", [
            text, "", "- `flags`: `GASNETT_ATOMIC_*`, as above.", "- Context: anywhere.",
        ]) for name, result, arguments, text in [
            ("read", "gasnett_atomic_val_t", "gasnett_atomic_t *p", "Returns the value."),
            ("set", "void", "gasnett_atomic_t *p, gasnett_atomic_val_t value", "Stores a value."),
            ("increment", "void", "gasnett_atomic_t *p", "Adds 1."),
            ("decrement", "void", "gasnett_atomic_t *p", "Subtracts 1."),
            ("decrement_and_test", "int", "gasnett_atomic_t *p",
             "Subtracts 1. Returns whether the value is 0 now."),
            ("compare_and_swap", "int",
             "gasnett_atomic_t *p, gasnett_atomic_val_t old, gasnett_atomic_val_t value",
             "Stores `value` if the value is `old`. Returns whether it was."),
            ("swap", "gasnett_atomic_val_t", "gasnett_atomic_t *p, gasnett_atomic_val_t value",
             "Stores a value. Returns the one before."),
            ("add", "gasnett_atomic_val_t", "gasnett_atomic_t *p, gasnett_atomic_val_t by",
             "Adds a number. Returns the new value."),
            ("subtract", "gasnett_atomic_val_t", "gasnett_atomic_t *p, gasnett_atomic_val_t by",
             "Subtracts a number. Returns the new value."),
        ]],
    ],
}

# What C sees of functions that the headers have as macros, or declare only for some clients.
MACROS = {
    "gasnet_init": "int gasnet_init(int *argc, char ***argv)",
    "gex_Client_Init": "int gex_Client_Init(gex_Client_t *client_p, gex_EP_t *ep_p, gex_TM_t *tm_p,"
    " const char *clientName, int *argc, char ***argv, gex_Flags_t flags)",
    "gasnett_getheapstats": "int gasnett_getheapstats(gasnett_heapstats_t *stats)",
}


def fail(message):
    sys.exit(f"ci/api.sh: {message}")


def prototypes():
    """The C declaration of each function of the headers, by name."""
    headers = ("gasnet", "gasnet_vis", "gasnet_coll", "gasnetex", "gasnet_tools")
    text = subprocess.run(
        [os.environ.get("CC", "cc"), "-E", "-P", "-DGASNET_PAR", f"-I{ROOT}/include", "-xc", "-"],
        input="".join(f"#include <{h}.h>\n" for h in headers),
        capture_output=True, text=True, check=True,
    ).stdout
    text = re.sub(r"__attribute__\s*\(\((?:[^()]|\([^()]*\))*\)\)|__extension__", "", text)
    while re.search(r"\{[^{}]*[^{} ][^{}]*\}", text):
        text = re.sub(r"\{[^{}]*\}", "", text)
    found = {}
    declaration = r"([^;{}#()]*?\b((?:gasnett?|gex)_\w+)\s*\(((?:[^();{}]|\([^()]*\))*)\))\s*;"
    for m in re.finditer(declaration, text):
        c = re.sub(r"\s+", " ", m.group(1)).strip()
        if not c.startswith(("return", "typedef")):
            found.setdefault(m.group(2), c.removeprefix("extern "))
    return found


def functions():
    """(family, name, parameter names, doc comment) of each exported function, in source order."""
    # rustdoc's JSON is unstable; of it, only names, texts, parameter names and positions are used.
    subprocess.run(
        [os.environ.get("CARGO", "cargo"), "rustdoc", "--quiet", "-p", "gasnet", "--lib", "--",
         "-Zunstable-options", "--output-format", "json", "--document-private-items", "--cap-lints", "allow"],
        env={**os.environ, "RUSTC_BOOTSTRAP": "1"}, cwd=ROOT, check=True,
    )
    target = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
    index = json.loads((target / "doc/gasnet.json").read_text())["index"]
    found = []
    for item in index.values():
        name, function = item["name"] or "", item["inner"].get("function")
        # Some versions of rustdoc give an attribute as its source text.
        exported = any("no_mangle" in str(attribute) for attribute in item["attrs"])
        if not function or not exported or not re.match(r"gasnett?_|gex_", name):
            continue
        file = Path(item["span"]["filename"])
        parts = file.relative_to("src/capi").parts
        family = "/".join(parts[:2] if parts[0] == "ex" else parts[:1]).removesuffix(".rs")
        names = [parameter for parameter, _ in function["sig"]["inputs"]]
        order = (len(file.parts), str(file), item["span"]["begin"], name.endswith(("_nb", "_nbi")), name)
        found.append((order, family, name, names, item["docs"] or ""))
    return [f[1:] for f in sorted(found)]


def numbered(c, names):
    """gasnet_AMRequestShort0 and its like, as one declaration for all numbers of arguments."""
    head, types = re.fullmatch(r"(.*?)0\((.*)\)", c).groups()
    pairs = [f"{t.strip()} {n}".replace("* ", "*") for t, n in zip(types.split(","), names)]
    return f"{head}M({', '.join(pairs)}, ...)"


def sections(doc):
    """The lines of a doc comment without the section on Rust's safety and without links."""
    kept, out = True, []
    indent = 1 if doc.startswith(" ") else 0
    for line in doc.split("\n"):
        line = line.removeprefix(" " * indent) if line.startswith(" " * indent) else line
        if line.startswith("# "):
            kept = line != "# Safety"
        if kept:
            out.append(re.sub(r"\[(`[^`]*`)\](\([^)]*\))?", r"\1", line))
    while out and not out[-1]:
        out.pop()
    return out


def markdown(family, title, header, entries):
    lines = [f"# {title}", "", f"`#include <{header}>`", ""]
    for paragraph in INTRODUCTIONS.get(family, []):
        lines += [*paragraph, ""]
    for name, declaration, doc in entries:
        lines += [f"## {name}", "", "```c", declaration + ";", "```", "", *doc, ""]
    return "\n".join(lines)


def roff(text):
    text = text.replace("\\", "\\e").replace("-", "\\-")
    text = re.sub(r"`([^`]*)`", r"\\fB\1\\fR", text)
    return "\\&" + text if text.startswith((".", "'")) else text


def manual(family, title, header, entries):
    names = ", ".join(name for name, _, _ in entries)
    lines = [
        f'.TH GASNET_{family.upper()} 3 "" libgasnet "GASNet over Portals"',
        ".SH NAME", f"{names} \\- {title[0].lower() + title[1:]}",
        ".SH SYNOPSIS", ".nf", f".B #include <{header}>", ".PP",
    ]
    lines += [f'.B "{roff(declaration)};"' for _, declaration, _ in entries]
    lines += [".fi", ".SH DESCRIPTION"]
    for paragraph in INTRODUCTIONS.get(family, []):
        lines += [*map(roff, paragraph), ".PP"]
    for name, _, doc in entries:
        lines.append(f".SS {name}")
        for line in doc:
            if not line:
                lines.append(".PP")
            elif m := re.match(r"[-*] (.*)", line):
                lines += [".IP \\(bu 2", roff(m.group(1))]
            else:
                lines.append(roff(line.strip()))
    others = [f".BR gasnet_{f} (3)" for f, *_ in FAMILIES if f != family]
    lines += [".SH SEE ALSO", ",\n".join(others)]
    return "\n".join(lines) + "\n"


def unknown_parameters(declaration, doc):
    """The parameters that a text describes and the declaration does not name."""
    heads = (re.match(r"[-*] ((?:`\w+`(?:, )?)+):", line) for line in doc)
    described = [name for head in heads if head for name in re.findall(r"\w+", head.group(1))]
    return [name for name in described if not re.search(rf"\b{name}\b", declaration)]


def pages():
    declared, exported, missing, unnamed = prototypes(), functions(), [], []
    unknown = {family for family, *_ in exported} - {f for _, files, *_ in FAMILIES for f in files}
    if unknown:
        fail(f"FAMILIES has no place for {', '.join(sorted(unknown))} of src/capi")
    for family, files, header, title in FAMILIES:
        entries = []
        for file, name, names, doc in exported:
            if file not in files or re.match(r"gasnet_AMRe\w+[1-9]\d*$", name):
                continue
            declaration = MACROS.get(name) or declared.get(name)
            if not declaration:
                fail(f"the headers do not declare {name}")
            if name.startswith("gasnet_AMRe"):
                name, declaration = name[:-1] + "M", numbered(declaration, names)
            text = sections(doc)
            if not text or re.fullmatch(r"`?\w+`?\.?", text[0]):
                missing.append(name)
            unnamed += [f"{name}: {parameter}" for parameter in unknown_parameters(declaration, text)]
            entries.append((name, declaration, text))
        for after, *entry in INLINE.get(family, []):
            at = next((i + 1 for i, e in enumerate(entries) if e[0] == after), len(entries))
            entries.insert(at, tuple(entry))
        yield BOOK / f"{family}.md", markdown(family, title, header, entries)
        yield MAN / f"gasnet_{family}.3", manual(family, title, header, entries)
    if unnamed:
        fail(f"parameters that are not in the prototype: {', '.join(unnamed)}")
    if missing:
        fail(f"{len(missing)} functions of src/capi have no text: {', '.join(missing)}")


def main():
    write = sys.argv[1:] == ["--write"]
    differ = []
    for path, text in pages():
        if write:
            path.parent.mkdir(exist_ok=True)
            path.write_text(text)
        elif not path.exists() or path.read_text() != text:
            differ.append(str(path.relative_to(ROOT)))
    if differ:
        fail(f"not what src/capi says: {', '.join(differ)}; run ci/api.sh --write")


main()
