#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs every fuzz target of the module, one after the other: hack/fuzz.sh [regular expression of target names].
# FUZZTIME is how long each runs; what it finds is written to testdata/fuzz beside the test, to be fixed and committed.
#
# -fuzzminimizetime: an input that reaches new code is made smaller before anything else goes on, for a minute each by
# default. With two workers and functions that take milliseconds both do only that ("execs: … (0/sec)" to the end).
set -uo pipefail
cd "$(dirname "$0")/.."
time=${FUZZTIME:-60s}
wanted=${1:-.}
log=$(mktemp)
trap 'rm -f "$log"' EXIT
failed=()

# engine tells that the fuzzing engine failed and the target did not: when the time is over it may take its own
# deadline for an error (golang/go#75804). A real finding names the file that it was written to.
engine() {
	grep -q '^ *context deadline exceeded$' "$log" && ! grep -q -e 'Failing input written to' -e 'panic:' "$log"
}

targets=$(grep -rHo --include='*_test.go' '^func Fuzz[A-Za-z0-9_]*' cmd pkg test | sort)
while IFS=: read -r file function; do
	name=${function#func }
	[[ $name =~ $wanted ]] || continue
	package=./$(dirname "$file")
	printf '%s %s\n' "$package" "$name"
	if go test -run='^$' -fuzz="^$name\$" -fuzztime="$time" -fuzzminimizetime=10x "$package" >"$log" 2>&1; then
		grep '^fuzz: elapsed' "$log" | tail -n 1
	elif engine; then
		echo "  nothing found; the engine stopped late"
	else
		cat "$log"
		failed+=("$package $name")
	fi
done <<<"$targets"

if ((${#failed[@]})); then
	printf '✗ %s\n' "${failed[@]}"
	exit 1
fi
