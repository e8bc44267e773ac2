#!/usr/bin/env python3
"""Checks that the paths named in README.md and docs/ exist, and that docs/wgsl.md follows the files."""

import pathlib
import re
import sys

import wgsl_reference

ROOT = pathlib.Path(__file__).resolve().parent.parent
# `src/...`, `docs/...` and the like between backticks, and the targets of Markdown links.
PATH = re.compile(r"`((?:src|docs|tests|tools|include|examples|cmake|bench|web)/[\w./-]+)`")
LINK = re.compile(r"\]\((?!https?://|#)([^)#]+)")

FENCE = re.compile(r"^```.*?^```", re.M | re.S)


def main():
    faults = []
    for page in [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]:
        text = page.read_text()
        prose = FENCE.sub("", text)
        targets = [(ROOT, t) for t in PATH.findall(text)]
        targets += [(page.parent, t) for t in LINK.findall(prose)]
        for base, target in targets:
            if not (base / target).exists():
                faults.append(f"{page.relative_to(ROOT)}: {target} does not exist")
    if (ROOT / "docs/wgsl.md").read_text() != wgsl_reference.reference():
        faults.append("docs/wgsl.md does not follow the files: run tools/wgsl_reference.py > docs/wgsl.md")
    print("\n".join(faults), file=sys.stderr, end="\n" if faults else "")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
