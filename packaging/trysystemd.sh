#!/bin/sh
# trysystemd.sh NOW LATER: what a real systemd does with the units of the package for Debian when that of one of two directories is installed,
# upgraded to the other and purged, then with those of the package for RPM there. It is process 1 of a copy of this system with a network,
# processes and control groups of its own.
set -eu
skip() { echo "check-package: systemd, the manager of a user and the package for RPM: skipped, which wants $1"; exit 0; }
init=/lib/systemd/systemd
case "${3:-}" in
'')
	[ "$(id -u)" = 0 ] || skip "root"
	for p in $init /usr/bin/journalctl /usr/sbin/pivot_root /usr/bin/deb-systemd-invoke; do [ -x $p ] || skip "Debian's systemd ($p)"; done
	command -v nsenter >/dev/null && command -v setpriv >/dev/null && command -v ip >/dev/null || skip "nsenter, setpriv and ip"
	unshare --mount --net --pid --fork --uts --ipc --cgroup --mount-proc true 2>/dev/null || skip "namespaces"
	exec unshare --mount --net --uts --ipc --pid --fork --kill-child --mount-proc "$0" "$1" "$2" inside
	;;
boot) # DIRECTORY CGROUP: in namespaces of processes and mounts of its own
	root=$1/root group=$2
	echo 0 >"$group/cgroup.procs"
	exec unshare --cgroup "$0" "$root" "$group" booted
	;;
booted)
	root=$1
	mount -t proc proc "$root/proc"
	mount -t sysfs -o ro sysfs "$root/sys"
	mount -t cgroup2 cgroup2 "$root/sys/fs/cgroup"
	mount -t tmpfs -o mode=755 dev "$root/dev"
	for d in null zero full random urandom tty; do mknod -m 666 "$root/dev/$d" c "$(stat -c 0x%t /dev/$d)" "$(stat -c 0x%T /dev/$d)"; done
	mkdir "$root/dev/pts" "$root/dev/shm"
	mount -t devpts -o newinstance,ptmxmode=0666,mode=620 devpts "$root/dev/pts"
	ln -s pts/ptmx "$root/dev/ptmx"
	mount -t tmpfs shm "$root/dev/shm"
	mount -t tmpfs -o mode=755 run "$root/run"
	mount -t tmpfs -o mode=1777 tmp "$root/tmp"
	cd "$root"
	pivot_root . .
	umount -l .
	# What runs in a container is told so by this variable; only what is needed for services is started.
	exec env -i container=check-package PATH=/usr/sbin:/usr/bin:/sbin:/bin $init --unit=basic.target --log-target=journal >/dev/null 2>&1
	;;
esac

