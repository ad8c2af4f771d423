#!/usr/bin/env bash
# Installs the programs with which the hosts of Ethernet functions are tried.
exec "$(dirname "$0")/../packages.sh" test/ethernet iproute2 iputils-ping iperf3 ethtool tshark lldpad lldpd gcc
