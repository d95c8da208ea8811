#!/bin/sh
# Ensures that the engine has the image busybox:stable, which the examples and
# the tests run.
#
# Where the engine has it, nothing happens and nothing is printed. Otherwise it
# is pulled, if that works within ten seconds; else it is made from the
# distribution's busybox-static, so that no registry is needed.
set -eu

image=busybox:stable
export DOCKER_HOST="${DOCKER_HOST:-unix:///var/run/docker.sock}"

say() { echo "image: $*" >&2; }
die() {
	say "$*"
	exit 1
}

docker image inspect "$image" >/dev/null 2>&1 && exit 0
docker version >/dev/null 2>&1 || die "no engine answers at $DOCKER_HOST: run scripts/engine.sh first"
if timeout 10 docker pull -q "$image" >/dev/null 2>&1 </dev/null; then
	say "pulled $image"
	exit 0
fi

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$work/deb" "$work/root/bin"

# The package is only unpacked: installing it would replace a package busybox
# that the machine may boot with.
if dpkg-query -W -f '${Status}' busybox-static 2>/dev/null | grep -q ' installed$'; then
	cp "$(command -v busybox)" "$work/root/bin/busybox"
else
	if ! (cd "$work/deb" && { apt-get download -qq -o APT::Sandbox::User=root busybox-static ||
		{ apt-get update -qq && apt-get download -qq -o APT::Sandbox::User=root busybox-static; }; }) >"$work/log" 2>&1 </dev/null; then
		tail -n 20 "$work/log" >&2
		die "$image could not be pulled, and apt-get could not fetch busybox-static: its last lines stand above"
	fi
	dpkg-deb -x "$work"/deb/*.deb "$work/deb/root"
	cp "$(find "$work/deb/root" -type f -path '*/bin/busybox')" "$work/root/bin/busybox"
fi

cd "$work/root"
applets=$(bin/busybox --list)
for applet in $applets; do
	[ -e "bin/$applet" ] || ln -s busybox "bin/$applet"
done
mkdir -p dev etc home proc root sys tmp usr/bin var/tmp
ln -s ../../bin/env usr/bin/env
chmod 1777 tmp var/tmp
chmod 0700 root
cat >etc/passwd <<'END'
root:x:0:0:root:/root:/bin/sh
nobody:x:65534:65534:nobody:/home:/bin/false
END
cat >etc/group <<'END'
root:x:0:
nobody:x:65534:
END
tar --sort=name --owner=0 --group=0 --numeric-owner -cf - . |
	docker import --change 'CMD ["sh"]' --message 'made from busybox-static' - "$image" >/dev/null
say "made $image from the distribution's busybox-static"
