#!/bin/sh
# Starts the driver, waits until programs can attach, and runs the command. SOFTVPI_ADDRESS makes one adapter at an
# address of this container, for peers elsewhere; without it there are two, at 127.0.0.2 and 127.0.0.3.
set -eu
if [ -n "${SOFTVPI_ADDRESS:-}" ]; then
	softvpi up --adapter "Ethernet 1=$SOFTVPI_ADDRESS" &
else
	softvpi up &
fi
tries=0
until softvpi status >/dev/null 2>&1; do
	tries=$((tries + 1))
	if [ "$tries" -gt 100 ]; then
		echo "the driver does not start" >&2
		exit 1
	fi
	sleep 0.1
done
exec softvpi verbs run -- "$@"
