#!/usr/bin/env bash
# Measures subnet administration, in path records a second: the subnet manager inside `softvpi fabric run --sm`, OpenSM at a node
# of such a fabric, this repository's opensm at a node of another (process), and OpenSM on the real ibsim. They take turns, with
# the same client (osmtest -f f -s 4).
#
#   sa.sh BIN      BIN is where make build clib put softvpi; ROUNDS is the number of rounds (3), COUNT that of queries (100000),
#                  FLOOD osmtest's -s (4: one record an answer; 2: many, with Debian's osmtest alone), NET the fabric's netlist
#
# Each line has the median of the rounds' seconds, and how many times as fast ours is. Processor seconds are those of fabric
# and manager together. Needs Debian's opensm; without ibsim or Debian's osmtest it prints fewer lines.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
bin=$(cd "${1:?usage: sa.sh BIN}" && pwd)
rounds=${ROUNDS:-3} count=${COUNT:-100000}
net=$(realpath "${NET:-$here/../../internal/fabric/topology/testdata/small.net}") flood=${FLOOD:-4}
mapfile -t hosts < <(sed -nE 's/^(Ca|Hca)[[:space:]]+[0-9]+[[:space:]]+"([^"]+)".*/\2/p' "$net" | head -2)
command -v opensm >/dev/null || { echo "sa.sh: there is no opensm" >&2; exit 2; }
dir=$(mktemp -d)
started=()
trap 'kill -KILL "${started[@]}" 2>/dev/null; exec 9>&- 2>/dev/null; wait 2>/dev/null; rm -rf "$dir"' EXIT
cd "$dir"

has() { until grep -q "$2" "$1" 2>/dev/null; do sleep 0.05; done; }
declare -A pids
fabric() { # name option...
  local name=$1
  shift
  XDG_RUNTIME_DIR=$dir "$bin/softvpi" fabric run --name "sa-$$-$name" "$@" "$net" >"$name.log" 2>&1 &
  started+=($!) pids[$name]=$!
  has "$name.log" listening
}
at() { # ground node command...
  local g=$1 node=$2
  shift 2
  if [ "$g" = ibsim ]; then env IBSIM_SOCKNAME="sa-$$" SIM_HOST="$node" "$@"; else
    env SOFTVPI_FABRIC="$dir/softvpi/fabric-sa-$$-$g.sock" SOFTVPI_NODE="$node" LD_LIBRARY_PATH="$bin/clib" "$@"
  fi
}
opensm() { # ground [program]
  local preload= program=${2:-/usr/sbin/opensm}
  mkdir "$1.osm"
  if [ "$1" = ibsim ]; then preload=$(echo /usr/lib/*/umad2sim/libumad2sim.so); fi
  at "$1" "${hosts[0]}" env LD_PRELOAD="$preload" OSM_CACHE_DIR="$dir/$1.osm" OSM_TMP_DIR="$dir/$1.osm" $program -d 2 -f "$dir/$1.osm/log" >"$1.opensm" 2>&1 &
  has "$1.osm/log" "SUBNET UP"
  pids[$1]+=" $(pgrep -P $!)" # the shell waits for it
  started+=("${pids[$1]##* }")
}
cpu() { # ground: seconds of its processes
  local s=0 p
  for p in ${pids[$1]}; do s=$(awk -v s="$s" '{ sub(/.*\) /, ""); print s + $12 + $13 }' "/proc/$p/stat"); done
  awk -v s="$s" -v hz="$(getconf CLK_TCK)" 'BEGIN { print s / hz }'
}
grounds=(ours process opensm)
fabric ours --sm
fabric process
opensm process "$bin/softvpi opensm"
fabric opensm
opensm opensm
if command -v ibsim >/dev/null && ls /usr/lib/*/umad2sim/libumad2sim.so >/dev/null 2>&1; then
  grounds+=(ibsim)
  mkfifo in
  exec 9<>in # ibsim would loop without a pause at the end of its input
  IBSIM_SOCKNAME="sa-$$" ibsim -s "$net" <in >ibsim.log 2>&1 &
  started+=($!) pids[ibsim]=$!
  has ibsim.log "Network simulator ready"
  opensm ibsim
fi
until at ours "${hosts[1]}" "$bin/softvpi" sminfo >/dev/null 2>&1; do sleep 0.1; done

clients=("osmtest here, one at a time|$bin/softvpi osmtest --window 1 --count $count" "osmtest here, 64 at once|$bin/softvpi osmtest --window 64 --count $count")
if [ "$flood" = 2 ]; then clients=(); fi # a flood that only Debian's osmtest has
if [ -x /usr/sbin/osmtest ] && [ "$count" = 100000 ]; then clients+=("Debian's osmtest, one at a time|/usr/sbin/osmtest"); fi
once() { # ground command...: seconds, processor seconds
  local g=$1 before start
  shift
  before=$(cpu "$g") start=$EPOCHREALTIME
  if [ "$g" = ibsim ] && [ "$1" = /usr/sbin/osmtest ]; then set -- env LD_PRELOAD="$(echo /usr/lib/*/umad2sim/libumad2sim.so)" "$@"; fi
  at "$g" "${hosts[1]}" "$@" -f f -s "$flood" -l "$dir/client.log" >"$dir/client.out" 2>&1 || { cat "$dir/client.out" >&2; return 1; }
  awk -v b="$before" -v a="$(cpu "$g")" -v s="$(awk "BEGIN { print $EPOCHREALTIME - $start }")" '/-I- Querying/ { split($(NF - 1), t, ":"); s = t[1] + t[2] / 1e6 }
    END { printf "%.3f %.2f\n", s, a - b }' "$dir/client.out"
}
median() { sort -n | awk '{ v[NR] = $1 } END { printf "%.2f", v[int((NR + 1) / 2)] }'; }
echo "$count path records, $rounds rounds, $(nproc) processors, load $(cut -d' ' -f1 /proc/loadavg)"
for c in "${clients[@]}"; do
  read -ra command <<<"${c#*|}"
  for _ in $(seq "$rounds"); do for g in "${grounds[@]}"; do once "$g" "${command[@]}" >>"$g.times"; done; done
  line="${c%|*}:"
  for g in "${grounds[@]}"; do
    s=$(cut -d' ' -f1 "$g.times" | median)
    line+=" $g $s s (processor $(cut -d' ' -f2 "$g.times" | median) s)"
    if [ "$g" = ours ]; then own=$s; else line+=", $(awk -v a="$own" -v b="$s" 'BEGIN { printf "%.1f", b / a }') times"; fi
    line+=";"
    rm "$g.times"
  done
  echo "${line%;}"
done
