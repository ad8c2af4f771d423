#!/usr/bin/env bash
# Measures perftest on the adapters, in network namespaces that it makes (needs root). A Gb/s is 2^30 bits of payload a second.
#
#   speed.sh BIN veth MTU   two hosts with a driver each, connected by virtual Ethernet devices with this MTU; the nd tools for comparison
#   speed.sh BIN host       two programs of one driver, on the direct path: messages of 64 bytes, latencies with 8
#   speed.sh BIN xrc [MTU]  extended reliable connections beside RC, in turns, medians of the rounds: two programs of one driver, RC on the
#                           direct path too; with an MTU two hosts as above
#   speed.sh BIN one        on one processor: a driver with two adapters connected by such a pair, as in make bench-rxe
#
# BIN is where make build clib put softvpi. ROUNDS is the number of rounds. With SEGMENTS= (empty) the programs' memory is not shared with the driver.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
bin=$(cd "${1:?usage: speed.sh BIN veth MTU | BIN host | BIN one}" && pwd)
mode=${2:?veth, host, xrc or one} mtu=${3:-9000}
hosts=$mode
if [ "$mode" = xrc ]; then hosts=$([ "${3-}" ] && echo veth || echo host); fi
read -ra segments <<<"${SEGMENTS---segments}"
dir=$(mktemp -d)
started=()
trap 'kill "${started[@]}" 2>/dev/null; wait; rm -rf "$dir"' EXIT

pin=()
if [ "$mode" = one ]; then pin=(taskset -c "$(($(nproc) - 1))"); fi
space() { # makes a network namespace; the process that keeps it is in $kept
  unshare --net sleep 3600 &
  kept=$!
  started+=("$kept")
  until [ "$(readlink /proc/$kept/ns/net)" != "$(readlink /proc/self/ns/net)" ]; do sleep 0.01; done
}
within() { local n=$1; shift; "${pin[@]}" nsenter --net=/proc/"$n"/ns/net "$@"; }
drive() { # side namespace adapter...
  local side=$1 n=$2
  shift 2
  "${pin[@]}" nsenter --net=/proc/"$n"/ns/net "$bin/softvpi" up --socket "$dir/$side" --state "$dir/$side.state" "${@/#/--adapter=}" >"$dir/$side.log" 2>&1 &
  started+=($!)
  until grep -q ^listening "$dir/$side.log"; do sleep 0.1; done
}
space
a=$kept b=$kept server=a client=a options=("-d softvpi0" "-d softvpi1 127.0.0.1")
case $hosts in
veth)
  space
  b=$kept client=b options=("" 10.77.3.1)
  ip link add v0 netns "/proc/$a/ns/net" mtu "$mtu" type veth peer name v1 mtu "$mtu" netns "/proc/$b/ns/net"
  for side in "$a v0 10.77.3.1" "$b v1 10.77.3.2"; do
    set -- $side
    within "$1" sh -ec "ip link set lo up; ip link set $2 up; ip addr add $3/24 dev $2"
  done
  drive a "$a" host=10.77.3.1
  drive b "$b" host=10.77.3.2
  ;;
host)
  within "$a" ip link set lo up
  drive a "$a" a=127.0.0.2 b=127.0.0.3
  ;;
one)
  within "$a" sh -e "$here/../rxebench/guest/veth.sh"
  drive a "$a" a=192.0.2.1,path=wire b=192.0.2.2,path=wire
  ;;
*) echo "speed.sh: $mode, want veth, host, xrc or one" >&2; exit 2 ;;
esac