say() { echo "check-package: systemd: $*"; }
fail() {
	say "$*"
	inside systemctl --no-pager --full status softvpi.socket softvpi.service 2>&1 | head -60 || true
	inside journalctl --no-pager -n 60 2>&1 || true
	exit 1
}
work=$(mktemp -d)
group=
init_pid=
end() {
	status=$?
	[ -z "$init_pid" ] || { kill -9 "$init_pid" && wait "$boot"; } 2>/dev/null || true
	for i in $(seq 100); do # a group can go when the last of its processes has
		[ -n "$group" ] && [ -d "$group" ] || break
		find "$group" -depth -type d -exec rmdir {} + 2>/dev/null || sleep 0.05
	done
	umount -l "$work" && rmdir "$work"
	exit $status
}
trap end EXIT
mount -t tmpfs try "$work"
mkdir "$work/upper" "$work/work" "$work/root" "$work/cgroup"
mount -t overlay try -o lowerdir=/,upperdir="$work/upper",workdir="$work/work" "$work/root" 2>/dev/null || skip "overlay file systems"
mount -t cgroup2 try "$work/cgroup" 2>/dev/null || skip "control groups of version 2"
group=$work/cgroup/check-package.$(stat -c %i "$work/upper").$(date +%s)
mkdir "$group" 2>/dev/null || { group=; skip "a control group of its own"; }
ip link set lo up
root=$work/root
# This system's own services are not wanted there, nor what keeps packages from dealing with services while images are made.
rm -rf "$root"/etc/systemd/system/*.wants "$root/usr/sbin/policy-rc.d" "$root/var/log/journal"
mkdir -p "$root/packages"
cp "$1"/*.deb "$root/packages/now.deb"
cp "$2"/*.deb "$root/packages/later.deb"

unshare --mount --pid --fork --kill-child "$0" "$work" "$group" boot 2>"$work/boot.log" &
boot=$!
waits() { # SECONDS WHAT COMMAND...: until the command succeeds
	n=$(($1 * 10)) what=$2
	shift 2
	for i in $(seq $n); do "$@" >/dev/null 2>&1 && return; sleep 0.1; done
	fail "$what: it does not come to be"
}
started() {
	init_pid=$(cat /proc/$boot/task/$boot/children)
	init_pid=${init_pid% }
	[ -n "$init_pid" ] && grep -qsx systemd "/proc/$init_pid/comm"
}
for i in $(seq 300); do started && break; kill -0 $boot || { say "systemd does not start: $(cat "$work/boot.log")"; exit 1; }; sleep 0.1; done
enter() { nsenter -t "$init_pid" --mount --net --pid --uts --ipc --cgroup --root --wd "$@"; }
inside() { enter /usr/bin/env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C.UTF-8 "$@"; }
for i in $(seq 300); do
	state=$(inside systemctl is-system-running 2>/dev/null || true)
	case $state in running | degraded) break ;; esac
	sleep 0.1
done
case $state in running | degraded) ;; *) fail "the system is '$state' after 30 s" ;; esac

property() { inside systemctl show --value -p "$1" "${2:-softvpi.service}"; }
active() { [ "$(inside systemctl is-active "$1" || true)" = "$2" ] || fail "$1 is $(inside systemctl is-active "$1" || true), not $2"; }
# up: the service is active. Programs may be answered a moment before the driver has told systemd that it is.
up() { waits 20 "softvpi.service that is active" inside systemctl --quiet is-active softvpi.service; }
# Who may attach: a user of the group, without privileges.
member() {
	enter setpriv --reuid 12345 --regid 12345 --groups "$gid" --no-new-privs --bounding-set=-all /usr/bin/env -i PATH=/usr/bin:/bin \
		HOME=/tmp/member SOFTVPI_SOCKET=/run/softvpi/driver.sock "$@"
}
traces() { inside find /usr/bin /usr/lib /usr/share /usr/local /etc /var/lib /run -iname '*softvpi*' ! -path '/run/systemd/*' ! -path '/run/log/*' 2>/dev/null | sort; }
traces >"$work/before"

inside dpkg -i /packages/now.deb >/dev/null 2>&1 || fail "not installed"
active softvpi.socket inactive
active softvpi.service inactive
[ "$(inside systemctl is-enabled softvpi.socket softvpi.service | sort -u)" = disabled ] || fail "the package enables something"
gid=$(inside getent group softvpi | cut -d: -f3)
[ -n "$gid" ] && inside id -u softvpi >/dev/null || fail "no user of the system's driver"
inside install -d -o 12345 /tmp/member
. packaging/tryuser.sh
! have_user_manager || try_user
inside systemctl enable --now softvpi.socket 2>/dev/null
active softvpi.socket active
active softvpi.service inactive
say "installed: the system's user is made, nothing is enabled; its sockets are, by systemctl enable --now softvpi.socket"

# The first program that attaches starts the driver, and gets its answer.
[ "$(member softvpi status --json | tr -d ' \n' | grep -c '"adapters":')" = 1 ] || fail "a program that attaches gets no answer"
up
[ "$(property Type) $(property NotifyAccess) $(property NRestarts)" = "notify main 0" ] || fail "it is not what the unit says"
case $(property StatusText) in *" adapters ready, "*) ;; *) fail "its status is '$(property StatusText)'" ;; esac
pid=$(property MainPID)
confined=$(inside sh -c "grep -E '^(CapEff|CapBnd|NoNewPrivs|Seccomp):' /proc/$pid/status" | tr -d '\t\n')
[ "$confined" = "CapEff:0000000000000000CapBnd:0000000000000000NoNewPrivs:1Seccomp:2" ] || fail "the driver runs with $confined"
[ "$(inside ps -o user= -p "$pid" | tr -d ' ')" = softvpi ] || fail "the driver is not the user's"
say "the first program that attached has started it, without a capability: $(property StatusText)"

member nd_rping -s -a 127.0.0.2 >/dev/null &
member sh -c 'for i in $(seq 100); do nd_rping -c -V -a 127.0.0.2 -C 10 >/dev/null 2>&1 && exit; sleep 0.1; done; exit 1' || fail "no RDMA"
wait $! || fail "no RDMA"
manage() { inside SOFTVPI_SOCKET=/run/softvpi/driver.sock "$@"; }
key='HKLM\SYSTEM\CurrentControlSet\Control\Class\{4d36e972-e325-11ce-bfc1-08002be10318}\0001'
manage softvpi reg add "$key" /v '*JumboPacket' /t REG_SZ /d 4000 /f >/dev/null 2>&1
kept() { manage softvpi reg query "$key" /v '*JumboPacket' | grep -q 4000 || fail "$1: the registry is not as it was"; }

# again: another process than the one before is up.
again() { [ "$(property ActiveState)" = active ] && [ "$(property MainPID)" != "$pid" ]; }

# A driver that stands still is ended by the watchdog, and started again. It says that it lives twice in that time.
inside mkdir -p /run/systemd/system/softvpi.service.d
inside sh -c 'printf "[Service]\nWatchdogSec=5\nRestartSec=0\n" >/run/systemd/system/softvpi.service.d/watchdog.conf'
inside systemctl daemon-reload
inside systemctl restart softvpi.service
kept "restarted"
pid=$(property MainPID)
inside kill -STOP "$pid"
waits 20 "a driver in place of one that stands still" again
[ "$(property NRestarts)" = 1 ] || fail "it was started again $(property NRestarts) times"
inside journalctl -q -u softvpi.service --grep 'Watchdog timeout' >/dev/null || fail "the journal does not say why"
member softvpi status >/dev/null || fail "the driver after it does not answer"
kept "after the watchdog"
say "one that stands still (SIGSTOP) is ended by the watchdog and started again"
record=$(inside journalctl -q -u softvpi.service -o json SOFTVPI_CAUSE="SIGABRT: abort")
case $record in *'"SOFTVPI_FOLDER":"/var/lib/softvpi/'*) ;; *) fail "no record of the driver that died, with its fields: $record" ;; esac
say "the journal has its records with fields: $(inside journalctl -q -u softvpi.service -o cat --output-fields=SOFTVPI_CAUSE,SOFTVPI_FOLDER \
	SOFTVPI_CAUSE="SIGABRT: abort" | tr '\n' ' ')"

inside systemctl stop softvpi.service 2>/dev/null
nobody() { ! inside pgrep -u softvpi >/dev/null; }
nobody || fail "stopped, and it leaves processes"
active softvpi.socket active
member softvpi verbs run ibv_devices >/dev/null 2>&1 || member softvpi status >/dev/null || fail "its sockets do not start it again"
up
kept "started by its sockets"
say "stopped, it leaves no process; its sockets start it again"

# The socket of a virtual function: systemd opens it, for a group that the driver is not in, and the first program of its tenant starts the
# driver. While there is no such function programs are told so.
inside groupadd -g 23456 tenants
inside install -d /etc/softvpi "/etc/systemd/system/softvpi-function@red.socket.d"
inside sh -c 'echo "{\"adapters\": [{\"name\": \"pf\", \"link\": \"switch\", \"switch\": \"s\", \"address\": \"192.0.2.1\", \"prefix\": 24}]}" >/etc/softvpi/driver.json
	printf "[Socket]\nSocketGroup=tenants\n" >/etc/systemd/system/softvpi-function@red.socket.d/group.conf'
inside systemctl daemon-reload
inside systemctl stop softvpi.service 2>/dev/null
inside systemctl enable --now softvpi-function@red.socket softvpi-function@blue.socket 2>/dev/null || fail "sockets of functions are not opened"
tenant() {
	enter setpriv --reuid 23456 --regid 23456 --clear-groups --no-new-privs --bounding-set=-all /usr/bin/env -i PATH=/usr/bin:/bin HOME=/tmp \
		SOFTVPI_SOCKET=/run/softvpi/driver.sock SOFTVPI_FUNCTION="$1" softvpi nd_rping -c -V -a 192.0.2.11 -C 3 2>&1
}
case $(tenant red || true) in *'no virtual function "red"'*) ;; *) fail "a tenant without a function is not told: $(tenant red || true)" ;; esac
up
manage softvpi vf create pf red address=192.0.2.11/24 >/dev/null
manage softvpi vf create pf own address=192.0.2.12/24 >/dev/null || fail "the driver cannot open a socket of its own beside systemd's"
inside systemctl stop softvpi.service 2>/dev/null
manage sh -c 'SOFTVPI_FUNCTION=red exec softvpi nd_rping -s -a 192.0.2.11 -C 3' >/dev/null &
server=$!
n=0
until out=$(tenant red); do n=$((n + 1)); [ $n -lt 100 ] || fail "no RDMA for a tenant: $out"; sleep 0.1; done
wait $server || fail "no RDMA for a tenant"
if out=$(tenant blue); then fail "another tenant's socket is open to it"; fi
[ "$(inside stat -c '%a %U %G' /run/softvpi/driver.sock.functions/red.sock)" = "660 softvpi tenants" ] || fail "the socket is not as its unit says"
inside rm -r "/etc/systemd/system/softvpi-function@red.socket.d"
inside systemctl stop 'softvpi-function@*.socket' softvpi.service 2>/dev/null
inside rm /etc/softvpi/driver.json
inside systemctl daemon-reload
inside systemctl start softvpi.service
say "sockets of virtual functions, each with the group that its unit names: a tenant's program has started the driver"

# What dpkg and the scripts of the package call is there once more, and may end dpkg by SIGKILL before it does anything; so does what
# softvpi setup calls.
inside mkdir /deadly
for p in systemctl systemd-sysusers deb-systemd-invoke rm rmdir; do
	cat >"$root/deadly/$p" <<'DEADLY'
#!/bin/sh
n=$(($(cat /deadly/count) + 1))
echo $n >/deadly/count
if [ $n = "$(cat /deadly/at)" ]; then
	p=$$ all=
	while [ "$p" -gt 1 ] && [ "$(cat /proc/$p/comm)" != dpkg ] && [ "$(cat /proc/$p/comm)" != softvpi ]; do
		all="$p $all"
		p=$(awk '/^PPid:/ { print $2 }' /proc/$p/status)
	done
	kill -9 $p $all
fi
exec "/usr/bin/${0##*/}" "$@"
DEADLY
done
inside chmod -R 755 /deadly
# killed WHAT COMMAND...: runs dpkg or setup again and again, and kills it before the first, the second and so on of what it and its scripts
# call.
killed() {
	what=$1 at=1
	shift
	while :; do
		inside sh -c "echo 0 >/deadly/count; echo $at >/deadly/at"
		if inside PATH=/deadly:/usr/sbin:/usr/bin:/sbin:/bin "$@" >/dev/null 2>&1; then break; fi
		[ "$(inside cat /deadly/count)" = $at ] || fail "$what: it fails: $(inside "$@" 2>&1 | tail -5)"
		at=$((at + 1))
		[ $at -lt 40 ] || fail "$what: it does not end"
	done
	[ $at -gt 1 ] || fail "$what: nothing was killed"
	steps=$((at - 1))
}
whole() {
	[ "$(inside dpkg-query -W -f '${db:Status-Status} ${Version}' softvpi)" = "installed $1" ] || fail "$1 is not installed"
	wrong=$(inside dpkg -V softvpi | grep -v ' /usr/share/\(doc\|man\)/' || true)
	[ -z "$wrong" ] || fail "not as in the package: $wrong"
}
rping() { member sh -c 'for i in $(seq 100); do nd_rping -c -V -a 127.0.0.2 -C 10 >/dev/null 2>&1 && exit; sleep 0.1; done; exit 1' || fail "$1: no RDMA"; }
pid=$(property MainPID)
member nd_rping -s -a 127.0.0.2 -P >"$work/server" 2>&1 & # attached while the package changes
server=$!
rping "before the upgrade"
killed "the upgrade" dpkg -i /packages/later.deb
whole 9~later
[ "$(property MainPID)" = "$pid" ] || fail "an upgrade restarts the driver"
case $(inside readlink "/proc/$pid/exe") in *deleted*) ;; *) fail "the old program is not replaced" ;; esac
rping "upgraded"
inside systemctl try-restart softvpi.service
[ "$(property MainPID)" != "$pid" ] || fail "try-restart does not restart it"
[ "$(inside readlink "/proc/$(property MainPID)/exe")" = /usr/bin/softvpi ] || fail "the driver is not the new one"
wait $server || true
member softvpi status >/dev/null || fail "the new driver does not answer"
kept "upgraded"
say "upgraded while it ran, dpkg killed at $steps steps of its own and of the scripts: it went on with what was attached; systemctl try-restart made it the new one"

