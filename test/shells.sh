#!/usr/bin/env bash
# Installs the shells beside bash that are to complete command lines (cmd/softvpi).
exec "$(dirname "$0")/packages.sh" cmd/softvpi zsh fish
