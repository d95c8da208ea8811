#!/bin/sh
# Runs tests of this tree on another host that has a Docker Engine and sshd, and
# needs neither Go nor a network: a machine with systemd and cgroup v2, say. Test
# binaries are built here, copied and run there, as root; so are busybox's image and
# docker-registry where the host has none.
#
#   scripts/host-tests.sh root@host
#   scripts/host-tests.sh ssh -p 2222 -i key root@host     any command that takes a remote one
#
# TESTS are lines of "package pattern" (default: those that hang on cgroups, on the
# kernel and its project quotas, and on what is done beside running pods).
# PATIENCE is how long a test of the agent waits for the engine (default 90s; an
# emulated processor needs 15m).
# TAGS are build tags: with sysrq, TestSystemOOM has the host act as if it were out of
# memory, which is for a host that nobody else needs.
set -eu
cd "$(dirname "$0")/.."
[ $# -gt 0 ] || { sed -n '2,/^set/s/^# \{0,1\}//p' "$0" >&2; exit 2; }
[ $# -gt 1 ] || set -- ssh "$1"

: "${GO:=go}" "${PATIENCE:=90s}" "${TAGS:=}"
: "${TESTS:=node/cgroup .
node/kernel .
node/logind .
node/stats .
node/volume ^(TestWhatAnEmptyDirHolds|TestSizeOfAClaim)\$
agent/doctor .
runtime/docker ^TestContract\$/^(features|a_sandbox_and_a_container_in_a_cgroup|resources_change_in_place)\$
agent ^(TestForeignPods|TestCgroupDriver|TestPodCgroups|TestLimitsOfAPod|TestEditOfLimits|TestDeadContainersThatStay|TestProcessLimit|TestWithoutPodCgroups|TestBrokenCgroups|TestMissingController|TestThePlaceOfTheAgent|TestProtectedKernelSettings)\$
agent ^(TestReserved.*|TestSharesOfTheMachine|TestStaticCPUs|TestOOMScoreAdj|TestWhoWasKilled|TestKillsThatAreCounted|TestEviction.*|TestFullDisk|TestWhatAPodUses|TestImagesThat.*|TestOutOfMemory.*|TestOnce.*|TestSystemOOM)\$}"

there=$("$@" 'mktemp -d')
trap '"$@" "rm -rf $there"' EXIT
if ! "$@" 'docker image inspect busybox:stable' >/dev/null 2>&1; then
	docker save busybox:stable | "$@" 'docker load'
fi
if registry=$(command -v docker-registry) && ! "$@" 'command -v docker-registry' >/dev/null; then
	gzip -1 <"$registry" | "$@" "mkdir $there/bin && gzip -d >$there/bin/docker-registry && chmod +x $there/bin/docker-registry"
fi
built=$(mktemp -d)
failed=''
while read -r package pattern; do
	CGO_ENABLED=0 $GO test -c -tags "$TAGS" -ldflags '-s -w' -o "$built/t" "./$package"
	gzip -1 <"$built/t" | "$@" "mkdir -p $there/$package && gzip -d >$there/$package/t && chmod +x $there/$package/t"
	[ ! -d "$package/testdata" ] || tar -cf - -C "$package" testdata | "$@" "tar -xf - -C $there/$package"
	patience=''
	[ "$package" != agent ] || patience="-patience $PATIENCE"
	echo "== $package $pattern"
	"$@" "cd $there/$package && PATH=$there/bin:\$PATH ./t -test.v -test.timeout 3h -test.parallel 1 -test.run '$pattern' $patience" </dev/null || failed="$failed $package"
done <<EOF
$TESTS
EOF
rm -rf "$built"
[ -z "$failed" ] || { echo "failed:$failed" >&2; exit 1; }
