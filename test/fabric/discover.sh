#!/usr/bin/env bash
# Measures ibnetdiscover here and Debian's on fat trees that softvpi serves with a subnet manager inside, each in turn, and
# compares what they print.
#
#   discover.sh BIN      BIN is where make build clib put softvpi; ROUNDS is the number of rounds (5), HOSTS are the sizes ("1024 5184")
#
# Each line has the median of the seconds, and the ratio to that of Debian's.
set -euo pipefail
bin=$(cd "${1:?usage: discover.sh BIN}" && pwd)
theirs=$(command -v ibnetdiscover) || { echo "discover.sh: there is no ibnetdiscover" >&2; exit 2; }
dir=$(mktemp -d)
started=()
trap 'kill -KILL "${started[@]}" 2>/dev/null; wait 2>/dev/null; rm -rf "$dir"' EXIT
cd "$dir"
export SOFTVPI_FABRIC SOFTVPI_NODE=node00001 LD_LIBRARY_PATH=$bin/clib
once() { # name command...: records the seconds
  local name=$1 begin=$EPOCHREALTIME
  shift
  "$@" >"$name.out" 2>"$name.err"
  awk -v a="$begin" -v b="$EPOCHREALTIME" 'BEGIN { printf "%.3f\n", b - a }' >>"$name.times"
}
median() { sort -n "$1" | awk '{ v[NR] = $1 } END { print v[int((NR + 1) / 2)] }'; }
echo "$(nproc) processors, load $(cut -d' ' -f1 /proc/loadavg)"
for hosts in ${HOSTS:-1024 5184}; do
  radix=16
  if [ "$hosts" -gt 1024 ]; then radix=36; fi
  "$bin/softvpi" fabric generate fat-tree --radix $radix --levels 3 --hosts "$hosts" >net
  XDG_RUNTIME_DIR=$dir "$bin/softvpi" fabric run --name "d-$$-$hosts" --sm net >fabric.log 2>&1 &
  started+=($!)
  SOFTVPI_FABRIC=$dir/softvpi/fabric-d-$$-$hosts.sock
  until grep -q listening fabric.log 2>/dev/null && "$bin/softvpi" sminfo 2>/dev/null | grep -q MASTER; do sleep 0.1; done
  until [ "$("$bin/softvpi" smpquery -D portinfo 0 2>/dev/null | grep -c 'LinkState.*Active')" = 1 ]; do sleep 0.1; done
  sleep 2
  for _ in $(seq "${ROUNDS:-5}"); do once ours "$bin/softvpi" ibnetdiscover; once theirs "$theirs"; once wide "$theirs" -o 64; done
  same="the same text"
  for o in theirs wide; do cmp -s <(grep -v '^#' ours.out) <(grep -v '^#' $o.out) || same="another text"; done
  a=$(median ours.times) b=$(median theirs.times) c=$(median wide.times)
  awk -v h="$hosts" -v a="$a" -v b="$b" -v c="$c" -v s="$same" 'BEGIN {
    printf "%d hosts: %.3f s, Debian'"'"'s %.3f s (%.2f times), with -o 64 %.3f s (%.2f times); %s\n", h, a, b, a / b, c, a / c, s }'
  rm ./*.times
  kill "${started[-1]}"
done
