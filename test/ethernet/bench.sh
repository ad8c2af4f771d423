#!/usr/bin/env bash
# TCP between two namespaces of Linux: over a veth pair, through two Ethernet functions of one driver (hosts on TAPs), and
# through those of two drivers joined by a veth, in turn. Prints Gb/s, and Gb/s for each core of processor time of both iperf3 and
# what is between them, which other load disturbs little.
#
#   bench.sh [SECONDS=3] [ROUNDS=3] [TAPFWD]     needs root, iperf3, python3; SOFTVPI is the program (bin/softvpi)
#
# TAPFWD is a program for the ceiling: "TAPFWD -vnet -mtu N NAMESPACE NAMESPACE" makes a TAP with 10.55.0.1 in the one and one
# with 10.55.0.2 in the other, and does nothing but pass frames with their virtio headers between them.
set -u
secs=${1:-3} rounds=${2:-3} fwd=${3:-}
softvpi=${SOFTVPI:-$(cd "$(dirname "$0")/../.." && pwd)/bin/softvpi}
dir=$(mktemp -d)
a=eba$$ b=ebb$$ pids=()
end() {
  for p in "${pids[@]}"; do kill "$p" 2>/dev/null && wait "$p" 2>/dev/null; done
  pids=()
  ip netns del $a 2>/dev/null
  ip netns del $b 2>/dev/null
}
trap 'end; rm -rf "$dir"' EXIT
begin() {
  for n in $a $b; do
    ip netns add $n
    ip -n $n link set lo up
  done
}
address() { # interface in a, interface in b
  ip -n $a addr add 10.55.1.1/24 dev "$1"
  ip -n $b addr add 10.55.1.2/24 dev "$2"
  ip -n $a link set "$1" up
  ip -n $b link set "$2" up
}
drive() { # namespace, arguments of up
  local n=$1
  shift
  rm -f "$dir/$n.log"
  ip netns exec "$n" "$softvpi" up --socket "$dir/$n.sock" --state "$dir/$n" --skip-self-check "$@" >"$dir/$n.log" 2>&1 &
  pids+=($!)
  for _ in $(seq 100); do
    grep -qs '^listening' "$dir/$n.log" && return
    sleep 0.1
  done
  cat "$dir/$n.log"
  exit 1
}
ticks() {
  local sum=0
  for p in "${pids[@]}"; do sum=$((sum + $(awk '{print $14+$15}' "/proc/$p/stat"))); done
  echo $sum
}
run() { # label, address
  local before after to=${2:-10.55.1.2}
  for _ in $(seq 50); do ip netns exec $a ping -c 1 -W 1 "$to" >/dev/null 2>&1 && break; done
  ip netns exec $b iperf3 -s -1 >/dev/null 2>&1 &
  local server=$!
  sleep 0.4
  before=$(ticks)
  ip netns exec $a iperf3 -c "$to" -t "$secs" -J >"$dir/result" 2>/dev/null
  after=$(ticks)
  wait $server
  python3 - "$1" $((after - before)) "$secs" "$dir/result" <<'P'
import json, sys
label, busy, secs = sys.argv[1], int(sys.argv[2]), float(sys.argv[3])
end = json.load(open(sys.argv[4]))['end']
rate, c = end['sum_received']['bits_per_second'] / 1e9, end['cpu_utilization_percent']
cores = (c['host_total'] + c['remote_total']) / 100 + busy / 100 / secs
print('%-34s %6.2f Gb/s  %5.2f for each core  (between them %.2f cores, %d sent again)' % (label, rate, rate / max(cores, .01),
      busy / 100 / secs, end['sum_sent'].get('retransmits', 0)))
P
  end
}
for mtu in 1500 9000; do
  for _ in $(seq "$rounds"); do
    begin
    ip link add v$$a mtu $mtu netns $a type veth peer name v$$b mtu $mtu netns $b
    address v$$a v$$b
    run "veth, MTU $mtu"

    begin
    drive $a --adapter "a=10.55.2.1,datagram=$dir/w,linkmtu=$mtu,mac=02:00:00:00:00:0a,host=tap:n$$a" \
      --adapter "b=10.55.2.2,datagram=$dir/w,linkmtu=$mtu,mac=02:00:00:00:00:0b,host=tap:n$$b"
    ip -n $a link set n$$b netns $b
    address n$$a n$$b
    run "one driver, MTU $mtu"

    begin
    ip link add w$$a mtu $mtu netns $a type veth peer name w$$b mtu $mtu netns $b
    ip -n $a link set w$$a up
    ip -n $b link set w$$b up
    drive $a --adapter "a=10.55.2.1,interface=w$$a,mac=02:00:00:00:00:0a,host=tap:n$$a"
    drive $b --adapter "b=10.55.2.2,interface=w$$b,mac=02:00:00:00:00:0b,host=tap:n$$b"
    address n$$a n$$b
    run "two drivers over veth, MTU $mtu"

    [ -n "$fwd" ] || continue
    begin
    "$fwd" -vnet -mtu $mtu $a $b >/dev/null 2>&1 &
    pids+=($!)
    run "tapfwd, MTU $mtu" 10.55.0.2
  done
done
