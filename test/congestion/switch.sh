#!/usr/bin/env bash
# What quality of service costs RDMA between two drivers on a live Ethernet switch: writes with all of it off and on in turn. On is
# congestion control at both adapters with thresholds of marks at the switch, classes with shares (ETS) at both and at the switch, and PFC
# at every hop. Rates of links are not kept, so queues are short: nothing is marked or paused, and what is left is what looking costs.
# For each size one program writes all the time, and pairs of short rounds, off and on next to each other, take turns in their order, so
# that what else the machine does meets both alike. Prints the medians in Gb/s, the median of the pairs' ratios, and between which two
# values that lies with a probability of 95 % (by order statistics): it is at most 5 % where the lower one is 0.95.
#
#   switch.sh [PAIRS=30] [SECONDS=0.4]     SOFTVPI is the program (bin/softvpi), SIZES the bytes of a write
set -u
pairs=${1:-30} secs=${2:-0.4}
softvpi=${SOFTVPI:-$(cd "$(dirname "$0")/../.." && pwd)/bin/softvpi}
dir=$(mktemp -d)
export XDG_RUNTIME_DIR=$dir
pids=()
end() {
  for p in "${pids[@]}"; do kill "$p" 2>/dev/null && wait "$p" 2>/dev/null; done
  rm -rf "$dir"
}
trap end EXIT
until_says() { # file, text
  for _ in $(seq 100); do grep -qs "$2" "$1" && return; sleep 0.1; done
  cat "$1"
  exit 1
}
echo '{"topology": {"kind": "star", "hosts": 2}, "switch": {"trust": "pcp"}}' >"$dir/net.json"
"$softvpi" fabric run "$dir/net.json" --name rack >"$dir/rack" 2>&1 &
pids+=($!)
until_says "$dir/rack" '^cables'
for i in 0 1; do
  "$softvpi" up --socket "$dir/$i.sock" --state "$dir/$i" --skip-self-check --fabric rack \
    --adapter "x=192.0.2.1$i/24,fabric=host$i,linkmtu=4200" >"$dir/$i.log" 2>&1 &
  pids+=($!)
  until_says "$dir/$i.log" '^listening'
done
at() { # host, command
  local n=$1
  shift
  SOFTVPI_SOCKET=$dir/$n.sock "$softvpi" "$@"
}
do_fabric() { "$softvpi" fabric do --name rack "$@"; }
turn() { # off or on
  local i
  if [ "$1" = on ]; then
    do_fabric set switch all kmin=1MB kmax=4MB pmax=10%
    do_fabric set switch 3 weight=50
    do_fabric pfc switch 3
  else
    do_fabric set switch all kmin=0 kmax=0 pmax=0 weight=1
    do_fabric pfc switch none
  fi
  for i in 0 1; do
    if [ "$1" = on ]; then
      at $i mlx5cmd -QosConfig -Dcqcn -Name x -Enable >/dev/null
      at $i qos set x pfc=3 prio-tc=3:1 tc-bw=0:50,1:50 app=port:4791=3
    else
      at $i mlx5cmd -QosConfig -Dcqcn -Name x -Disable >/dev/null
      at $i qos set x pfc=default prio-tc=default tc-bw=default app=default
    fi
  done
}
sent() { at 0 counters get 'adapter_qos(x, *).sent_bytes' | awk '/Bytes Sent/ {n += $3} END {printf "%.0f", n}'; }
now=
once() { # off or on: Gb/s
  local before since
  if [ "$now" != "$1" ]; then turn "$1" && now=$1; fi
  sleep 0.1 # what has left the old way is complete
  before=$(sent) since=$EPOCHREALTIME
  sleep "$secs"
  after=$(sent)
  awk -v b="$before" -v a="$after" -v s="$since" -v u="$EPOCHREALTIME" 'BEGIN {printf "%.4f\n", 8*(a-b)/(u-s)/1e9}' >>"$dir/$1.all"
}
median() { sort -n | awk '{v[NR]=$1} END {print v[int((NR+1)/2)]}'; }
for size in ${SIZES:-4096 65536 1048576}; do
  : >"$dir/off.all" >"$dir/on.all" >"$dir/server"
  SOFTVPI_SOCKET=$dir/1.sock "$softvpi" nd_write_bw -S 192.0.2.11 >"$dir/server" 2>&1 &
  server=$!
  until_says "$dir/server" serving
  SOFTVPI_SOCKET=$dir/0.sock "$softvpi" nd_write_bw -C 192.0.2.11 -L 192.0.2.10 -s "$size" -D 3600 >"$dir/client" 2>&1 &
  client=$!
  pids+=($client $server)
  sleep 1
  for n in $(seq "$pairs"); do
    if [ $((n % 2)) = 1 ]; then once off && once on; else once on && once off; fi
  done
  kill $client; wait $client
  wait $server
  off=$(median <"$dir/off.all") on=$(median <"$dir/on.all")
  paste "$dir/off.all" "$dir/on.all" | awk '{print $2/$1}' | sort -n | awk -v s="$size" -v off="$off" -v on="$on" '{v[NR] = $1} END {
    k = int((NR + 1 - 1.96*sqrt(NR))/2); if (k < 1) k = 1
    printf "%8d B  off %6.2f  on %6.2f Gb/s  ratio %.3f (%.3f to %.3f)\n", s, off, on, v[int((NR+1)/2)], v[k], v[NR+1-k]}'
done
do_fabric ports | awk 'NR > 1 {m += $(NF-2); d += $(NF-1); p += $NF} END {print m+0 " frames marked, " d+0 " dropped, " p+0 " pauses"}'
