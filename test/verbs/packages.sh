#!/usr/bin/env bash
# Makes sure that the programs which test/verbs runs are there.
exec "$(dirname "$0")/../packages.sh" test/verbs gcc libc6-dev make libibverbs-dev librdmacm-dev ibverbs-utils rdmacm-utils perftest qperf fio \
  ucx-utils libfabric-bin openmpi-bin libopenmpi-dev
