#!/bin/sh
# Everything that CI runs, after `make setup`. Each part runs also when one before
# it failed; the last line counts the tests.
set -u

go=${GO:-go}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
exec </dev/null
: >"$work/counts"
failed=

# part NAME COMMAND...
part() {
	name=$1
	shift
	echo "== $name"
	began=$(date +%s)
	"$@" || failed="$failed, $name"
	echo "== $name took $(($(date +%s) - began)) s"
}

# go_test FOLDER ARG...: go test there, shown as one line per package and all
# lines of what failed; the counts are added to those of the other parts.
go_test() {
	folder=$1
	shift
	{
		cd "$folder" && "$go" test -v "$@" 2>&1
		echo $? >"$work/status"
	} | awk -v counts="$work/counts" "$show"
	return "$(cat "$work/status")"
}

# shellcheck disable=SC2016 # a program of awk
show='
	function keep(owner, line) { owners[++n] = owner; lines[n] = line }
	function forget() { n = 0; test = ""; lost = 0; split("", passed) }
	# A line belongs to the test that the latest "===" names, until something
	# ends the whole process: from there on all belongs to the package.
	/^=== [A-Z]+ / { if (!lost) test = $3; next }
	/^(panic:|fatal error:|WARNING: DATA RACE)/ { test = ""; lost = 1 }
	/^ *--- PASS: / { pass++; passed[$3] = 1; next }
	/^ *--- SKIP: / { skip++; keep("", $0); next }
	/^ *--- FAIL: / { fail++; keep("", $0); next }
	/^ok[ \t]/ { print; forget(); next }
	/no test files\]$/ || /^PASS$/ || /^FAIL$/ { next }
	/^FAIL\t/ {
		for (i = 1; i <= n; i++) if (!(owners[i] in passed)) print lines[i]
		if (/build failed|setup failed/) fail++
		print; forget(); next
	}
	# What no test said, such as an error of the compiler, can stand anywhere.
	test == "" && !lost { print; next }
	{ keep(test, $0) }
	END {
		for (i = 1; i <= n; i++) if (!(owners[i] in passed)) print lines[i]
		print pass + 0, fail + 0, skip + 0 >>counts
	}
'

part check scripts/check.sh
# Tests of the service, where systemd is the first process.
tags=
[ ! -d /run/systemd/system ] || tags=systemd
part tests go_test . -race -count=1 -timeout 20m -tags "$tags" ./...
[ ! -e tools/oracle/go.mod ] || part oracle go_test tools/oracle -timeout 20m ./...
part fuzzing scripts/fuzz.sh 5s

[ -z "$failed" ] || echo "make test: FAILED: ${failed#, }"
awk -v bad="$failed" '
	{ pass += $1; fail += $2; skip += $3 }
	END {
		if (bad != "" && fail == 0) fail = 1
		printf "tests: %d passed, %d failed%s\n", pass, fail, skip ? ", " skip " skipped" : ""
	}
' "$work/counts"
[ -z "$failed" ]
