#!/bin/sh
# Runs a program of libibumad against a fabric of its own. Usage: datagrams.sh LIBRARIES SOFTVPI PROGRAM...
set -eu
libraries=$1 softvpi=$2
shift 2
dir=$(mktemp -d)
name=datagrams$$
export XDG_RUNTIME_DIR="$dir"
pid=
trap '[ -z "$pid" ] || { kill "$pid" 2>/dev/null; wait "$pid" 2>/dev/null || :; }; rm -rf "$dir"' EXIT
"$softvpi" fabric generate star --hosts 4 >"$dir/net"
"$softvpi" fabric run "$dir/net" --name "$name" --sm >"$dir/out" 2>&1 &
pid=$!
export SOFTVPI_FABRIC="$dir/softvpi/fabric-$name.sock" SOFTVPI_NODE=node00001
tries=0
until [ -S "$SOFTVPI_FABRIC" ] && "$softvpi" smpquery -D portinfo 0 1 2>/dev/null | grep -q 'LinkState:.*Active'; do
	tries=$((tries + 1))
	if [ $tries -gt 600 ] || ! kill -0 "$pid" 2>/dev/null; then
		echo "datagrams: the fabric does not come up" >&2
		cat "$dir/out" >&2
		exit 1
	fi
	sleep 0.1
done
LD_LIBRARY_PATH="$libraries" "$@"
