#!/usr/bin/env bash
# Makes sure that the programs which test/diags compares with are there. Where they cannot be
# installed it says so in one line, and the tests skip.
set -uo pipefail
packages=(ibsim-utils opensm infiniband-diags)

[ "$(uname -s)" = Linux ] || exit 0
command -v dpkg-query >/dev/null || { echo "test/diags: what is not installed of Debian's ${packages[*]} is not compared with"; exit 0; }
missing=()
for p in "${packages[@]}"; do
  [ "$(dpkg-query -W -f '${db:Status-Status}' "$p" 2>/dev/null)" = installed ] || missing+=("$p")
done
[ ${#missing[@]} -eq 0 ] && exit 0
skipped() {
  echo "test/diags: the programs of ${missing[*]} are not compared with: $*"
  exit 0
}
[ "$(id -u)" = 0 ] || skipped "only root can install them"
command -v apt-get >/dev/null || skipped "there is no apt-get to install them"
export DEBIAN_FRONTEND=noninteractive
echo "test/diags: installing ${missing[*]}"
install() { apt-get -qq install -y --no-install-recommends "${missing[@]}" >/dev/null 2>&1; }
install || { apt-get -qq update >/dev/null 2>&1 && install; } || skipped "apt-get install failed"
