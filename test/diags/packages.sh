#!/usr/bin/env bash
# Installs the programs with which test/diags and test/fabric compare ours.
exec "$(dirname "$0")/../packages.sh" test/diags ibsim-utils opensm infiniband-diags ibutils
