#!/usr/bin/env bash
# Installs Prometheus, which loads the rules and the dashboard of examples/monitoring.
exec "$(dirname "$0")/../packages.sh" test/monitoring prometheus
