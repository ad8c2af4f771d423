#!/usr/bin/env bash
# Makes a bootable Soft-RoCE guest in a directory: Debian's kernel, and an
# initramfs with its modules and this machine's RDMA programs. A guest that is
# already there is kept as long as it is up to date.
#
#   image.sh DIR        leaves DIR/kernel, DIR/base.cpio and DIR/bulky.cpio, which several runs may share
#   image.sh DIR RUN    also leaves RUN/kernel, RUN/initrd, RUN/initrd.bulky, RUN/initrd.own, RUN/softvpi and RUN/clib for the tests of one run
#
# What belongs to this repository (the guest's init, the verbs peer, softvpi and its C
# libraries) is built every time. If the kernel cannot be downloaded, prints one line and exits with status 3.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
mkdir -p "$1"
dir=$(cd "$1" && pwd)
run=${2:-}
go=${GO:-go}
PATH=$PATH:/usr/sbin:/sbin

programs=(bash ip tc rdma cat env sleep sh stdbuf ping
  ibv_devinfo ibv_rc_pingpong ibv_uc_pingpong ibv_ud_pingpong ibv_srq_pingpong
  rping ucmatose udaddy mckey rstream riostream rdma_server rdma_client
  ib_{send,write,read,atomic}_{bw,lat} qperf fi_pingpong)
# Its libraries are three quarters of all, and unpacking them is a quarter of the time that the guest takes to start: a guest that does
# not run it does without.
bulky=fio
# In the order in which init loads them. Their dependencies are added, each before the module that needs it.
modules=(virtio_pci virtio_net virtio-rng crc32-pclmul rdma_ucm ib_uverbs rdma_rxe
  virtio_console vsock_loopback sch_netem ifb sch_ingress cls_matchall act_mirred act_gact 8021q bonding vxlan
  ip_gre)

pack() { # directory archive
  (cd "$1" && find . -mindepth 1 | LC_ALL=C sort | cpio --quiet -o -H newc -R 0:0) >"$2.new"
  mv "$2.new" "$2"
}

# libraries copies the libraries that a program or library is linked with to $root,
# at the same paths.
libraries() {
  local f
  for f in $(ldd "$1" 2>/dev/null | grep -o '/[^ ]*' || true); do copy "$f"; done
}

# copy copies one file to $root, at the same path.
copy() {
  local to
  to=$(realpath "$(dirname "$1")")/$(basename "$1")
  [ -e "$root$to" ] || [ -e "${below:-$root}$to" ] || install -D -m 755 "$(realpath "$1")" "$root$to"
}

kernel_package() {
  apt-cache depends linux-image-amd64 2>/dev/null | sed -n 's/^ *Depends: //p' | head -n 1
}

# plain extracts the ELF image from a bzImage. Started at its PVH entry, the guest
# does not have to decompress it, which is half of the boot under emulation.
plain() {
  local magic=$1 offset
  shift
  for offset in $(LC_ALL=C grep -abo -P "$magic" "$dir/work/vmlinuz" | cut -d: -f1); do
    tail -c "+$((offset + 1))" "$dir/work/vmlinuz" | "$@" >"$dir/kernel" 2>/dev/null || true
    [ "$(head -c 4 "$dir/kernel" | od -An -tx1 | tr -d ' ')" = 7f454c46 ] && return 0
  done
  return 1
}

