#!/usr/bin/env bash
# What `./dev test --all` adds to `./dev test`: sanitizers, fuzzing, the long suites.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

TESSERA_DEFAULT_MODEL=${TESSERA_DEFAULT_MODEL:-$(python3 tools/fetch_default_model.py)} || true
export TESSERA_DEFAULT_MODEL
# A browser that compiles the WGSL files with Tint, and brings SwiftShader: tests look for them
# when CMake configures.
./dev setup chromium
./dev build
cmake build/release >/dev/null

echo "== the long suites, every CPU tier of this machine"
ctest --test-dir build/release --output-on-failure --no-tests=error -L all -j "$(nproc)"

echo "== AddressSanitizer and UndefinedBehaviorSanitizer"
./dev build asan
ASAN_OPTIONS=detect_stack_use_after_return=1 UBSAN_OPTIONS=print_stacktrace=1 \
  ctest --test-dir build/asan --output-on-failure --no-tests=error -LE all -j "$(nproc)" \
  -E '^golden_test$'  # the engine's tests run the same code; its figures need a fast build

echo "== ThreadSanitizer: thread team, queue, engine"
tsan_tests=(base_test device_test engine_test api_test)
./dev build tsan "${tsan_tests[@]}"
ctest --test-dir build/tsan --output-on-failure --no-tests=error -j "$(nproc)" \
  -R "^($(IFS='|'; echo "${tsan_tests[*]}"))$"

echo "== the matvec example for Windows"
if apt-cache show g++-mingw-w64-x86-64 >/dev/null 2>&1; then
  ./dev setup g++-mingw-w64-x86-64
  for level in -O0 -O3; do
    x86_64-w64-mingw32-g++ -std=c++17 -Wall -Wextra -Werror $level -mavx2 -mfma -static \
      -o build/matvec.exe examples/matvec.cpp
  done
else
  echo "not built: no package g++-mingw-w64-x86-64 here" >&2
fi

echo "== NEON: cross-compiled for aarch64, under qemu"
arm64_packages=(g++-aarch64-linux-gnu qemu-user-static)
if apt-cache show "${arm64_packages[@]}" >/dev/null 2>&1; then
  ./dev setup "${arm64_packages[@]}"
  tools/fetch_arm64_packages.sh
  arm64_tests=(ops_test device_test ops_invariance_test api_test)
  ./dev build arm64 "${arm64_tests[@]}"
  ctest --test-dir build/arm64 --output-on-failure --no-tests=error -j "$(nproc)" \
    -R "^(ops_test_cpu_quick|device_test|ops_invariance_test|api_test)$"
else
  echo "not run: no packages ${arm64_packages[*]} here" >&2
fi
