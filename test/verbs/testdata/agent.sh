#!/bin/sh
# What mpirun starts programs on another host with, instead of ssh: HOST COMMAND... The host is the network namespace
# AGENT_NET, with a name and a driver (AGENT_SOCKET) of its own.
shift
exec nsenter --net="$AGENT_NET" unshare --uts sh -c 'hostname other; SOFTVPI_SOCKET=$AGENT_SOCKET exec sh -c "$*"' sh "$@"
