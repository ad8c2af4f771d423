# Two namespaces of Linux, $a and $b, with interfaces and drivers in them, for the measurements of this folder, which source it.
# SOFTVPI is the program (bin/softvpi). Everything ends with the shell.
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
  rm -rf "$dir/$n.log" "$dir/$n"
  ip netns exec "$n" "$softvpi" up --socket "$dir/$n.sock" --state "$dir/$n" --skip-self-check "$@" >"$dir/$n.log" 2>&1 &
  pids+=($!)
  for _ in $(seq 100); do
    grep -qs '^listening' "$dir/$n.log" && return
    sleep 0.1
  done
  cat "$dir/$n.log"
  exit 1
}
