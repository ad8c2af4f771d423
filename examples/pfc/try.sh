#!/bin/sh
# Two hosts send to a third over two leaves and a spine, all lossless at priority 3. Prints how many frames the switches had no room for.
#
#   try.sh [PORT|SWITCH]...
#
# PFC is taken off at each argument first: off one hop, and frames are lost. Hosts are host0 and host1 (senders) and host2;
# ports are, from sender to receiver, leaf0[1] and leaf0[3], spine0[1] and spine0[2], leaf1[3] and leaf1[1].
set -eu
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
name=pfc-$$
children=
finish() {
	for p in $children; do kill "$p" 2>/dev/null || true; done
	wait
	rm -rf "$work"
}
trap finish EXIT
trap 'exit 1' INT TERM
alive() { # waits a moment for a process that says what it does in a file
	kill -0 "$1" 2>/dev/null || { cat "$work/$2" >&2; exit 1; }
	sleep 0.1
}

softvpi fabric run "$here/leaf-spine.json" --timing --name "$name" >"$work/fabric" 2>&1 &
children=$!
until softvpi fabric do --name "$name" help >/dev/null 2>&1; do alive $children fabric; done
for hop in "$@"; do softvpi fabric do --name "$name" pfc "$hop" none; done

for i in 0 1 2; do
	softvpi up --skip-self-check --fabric "$name" --adapter "nic$i=192.0.2.1$i/24,fabric=host$i,linkmtu=4200" \
		--socket "$work/$i.sock" --state "$work/$i" >"$work/$i.log" 2>&1 &
	children="$children $!"
done
for i in 0 1 2; do
	until SOFTVPI_SOCKET="$work/$i.sock" softvpi status >/dev/null 2>&1; do alive "${children##* }" "$i.log"; done
done

for i in 0 1; do
	SOFTVPI_SOCKET="$work/2.sock" softvpi nd_write_bw -S 192.0.2.12 -p "683$i" >"$work/served$i" 2>&1 &
	children="$children $!"
	until grep -qs serving "$work/served$i"; do sleep 0.1; done
done
SOFTVPI_SOCKET="$work/0.sock" softvpi nd_write_bw -C 192.0.2.12 -L 192.0.2.10 -p 6830 -q 4 -D 2 >"$work/sent0" &
first=$!
SOFTVPI_SOCKET="$work/1.sock" softvpi nd_write_bw -C 192.0.2.12 -L 192.0.2.11 -p 6831 -q 4 -D 2 >"$work/sent1"
wait $first
cat "$work/sent0" "$work/sent1" >&2
softvpi fabric do --name "$name" ports >&2
softvpi fabric do --name "$name" ports | awk 'NR > 1 { lost += $(NF-1); pauses += $NF } END { print lost + 0 " frames dropped, " pauses + 0 " pauses" }'
