#!/usr/bin/env bash
# Measures subnet managers on a fat tree: seconds until SUBNET UP, seconds from the loss of a top switch to the end of the sweep
# that follows, processor seconds, and peak memory.
#
#   speed.sh BIN HOSTS [RUN...]      BIN is where make build put softvpi; HOSTS: 128, 1024, 5184, 11664 or 27648
#
# A RUN is a manager and the fabric that it manages; all use the same netlist, one after the other: ours@fabric, ours@ibsim, opensm@ibsim, opensm64@ibsim (OpenSM with -n 64).
# Without one all four are run; they need Debian's opensm, ibsim and its preload library where they use them. All managers have -s 0.
# REROUTE=0 skips the loss of a switch. LMC=1 gives every host two LIDs; 27648 hosts are then refused. ENGINE is a routing engine (minhop).
#
# The first time is from the start of the program to the first line SUBNET UP in the manager's log. The second is from the commands that
# remove all cables of the switch to the last such line of the sweeps that the loss causes; their number is in brackets. Between the two,
# every manager is told by SIGHUP to sweep once.
set -euo pipefail
bin=$(cd "${1:?usage: speed.sh BIN HOSTS [RUN...]}" && pwd)
hosts=${2:?usage: speed.sh BIN HOSTS [RUN...]}
shift 2
runs=("$@")
[ $# -gt 0 ] || runs=(ours@fabric ours@ibsim opensm@ibsim opensm64@ibsim)
case $hosts in
128) shape=(--radix 16 --levels 2) ;;
1024) shape=(--radix 16 --levels 3) ;;
5184 | 11664) shape=(--radix 36 --levels 3) ;;
27648) shape=(--radix 48 --levels 3) ;;
*) echo "speed.sh: $hosts hosts; allowed: 128, 1024, 5184, 11664, 27648" >&2; exit 2 ;;
esac
dir=$(mktemp -d)
started=()
cleanup() {
  for p in "${started[@]}"; do kill -KILL "$p" 2>/dev/null || true; done
  exec 9>&-
  wait 2>/dev/null || true
  rm -rf "$dir"
}
trap cleanup EXIT
cd "$dir"
ln -s "$bin/softvpi" opensm
"$bin/softvpi" fabric generate fat-tree "${shape[@]}" --hosts "$hosts" >net
switches=$(grep -c '^Switch' net)
top=$(grep '^Switch' net | tail -n 1 | cut -d'"' -f2)
preload=$(echo /usr/lib/*/umad2sim/libumad2sim.so)
export IBSIM_SOCKNAME="speed-$$" XDG_RUNTIME_DIR=$dir

has() { # file text [process]: waits for a line
  until grep -q "$2" "$1" 2>/dev/null; do
    sleep 0.02
    [ -z "${3:-}" ] || kill -0 "$3" 2>/dev/null || return 1
  done
}
fabric() { # starts it, and puts its process number into $ground
  rm -f in
  mkfifo in
  exec 9<>in # ibsim would loop without a pause at the end of its input
  if [ "$1" = fabric ]; then
    "$bin/softvpi" fabric run --console --name "$IBSIM_SOCKNAME" net <in >fabric.log 2>&1 &
    ground=$!
    started+=("$ground")
    has fabric.log listening "$ground"
    return
  fi
  ports=$(awk '/^Switch/ { p += $2 + 1 } /^Ca/ { p += $2 } END { print p }' net)
  ibsim -s -N $((hosts + switches + 16)) -S $((switches + 16)) -P $((ports + 64)) -L 49152 net <in >fabric.log 2>&1 &
  ground=$!
  started+=("$ground")
  has fabric.log "Network simulator ready" "$ground"
}
stamps() { # seconds of the day of the lines SUBNET UP
  awk '/SUBNET UP/ { split($3, t, ":"); printf "%.6f\n", t[1] * 3600 + t[2] * 60 + t[3] + $4 / 1e6 }' log
}
second() { date '+%H %M %S.%N' | awk '{ printf "%.6f\n", $1 * 3600 + $2 * 60 + $3 }'; }
between() { awk -v a="$1" -v b="$2" 'BEGIN { d = b - a; if (d < -43200) d += 86400; printf "%.2f", d }'; }
last() { # begin n: the end of the last sweep: none follows for twice the time that all took, at least 2 s
  local begin=$1 n=$2 have took
  while :; do
    have=$(stamps | wc -l)
    took=$(between "$begin" "$(stamps | tail -n 1)")
    sleep "$(awk -v t="$took" 'BEGIN { print (t > 1 ? 2 * t : 2) }')"
    [ "$(stamps | wc -l)" -gt "$have" ] || break
  done
  printf '%s (%d)' "$took" $((have - n))
}
cpu() { awk -v hz="$(getconf CLK_TCK)" '{ sub(/.*\) /, ""); printf "%.1f", ($12 + $13) / hz }' "/proc/$1/stat"; }
measure() { # manager ground
  local quote=\" options=(-s 0 -f "$dir/log" -l "${LMC:-0}" -R "${ENGINE:-minhop}") command=(./opensm) sm begin up lost=- n
  [ "$2" = ibsim ] || quote=
  case $1 in
  ours) ;;
  opensm64) command=(env LD_PRELOAD="$preload" /usr/sbin/opensm); options+=(-d 2 -n 64) ;;
  opensm) command=(env LD_PRELOAD="$preload" /usr/sbin/opensm); options+=(-d 2) ;;
  *) echo "speed.sh: manager $1; allowed: ours, opensm, opensm64" >&2; exit 2 ;;
  esac
  rm -rf log osm
  mkdir osm
  fabric "$2"
  begin=$(second)
  SIM_HOST=node00000 OSM_CACHE_DIR=$dir/osm OSM_TMP_DIR=$dir/osm "${command[@]}" "${options[@]}" >out 2>&1 </dev/null &
  sm=$!
  started+=("$sm")
  until grep -q "SUBNET UP\|unicast LIDs" log 2>/dev/null; do
    kill -0 "$sm" 2>/dev/null || { cat out >&2; exit 1; }
    sleep 0.05
  done
  if grep -q "unicast LIDs" log; then
    echo "$hosts hosts, LMC ${LMC:-0}: $1@$2: $(grep -m 1 -o 'subnet: .*' log)"
  else
    up=$(between "$begin" "$(stamps | head -n 1)")
    if [ "${REROUTE:-1}" = 1 ]; then
      n=$(stamps | wc -l) # once more, as it would have swept in the meantime
      kill -HUP "$sm"
      until [ "$(stamps | wc -l)" -gt "$n" ]; do sleep 0.05; done
      sleep 0.3
      n=$(stamps | wc -l)
      begin=$(second)
      awk -v n="$(awk -v t="\"$top\"" '/^Switch/ && $3 == t { print $2 }' net)" -v t="$top" -v q="$quote" 'BEGIN { for (i = 1; i <= n; i++) print "unlink " q t q "[" i "]" }' >&9
      until [ "$(stamps | wc -l)" -gt "$n" ]; do sleep 0.05; done
      lost=$(last "$begin" "$n")
    fi
    printf '%6d hosts %5d switches %-15s up %7s s, rerouted %10s s, processor %6s s, memory %5d MB, load %s\n' "$hosts" "$switches" "$1@$2" "$up" "$lost" "$(cpu "$sm")" \
      "$(awk '/VmHWM/ { printf "%.0f", $2 / 1024 }' "/proc/$sm/status")" "$(cut -d' ' -f1 /proc/loadavg)"
  fi
  { kill -KILL "$sm" "$ground"; wait "$sm" "$ground"; } 2>/dev/null || true
  wait "$sm" "$ground" 2>/dev/null || true
}
for run in "${runs[@]}"; do measure "${run%@*}" "${run#*@}"; done
