#!/bin/sh
# lint.sh DIRECTORY: what lintian finds in the package for Debian in the directory. An error or a warning fails; what is to be so is in
# the package's overrides, with a reason (debian.go).
#
# Before, the exposure of the system's service as systemd-analyze counts it, with and without what features want (0 is none, 10 all): none may
# be above $most.
set -eu
most=2.5
if command -v systemd-analyze >/dev/null; then
	work=$(mktemp -d)
	trap 'rm -r "$work"' EXIT
	mkdir "$work/softvpi.service.d"
	cp "$1/stage/system/softvpi.service" "$work"
	for feature in '' "$1"/stage/doc/examples/systemd/system/*.conf; do
		rm -f "$work"/softvpi.service.d/*
		[ -z "$feature" ] || cp "$feature" "$work/softvpi.service.d"
		systemd-analyze security --offline=true --no-pager --threshold="$(echo $most | tr -d .)" "$work/softvpi.service" >"$work/exposure" || {
			cat "$work/exposure"
			echo "check-package: the service${feature:+ with $(basename "$feature")} is exposed above $most"
			exit 1
		}
		echo "check-package: service${feature:+ with $(basename "$feature")}$(sed -n 's/.*Overall exposure level for softvpi.service//p' "$work/exposure")"
	done
else
	echo "check-package: systemd-analyze is not there, which would check the service"
fi
command -v lintian >/dev/null || { echo "check-package: lintian is not there, which would check the package for Debian"; exit 0; }
out=$(LC_ALL=C.UTF-8 nice lintian --allow-root --fail-on error,warning --tag-display-limit 0 "$1"/*.deb 2>&1) || {
	echo "$out"
	echo "check-package: lintian refuses the package for Debian"
	exit 1
}
echo "check-package: lintian finds neither errors nor warnings"
