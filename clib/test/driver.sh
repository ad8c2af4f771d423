# A driver of its own for a test: sourced by scripts that have set softvpi to the program. Its process is $driver.
[ -x "$softvpi" ] || { echo "no driver at $softvpi (make build makes one)"; exit 1; }
dir=$(mktemp -d)
driver=
cleanup() {
	[ -z "$driver" ] || kill "$driver" 2>/dev/null || true
	rm -rf "$dir"
}
trap cleanup EXIT INT TERM

export SOFTVPI_SOCKET="$dir/driver.sock" SOFTVPI_STATE="$dir/state"
start() {
	"$softvpi" up --adapter "Ethernet 1=$1.$(($2 % 120 + 2))" --adapter "Ethernet 2=$1.$(($2 % 120 + 124))" \
		--skip-self-check >"$dir/log" 2>&1 &
	driver=$!
	i=0
	while [ ! -S "$SOFTVPI_SOCKET" ]; do
		i=$((i + 1))
		[ $i -lt 100 ] || { echo "the driver did not start"; cat "$dir/log"; exit 1; }
		sleep 0.1
	done
}
set -- $(od -An -N4 -tu1 /dev/urandom)
start "127.$(($1 % 250 + 4)).$2" "$3"
