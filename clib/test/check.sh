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
LD_LIBRARY_PATH=$lib "$tests" dies "$driver" || status=1
driver=
exit $status
