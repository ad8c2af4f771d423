#!/usr/bin/env bash
# How well queue pairs of programs keep the rate that they ask for: perftest's raw_ethernet_bw with --rate_limit_type=PP
# (ibv_modify_qp_rate_limit, no burst named) between two adapters at one switch. Prints what left in each round beside what was asked for.
#
#   limits.sh [SECONDS=2] [MIB_A_SECOND...=10 120]     SOFTVPI is the program (bin/softvpi), with bin/clib beside it (make clib)
set -eu
secs=${1:-2}
shift || true
[ $# -gt 0 ] || set -- 10 120
softvpi=${SOFTVPI:-$(cd "$(dirname "$0")/../.." && pwd)/bin/softvpi}
command -v raw_ethernet_bw >/dev/null || { echo "needs raw_ethernet_bw (Debian's perftest)"; exit 77; }
dir=$(mktemp -d)
at=switch=frames,linkmtu=9000,mac=02:00:00:00:00:0
export SOFTVPI_SOCKET=$dir/socket
"$softvpi" up --socket "$dir/socket" --state "$dir/state" --skip-self-check --adapter left=192.0.2.1/24,${at}1 --adapter right=192.0.2.2/24,${at}2 >"$dir/log" 2>&1 &
driver=$!
end() {
  kill $driver 2>/dev/null && wait $driver 2>/dev/null || true
  rm -rf "$dir"
}
trap end EXIT
"$softvpi" wait
eval "$("$softvpi" verbs env)"
sent() { "$softvpi" counters get 'adapter_qos(left, *).sent_bytes' | awk '/Bytes Sent/ {n += $3} END {printf "%.0f", n}'; }
for rate in "$@"; do
  for round in 1 2 3; do
    raw_ethernet_bw --client -F -d softvpi0 -B 02:00:00:00:00:01 -E 02:00:00:00:00:02 -s 1500 -D $((secs + 2)) --rate_limit="$rate" --rate_units=M \
      --rate_limit_type=PP >"$dir/client" 2>&1 &
    client=$!
    sleep 1
    since=$EPOCHREALTIME before=$(sent)
    sleep "$secs"
    until=$EPOCHREALTIME after=$(sent)
    wait $client || { cat "$dir/client"; exit 1; }
    awk -v b="$before" -v a="$after" -v s="$(awk "BEGIN {print $until - $since}")" -v want="$rate" \
      'BEGIN {got = 8*(a-b)/s/1e6; want *= 8 * 1.048576; printf "%7.1f of %7.1f Mbit/s (%.1f %%)\n", got, want, 100*got/want}'
  done
done
