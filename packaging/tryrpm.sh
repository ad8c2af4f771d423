# tryrpm.sh: what becomes of the system that trysystemd.sh has started, which reads this, when the package for RPM is installed in it, upgraded,
# downgraded and erased while the system's driver runs. Debian's package has been purged before.
have_rpm() {
	command -v rpm >/dev/null || { say "the package for RPM: skipped, it wants rpm"; return 1; }
	# Says nothing about Debian having packages of its own.
	debian=
	! rpm --force-debian --version >/dev/null 2>&1 || debian=--force-debian
}

# The C library, its dependency, is of a package that is not RPM's.
rpm_() { inside rpm $debian "$@" --nodeps --nosignature; }
rpm_version() { rpm -qp --nosignature --queryformat '%{VERSION}' "$1"; }
# rpm_is VERSION: it is installed, whole, and its program runs.
rpm_is() {
	[ "$(inside rpm $debian -q --queryformat '%{VERSION}' softvpi)" = "$1" ] || fail "rpm: $1 is not installed"
	inside rpm $debian -V --nodeps softvpi || fail "rpm: not as in the package"
	inside softvpi version >/dev/null || fail "rpm: the program does not run"
	[ "$(inside readlink /usr/bin/vstat)" = softvpi ] && inside test -s /usr/share/doc/softvpi/LICENSE || fail "rpm: no links, or no licence"
}
# rpm_changed WHAT VERSION: the driver has gone on, and is of the version once it is told.
rpm_changed() {
	rpm_is "$2"
	[ "$(property MainPID)" = "$pid" ] || fail "rpm: $1, and the driver is restarted"
	[ "$(property NeedDaemonReload)" = no ] || fail "rpm: $1, and systemd is not told"
	case $(inside readlink "/proc/$pid/exe") in *deleted*) ;; *) fail "rpm: $1, and the old program is not replaced" ;; esac
	inside systemctl try-restart softvpi.service
	pid=$(property MainPID)
	[ "$(inside readlink "/proc/$pid/exe")" = /usr/bin/softvpi ] || fail "rpm: $1, and the driver is not the new one"
	kept "rpm: $1"
	[ "$(inside cat /etc/softvpi/driver.json)" = "$configured" ] || fail "rpm: $1, and the configuration is another"
}

# try_rpm NOW LATER
try_rpm() {
	for p in "$1" "$2"; do rpm -K --nosignature "$p" | grep -q 'digests OK' || fail "rpm: the digests of $p"; done
	needs=$(rpm -qp --nosignature --requires "$1")
	case $needs in *glibc*/bin/sh*) ;; *) fail "rpm: it needs $needs" ;; esac
	now=$(rpm_version "$1") later=$(rpm_version "$2")
	cp "$1" "$root/packages/now.rpm"
	cp "$2" "$root/packages/later.rpm"
	inside userdel softvpi 2>/dev/null || fail "rpm: the user of dpkg's installation stays"

	rpm_ -i /packages/now.rpm >/dev/null 2>&1 || fail "rpm: not installed"
	rpm_is "$now"
	active softvpi.socket inactive
	active softvpi.service inactive
	[ "$(inside systemctl is-enabled softvpi.socket softvpi.service | sort -u)" = disabled ] || fail "rpm: the package enables something"
	gid=$(inside getent group softvpi | cut -d: -f3)
	[ -n "$gid" ] && inside id -u softvpi >/dev/null || fail "rpm: no user of the system's driver"
	configured='{"adapters": [{"name": "pf", "address": "127.0.0.2"}]}'
	inside install -d /etc/softvpi
	echo "$configured" | inside tee /etc/softvpi/driver.json >/dev/null
	inside systemctl enable --now softvpi.socket 2>/dev/null
	member softvpi status --json | grep -q '"pf"' || fail "rpm: a program that attaches gets no answer"
	up
	pid=$(property MainPID)
	manage softvpi reg add "$key" /v '*JumboPacket' /t REG_SZ /d 4000 /f >/dev/null 2>&1

	rpm_ -U /packages/later.rpm >/dev/null 2>&1 || fail "rpm: not upgraded"
	rpm_changed upgraded "$later"
	if rpm_ -U /packages/now.rpm >/dev/null 2>&1; then fail "rpm: an older version is taken without being asked for"; fi
	rpm_ -U --oldpackage /packages/now.rpm >/dev/null 2>&1 || fail "rpm: not downgraded"
	rpm_changed downgraded "$now"

	inside rpm $debian -e --nodeps softvpi >/dev/null 2>&1 || fail "rpm: not erased"
	if inside rpm $debian -q softvpi >/dev/null; then fail "rpm: still installed"; fi
	nobody || fail "rpm: erased, and it leaves processes"
	[ "$(inside systemctl show --value -p LoadState softvpi.service softvpi.socket | sort -u | tr -d '\n')" = not-found ] || fail "systemd still knows it"
	[ -z "$(inside systemctl --failed --no-legend | grep -i softvpi || true)" ] || fail "rpm: a unit has failed"
	# As after a removal by dpkg, what a purge removes is there.
	[ "$(inside cat /etc/softvpi/driver.json)" = "$configured" ] && inside test -s /var/lib/softvpi/registry.db || fail "rpm: erased, and what was set is lost"
	inside rm -r /etc/softvpi /var/lib/softvpi
	traces >"$work/after"
	left=$(diff "$work/before" "$work/after" || true)
	[ -z "$left" ] || fail "left behind by rpm: $left"
	say "rpm: installed, upgraded and downgraded while it ran: its user is made, nothing is enabled, it went on until try-restart, and kept configuration and registry"
	say "rpm: erased while it ran: it has stopped, nothing enables it, and only configuration and state are left"
}
