#!/bin/sh
# Starts the driver, waits until programs can attach, and runs the command. SOFTVPI_ADDRESS makes one adapter at an
# address of this container, for peers elsewhere; without it there are two, at 127.0.0.2 and 127.0.0.3.
set -eu
if [ -n "${SOFTVPI_ADDRESS:-}" ]; then
	softvpi up --adapter "Ethernet 1=$SOFTVPI_ADDRESS" &
else
	softvpi up &
fi
softvpi wait --timeout 20s
exec softvpi verbs run -- "$@"
