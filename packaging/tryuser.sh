# tryuser.sh: what the manager of a user does with the units of a user, in the system that trysystemd.sh has started, which reads this.
# The user is one of the system's, without any session: lingering has logind start the manager, as for whoever logs in.
user_of=softvpi-try
have_user_manager() {
	for p in systemd-logind dbus-daemon pam_systemd.so; do
		[ -n "$(find /lib/systemd /usr/bin /lib/*/security -maxdepth 1 -name $p)" ] || { say "the manager of a user: skipped, which wants $p"; return 1; }
	done
}

# user COMMAND...: as the user, who is in no group of the driver's, with what a session of logind has in its environment.
user() {
	enter setpriv --reuid "$uid" --regid "$uid" --init-groups --no-new-privs --bounding-set=-all /usr/bin/env -i PATH=/usr/bin:/bin \
		HOME="/home/$user_of" USER="$user_of" LC_ALL=C.UTF-8 XDG_RUNTIME_DIR="/run/user/$uid" "$@"
}
user_fail() {
	user systemctl --user --no-pager --full status softvpi.socket softvpi.service 2>&1 | head -40 || true
	inside systemctl --no-pager --full status "user@$uid.service" "user-runtime-dir@$uid.service" systemd-logind dbus 2>&1 | head -60 || true
	fail "the manager of a user: $*"
}
user_property() { user systemctl --user show --value -p "$1" softvpi.service; }

try_user() {
	inside useradd --create-home --shell /bin/sh "$user_of"
	uid=$(inside id -u "$user_of")
	inside systemctl start dbus.service systemd-logind.service || user_fail "no logind"
	inside loginctl enable-linger "$user_of" || user_fail "it does not stay"
	waits 30 "the manager of a user" user systemctl --user is-active --quiet default.target
	[ "$(user systemctl --user is-enabled softvpi.socket softvpi.service | sort -u)" = disabled ] || user_fail "something is enabled"
	user systemctl --user enable --now softvpi.socket 2>/dev/null || user_fail "the sockets are not opened"
	[ "$(user systemctl --user is-active softvpi.service || true)" = inactive ] || user_fail "the driver runs before somebody connects"
	[ "$(inside stat -c '%a %U' "/run/user/$uid/softvpi/driver.sock")" = "600 $user_of" ] || user_fail "the socket is not the user's alone"

	# The first program starts the driver, by the socket that it finds without being told where.
	[ "$(user softvpi status --json | tr -d ' \n' | grep -c '"adapters":')" = 1 ] || user_fail "the first program gets no answer"
	waits 20 "the user's softvpi.service that is active" user systemctl --user --quiet is-active softvpi.service
	pid=$(user_property MainPID)
	[ "$(inside ps -o user:32= -p "$pid" | tr -d ' ')" = "$user_of" ] || user_fail "the driver is not the user's"
	case $(inside cat "/proc/$pid/cgroup") in *"/user@$uid.service/app.slice/softvpi.service") ;; *) user_fail "the manager has not started it" ;; esac
	case $(user_property StatusText) in *" adapters ready, "*) ;; *) user_fail "its status is '$(user_property StatusText)'" ;; esac
	user nd_rping -s -a 127.0.0.2 >/dev/null &
	user sh -c 'for i in $(seq 100); do nd_rping -c -V -a 127.0.0.2 -C 10 >/dev/null 2>&1 && exit; sleep 0.1; done; exit 1' || user_fail "no RDMA"
	wait $! || user_fail "no RDMA"
	case $(member /usr/bin/env SOFTVPI_SOCKET="/run/user/$uid/softvpi/driver.sock" softvpi status 2>&1 || true) in
	*"permission denied"*) ;;
	*) user_fail "it is open to another user" ;;
	esac

	user systemctl --user stop softvpi.service 2>/dev/null
	if inside pgrep -u "$user_of" -x softvpi >/dev/null; then user_fail "stopped, and it leaves processes"; fi
	user softvpi status >/dev/null || user_fail "its sockets do not start it again"
	waits 20 "the user's softvpi.service that is active again" user systemctl --user --quiet is-active softvpi.service
	user systemctl --user disable --now softvpi.socket softvpi.service 2>/dev/null || user_fail "it is not disabled"
	if inside pgrep -u "$user_of" -x softvpi >/dev/null; then user_fail "disabled, and it leaves processes"; fi
	left=$(inside find "/home/$user_of/.config/systemd" ! -type d 2>/dev/null)
	[ -z "$left" ] || user_fail "disabled, and it leaves $left"
	[ -z "$(user systemctl --user --failed --no-legend | grep -i softvpi || true)" ] || user_fail "a unit has failed"

	inside loginctl disable-linger "$user_of"
	waits 30 "a manager that ends when its user is gone" gone
	inside userdel --remove "$user_of" 2>/dev/null
	say "a user's manager (logind, user@$uid.service): its sockets, enabled by the user, start the user's driver for the first program; stopped and disabled, it leaves nothing"
}
gone() { ! inside pgrep -u "$user_of" && ! inside test -e "/run/user/$uid"; }
