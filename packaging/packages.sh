#!/usr/bin/env bash
# Installs the programs that check the packages.
exec "$(dirname "$0")/../test/packages.sh" check-package lintian rpm
