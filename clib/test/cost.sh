#!/bin/sh
# Measures what posts and polls cost: cost.sh LIBRARIES PROGRAM SOFTVPI, all absolute paths. Everything else should be quiet.
set -eu
lib=$1 cost=$2 softvpi=$3
. "$(dirname "$0")/driver.sh"
for n in 1 2 3; do
	LD_LIBRARY_PATH=$lib SOFTVPI_DIRECT=off "$cost" "ibv_post_send, to the driver"
	LD_LIBRARY_PATH=$lib LD_PRELOAD=$lib/libsoftvpi-memory.so "$cost" "ibv_post_send, direct: with the write"
done
