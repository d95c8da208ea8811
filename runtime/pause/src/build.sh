#!/bin/sh
# Compiles pause.c into pause-amd64 and pause-arm64: in the folder above, or in
# another one.
#
#   build.sh [-o FOLDER] [ARCH...]
#
# The compilers are called by their full names, which Debian's packages gcc and
# gcc-aarch64-linux-gnu (on arm64: gcc and gcc-x86-64-linux-gnu) provide. What
# made the binaries that are checked in stands in toolchain.txt; the same tools
# make the same bytes, which a test checks.
set -eu
cd "$(dirname "$0")"

out=..
if [ "${1-}" = -o ]; then
	out=$2
	shift 2
fi
[ $# -gt 0 ] || set -- amd64 arm64

for arch; do
	case $arch in
	# Security hardening that some compilers turn on by themselves is turned off
	# by name: it needs a libc, or only makes the bytes depend on the distribution.
	amd64) cc=x86_64-linux-gnu-gcc machine='-march=x86-64 -mtune=generic -fcf-protection=none -mno-red-zone -Wl,-z,max-page-size=4096' ;;
	# The page size stays the linker's 64 KiB: there are arm64 kernels that use it.
	arm64) cc=aarch64-linux-gnu-gcc machine='-march=armv8-a -mbranch-protection=none -mno-outline-atomics' ;;
	*)
		echo "build.sh: no such architecture: $arch (amd64, arm64)" >&2
		exit 2
		;;
	esac
	# shellcheck disable=SC2086 # $machine is a list of words
	LC_ALL=C "$cc" -std=c11 -Os -Wall -Wextra -Werror $machine \
		-ffreestanding -nostdlib -static -fno-pie -no-pie \
		-fno-stack-protector -fno-stack-clash-protection -fno-unwind-tables -fno-asynchronous-unwind-tables -fno-ident \
		-Wl,--build-id=none -Wl,-z,noseparate-code -Wl,-z,noexecstack -Wl,-z,norelro -Wl,--hash-style=gnu -Wl,-s \
		-o "$out/pause-$arch" pause.c
done

# The checksums hold the sources too: a change of them that nobody compiled is
# found by the tests, also where there is no compiler.
if [ "$out" = .. ]; then
	(cd .. && sha256sum src/pause.c src/build.sh pause-amd64 pause-arm64 >checksums.txt)
fi
