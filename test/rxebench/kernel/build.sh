#!/usr/bin/env bash
# Builds Debian's Linux 6.1 as a user-mode kernel (ARCH=um) with Soft-RoCE in it.
#
#   build.sh DIR      leaves DIR/linux; nothing to do where that is still right
#
# JOBS is the number of compilers at once (default 2). Some minutes and, while it
# builds, 1.3 GB; the source is removed afterwards. Ends with status 3 and one line
# where the kernel cannot be built.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
mkdir -p "$1"
dir=$(cd "$1" && pwd)
source=/usr/src/linux-source-6.1.tar.xz
[ -e "$source" ] || { echo "no $source"; exit 3; }

stamp=$(cat "$here/build.sh" "$here/config" "$here/crc32.c" | sha256sum | cut -c1-16)
[ "$(cat "$dir/kernel.stamp" 2>/dev/null)" = "$stamp" ] && [ -x "$dir/linux" ] && exit 0
rm -f "$dir/kernel.stamp"

tree=$dir/source
trap 'rm -rf "$tree"' EXIT
rm -rf "$tree"
mkdir "$tree"
echo "rxebench: building a user-mode kernel, once, some minutes (log: $dir/build.log)" >&2
# Kconfig reads every directory; the code of those that are never built stays packed.
tar -C "$tree" --strip-components=1 -xJf "$source" --exclude='*/drivers/gpu/*.[ch]' --exclude='*/drivers/media/*.[ch]' \
  --exclude='*/drivers/staging/*.[ch]' --exclude='*/sound/*.[ch]' --exclude='*/arch/arm*/*.dts*' --exclude='*/tools/testing/*'
cp "$here/crc32.c" "$tree/crypto/um-crc32.c"
cp "$tree/arch/x86/crypto/crc32-pclmul_asm.S" "$tree/crypto/um-crc32-asm.S"
echo 'obj-y += um-crc32.o um-crc32-asm.o' >>"$tree/crypto/Makefile"

# A host with AMX has more register state than this kernel's buffer of a fixed size
# holds, and takes it back whole or not at all. Where it does not fit, the kernel
# keeps the registers that every x86-64 has, and programs of the guest must use no
# others.
sed -i 's/NT_X86_XSTATE, &iov) == 0)/NT_X86_XSTATE, \&iov) == 0 \&\& iov.iov_len < FP_SIZE * sizeof(unsigned long))/' \
  "$tree/arch/x86/um/os-Linux/registers.c"
grep -q 'iov_len < FP_SIZE' "$tree/arch/x86/um/os-Linux/registers.c" || { echo "this source saves registers in another way"; exit 3; }

cd "$tree"
make() { nice -n 10 make -s ARCH=um "$@" >>"$dir/build.log" 2>&1 || { echo "make $* failed, see $dir/build.log"; exit 3; }; }
: >"$dir/build.log"
KCONFIG_ALLCONFIG=$here/config make allnoconfig
for option in $(sed -n 's/^\(CONFIG_[A-Z0-9_]*\)=y$/\1/p' "$here/config"); do
  grep -q "^$option=y" .config || { echo "this source takes no $option"; exit 3; }
done
make -j"${JOBS:-2}" linux
strip -g -o "$dir/linux" linux
printf '%s\n' "$stamp" >"$dir/kernel.stamp"
