#!/usr/bin/env bash
# TCP between two namespaces of Linux: over a veth pair, through two Ethernet functions of one driver (hosts on TAPs), and
# through those of two drivers joined by a veth, and through one whose wire is a TAP of the system's, in turn; then four streams, without threads for queues and with them, and frame
# by frame, without offloads. Prints Gb/s, and Gb/s for each core of processor time of both iperf3 and what is between them, which
# other load disturbs little.
#
#   bench.sh [SECONDS=3] [ROUNDS=3] [TAPFWD] [TEXT]     needs root, iperf3, python3; SOFTVPI is the program (bin/softvpi), MTUS
#                                                        those to measure (1500 9000)
#
# TEXT chooses the cases whose names have it.
#
# TAPFWD is a program for the ceiling: "TAPFWD -vnet -mtu N NAMESPACE NAMESPACE" makes a TAP with 10.55.0.1 in the one and one
# with 10.55.0.2 in the other, and does nothing but pass frames with their virtio headers between them; without -vnet there are
# no headers, and so no offloads.
set -u
secs=${1:-3} rounds=${2:-3} fwd=${3:-} only=${4:-}
. "$(dirname "$0")/namespaces.sh"
ticks() {
  local sum=0
  for p in "${pids[@]}"; do sum=$((sum + $(awk '{print $14+$15}' "/proc/$p/stat"))); done
  echo $sum
}
run() { # label, address, streams
  local before after to=${2:-10.55.1.2}
  for _ in $(seq 50); do ip netns exec $a ping -c 1 -W 1 "$to" >/dev/null 2>&1 && break; done
  ip netns exec $b iperf3 -s -1 >/dev/null 2>&1 &
  local server=$!
  sleep 0.4
  before=$(ticks)
  ip netns exec $a iperf3 -c "$to" -t "$secs" -P "${3:-1}" -J >"$dir/result" 2>/dev/null
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
pair() { # MTU, keys to set: one driver with two adapters at one port
  drive $a --adapter "a=10.55.2.1,tap=u$$a,linkmtu=$1,mac=02:00:00:00:00:0a,host=tap:n$$a" \
    --adapter "b=10.55.2.2,tap=u$$a,linkmtu=$1,mac=02:00:00:00:00:0b,host=tap:n$$b"
  shift
  if [ $# -gt 0 ]; then
    for adapter in a b; do
      for key; do in_driver reg add "${key%=*}" --adapter $adapter /d "${key#*=}"; done
      in_driver adapter restart $adapter
    done
  fi
  ip -n $a link set n$$b netns $b
  address n$$a n$$b
}
in_driver() {
  "$softvpi" "$@" --socket "$dir/$a.sock" >"$dir/log" 2>&1 && return
  cat "$dir/log"
  exit 1
}
plain=('*LsoV2IPv4=0' '*LsoV2IPv6=0' '*TCPUDPChecksumOffloadIPv4=0' '*TCPUDPChecksumOffloadIPv6=0' '*IPChecksumOffloadIPv4=0'
  '*RscIPv4=0' '*RscIPv6=0')
# Each of the cases begins with nothing, and ends in run.
veth() { # label, MTU
  ip link add v$$a mtu "$2" netns $a type veth peer name v$$b mtu "$2" netns $b
  address v$$a v$$b
  run "$1" 10.55.1.2
}
one() { # label, MTU, streams, keys
  pair "$2" "${@:4}"
  run "$1" 10.55.1.2 "$3"
}
two() { # label, MTU
  ip link add w$$a mtu "$2" netns $a type veth peer name w$$b mtu "$2" netns $b
  ip -n $a link set w$$a up
  ip -n $b link set w$$b up
  drive $a --adapter "a=10.55.2.1,interface=w$$a,mac=02:00:00:00:00:0a,host=tap:n$$a"
  drive $b --adapter "b=10.55.2.2,interface=w$$b,mac=02:00:00:00:00:0b,host=tap:n$$b"
  address n$$a n$$b
  run "$1"
}
wire() { # label, MTU: to the system at the other side of a TAP that is the wire
  drive $a --adapter "a=10.55.2.1,tap=w$$a,linkmtu=$2,mac=02:00:00:00:00:0a,host=tap:n$$b"
  ip -n $a link set n$$b netns $b
  address w$$a n$$b
  run "$1"
}
ceiling() { # label, MTU, flag of TAPFWD
  [ -n "$fwd" ] || return
  "$fwd" ${3:+"$3"} -mtu "$2" $a $b >/dev/null 2>&1 &
  pids+=($!)
  run "$1" 10.55.0.2
}
case_() { # label, function, its other arguments: if the label has the text that was asked for
  [[ $1 == *"$only"* ]] || return
  begin
  "$2" "$1" "${@:3}"
}
for mtu in ${MTUS:-1500 9000}; do
  for _ in $(seq "$rounds"); do
    case_ "veth, MTU $mtu" veth $mtu
    case_ "one driver, MTU $mtu" one $mtu 1
    case_ "two drivers over veth, MTU $mtu" two $mtu
    case_ "one driver to a TAP wire, MTU $mtu" wire $mtu
    case_ "tapfwd, MTU $mtu" ceiling $mtu -vnet
    case_ "four streams: one driver, MTU $mtu" one $mtu 4
    case_ "four streams: threads, MTU $mtu" one $mtu 4 '*RSSProfile=4'
    case_ "frames: one driver, MTU $mtu" one $mtu 1 "${plain[@]}"
    case_ "frames: tapfwd, MTU $mtu" ceiling $mtu
  done
done
