#!/usr/bin/env bash
# Installs the Debian packages that the interoperation suite needs.
# If that fails, prints one line and exits with status 1.
set -uo pipefail
packages=(qemu-system-x86 kmod cpio xz-utils zstd rdma-core ibverbs-providers ibverbs-utils rdmacm-utils perftest
  qperf fio libfabric-bin iproute2 iputils-ping gcc libc6-dev make libibverbs-dev librdmacm-dev tshark python3 iperf3)

missing=()
for p in "${packages[@]}"; do
  [ "$(dpkg-query -W -f '${db:Status-Status}' "$p" 2>/dev/null)" = installed ] || missing+=("$p")
done
[ ${#missing[@]} -eq 0 ] && exit 0
command -v apt-get >/dev/null || { echo "no apt-get to install ${missing[*]}"; exit 1; }
export DEBIAN_FRONTEND=noninteractive
echo "installing ${missing[*]}" >&2
install() { apt-get -qq -o DPkg::Lock::Timeout=300 install -y --no-install-recommends "${missing[@]}" >/dev/null 2>&1; }
install || { apt-get -qq update >/dev/null 2>&1 && install; } ||
  { echo "apt-get install ${missing[*]} failed"; exit 1; }
