#!/bin/sh
# Runs the tests of the C libraries against a driver of their own: check.sh LIBRARIES TESTS SOFTVPI, all absolute paths.
set -eu
lib=$1 tests=$2 softvpi=$3
[ -x "$softvpi" ] || { echo "check: no driver at $softvpi (make build makes one)"; exit 1; }
dir=$(mktemp -d)
driver=
cleanup() {
	[ -z "$driver" ] || kill "$driver" 2>/dev/null || true
	rm -rf "$dir"
}
trap cleanup EXIT INT TERM

set -- $(od -An -N4 -tu1 /dev/urandom)
net=127.$(($1 % 250 + 4)).$2
export SOFTVPI_SOCKET="$dir/driver.sock" SOFTVPI_STATE="$dir/state"
start() {
	"$softvpi" up --adapter "Ethernet 1=$net.$(($3 % 120 + 2))" --adapter "Ethernet 2=$net.$(($3 % 120 + 124))" \
		--skip-self-check >"$dir/log" 2>&1 &
	driver=$!
	i=0
	while [ ! -S "$SOFTVPI_SOCKET" ]; do
		i=$((i + 1))
		[ $i -lt 100 ] || { echo "check: the driver did not start"; cat "$dir/log"; exit 1; }
		sleep 0.1
	done
}
start "$@"
status=0
LD_LIBRARY_PATH=$lib "$tests" || status=1
echo "again, in memory that the driver shares:"
LD_LIBRARY_PATH=$lib LD_PRELOAD=$lib/libsoftvpi-memory.so "$tests" shared || status=1
echo "again, with the copier:"
LD_LIBRARY_PATH=$lib SOFTVPI_MEMORY_PATH=copier "$tests" || status=1
LD_LIBRARY_PATH=$lib "$tests" dies "$driver" || status=1
driver=
exit $status
