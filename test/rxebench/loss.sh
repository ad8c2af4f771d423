#!/usr/bin/env bash
# Measures SoftVPI and Soft-RoCE in turn in one virtual machine, while packets are
# lost. The guest is that of test/interop with another first program, kept in
# $SOFTVPI_INTEROP_IMAGE, else in the cache directory. If it cannot be measured here,
# prints one line that says why and exits with status 0.
#
#   loss.sh PROGRAM [options of softvpi bench]
set -uo pipefail
here=$(cd "$(dirname "$0")" && pwd)
cannot() {
  echo "bench-loss: not run: $*"
  exit 0
}
program=${1:?usage: loss.sh PROGRAM [options]}
shift

[ "$(uname -sm)" = "Linux x86_64" ] || cannot "needs Linux on x86_64"
why=$("$here/../interop/packages.sh") || cannot "$why"
command -v ethtool >/dev/null || apt-get -qq -o DPkg::Lock::Timeout=300 install -y --no-install-recommends ethtool >/dev/null 2>&1 || cannot "no ethtool"

image=${SOFTVPI_INTEROP_IMAGE:-${XDG_CACHE_HOME:-$HOME/.cache}/softvpi-interop}
why=$("$here/../interop/image.sh" "$image")
case $? in
0) ;;
3) cannot "$why" ;;
*) exit 1 ;;
esac

dir=${SOFTVPI_RXEBENCH:-${XDG_CACHE_HOME:-$HOME/.cache}/softvpi-rxebench}/loss
mkdir -p "$dir"
root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT
set -e
mkdir -p "$root/usr/bin" "$root/modules"
for p in ethtool; do
  install -m 755 "$(realpath "$(command -v $p)")" "$root/usr/bin/$p"
  for f in $(ldd "$root/usr/bin/$p" | grep -o '/[^ ]*'); do
    install -D -m 755 "$(realpath "$f")" "$root$(realpath "$(dirname "$f")")/$(basename "$f")"
  done
done
install -m 755 "$(realpath "$(command -v tr)")" "$root/usr/bin/tr"
dpkg-deb --fsys-tarfile "$image"/debs/*.deb | tar -xO --wildcards '*/drivers/net/veth.ko*' >"$root/modules/veth.ko"
# The modules of the image in their order, followed by veth.
{ cpio -i --quiet --to-stdout modules/order <"$image/base.cpio"; echo veth.ko; } >"$root/modules/order"
gcc -O2 -Wall -Wextra -Werror -o "$root/usr/bin/rxebench" "$here/guest/rxebench.c" -libverbs
install -m 755 "$program" "$root/usr/bin/softvpi"
ln -s usr/bin/rxebench "$root/init"
cp "$here/guest/veth.sh" "$here/guest/count.sh" "$root/"
cp "$here/guest/loss.sh" "$root/job"
(cd "$root" && find . -mindepth 1 | LC_ALL=C sort | cpio --quiet -o -H newc -R 0:0) >"$dir/overlay.cpio"
cat "$image/base.cpio" "$dir/overlay.cpio" >"$dir/initrd"
ln -sf "$image/kernel" "$dir/kernel"
[ ! -e "$image/accel" ] || cp "$image/accel" "$dir/accel"
rm -rf "$root"
exec "$program" bench --part loss --guest "$dir" "$@"
