#!/usr/bin/env bash
# Installs the simulator that ours is measured beside.
exec "$(dirname "$0")/../packages.sh" test/simulate g++ pkg-config libns3-dev
