#!/bin/sh
# Builds the image with a container engine and tries it: its own command, then two containers on a network of the engine,
# a server and a client as in kubernetes.yaml. From anywhere in the sources:
#
#   examples/container/check.sh [ENGINE [OPTION...]]   docker or podman, with options that stand before its commands
#
# BUILD_OPTIONS and RUN_OPTIONS are for the engine's build and run. With BASES=made the images that the Dockerfile begins with
# are made here where no registry is to be had: debian:bookworm-slim with debootstrap, golang:1.26-bookworm from that
# and this machine's Go (root; names that the engine has already are replaced).
set -eu
top=$(cd "$(dirname "$0")/../.." && pwd)
if [ $# = 0 ]; then
	for e in docker podman; do
		if $e info >/dev/null 2>&1; then set -- "$e"; break; fi
	done
	[ $# -gt 0 ] || { echo "check.sh: no container engine runs here (docker, podman)" >&2; exit 2; }
fi
dir=$(mktemp -d)
net=softvpi-check-$$
clean() {
	"$@" rm -f "$net-server" >/dev/null 2>&1 || :
	"$@" network rm "$net" >/dev/null 2>&1 || :
	rm -rf "$dir"
}
trap 'clean "$@"' EXIT

if [ "${BASES:-}" = made ]; then
	debootstrap --variant=minbase bookworm "$dir/debian" >"$dir/log" || { cat "$dir/log" >&2; exit 1; }
	tar -C "$dir/debian" -c . | "$@" import - docker.io/library/debian:bookworm-slim >/dev/null
	rm -rf "$dir/debian"
	printf '%s\n' 'FROM docker.io/library/debian:bookworm-slim' \
		'RUN apt-get update && apt-get install -y --no-install-recommends gcc libc6-dev make git ca-certificates' \
		'COPY . /usr/local/go' 'ENV PATH=/usr/local/go/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin' >"$dir/Dockerfile"
	"$@" build ${BUILD_OPTIONS:-} -q -f "$dir/Dockerfile" -t docker.io/library/golang:1.26-bookworm "$(go env GOROOT)" >/dev/null
fi

image=softvpi-check
"$@" build ${BUILD_OPTIONS:-} -f "$top/examples/container/Dockerfile" -t $image "$top" >"$dir/log" 2>&1 || { cat "$dir/log" >&2; exit 1; }
echo "image      builds"

harden="--cap-drop ALL --security-opt no-new-privileges"
"$@" run --rm $harden ${RUN_OPTIONS:-} --network none $image >"$dir/log" 2>&1 && [ "$(grep -c '^1000 iters' "$dir/log")" = 2 ] ||
	{ cat "$dir/log" >&2; exit 1; }
echo "command    ok"

"$@" network create --subnet 10.231.77.0/24 "$net" >/dev/null
"$@" run --rm -d --name "$net-server" $harden ${RUN_OPTIONS:-} --network "$net" --ip 10.231.77.2 -e SOFTVPI_ADDRESS=10.231.77.2 $image \
	sh -c 'while ib_send_bw -d softvpi0 -x 0 -F; do :; done' >/dev/null
tries=0
until "$@" run --rm $harden ${RUN_OPTIONS:-} --network "$net" --ip 10.231.77.3 -e SOFTVPI_ADDRESS=10.231.77.3 $image \
	sh -c 'ib_send_bw -d softvpi0 -x 0 -F 10.231.77.2' >"$dir/log" 2>&1; do
	tries=$((tries + 1))
	[ $tries -lt 5 ] || { cat "$dir/log" >&2; "$@" logs "$net-server" >&2; exit 1; }
	sleep 1 # the server may not be up yet
done
grep -A1 'BW average' "$dir/log"
echo "network    ok"
