#!/usr/bin/env bash
# Installs the programs that test/verbs runs.
exec "$(dirname "$0")/../packages.sh" test/verbs gcc libc6-dev make libibverbs-dev librdmacm-dev ibverbs-utils rdmacm-utils perftest qperf fio \
  ucx-utils libfabric-bin openmpi-bin libopenmpi-dev rdma-core python3-pyverbs dapl2-utils librdmacm1 ethtool tshark python3
