#!/bin/sh
# lint.sh DIRECTORY: what lintian finds in the package for Debian in the directory. An error or a warning fails; what is to be so is in
# the package's overrides, with a reason (debian.go).
set -eu
command -v lintian >/dev/null || { echo "check-package: lintian is not there, which would check the package for Debian"; exit 0; }
out=$(LC_ALL=C.UTF-8 nice lintian --allow-root --fail-on error,warning --tag-display-limit 0 "$1"/*.deb 2>&1) || {
	echo "$out"
	echo "check-package: lintian refuses the package for Debian"
	exit 1
}
echo "check-package: lintian finds neither errors nor warnings"
