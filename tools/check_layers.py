#!/usr/bin/env python3
"""Checks that every file under src/ includes only what its room may use (docs/reading-guide.md), that
files compiled per instruction set include leaf headers only, and that public headers include nothing
of src/."""

import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
SRC = ROOT / "src"

# room -> rooms it may include, itself left out. "tessera" is include/tessera.
BELOW = {
    "base": {"tessera"},
    "tensor": {"base"},
    "device": {"base", "tensor"},
    "cpu": {"base", "tensor", "device"},
    "ops": {"base", "tensor", "device"},
    "ops_cpu": {"base", "tensor", "device", "cpu", "ops"},
    "webgpu": {"base", "tensor", "device"},
    "ops_webgpu": {"base", "tensor", "device", "webgpu", "ops"},
    "formats": {"base", "tensor"},
    "tokenizer": {"base"},
    "models": {"base", "tensor", "device", "ops"},
    "models_loader": {"base", "tensor", "device", "ops", "formats", "models"},
    "engine": {"base", "tensor", "device", "ops", "models"},
    "api": {"tessera", "base", "tensor", "device", "cpu", "ops", "ops_cpu", "webgpu", "ops_webgpu",
            "formats", "tokenizer",
            "models", "models_loader", "engine"},
}
BELOW["bench"] = BELOW["api"] | {"api"}
BELOW["cli"] = BELOW["api"] | {"api", "bench"}

# Headers of vendors, and the one room or file that may see each.
VENDORS = {"webgpu.h": "webgpu", "wgpu.h": "webgpu/native.cpp"}

# Which includes of the standard library a file compiled for one instruction set may have.
LEAF_STD = {"stdint.h", "string.h", "stddef.h", "math.h", "immintrin.h", "arm_neon.h"}

INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]', re.M)


def room_of(path):
    """The room of a path below src/, with the finer divisions of the table."""
    parts = pathlib.PurePosixPath(path).parts
    if parts[0] == "ops":
        stem = parts[-1].split(".")[0]
        if stem.endswith("_cpu") or stem.startswith(("cpu_", "reference_row")) or \
                path.endswith(".inl"):
            return "ops_cpu"
        if stem.endswith("_webgpu") or stem.startswith("webgpu_"):
            return "ops_webgpu"
    if parts[0] == "models" and "gguf" in parts[-1]:
        return "models_loader"
    return parts[0]


def leaf_closure(path, seen):
    """Files of ours that a per-ISA object pulls in."""
    if path in seen:
        return
    seen.add(path)
    for kind, target in INCLUDE.findall((SRC / path).read_text()):
        if kind == '"' and (SRC / target).exists():
            leaf_closure(target, seen)


def main():
    faults = []
    for file in sorted(SRC.rglob("*")):
        if file.suffix not in {".hpp", ".cpp", ".inl", ".h", ".cuh", ".cu"}:
            continue
        path = file.relative_to(SRC).as_posix()
        room = room_of(path)
        if room not in BELOW:
            faults.append(f"src/{path}: room '{room}' is not in the table of {sys.argv[0]}")
            continue
        for kind, target in INCLUDE.findall(file.read_text()):
            if kind == "<":
                if target in VENDORS and VENDORS[target] not in (room, path):
                    faults.append(f"src/{path}: only {VENDORS[target]} may include <{target}>")
                continue
            if target.startswith("ops/all_ops.hpp"):  # generated
                used = "ops"
            elif (SRC / target).exists():
                used = room_of(target)
            elif target.startswith("tessera/"):
                used = "tessera"
            else:
                faults.append(f"src/{path}: includes \"{target}\", which is not a path from src/")
                continue
            if used != room and used not in BELOW[room]:
                faults.append(f"src/{path}: room '{room}' must not include \"{target}\" ({used})")
    leaves = set()
    for file in SRC.rglob("*_cpu.inl"):
        leaf_closure(file.relative_to(SRC).as_posix(), leaves)
    for path in sorted(leaves):
        for kind, target in INCLUDE.findall((SRC / path).read_text()):
            if kind == "<" and target not in LEAF_STD:
                faults.append(f"src/{path}: compiled per instruction set, must not include <{target}>")
    for file in (ROOT / "include").rglob("*.hpp"):
        for kind, target in INCLUDE.findall(file.read_text()):
            if kind == '"' and not target.startswith("tessera/"):
                faults.append(f"{file.relative_to(ROOT)}: public header includes \"{target}\"")
    print("\n".join(faults), file=sys.stderr, end="\n" if faults else "")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
