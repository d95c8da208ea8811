#!/bin/sh
# Ensures that a Docker Engine answers on this machine.
#
# Where one answers already, nothing happens and nothing is printed. Otherwise
# the distribution's package docker.io is installed where there is no dockerd,
# and started: by systemd where that is process 1, else in the background.
# DOCKER_HOST is honoured; an engine that it names elsewhere is never started.
set -eu

default=unix:///var/run/docker.sock
host=${DOCKER_HOST:-$default}
log=/var/log/podkeeper-dockerd.log
pidfile=/var/run/podkeeper-dockerd.pid
seconds=60 # a first start prepares its storage and can take a while

say() { echo "engine: $*" >&2; }
die() {
	say "$*"
	exit 1
}

# DOCKER_HOST wins over the client's own contexts, which the agent does not read.
answers() { DOCKER_HOST=$host timeout 10 docker version >/dev/null 2>&1; }

# install PACKAGE...
install() {
	[ "$(id -u)" = 0 ] || die "$* must be installed: run this as root"
	command -v apt-get >/dev/null || die "no apt-get here: install Docker Engine 20.10 or newer, then run this again"
	out=$(mktemp)
	if ! { apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq \
		--no-install-recommends -o DPkg::Lock::Timeout=300 "$@"; } >"$out" 2>&1 </dev/null; then
		tail -n 20 "$out" >&2
		rm -f "$out"
		die "apt-get could not install $*: its last lines stand above"
	fi
	rm -f "$out"
	say "installed $*"
}

# Since Debian 13 the client is a package of its own.
need_client() {
	command -v docker >/dev/null && return
	if apt-cache show docker-cli >/dev/null 2>&1; then
		install docker-cli
	else
		install docker.io ca-certificates
	fi
	command -v docker >/dev/null || install docker-cli
}

# runs PIDFILE NAME: the process that the file names is there, is NAME, and has not
# ended. After a reboot without a clean end the number can belong to anything else.
runs() {
	[ -s "$1" ] && status=$(head -n 3 "/proc/$(cat "$1")/status" 2>/dev/null) || return 1
	case $status in
	*"State:"*Z*) return 1 ;;
	"Name:"*"$2"*) return 0 ;;
	*) return 1 ;;
	esac
}

wait_for_answer() {
	end=$(($(date +%s) + seconds))
	until answers; do
		[ "$(date +%s)" -lt "$end" ] && "$@" || return 1
		sleep 0.2
	done
}

start_with_systemd() {
	systemctl start docker.service || true # what it says is not yet the reason
	wait_for_answer systemctl is-active -q docker.service && return
	journalctl -u docker.service -n 20 --no-pager -o cat >&2 || true
	die "docker.service does not answer; its last lines stand above (all: journalctl -u docker.service)"
}

start_in_background() {
	# One that is there may be starting, or about to end.
	if runs /var/run/docker.pid dockerd && wait_for_answer runs /var/run/docker.pid dockerd; then
		return
	fi
	if ! runs /var/run/docker.pid dockerd; then
		# Left over from an engine that was killed, these would stop a new one.
		rm -f /var/run/docker.pid
		runs /var/run/docker/containerd/containerd.pid containerd || rm -f /var/run/docker/containerd/containerd.pid
		[ ! -e "$log" ] || mv -f "$log" "$log.1"
		setsid dockerd >"$log" 2>&1 </dev/null &
		echo $! >"$pidfile"
		say "started dockerd in the background (log $log, pid $pidfile)"
		wait_for_answer kill -0 $! 2>/dev/null && return
	fi
	tail -n 20 "$log" >&2 2>/dev/null || true
	if grep -qi iptables "$log" 2>/dev/null; then
		say "where it complains of iptables, the kernel may lack nf_tables: update-alternatives --set iptables /usr/sbin/iptables-legacy"
	fi
	if ! grep -q ' /sys/fs/cgroup' /proc/mounts; then
		say "no cgroups are mounted at /sys/fs/cgroup: install cgroupfs-mount; in a container this needs --privileged"
	fi
	die "dockerd does not answer; its last lines stand above (all: $log)"
}

if command -v docker >/dev/null && answers; then
	exit 0
fi
case $host in
unix:///var/run/docker.sock | unix:///run/docker.sock) ;;
*)
	need_client
	answers && exit 0
	die "no engine answers at DOCKER_HOST=$host: start it, or unset DOCKER_HOST for the engine of this machine"
	;;
esac

if [ -S "${host#unix://}" ] && ! command -v docker >/dev/null; then
	need_client
	answers && exit 0
fi
command -v dockerd >/dev/null || install docker.io ca-certificates
need_client
answers && exit 0 # the package's own scripts may have started it
[ "$(id -u)" = 0 ] || die "the engine is not running: run this as root to start it"
if [ -d /run/systemd/system ]; then
	start_with_systemd
	say "started docker.service"
else
	start_in_background
fi
