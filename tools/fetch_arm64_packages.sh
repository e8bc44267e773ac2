#!/usr/bin/env bash
# Unpacks into build/arm64-packages what Tessera and its tests need of Debian for arm64, from this
# machine's package sources; nothing is installed. For cmake/aarch64-linux.cmake.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
packages=(libc6 libgcc-s1 libstdc++6 libfmt9 libfmt-dev libpcre2-8-0 libpcre2-dev libgtest-dev
          libgmock-dev librapidcheck-dev)

root=build/arm64-packages
[ ! -e "$root/complete" ] || exit 0
rm -rf "$root"
mkdir -p "$root/lists/partial"
apt=(apt-get -qq -o APT::Architecture=arm64 -o APT::Architectures=arm64
     -o "Dir::State::Lists=$PWD/$root/lists" -o APT::Sandbox::User=root)
"${apt[@]}" update
(cd "$root" && "${apt[@]}" download "${packages[@]}")
for file in "$root"/*.deb; do dpkg-deb --extract "$file" "$root"; done
rm -r "$root"/*.deb "$root/lists"
touch "$root/complete"
