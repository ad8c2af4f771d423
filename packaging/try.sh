#!/bin/sh
# try.sh DIRECTORY: what becomes of a system, and of who uses SoftVPI on it, when the package in the directory is installed, upgraded,
# downgraded, removed and purged. It runs in a copy of this system, or of the one in $CHECK_ROOT, that nothing else sees, with a network of
# its own.
set -eu
skip() { echo "check-package: skipped, it wants $1"; exit 0; }
if [ -z "${2:-}" ]; then
	[ "$(id -u)" = 0 ] || skip "root"
	command -v dpkg >/dev/null && command -v setpriv >/dev/null && command -v ip >/dev/null || skip "Debian's dpkg, setpriv and ip"
	unshare --mount --net true 2>/dev/null || skip "namespaces"
	exec unshare --mount --net --pid --fork --kill-child "$0" "$1" inside
fi

work=$(mktemp -d)
now=$(echo "$1"/*.deb)
trap 'umount -l "$work"; rmdir "$work"' EXIT
mount -t tmpfs try "$work"
mkdir "$work/upper" "$work/work" "$work/root" "$work/later" "$work/again"
mount -t overlay try -o lowerdir="${CHECK_ROOT:-/}",upperdir="$work/upper",workdir="$work/work" "$work/root" 2>/dev/null || skip "overlay file systems"
mount -t proc proc "$work/root/proc"
mount --rbind /dev "$work/root/dev"
ip link set lo up

# pack DIRECTORY VERSION EPOCH: the same contents as another version.
pack() {
	go run -C packaging . -only deb,rpm -stage "$PWD/$1/stage" -out "$2" -version "$3" -arch "$(dpkg --print-architecture)" -epoch "$4" \
		-modules "$(go env GOMODCACHE)" -goroot "$(go env GOROOT)" \
		-tools "$("$1/stage/softvpi" tools list | tr '\n' ' ')" >/dev/null
}
version=$(dpkg-deb -f "$now" Version)
pack "$1" "$work/again" "$version" "${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct 2>/dev/null || echo 0)}"
for p in "$work"/again/*; do cmp "$p" "$1/$(basename "$p")"; done
pack "$1" "$work/later" 9~later 2000000000
mkdir "$work/root/packages"
cp "$now" "$work/root/packages/now.deb"
cp "$work"/later/*.deb "$work/root/packages/later.deb"

inside() { chroot "$work/root" /usr/bin/env -i PATH=/usr/bin:/bin:/usr/sbin:/sbin HOME=/root "$@"; }
# The user has no privileges, and a home and a runtime directory as a session has them, whatever the system's own are called.
own=$(cd "$work/root" && mktemp -d tmp/user.XXXXXX)
mkdir -m 700 "$work/root/$own/home" "$work/root/$own/run"
chown -R 12345:12345 "$work/root/$own"
user() {
	chroot "$work/root" setpriv --reuid 12345 --regid 12345 --clear-groups --no-new-privs /usr/bin/env -i PATH=/usr/bin:/bin \
		HOME="/$own/home" XDG_RUNTIME_DIR="/$own/run" "$@"
}
key='HKLM\SYSTEM\CurrentControlSet\Control\Class\{4d36e972-e325-11ce-bfc1-08002be10318}\0001'
say() { echo "check-package: $*"; }

# killed PACKAGE: ends dpkg by SIGKILL while it installs the package, at moments that come later and later, until it is faster than that.
killed() {
	for t in 0.05 0.2 0.5 1; do
		# Each of these programs becomes the next one, so that the process is dpkg in the end.
		(exec chroot "$work/root" /usr/bin/env -i PATH=/usr/bin:/bin:/usr/sbin:/sbin HOME=/root dpkg -i "$1") >/dev/null 2>&1 &
		sleep "$t"
		kill -9 $! 2>/dev/null || true
		if wait $! 2>/dev/null; then break; fi
		# What dpkg has started to unpack the package ends by itself, as nobody reads from it any more.
		for i in $(seq 200); do grep -qsx 'dpkg\|dpkg-deb\|tar' "$work"/root/proc/[0-9]*/comm || break; sleep 0.05; done
	done
}
# whole VERSION: it is installed, and no file is another than the package has.
whole() {
	[ "$(inside dpkg-query -W -f '${db:Status-Status} ${Version}' softvpi)" = "installed $1" ]
	wrong=$(inside dpkg -V softvpi | grep -v ' /usr/share/\(doc\|man\)/' || true) # a system may be set up to leave documents out
	[ -z "$wrong" ] || { say "not as in the package: $wrong"; exit 1; }
}

killed /packages/now.deb
inside dpkg -i /packages/now.deb >/dev/null
whole "$version"
user softvpi up --background >/dev/null
user nd_rping -s -a 127.0.0.2 >/dev/null &
user sh -c 'for i in $(seq 100); do nd_rping -c -V -a 127.0.0.2 -C 10 >/dev/null 2>&1 && exit; sleep 0.1; done; exit 1'
wait $!
user softvpi reg add "$key" /v '*JumboPacket' /t REG_SZ /d 4000 /f >/dev/null
user sh -c 'man -l /usr/share/man/man1/nd_rping.1.gz >/dev/null 2>&1 || zcat /usr/share/man/man1/nd_rping.1.gz >/dev/null'
if [ -e "$work/root/usr/lib/softvpi/libibverbs.so.1" ] && inside sh -c 'command -v ibv_devices' >/dev/null; then
	user softvpi verbs run ibv_devices | grep -q softvpi0
fi
say "installed $version, dpkg killed on the way: a driver, RDMA and verbs programs work without privileges"

user nd_rping -s -a 127.0.0.2 -P >"$work/server" 2>&1 & # attached while the package changes
server=$!
killed /packages/later.deb
inside dpkg -i /packages/later.deb >/dev/null
whole 9~later
user sh -c 'for i in $(seq 100); do nd_rping -c -V -a 127.0.0.2 -C 10 >/dev/null 2>&1 && exit; sleep 0.1; done; exit 1'
user softvpi down >/dev/null
wait $server || true
user softvpi up --background >/dev/null
user softvpi reg query "$key" /v '*JumboPacket' | grep -q 4000
say "upgraded, dpkg killed on the way: what was attached went on, and the registry is as it was"

user softvpi down >/dev/null
inside dpkg -i /packages/now.deb >/dev/null 2>&1
user softvpi up --background >/dev/null
user softvpi reg query "$key" /v '*JumboPacket' | grep -q 4000
user softvpi down >/dev/null
say "downgraded: the registry is as it was"

inside dpkg --purge softvpi >/dev/null
left=$(find "$work/upper/usr" "$work/upper/etc" -path '*softvpi*' ! -type c 2>/dev/null || true)
[ -z "$left" ] || { say "left behind: $left"; exit 1; }
if inside sh -c 'command -v softvpi nd_rping vstat'; then exit 1; fi
say "purged: nothing is left"

packaging/trysystemd.sh "$1" "$work/later"
