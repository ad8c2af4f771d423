#!/usr/bin/env bash
# Makes sure that the programs which test/diags and test/fabric compare with are there.
exec "$(dirname "$0")/../packages.sh" test/diags ibsim-utils opensm infiniband-diags ibutils
