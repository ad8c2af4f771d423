#!/bin/sh
# Runs the tests of the C libraries against a driver of their own: check.sh LIBRARIES TESTS SOFTVPI, all absolute paths.
set -eu
lib=$1 tests=$2 softvpi=$3
. "$(dirname "$0")/driver.sh"
status=0
LD_LIBRARY_PATH=$lib "$tests" || status=1
LD_LIBRARY_PATH=$lib "$(dirname "$tests")/manager" || status=1
echo "again, in memory that the driver shares:"
LD_LIBRARY_PATH=$lib LD_PRELOAD=$lib/libsoftvpi-memory.so "$tests" shared || status=1
echo "again, so and without the direct path:"
LD_LIBRARY_PATH=$lib LD_PRELOAD=$lib/libsoftvpi-memory.so SOFTVPI_DIRECT=off "$tests" || status=1
echo "again, with the copier:"
LD_LIBRARY_PATH=$lib SOFTVPI_MEMORY_PATH=copier "$tests" || status=1
echo "again, over a stream, what it took longest to have:"
mkdir "$SOFTVPI_SOCKET.functions" 2>/dev/null || true
ln -s ../driver.sock "$SOFTVPI_SOCKET.functions/all.sock" # as if all adapters were a virtual function
"$softvpi" guest serve all --listen "unix:$dir/line" >"$dir/serve" 2>&1 &
serve=$!
"$softvpi" guest attach "unix:$dir/line" --socket "$dir/machine.sock" >"$dir/attach" 2>&1 &
attach=$!
i=0
while [ ! -S "$dir/machine.sock" ] && [ $i -lt 600 ]; do
	i=$((i + 1))
	sleep 0.1
done
for t in srq domains "device memory" import; do
	LD_LIBRARY_PATH=$lib SOFTVPI_SOCKET="$dir/machine.sock" "$tests" "$t" || status=1
done
kill $attach $serve
wait $attach $serve || { cat "$dir/attach" "$dir/serve"; status=1; }
if command -v valgrind >/dev/null; then
	echo "again, under valgrind:"
	# Registering asks the kernel whether memory is there: that it may not be is the point.
	printf '{\n\tthere\n\tMemcheck:Param\n\tmsync(start)\n\tfun:msync\n\tfun:there\n}\n' >"$dir/suppressed"
	for t in "$tests" "$(dirname "$tests")/manager"; do
		LD_LIBRARY_PATH=$lib valgrind -q --error-exitcode=9 --suppressions="$dir/suppressed" "$t" || status=1
	done
fi
LD_LIBRARY_PATH=$lib "$tests" dies "$driver" || status=1
driver=
exit $status
