#!/bin/sh
# Ensures that the programs which the tests call are there, beside Go, make and
# gcc. Where they are, nothing happens and nothing is printed.
set -eu

say() { echo "test tools: $*" >&2; }

missing=
# need COMMAND PACKAGE
need() { command -v "$1" >/dev/null || missing="$missing $2"; }

need ip iproute2       # network namespaces for a private engine
need iptables iptables # what that engine's networks need
need dbus-daemon dbus-daemon # a message bus of the tests' own
need docker-registry docker-registry # images to pull, on loopback
need promtool prometheus # what it says of our rules
need chromium chromium # the dashboard, as a person has it

[ -n "$missing" ] || exit 0
out=$(mktemp)
trap 'rm -f "$out"' EXIT
# shellcheck disable=SC2086 # a list of packages
if ! { apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq \
	--no-install-recommends -o DPkg::Lock::Timeout=300 $missing; } >"$out" 2>&1 </dev/null; then
	tail -n 20 "$out" >&2
	say "apt-get could not install$missing: its last lines stand above"
	exit 1
fi
# The tests run a registry of their own, and of Prometheus only a tool; the packages'
# daemons are nobody's wish.
for daemon in docker-registry prometheus; do
	case $missing in
	*"$daemon"*) [ ! -d /run/systemd/system ] || systemctl disable -q --now "$daemon" || true ;;
	esac
done
say "installed$missing"
