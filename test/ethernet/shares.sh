#!/usr/bin/env bash
# RoCE beside TCP at one port: two drivers in two namespaces, joined by a veth, each with one adapter whose Ethernet function has a
# TAP. Prints what a stream of RDMA writes and a stream of TCP carry alone, and both at once, in Gb/s, and what share of its own
# each keeps. On few processors both also share these: who starves would have nearly nothing.
#
#   shares.sh [SECONDS=3] [ROUNDS=3]     needs root, iperf3, python3; SOFTVPI is the program (bin/softvpi)
set -u
secs=${1:-3} rounds=${2:-3}
. "$(dirname "$0")/namespaces.sh"
begin
ip link add w$$a mtu 9000 netns $a type veth peer name w$$b mtu 9000 netns $b
ip -n $a link set w$$a up
ip -n $b link set w$$b up
drive $a --adapter "a=10.55.2.1,interface=w$$a,mac=02:00:00:00:00:0a,host=tap:n$$a"
drive $b --adapter "b=10.55.2.2,interface=w$$b,mac=02:00:00:00:00:0b,host=tap:n$$b"
address n$$a n$$b
for _ in $(seq 50); do ip netns exec $a ping -c 1 -W 1 10.55.1.2 >/dev/null 2>&1 && break; done
tool() { # namespace, arguments
  local n=$1
  shift
  ip netns exec $n env SOFTVPI_SOCKET="$dir/$n.sock" "$softvpi" "$@"
}
tcp() {
  ip netns exec $b iperf3 -s -1 >/dev/null 2>&1 &
  local server=$!
  sleep 0.3
  ip netns exec $a iperf3 -c 10.55.1.2 -t "$secs" -J >"$dir/tcp" 2>/dev/null
  wait $server
}
rdma() {
  tool $b nd_write_bw -S 10.55.2.2 -s 65536 -D "$secs" >"$dir/log" 2>&1 &
  local server=$!
  sleep 0.3
  tool $a nd_write_bw -C 10.55.2.2 -s 65536 -D "$secs" --json >"$dir/rdma" 2>>"$dir/log" || cat "$dir/log"
  wait $server
}
for _ in $(seq "$rounds"); do
  tcp && mv "$dir/tcp" "$dir/tcp.alone"
  rdma && mv "$dir/rdma" "$dir/rdma.alone"
  tcp &
  wanted=$!
  rdma
  wait $wanted
  python3 - "$dir" <<'P'
import json, sys
def tcp(name): return json.load(open(sys.argv[1] + '/' + name))['end']['sum_received']['bits_per_second'] / 1e9
def rdma(name):
    r = json.load(open(sys.argv[1] + '/' + name))['results'][0]['client']
    return r['bytes'] * r['iterations'] * 8 / r['seconds'] / 1e9
a, b, c, d = rdma('rdma.alone'), rdma('rdma'), tcp('tcp.alone'), tcp('tcp')
print('RDMA alone %5.2f together %5.2f: %3.0f %%   TCP alone %5.2f together %5.2f: %3.0f %%   both keep %3.0f %%' % (a, b, 100 * b / a, c, d,
      100 * d / c, 100 * (b / a + d / c)))
P
done
