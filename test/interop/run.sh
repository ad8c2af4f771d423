#!/usr/bin/env bash
# The interoperation suite: SoftVPI against Linux's Soft-RoCE in a virtual machine.
# Installs the Debian packages that it needs, builds the guest (kept in
# $SOFTVPI_INTEROP_IMAGE, else in the cache directory) and runs the tests. If the suite
# cannot be run here, prints one line that says why and exits with status 0.
#
#   run.sh [arguments of go test]      for example -run TestSoftRoCE/mtu9000 -v
set -uo pipefail
here=$(cd "$(dirname "$0")" && pwd)
cannot() {
  echo "interop: not run: $*"
  exit 0
}

[ "$(uname -sm)" = "Linux x86_64" ] || cannot "needs Linux on x86_64"
[ "$(id -u)" = 0 ] || cannot "needs root for a network namespace and TAPs"
[ -c /dev/net/tun ] || cannot "no /dev/net/tun"
unshare -n true 2>/dev/null || cannot "this system makes no network namespaces"
why=$("$here/packages.sh") || cannot "$why"

image=${SOFTVPI_INTEROP_IMAGE:-${XDG_CACHE_HOME:-$HOME/.cache}/softvpi-interop}
# Each run has its own directory, so that another one does not replace its programs meanwhile.
run=$(mktemp -d)
trap 'rm -rf "$run"' EXIT
why=$("$here/image.sh" "$image" "$run")
case $? in
0) ;;
3) cannot "$why" ;;
*) exit 1 ;;
esac
cd "$here" && SOFTVPI_INTEROP_RUN=$run "${GO:-go}" test -count=1 -pgo=off -vet=off -timeout 60m "$@" .