inside cp /usr/bin/softvpi /packages/softvpi
killed "the purge" dpkg --purge softvpi
nobody || fail "purged, and it leaves processes"
[ "$(inside systemctl show --value -p LoadState softvpi.service softvpi.socket | sort -u | tr -d '\n')" = not-found ] || fail "systemd still knows it"
traces >"$work/after"
left=$(diff "$work/before" "$work/after" || true)
[ -z "$left" ] || fail "left behind: $left"
[ -z "$(inside systemctl --failed --no-legend | grep -i softvpi || true)" ] || fail "a unit has failed"
say "purged while it ran, dpkg killed at $steps steps: it has stopped, and nothing is left"

# Without a package: the same by setup, in /usr/local.
killed "setup" /packages/softvpi setup
inside systemctl enable --now softvpi.socket 2>/dev/null
member /usr/local/bin/softvpi status >/dev/null || fail "the driver that setup installed does not answer"
pid=$(property MainPID)
[ "$(inside readlink "/proc/$pid/exe")" = /usr/local/bin/softvpi ] || fail "setup's driver is $(inside readlink "/proc/$pid/exe")"
killed "setup again" /packages/softvpi setup
[ "$(property MainPID)" = "$pid" ] || fail "setup restarts the driver"
if out=$(inside /packages/softvpi setup remove --purge 2>&1); then fail "the registry of a driver that runs is purged"; fi
case $out in *"the driver of the system runs"*) ;; *) fail "purged while it runs: $out" ;; esac
killed "setup remove" /packages/softvpi setup remove
nobody || fail "removed by setup, and it leaves processes"
[ "$(inside systemctl show --value -p LoadState softvpi.service softvpi.socket | sort -u | tr -d '\n')" = not-found ] || fail "systemd still knows it"
inside /packages/softvpi setup remove --purge >/dev/null
inside rm -rf /run/softvpi
traces >"$work/after"
left=$(diff "$work/before" "$work/after" || true)
[ -z "$left" ] || fail "left behind by setup: $left"
say "softvpi setup, killed at each call of systemctl: installed, started by its sockets, installed again while it ran, removed"

. packaging/tryrpm.sh
! have_rpm || try_rpm "$1"/*.rpm "$2"/*.rpm
