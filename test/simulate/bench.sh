#!/usr/bin/env bash
# How fast simulations are beside ns-3: a 2:1 incast at 40 Gb/s, ours with RC queue pairs, acknowledgements, PFC and DCQCN and with lean
# senders, ns-3's with UDP alone. Prints the medians of data packets a second of processor time, and what ours make of 0.4 of ns-3's:
# so much of it a fork of ns-3 with RDMA makes. Says in one line when it cannot run, and then succeeds.
#
#   bench.sh [ROUNDS=5] [MILLISECONDS=50]     SOFTVPI is the program (bin/softvpi)
set -u
here=$(cd "$(dirname "$0")" && pwd)
rounds=${1:-5} ms=${2:-50}
softvpi=${SOFTVPI:-$(cd "$here/../.." && pwd)/bin/softvpi}
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
"$here/packages.sh"
libs=$(pkg-config --cflags --libs ns3-applications ns3-core ns3-internet ns3-network ns3-point-to-point 2>/dev/null | tr ' ' '\n' |
  grep -v -e gsl -e sqlite -e xml2)
# shellcheck disable=SC2086
if [ -z "$libs" ] || ! g++ -O2 -o "$dir/peer" "$here/peer.cc" $libs 2>"$dir/errors"; then
  echo "test/simulate: skipped, the program of ns-3 (libns3-dev) cannot be built"
  exit 0
fi
cat >"$dir/incast.json" <<END
{"topology": {"senders": 2}, "nic": {"pfc": [3], "dcqcn": "authors", "DcqcnEnablePrio3": 1, "DcqcnCnpDscp": 48},
  "switch": {"pfc": [3], "kmin": "5KB", "kmax": "200KB", "pmax": "1%"}, "duration": "${ms}ms"}
END
rate() { # command that prints how many packets there were: those a second of processor time
  local packets seconds
  TIMEFORMAT='%U %S'
  { time packets=$("$@"); } 2>"$dir/time"
  seconds=$(awk '{ print $1 + $2 }' "$dir/time")
  awk -v p="$packets" -v s="$seconds" 'BEGIN { printf "%.0f\n", p / s }'
}
ours() { # lean or not
  "$softvpi" simulate "$dir/incast.json" --processors 1 --quiet --set lean="$1" | awk '$1 == "packets" { print $2 }'
}
median() { sort -n "$1" | awk '{ v[NR] = $1 } END { print v[int((NR + 1) / 2)] }'; }
for _ in $(seq "$rounds"); do
  rate "$dir/peer" "$ms" >>"$dir/ns3"
  rate ours false >>"$dir/rc"
  rate ours true >>"$dir/lean"
done
peer=$(median "$dir/ns3")
printf 'ns-3, UDP          %8d packets/s\n' "$peer"
for kind in rc lean; do
  printf '%-18s %8d packets/s, %.1f times 0.4 of that\n' "$kind" "$(median "$dir/$kind")" \
    "$(awk -v a="$(median "$dir/$kind")" -v b="$peer" 'BEGIN { print a / b / 0.4 }')"
done
