#!/usr/bin/env bash
# Packs an initramfs for the user-mode guest: the measuring program, which is its
# first process, and this machine's programs that set up the network.
#
#   image.sh DIR      leaves DIR/initrd
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
mkdir -p "$1"
dir=$(cd "$1" && pwd)
PATH=$PATH:/usr/sbin:/sbin
root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT
mkdir -p "$root"/{proc,sys,dev,run,tmp,usr/bin,usr/sbin,usr/lib,usr/lib64,etc/libibverbs.d}
for d in bin sbin lib lib64; do ln -s "usr/$d" "$root/$d"; done

put() { # copies a file and the libraries that it is linked with, at the same paths
  local to f
  to=$root$(realpath "$(dirname "$1")")/$(basename "$1")
  [ -e "$to" ] && return
  install -D -m 755 "$(realpath "$1")" "$to"
  for f in $(ldd "$1" 2>/dev/null | grep -o '/[^ ]*' || true); do put "$f"; done
}
for p in sh ip tc rdma cat; do put "$(command -v $p)"; done
put "$(dirname "$(ldconfig -p | awk '/libibverbs\.so\.1 / {print $NF; exit}')")"/libibverbs/librxe-*.so
cp /etc/libibverbs.d/rxe.driver "$root/etc/libibverbs.d/"
gcc -O2 -Wall -Wextra -Werror -o "$root/usr/bin/rxebench" "$here/rxebench.c" -libverbs
for f in $(ldd "$root/usr/bin/rxebench" | grep -o '/[^ ]*'); do put "$f"; done
ln -s usr/bin/rxebench "$root/init"
cp "$here/veth.sh" "$here/count.sh" "$root/"
cp "$here/speed.sh" "$root/job"
(cd "$root" && find . -mindepth 1 | LC_ALL=C sort | cpio --quiet -o -H newc -R 0:0) >"$dir/initrd.new"
mv "$dir/initrd.new" "$dir/initrd"
