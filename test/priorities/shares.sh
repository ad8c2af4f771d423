#!/usr/bin/env bash
# How programs of two priorities share a port's wire: two nd_write_bw at once by two NetworkDirect ports with a policy each, over a wire
# of RATE Mbit/s, with bandwidths (ETS) of 20 and 80 %, then with a rate of a quarter for the second class. Prints the parts of the
# bytes that left. While other work keeps the programs from filling the wire, the parts are those of the programs, and not of the
# bandwidths: it says so.
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
sent() { # bytes of priority 3, and of 4
  "$softvpi" counters get 'adapter_qos(left, *).sent_bytes' | awk '/Priority [34]\)/ {wanted = 1} /Bytes Sent/ {if (wanted) printf "%s ", $3; wanted = 0}'
}
once() { # what the two send, in parts
  local before since after until pids=()
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
  since=$EPOCHREALTIME before=$(sent)
  sleep "$secs"
  until=$EPOCHREALTIME after=$(sent) # right after, as before
  awk -v rate="$rate" -v s="$(awk "BEGIN {print $until - $since}")" 'NR == 1 {a = -$1; b = -$2}
    NR == 2 {a += $1; b += $2; printf "%6.2f %% and %6.2f %%, %7.1f and %7.1f Mbit/s%s\n", 100*a/(a+b), 100*b/(a+b), 8*a/s/1e6, 8*b/s/1e6,
      8*(a+b)/s/1e6 < 0.9*rate ? ": the programs do not fill the wire, too much else runs" : ""}' <<<"$before
$after"
  wait "${pids[@]}" || true
}
"$softvpi" qos set left prio-tc=3:1,4:2 tc-bw=1:20,2:80
echo "20 and 80 %:                  $(once)"
limit=$("$softvpi" mlxtool modify tc-bw left 2 $((rate / 4)) | awk -F'|' '$2 ~ /^ *2 *$/ {print $4 + 0}') # in steps of 100
printf '%-29s %s\n' "the second at most $limit:" "$(once)"
