#!/usr/bin/env bash
# Installs Chromium, if there is none, for the test of the device manager. If that fails,
# prints one line that says that the test is skipped.
set -uo pipefail
for name in chromium chromium-browser google-chrome chrome headless_shell; do
  command -v "$name" >/dev/null && exit 0
done
skipped() {
  echo "test/web: the device manager is not clicked through: no Chromium in the PATH, and $*"
  exit 0
}
[ "$(uname -s)" = Linux ] || skipped "none is installed on $(uname -s)"
[ "$(id -u)" = 0 ] || skipped "only root can install one"
command -v apt-get >/dev/null || skipped "there is no apt-get to install it"
export DEBIAN_FRONTEND=noninteractive
echo "test/web: installing chromium"
install() { apt-get -qq -o DPkg::Lock::Timeout=300 install -y --no-install-recommends chromium fonts-dejavu-core >/dev/null 2>&1; }
install || { apt-get -qq update >/dev/null 2>&1 && install; } || skipped "apt-get install chromium failed"
