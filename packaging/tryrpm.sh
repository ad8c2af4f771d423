#!/bin/sh
# tryrpm.sh NOW LATER: what becomes of a directory with nothing but a database of RPM when one package is installed in it, upgraded to the
# other one, downgraded and erased.
set -eu
skip() { echo "check-package: the package for RPM is not tried, which wants $1"; exit 0; }
command -v rpm >/dev/null || skip "rpm"
[ "$(id -u)" = 0 ] || skip "root"
root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT
say() { echo "check-package: rpm: $*"; }
# Its dependency, the C library, is of a system that is not there.
debian=
! rpm --force-debian --version >/dev/null 2>&1 || debian=--force-debian # says nothing about Debian having packages of its own
rpm_() { rpm $debian --root "$root" --dbpath /var/lib/rpm "$@"; }
version() { rpm -qp --nosignature --queryformat '%{VERSION}' "$1"; }
# is VERSION: it is installed, whole, and its program runs.
is() {
	[ "$(rpm_ -q --queryformat '%{VERSION}' softvpi)" = "$1" ]
	rpm_ -V --nodeps softvpi
	"$root/usr/bin/softvpi" version >/dev/null
	[ "$(readlink "$root/usr/bin/vstat")" = softvpi ] && [ -s "$root/usr/share/doc/softvpi/LICENSE" ]
}

for p in "$1" "$2"; do rpm -K --nosignature "$p" | grep -q 'digests OK'; done
rpm -qp --nosignature --requires "$1" | grep -q '^glibc'
rpm --root "$root" --dbpath /var/lib/rpm --initdb
rpm_ -i --nodeps --nosignature "$1"
is "$(version "$1")"
say "installed $(version "$1"): the digests are right, and every file is as the package says"
rpm_ -U --nodeps --nosignature "$2"
is "$(version "$2")"
if rpm_ -U --nodeps --nosignature "$1" 2>/dev/null; then say "an older version was taken without being asked for"; exit 1; fi
rpm_ -U --nodeps --nosignature --oldpackage "$1"
is "$(version "$1")"
say "upgraded and downgraded"
rpm_ -e --nodeps softvpi
left=$(find "$root" -path "$root/var" -prune -o \( ! -type d -o -iname '*softvpi*' \) -print)
[ -z "$left" ] || { say "left behind: $left"; exit 1; }
say "erased: no file and no directory of its own is left"
