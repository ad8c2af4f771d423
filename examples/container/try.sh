#!/bin/sh
# Does without a container engine what the image does: root's directories of this Debian, a /usr/local with only the files
# that the Dockerfile copies there, namespaces of its own for mounts, processes and the network, and a user without any
# privilege that runs the entry point. From the top of the sources, as root: make build clib && examples/container/try.sh
# [COMMAND...]. The command is that of the Dockerfile where none is given. With SOFTVPI_ADDRESS it stays in the network that
# it was started in, as a pod is in that of its node: ip netns exec POD env SOFTVPI_ADDRESS=... examples/container/try.sh ...
set -eu
top=$(cd "$(dirname "$0")/../.." && pwd)
if [ "${1:-}" != --inside ]; then
	[ "$(id -u)" = 0 ] || { echo "try.sh: only root can make the namespaces" >&2; exit 2; }
	[ $# -gt 0 ] || set -- sh -c "ibv_rc_pingpong -g 0 -d softvpi0 & while kill -0 \$! && ! grep -qs :4853 /proc/net/tcp /proc/net/tcp6; do sleep 0.1; done; \
		ibv_rc_pingpong -g 0 -d softvpi1 localhost && wait \$!"
	root=$(mktemp -d)
	status=0
	net=--net
	[ -z "${SOFTVPI_ADDRESS:-}" ] || net=
	unshare --mount --pid --fork --kill-child $net --ipc --uts "$0" --inside "$root" "$@" || status=$?
	rmdir "$root"
	exit $status
fi

root=$2
shift 2
mount --make-rprivate /
mount -t tmpfs -o mode=755 none "$root"
for d in bin sbin lib lib32 lib64 libx32 etc usr; do
	if [ -L "/$d" ]; then
		cp -P "/$d" "$root/$d"
	elif [ -d "/$d" ]; then
		mkdir "$root/$d"
		mount --bind -o ro "/$d" "$root/$d"
	fi
done
mkdir -m 1777 "$root/tmp"
mkdir -p "$root/proc" "$root/dev" "$root/home/user"
mount -t proc none "$root/proc"
mount -t tmpfs -o mode=755 none "$root/dev"
for d in null zero random urandom; do
	touch "$root/dev/$d"
	mount --bind "/dev/$d" "$root/dev/$d"
done
chown 1000:1000 "$root/home/user"

# The COPY lines of the Dockerfile.
mount -t tmpfs -o mode=755 none "$root/usr/local"
mkdir -p "$root/usr/local/bin" "$root/usr/local/lib/softvpi"
cp "$top/bin/softvpi" "$root/usr/local/bin/"
cp "$top"/bin/clib/*.so* "$root/usr/local/lib/softvpi/"
cp "$top/examples/container/entrypoint.sh" "$root/usr/local/bin/"

[ -n "${SOFTVPI_ADDRESS:-}" ] || ip link set lo up
cd /
exec chroot "$root" setpriv --reuid=1000 --regid=1000 --clear-groups --no-new-privs --bounding-set=-all --inh-caps=-all \
	env -i HOME=/home/user PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin ${SOFTVPI_ADDRESS:+SOFTVPI_ADDRESS=$SOFTVPI_ADDRESS} \
	/usr/local/bin/entrypoint.sh "$@"