build_base() {
  rm -rf "$dir/work"
  mkdir -p "$dir/work/deb" "$dir/debs"
  local deb
  deb=$(ls "$dir/debs/$package"_*.deb 2>/dev/null | tail -n 1 || true)
  if [ -z "$deb" ]; then
    (cd "$dir/debs" && rm -f ./*.deb && apt-get -qq -o APT::Sandbox::User=root download "$package" >&2) ||
      { echo "apt-get download $package failed"; exit 3; }
    deb=$(ls "$dir/debs/$package"_*.deb)
  fi
  dpkg-deb -x "$deb" "$dir/work/deb"
  local release tree=$dir/work/modules
  release=$(basename "$dir"/work/deb/lib/modules/*)
  cp "$dir/work/deb/boot/vmlinuz-$release" "$dir/work/vmlinuz"
  plain '\xfd7zXZ\x00' xz -dc || plain '\x28\xb5\x2f\xfd' zstd -dc || cp "$dir/work/vmlinuz" "$dir/kernel"

  mkdir -p "$tree/lib/modules"
  mv "$dir/work/deb/lib/modules/$release" "$tree/lib/modules/"
  depmod -b "$tree" "$release"

  root=$dir/work/root
  mkdir -p "$root"/{usr/bin,usr/sbin,usr/lib,usr/lib64,etc/libibverbs.d,modules,proc,sys,dev,run,tmp,root}
  local d
  for d in bin sbin lib lib64; do ln -s "usr/$d" "$root/$d"; done

  local m ko
  for m in "${modules[@]}"; do
    modprobe -d "$tree" -S "$release" --show-depends "$m" | sed -n 's/^insmod \([^ ]*\).*/\1/p'
  done | awk '!seen[$0]++' >"$dir/work/order"
  while read -r ko; do
    cp "$ko" "$root/modules/"
    basename "$ko"
  done <"$dir/work/order" >"$root/modules/order"

  local p lib provider
  for p in "${programs[@]}"; do
    install -m 755 "$(realpath "$(command -v "$p")")" "$root/usr/bin/$p"
    libraries "$root/usr/bin/$p"
  done
  lib=$(dirname "$(ldconfig -p | awk '/librdmacm\.so\.1 / {print $NF; exit}')")
  lib=$(realpath "$lib")
  # Libraries that are loaded by name at run time, so ldd does not list them: for
  # pthread_exit, for stdbuf, and the user-space driver of rxe.
  copy "$lib/libgcc_s.so.1"
  copy /usr/libexec/coreutils/libstdbuf.so
  for provider in "$lib"/libibverbs/librxe-*.so; do
    copy "$provider"
    libraries "$provider"
  done
  cp /etc/libibverbs.d/rxe.driver "$root/etc/libibverbs.d/"
  # tc has a fixed path from which it reads the tables of delay distributions.
  for d in /usr/lib/tc "$lib/tc"; do [ -d "$d" ] && mkdir -p "$root$d" && cp -L "$d"/*.dist "$root$d/"; done
  printf '127.0.0.1 localhost\n::1 localhost\n' >"$root/etc/hosts"
  printf 'root:x:0:0:root:/root:/bin/sh\n' >"$root/etc/passwd"
  printf 'hosts: files\npasswd: files\n' >"$root/etc/nsswitch.conf"
  pack "$root" "$dir/base.cpio"

  below=$root root=$dir/work/bulky
  install -D -m 755 "$(realpath "$(command -v "$bulky")")" "$root/usr/bin/$bulky"
  libraries "$root/usr/bin/$bulky"
  pack "$root" "$dir/bulky.cpio"
  rm -rf "$dir/work"
}

exec 9>"$dir/lock"
flock 9
package=$(kernel_package)
[ -n "$package" ] || { apt-get -qq update >&2 && package=$(kernel_package); }
[ -n "$package" ] || { echo "no Debian kernel package to be found"; exit 3; }
stamp="$package $(sha256sum "$here/image.sh" | cut -c1-16) $(dpkg-query -W -f '${Package}=${Version} ' \
  rdma-core ibverbs-providers ibverbs-utils rdmacm-utils perftest qperf fio libfabric-bin libfabric1 coreutils iproute2 iputils-ping libc6)"
if [ "$(cat "$dir/stamp" 2>/dev/null)" != "$stamp" ]; then
  rm -f "$dir/stamp" "$dir"/accel
  build_base
  printf '%s\n' "$stamp" >"$dir/stamp"
fi

exec 9>&-
[ -n "$run" ] || exit 0

over=$(mktemp -d)
trap 'rm -rf "$over"' EXIT
mkdir -p "$over/usr/bin"
(cd "$here" && CGO_ENABLED=0 "$go" build -trimpath -ldflags '-s -w' -o "$over/init" ./guest)
(cd "$here/../.." && CGO_ENABLED=0 "$go" build -trimpath -buildvcs=false -o "$run/softvpi" ./cmd/softvpi)
for part in clib clib/preload; do make -s -C "$here/../../$part" OUT="$run/clib" >&2; done
gcc -O2 -Wall -Wextra -Werror -o "$over/usr/bin/peer" "$here/peer/peer.c" -lrdmacm -libverbs
pack "$over" "$run/overlay.cpio"
cat "$dir/base.cpio" "$run/overlay.cpio" >"$run/initrd"
cat "$dir/base.cpio" "$dir/bulky.cpio" "$run/overlay.cpio" >"$run/initrd.bulky"
# For guests whose programs have the host's driver.
mkdir -p "$over/own/usr/bin" "$over/own/usr/lib/softvpi"
cp "$run/softvpi" "$over/own/usr/bin/"
cp -a "$run/clib"/*.so* "$over/own/usr/lib/softvpi/"
pack "$over/own" "$run/own.cpio"
cat "$run/initrd" "$run/own.cpio" >"$run/initrd.own"
# accel is written by the tests: how this machine can run the guest. At first the link points nowhere.
for f in kernel accel; do ln -s "$dir/$f" "$run/$f"; done
