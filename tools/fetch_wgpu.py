#!/usr/bin/env python3
"""Fetches wgpu-native (library and headers) into the cache folder, once.

They are members of a pinned wheel: the unmodified release with the full C API. Prints the folder on
standard output, everything else on standard error. CMake looks there (cmake/TesseraWebGpu.cmake).
"""

import platform
import sys
import zipfile

from fetch_wheel import FetchError, cache_folder, fetch_members

VERSION = "0.32.0"
PACKAGE = f"wgpu=={VERSION}"
WHEEL_SHA256 = "6499a31b5a29a10b4f1089fea4a0806411f42605fa86b6c0b543a07ca0de8568"
# pip chooses by the Python that runs it otherwise; the wheel is the same for every one of them.
PIP_OPTIONS = ("--platform", "manylinux_2_28_x86_64")
FILES = ("libwgpu_native-release.so", "webgpu.h", "wgpu.h")


def main() -> int:
    folder = cache_folder() / f"wgpu-{VERSION}"
    members = {f"wgpu/resources/{name}": folder / name for name in FILES}
    try:
        if sys.platform != "linux" or platform.machine() != "x86_64":
            raise FetchError("the pinned wheel is for Linux on x86-64; set TESSERA_WGPU_ROOT to a "
                             "wgpu-native of your own")
        if not all(target.is_file() for target in members.values()):
            print(f"fetching {PACKAGE} for wgpu-native (4 MiB)", file=sys.stderr)
            fetch_members(PACKAGE, WHEEL_SHA256, members, PIP_OPTIONS)
    except (FetchError, OSError, zipfile.BadZipFile, KeyError) as error:
        print(f"fetch_wgpu: {error}", file=sys.stderr)
        return 1
    print(folder)
    return 0


if __name__ == "__main__":
    sys.exit(main())
