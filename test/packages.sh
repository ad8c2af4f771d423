#!/usr/bin/env bash
# Installs Debian packages for tests. If they cannot be installed, prints one line with
# the missing packages and exits with status 0: the tests then skip what needs them.
# Services that the packages bring are neither started nor enabled: a test starts what it
# needs itself, where only it is reached.
#
#   packages.sh WHO PACKAGE...
set -uo pipefail
who=${1:?usage: packages.sh WHO PACKAGE...}
shift

[ "$(uname -s)" = Linux ] || exit 0
without() {
  echo "$who: skips what needs $1: $2"
  exit 0
}
command -v dpkg-query >/dev/null || without "what is not installed of $*" "not a Debian system"
missing=()
for p in "$@"; do
  [ "$(dpkg-query -W -f '${db:Status-Status}' "$p" 2>/dev/null)" = installed ] || missing+=("$p")
done
[ ${#missing[@]} -eq 0 ] && exit 0
[ "$(id -u)" = 0 ] || without "${missing[*]}" "only root can install them"
command -v apt-get >/dev/null || without "${missing[*]}" "there is no apt-get to install them"
export DEBIAN_FRONTEND=noninteractive
echo "$who: installing ${missing[*]}"
policy=/usr/sbin/policy-rc.d # asked before any service is started (invoke-rc.d(8), deb-systemd-invoke(1p))
if [ ! -e $policy ]; then
  trap 'rm -f $policy' EXIT
  printf '#!/bin/sh\nexit 101\n' >$policy && chmod 755 $policy || without "${missing[*]}" "$policy cannot be written"
fi
# A machine that has just started may be installing updates: wait for that.
install() { apt-get -qq -o DPkg::Lock::Timeout=300 install -y --no-install-recommends "${missing[@]}" >/dev/null 2>&1; }
install || { apt-get -qq update >/dev/null 2>&1 && install; } || without "${missing[*]}" "apt-get install failed"

command -v systemctl >/dev/null || exit 0
for p in "${missing[@]}"; do
  dpkg -L "$p" | sed -nE 's,.*/lib/systemd/system/([^/@]+\.(service|socket|timer|path))$,\1,p'
done | xargs -r systemctl --quiet disable 2>/dev/null
exit 0
