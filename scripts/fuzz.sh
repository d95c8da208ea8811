#!/bin/sh
# Fuzzes every target of every module, one after the other: fuzz.sh [TIME]
#
# What it finds the go command writes below that package's testdata/fuzz, where
# it is a test from then on.
set -eu

go=${GO:-go}
time=${1:-5s}
out=$(mktemp)
trap 'rm -f "$out"' EXIT

for module in . tools/*; do
	[ -e "$module/go.mod" ] || continue
	# Lines of the form FOLDER/FILE:NAME; modules inside this one have their turn.
	targets=$(cd "$module" && grep -rHoE --include='*_test.go' '^func Fuzz[A-Za-z0-9_]+' . | sed 's/func //' | sort)
	for target in $targets; do
		case $module:$target in .:./tools/*) continue ;; esac
		package=$(dirname "${target%%:*}")
		name=${target##*:}
		echo "fuzz: $name in $module/${package#./}, $time"
		if ! (cd "$module" && "$go" test "$package" -run '^$' -fuzz "^$name\$" -fuzztime "$time") >"$out" 2>&1 </dev/null; then
			cat "$out"
			exit 1
		fi
		grep '^fuzz: elapsed' "$out" | tail -n 1
	done
done
