#!/usr/bin/env bash
# How programs of two priorities share a port's wire: two nd_write_bw at once by two NetworkDirect ports with a policy each, over a wire
# of RATE Mbit/s, with bandwidths (ETS) of 20 and 80 %, then with a rate for the second class. Prints the parts of the bytes that left.
#
#   shares.sh [RATE=1000] [SECONDS=4]     on loopback; SOFTVPI is the program (bin/softvpi)
set -eu
rate=${1:-1000} secs=${2:-4}
softvpi=${SOFTVPI:-$(cd "$(dirname "$0")/../.." && pwd)/bin/softvpi}
dir=$(mktemp -d)
left=127.0.57.1 right=127.0.57.2
export SOFTVPI_SOCKET=$dir/socket
"$softvpi" up --socket "$dir/socket" --state "$dir/state" --skip-self-check --adapter left=$left,path=wire --adapter right=$right,path=wire >"$dir/log" 2>&1 &
driver=$!
end() {
  kill $driver 2>/dev/null && wait $driver 2>/dev/null || true
  rm -rf "$dir"
}
trap end EXIT
"$softvpi" wait
"$softvpi" link set left rate="${rate}M"
"$softvpi" qos policy add left three netdirect=7003 priority=3
"$softvpi" qos policy add left four netdirect=7004 priority=4
sent() { "$softvpi" counters get "adapter_qos(left, Priority $1).sent_bytes" | awk '/Bytes Sent/ {print $3}'; }
once() { # what the two send, in parts
  local before3 before4 pids=()
  for p in 7003 7004; do
    "$softvpi" nd_write_bw -S $right -p $p >"$dir/server.$p" 2>&1 &
    pids+=($!)
  done
  for p in 7003 7004; do
    for _ in $(seq 100); do grep -qs serving "$dir/server.$p" && break; sleep 0.1; done
    "$softvpi" nd_write_bw -C $right -L $left -p $p -s 65536 -D $((secs + 2)) >"$dir/client.$p" 2>&1 &
    pids+=($!)
  done
  sleep 1 # both send by now
  before3=$(sent 3) before4=$(sent 4)
  sleep "$secs"
  awk -v a=$(($(sent 3) - before3)) -v b=$(($(sent 4) - before4)) -v s="$secs" \
    'BEGIN {printf "%6.2f %% and %6.2f %%, %7.1f and %7.1f Mbit/s\n", 100*a/(a+b), 100*b/(a+b), 8*a/s/1e6, 8*b/s/1e6}'
  wait "${pids[@]}" || true
}
"$softvpi" qos set left prio-tc=3:1,4:2 tc-bw=1:20,2:80
echo "20 and 80 %:                  $(once)"
"$softvpi" mlxtool modify tc-bw left 2 $((rate / 4)) >/dev/null
echo "the second at most a quarter: $(once)"
