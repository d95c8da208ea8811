#!/bin/sh
# What can be said of the code without running it: one line per check, and all of
# them, also when one fails.
set -u

go=${GO:-go}
failed=0

# verdict NAME STATUS
verdict() {
	if [ "$2" = 0 ]; then
		echo "check: $1: ok"
	else
		echo "check: $1: FAILED"
		failed=1
	fi
}

# Fixtures of golden tests may hold Go that is wrong on purpose.
unformatted=$(find . -name '*.go' -not -path '*/testdata/*' -not -path './.git/*' -exec gofmt -l {} +)
status=$?
if [ -n "$unformatted" ]; then
	echo "$unformatted"
	echo "run gofmt -w on these"
	status=1
fi
verdict gofmt $status

$go vet -tags systemd,sysrq ./...
verdict 'go vet' $?

$go tool staticcheck -tags systemd,sysrq ./...
verdict staticcheck $?

# Its data comes over the network. 3 is its code for "found something"; any other
# failure says only that it could not look.
report=$(timeout 300 "$go" tool govulncheck ./... 2>&1)
status=$?
case $status in
0) verdict govulncheck 0 ;;
3)
	echo "$report"
	verdict govulncheck 1
	;;
*) echo "check: govulncheck: not run, its data cannot be had here ($(echo "$report" | tail -n 1))" ;;
esac

$go test -count=1 -run '^TestDeps' .
verdict 'allowed imports' $?

exit $failed
