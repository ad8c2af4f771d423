#!/usr/bin/env bash
# What congestion control costs RDMA where nothing is marked: writes from one driver to another, with it off and on in turn. Prints
# the medians in Gb/s, and their ratio.
#
#   bench.sh [ROUNDS=5] [SECONDS=1]     needs root; SOFTVPI is the program (bin/softvpi)
set -u
rounds=${1:-5} secs=${2:-1}
softvpi=${SOFTVPI:-$(cd "$(dirname "$0")/../.." && pwd)/bin/softvpi}
dir=$(mktemp -d)
a=cba$$ b=cbb$$ pids=()
end() {
  for p in "${pids[@]}"; do kill "$p" 2>/dev/null && wait "$p" 2>/dev/null; done
  ip netns del $a 2>/dev/null
  ip netns del $b 2>/dev/null
  rm -rf "$dir"
}
trap end EXIT
for n in $a $b; do ip netns add $n && ip -n $n link set lo up || exit 1; done
ip link add wire mtu 9000 netns $a type veth peer name wire mtu 9000 netns $b
ip -n $a addr add 10.56.0.1/24 dev wire && ip -n $b addr add 10.56.0.2/24 dev wire
for n in $a $b; do ip -n $n link set wire up; done
drive() { # namespace, address
  ip netns exec "$1" "$softvpi" up --socket "$dir/$1" --state "$dir/$1.state" --skip-self-check --adapter "x=$2" >"$dir/$1.log" 2>&1 &
  pids+=($!)
  for _ in $(seq 100); do
    grep -qs '^listening' "$dir/$1.log" && return
    sleep 0.1
  done
  cat "$dir/$1.log"
  exit 1
}
drive $a 10.56.0.1
drive $b 10.56.0.2
at() { # namespace, command
  local n=$1
  shift
  SOFTVPI_SOCKET=$dir/$n "$softvpi" "$@"
}
once() { # off or on, bytes: Gb/s
  local what=-Disable server
  [ "$1" = on ] && what=-Enable
  at $a mlx5cmd -QosConfig -Dcqcn -Name x $what >/dev/null
  at $b mlx5cmd -QosConfig -Dcqcn -Name x $what >/dev/null
  at $b nd_write_bw -S 10.56.0.2 >"$dir/server" 2>&1 &
  server=$!
  for _ in $(seq 50); do grep -qs erv "$dir/server" && break; sleep 0.1; done
  at $a nd_write_bw -C 10.56.0.2 -s "$2" -D "$secs" | awk 'END {print $5}'
  wait $server
}
median() { sort -n | awk '{v[NR]=$1} END {print v[int((NR+1)/2)]}'; }
for size in 4096 65536 1048576; do
  : >"$dir/off.all" >"$dir/on.all"
  for _ in $(seq "$rounds"); do
    for way in off on; do once $way $size >>"$dir/$way.all"; done
  done
  off=$(median <"$dir/off.all") on=$(median <"$dir/on.all")
  awk -v s=$size -v off="$off" -v on="$on" 'BEGIN {printf "%8d B  off %6.2f  on %6.2f Gb/s  ratio %.3f\n", s, off, on, on/off}'
done
