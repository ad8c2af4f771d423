#!/bin/sh
# Runs the test of raw packets against a driver of its own: raw.sh LIBRARIES SOFTVPI PROGRAM...
set -eu
libraries=$1 softvpi=$2
shift 2
dir=$(mktemp -d)
driver=
trap '[ -z "$driver" ] || { kill "$driver" 2>/dev/null; wait "$driver" 2>/dev/null || :; }; rm -rf "$dir"' EXIT
export SOFTVPI_SOCKET="$dir/driver.sock" SOFTVPI_STATE="$dir/state"
"$softvpi" up --adapter "one=192.0.2.1/24,switch=wire,mac=02:00:00:00:00:01" --skip-self-check >"$dir/log" 2>&1 &
driver=$!
tries=0
until [ -S "$SOFTVPI_SOCKET" ]; do
	tries=$((tries + 1))
	[ $tries -lt 100 ] || { echo "the driver did not start"; cat "$dir/log"; exit 1; }
	sleep 0.1
done
LD_LIBRARY_PATH="$libraries" "$@"
LD_LIBRARY_PATH="$libraries" LD_PRELOAD="$libraries/libsoftvpi-memory.so" "$@"
LD_LIBRARY_PATH="$libraries" SOFTVPI_MEMORY_PATH=copier "$@"
