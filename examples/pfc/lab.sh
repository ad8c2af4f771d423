# What the examples have in common: each says how its switches and its hosts are set (the file $scenario, mark and lossless), and reads
# this. host0 and host1, at one leaf, send to host2, at the other leaf, over a spine; then it prints how many frames the switches had no
# room for. Arguments are hops that are configured wrong.
set -eu
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
on() { # executes a command at a host
	SOFTVPI_SOCKET="$work/$1.sock"
	export SOFTVPI_SOCKET
	shift
	"$@"
}
do_fabric() { softvpi fabric do --name "$name" "$@"; }

softvpi fabric run "$scenario" --timing --name "$name" >"$work/fabric" 2>&1 &
children=$!
until do_fabric help >/dev/null 2>&1; do alive "${children%% *}" fabric; done
for i in 0 1 2; do
	softvpi up --skip-self-check --fabric "$name" --adapter "nic=192.0.2.1$i/24,fabric=host$i,linkmtu=4200${adapter-}" \
		--socket "$work/$i.sock" --state "$work/$i" >"$work/$i.log" 2>&1 &
	children="$children $!"
done
for i in 0 1 2; do
	until on $i softvpi status >/dev/null 2>&1; do alive "${children##* }" "$i.log"; done
	on $i mark
	case " $* " in *" host$i "*) ;; *) on $i lossless ;; esac
	on $i softvpi adapter restart nic # keys act from then on
	on $i softvpi wait
done
for hop in "$@"; do
	case $hop in host*) ;; *) do_fabric pfc "$hop" none ;; esac
done
if command -v ready >/dev/null; then ready "$@"; fi

for i in 0 1; do
	SOFTVPI_SOCKET="$work/2.sock" softvpi nd_write_bw -S 192.0.2.12 -p "1000$i" >"$work/served$i" 2>&1 &
	children="$children $!"
	until grep -qs serving "$work/served$i"; do sleep 0.1; done
done
seconds=2
[ $# = 0 ] || seconds=60 # at most: until frames are lost
SOFTVPI_SOCKET="$work/0.sock" softvpi nd_write_bw -C 192.0.2.12 -L 192.0.2.10 -p 10000 -q 4 -D $seconds >"$work/sent0" &
first=$!
SOFTVPI_SOCKET="$work/1.sock" softvpi nd_write_bw -C 192.0.2.12 -L 192.0.2.11 -p 10001 -q 4 -D $seconds >"$work/sent1" &
second=$!
children="$children $first $second"
if [ $# != 0 ]; then
	while kill -0 $first 2>/dev/null && do_fabric ports | awk 'NR > 1 { lost += $(NF-1) } END { exit lost > 0 }'; do sleep 0.1; done
	kill -INT $first $second 2>/dev/null || true
	wait $first $second || true
else
	wait $first
	wait $second
fi
cat "$work/sent0" "$work/sent1" >&2
do_fabric ports >&2
do_fabric ports | awk 'NR > 1 { lost += $(NF-1); pauses += $NF } END { print lost + 0 " frames dropped, " pauses + 0 " pauses" }'
