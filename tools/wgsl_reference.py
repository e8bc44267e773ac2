#!/usr/bin/env python3
"""Writes docs/wgsl.md, the reference of the WGSL files with a fixed interface, from the files themselves:
what an entry binds and needs is read from its declarations, the rest is the comment at the file's head.
Which files there are is in src/webgpu/fixed_kernels.cpp.

  tools/wgsl_reference.py > docs/wgsl.md      tools/check_docs.py says when that is due"""

import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
TABLE = ROOT / "src/webgpu/fixed_kernels.cpp"
EXAMPLE = ROOT / "examples/run_kernel.js"

HEAD = """<!-- Written by tools/wgsl_reference.py from the files; do not edit. -->
# The WGSL files

Kernels of a transformer as plain WGSL that any WebGPU program can load, in a browser or natively: no
templates, no includes, nothing of Tessera needed. `cmake --install` puts them into `share/tessera/wgsl`.
They compile in Tint (Chrome, Dawn) and in Naga (Firefox, wgpu), are tested through both, and
`web/kernels.html` of the source tree runs them in your browser.

The interface of a file does not change:

- Bindings are in group 0, numbered from 0 in the order of the tables below: storage first, the uniform
  last, in a buffer of exactly the bytes given. Uniforms are u32 words; `..._bits` are the bits of an f32.
- All matrices are row-major, all data f32 or u32 except where a table says f16. Sums are in f32 or wider.
- Every binding has its own buffer or part of one: what is written may not overlap what is read.
- Entries named `main_vec4` do the same as `main` with vec4 bindings, on a quarter of the grid.
- Inputs are finite; NaN and infinities may come out as anything, but nothing is written out of bounds.
- At most 256 threads a workgroup and 16 KiB of workgroup memory: what every implementation has.
- Where a grid has more than 65,535 workgroups in a dimension, fold it as the file's comment says.

## In JavaScript

`run_kernel.js`, beside the files:

```js
%s```

```js
const code = await (await fetch('rmsnorm.wgsl')).text();
const epsBits = new Uint32Array(Float32Array.of(1e-5).buffer)[0];
const [x, weight, y] = runKernel(device, code, 'main', [input, weights, new Float32Array(input.length)],
                                 [nRows, width, epsBits, 0], [nRows]);
```
"""

BINDING = re.compile(r"@group\(0\) @binding\((\d+)\) var<([\w, ]+)> (\w+): ([^;]+);")
WORKGROUP = re.compile(r"var<workgroup> (\w+): ([^;]+);")
FUNCTION = re.compile(r"^((?:@[^\n]*\n)?)fn (\w+)\(", re.M)
STRUCT = re.compile(r"struct (\w+) \{(.*?)\}", re.S)
SCALARS = {"f32": 4, "u32": 4, "i32": 4, "f16": 2, "atomic<u32>": 4}


def size_of(wgsl_type):
    """Bytes of a type that needs no padding."""
    if match := re.fullmatch(r"array<(.+), (\d+)>", wgsl_type):
        return size_of(match[1]) * int(match[2])
    if match := re.fullmatch(r"vec([24])<(\w+)>", wgsl_type):
        return int(match[1]) * SCALARS[match[2]]
    return SCALARS[wgsl_type]


def functions(text):
    """name -> (attributes, body) of every function."""
    starts = list(FUNCTION.finditer(text))
    ends = [match.start() for match in starts[1:]] + [len(text)]
    return {match[2]: (match[1], text[match.end():end]) for match, end in zip(starts, ends)}


def used_by(entry, all_functions):
    """Every identifier that an entry uses, through the functions that it calls."""
    seen, waiting = set(), [entry]
    while waiting:
        for word in re.findall(r"\w+", all_functions[waiting.pop()][1]):
            if word in all_functions and word not in seen:
                waiting.append(word)
            seen.add(word)
    return seen


def uniform_words(wgsl_type, structs, comment):
    if wgsl_type in structs:
        return re.findall(r"(\w+): u32", structs[wgsl_type])
    assert wgsl_type == "vec4<u32>", wgsl_type
    return re.search(r"vec4<u32>\(([^)]+)\)", comment)[1].split(", ")


def describe(path):
    """The section of one file."""
    text = path.read_text()
    enables = re.findall(r"^enable (\w+);", text, re.M)
    comment = re.search(r"(?:^//.*\n)+", text, re.M)[0]
    code = re.sub(r"//.*", "", text)
    structs = dict(STRUCT.findall(code))
    all_functions = functions(code)
    features = {"f16": "`shader-f16`", "subgroups": "`subgroups`"}
    lines = [f"## {path.name}", ""]
    if enables:
        lines += ["Needs " + ", ".join(features[name] for name in enables) + ".", ""]
    lines += ["```text", *(line[3:] for line in comment.splitlines()), "```", "",
              "| entry | bindings | uniform | threads | workgroup memory |", "|---|---|---|---|---|"]
    for name, (attributes, _) in all_functions.items():
        if "@compute" not in attributes:
            continue
        used = used_by(name, all_functions)
        storage, uniform = [], None
        for number, space, variable, wgsl_type in sorted(
                (int(n), s, v, t) for n, s, v, t in BINDING.findall(code) if v in used):
            if space == "uniform":
                words = uniform_words(wgsl_type, structs, comment)
                uniform = f"{number} `{variable}` {{ {', '.join(words)} }}, {4 * len(words)} bytes"
            else:
                access = "rw" if "read_write" in space else "r"
                element = re.fullmatch(r"array<(.+)>", wgsl_type)[1]
                storage.append(f"{number} `{variable}` `{element}` {access}")
        memory = sum(size_of(wgsl_type) for variable, wgsl_type in WORKGROUP.findall(code)
                     if variable in used)
        threads = re.search(r"@workgroup_size\(([^)]+)\)", attributes)[1].replace(", ", " × ")
        lines.append(f"| `{name}` | {', '.join(storage)} | {uniform} | {threads} | "
                     f"{f'{memory:,} bytes' if memory else 'none'} |")
    return "\n".join(lines) + "\n"


def fixed_files():
    return [ROOT / "src" / name
            for name in dict.fromkeys(re.findall(r"ops/[\w/]+\.wgsl", TABLE.read_text()))]


def reference():
    return HEAD % EXAMPLE.read_text() + "".join("\n" + describe(path) for path in fixed_files())


if __name__ == "__main__":
    sys.stdout.write(reference())