port=21000
both() { # server client: runs them until they end, the client's output is in $dir/out
  within "$a" $1 >"$dir/server" 2>&1 &
  local s=$!
  if [ "${3-}" ]; then sleep 0.3; else until within "$a" ss -ltn | grep -q ":$port "; do sleep 0.02; done; fi
  within "$b" $2 >"$dir/out" 2>&1
  wait "$s"
}
perftest() { # tool with its options, column
  port=$((port + 1))
  local c="verbs run --no-preload ${segments[*]-} -- $1 -x 0 -F -p $port" e="env SOFTVPI_DIRECT=${direct:-on}"
  both "$e SOFTVPI_SOCKET=$dir/$server $bin/softvpi $c ${options[0]}" "$e SOFTVPI_SOCKET=$dir/$client $bin/softvpi $c ${options[1]}"
  awk -v c="$2" '/^ *[0-9]+ +[0-9]+ +[0-9.]+/ { r = $c } END { print r; exit r == "" }' "$dir/out" || cat "$dir/out" "$dir/server" >&2
}
nd() { # tool with its options, name of the figure in its JSON
  port=$((port + 1))
  local c="-mode attached -memory $([ ${#segments[@]} -gt 0 ] && echo api || echo own) -p $port"
  both "env SOFTVPI_SOCKET=$dir/a $bin/softvpi $1 $c -S 10.77.3.1" "env SOFTVPI_SOCKET=$dir/b $bin/softvpi $1 $c -json -C 10.77.3.1" late
  grep -om1 "\"$2\": *[0-9.]*" "$dir/out" | grep -o '[0-9.]*$'
}
gb() { awk -v g="$1" 'BEGIN { printf "%.2f", g * 1e9 / 2^30 }'; }
small() { # everything of mode host
  local how
  for how in "" "-q 8"; do
    for op in write send read atomic; do
      local size="-s 64"
      if [ "$op" = atomic ]; then size=; fi
      echo "ib_${op}_bw $size $how: $(perftest "ib_${op}_bw $size -n 1000000 $how" 5) million a second"
    done
  done
  echo "ib_send_bw -s 64 --use-srq: $(perftest "ib_send_bw -s 64 -n 200000 --use-srq" 5) million a second"
  for op in write send read; do echo "ib_${op}_lat: $(perftest "ib_${op}_lat -s 8 -n 100000" 5) us"; done
  for op in send read; do echo "ib_${op}_lat -e: $(perftest "ib_${op}_lat -s 8 -n 20000 -e" 5) us"; done
}
xrc() { # a round of mode xrc: what, unit, with RC, with XRC, and RC on the direct path
  local op size
  for op in send write read; do
    echo "ib_${op}_lat of 8 bytes;us;$(direct=off perftest "ib_${op}_lat -s 8 -n 20000" 5);$(direct=off perftest "ib_${op}_lat -s 8 -n 20000 -c XRC" 5);$(
      [ "$hosts" = veth ] || perftest "ib_${op}_lat -s 8 -n 20000" 5)"
  done
  for op in send write; do
    for size in 64 65536; do
      local n=$((size == 64 ? 200000 : 8192)) c=$((size == 64 ? 5 : 4)) unit="million a second"
      if [ $size != 64 ]; then unit="Gb/s (10^9)"; fi
      local o="-s $size -n $n $([ $size = 64 ] || echo --report_gbits)"
      echo "ib_${op}_bw of $size bytes;$unit;$(direct=off perftest "ib_${op}_bw $o" $c);$(direct=off perftest "ib_${op}_bw $o -c XRC" $c);$(
        [ "$hosts" = veth ] || perftest "ib_${op}_bw $o" $c)"
    done
  done
}
if [ "$mode" = xrc ]; then
  for _ in $(seq "${ROUNDS:-3}"); do xrc; done >"$dir/rounds"
  python3 - "$dir/rounds" <<'END'
import statistics, sys

rows = {}
for line in open(sys.argv[1]):
    what, unit, *figures = line.rstrip("\n").split(";")
    for at, figure in enumerate(figures):
        if figure:
            rows.setdefault((what, unit), [[], [], []])[at].append(float(figure))
for (what, unit), figures in rows.items():
    rc, xrc, direct = (statistics.median(f) if f else None for f in figures)
    last = f", RC on the direct path {direct:g}" if direct is not None else ""
    print(f"{what}: RC {rc:g}, XRC {xrc:g} {unit}, {xrc / rc:.2f}{last}")
END
  exit
fi
for _ in $(seq "${ROUNDS:-1}"); do
  if [ "$mode" = host ]; then
    small
    continue
  fi
  for op in write send read; do
    if [ "$mode" = one ]; then
      for m in 4096 1024; do
        echo "$op of 1 MB, path MTU $m: $(gb "$(perftest "ib_${op}_bw -m $m -s 1048576 -n 2048 --report_gbits" 4)") Gb/s"
      done
      continue
    fi
    for size in 65536 1048576; do
      n=$((1 << 29 >> (size == 65536 ? 16 : 20)))
      echo "$op of $size bytes: $(gb "$(perftest "ib_${op}_bw -s $size -n $n --report_gbits" 4)") Gb/s, nd $(nd "nd_${op}_bw -s $size -n $n" gbps)"
    done
    echo "$op of 8 bytes: $(perftest "ib_${op}_lat -s 8 -n 20000" 5) us, nd $(nd "nd_${op}_lat -s 8 -n 20000" typical)"
  done
done
