#!/bin/sh
# Measures what calls of the library cost: cost.sh LIBRARIES PROGRAM SOFTVPI, all absolute paths. Everything else
# should be quiet. Pinning 8 MB has to be allowed (ulimit -l).
set -eu
lib=$1 cost=$2 softvpi=$3
. "$(dirname "$0")/driver.sh"
for n in 1 2 3; do
	LD_LIBRARY_PATH=$lib SOFTVPI_DIRECT=off "$cost" "Through the driver:" ", to the driver"
	LD_LIBRARY_PATH=$lib LD_PRELOAD=$lib/libsoftvpi-memory.so "$cost" "On the direct path:" " with the write"
done
