#!/usr/bin/env bash
# Measures SoftVPI next to the kernel's Soft-RoCE, which runs at native speed on one
# processor in a user-mode kernel. Installs the Debian packages that it needs, builds
# the kernel once (kept in $SOFTVPI_RXEBENCH, else in the cache directory) and runs
# softvpi bench. If it cannot be measured here, prints one line that says why and exits
# with status 0.
#
#   run.sh PROGRAM [options of softvpi bench]
set -uo pipefail
here=$(cd "$(dirname "$0")" && pwd)
cannot() {
  echo "bench-rxe: not run: $*"
  exit 0
}
program=${1:?usage: run.sh PROGRAM [options]}
shift

[ "$(uname -sm)" = "Linux x86_64" ] || cannot "needs Linux on x86_64"
[ "$(id -u)" = 0 ] || cannot "needs root for a network namespace"
unshare -n true 2>/dev/null || cannot "this system makes no network namespaces"
missing=()
for p in linux-source-6.1 gcc make libc6-dev flex bison bc xz-utils cpio iproute2 ethtool util-linux libibverbs-dev ibverbs-providers; do
  [ "$(dpkg-query -W -f '${db:Status-Status}' "$p" 2>/dev/null)" = installed ] || missing+=("$p")
done
if [ ${#missing[@]} -gt 0 ]; then
  command -v apt-get >/dev/null || cannot "no apt-get to install ${missing[*]}"
  echo "bench-rxe: installing ${missing[*]}" >&2
  export DEBIAN_FRONTEND=noninteractive
  install() { apt-get -qq -o DPkg::Lock::Timeout=300 install -y --no-install-recommends "${missing[@]}" >/dev/null 2>&1; }
  install || { apt-get -qq update >/dev/null 2>&1 && install; } || cannot "apt-get install ${missing[*]} failed"
fi

dir=${SOFTVPI_RXEBENCH:-${XDG_CACHE_HOME:-$HOME/.cache}/softvpi-rxebench}
why=$("$here/kernel/build.sh" "$dir") || cannot "$why"
"$here/guest/image.sh" "$dir" || exit 1
cp "$here/guest/veth.sh" "$dir/veth.sh"
exec "$program" bench --part rxe --rxe "$dir" "$@"
