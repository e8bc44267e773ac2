#!/usr/bin/env python3
"""Checks the objects that are compiled for one instruction set: they may define their kernels and
nothing that the linker could share with code for older CPUs (weak and unique symbols).

usage: check_symbols.py BUILD_DIR"""

import pathlib
import subprocess
import sys


def main():
    build = pathlib.Path(sys.argv[1])
    objects = sorted(build.glob("src/**/room_*_cpu_*.dir/**/*.o")) + \
        sorted(build.glob("src/**/*probe*.dir/**/*.o"))
    if not objects:
        print(f"{build}: no per-ISA objects found; build first", file=sys.stderr)
        return 1
    faults = []
    for path in objects:
        listing = subprocess.run(["nm", "-C", "--defined-only", path], check=True,
                                 capture_output=True, text=True).stdout
        for line in listing.splitlines():
            _, kind, name = line.split(maxsplit=2)
            if kind in "WwVvu":
                faults.append(f"{path.name}: {kind} {name}: give it internal linkage")
    print("\n".join(faults), file=sys.stderr, end="\n" if faults else "")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
