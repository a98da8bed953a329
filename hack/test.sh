#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Usage: hack/test.sh STEP ARGUMENTS... runs "go test" with the arguments, writes its output to dist/STEP.log and prints the
# failed tests last.
# RERUN_FAILED=2 (CI): if at most two tests failed, runs these alone three times, and passes with a line UNSTEADY if they all pass.
set -uo pipefail
step=$1
shift
log=dist/$step.log
mkdir -p dist
TIMEFORMAT="$step: %R s, of CPU %U s and %S s of the system"
time go test "$@" 2>&1 | tee "$log"
status=${PIPESTATUS[0]}
((status != 0)) || exit 0

# failed prints the names of the failed tests in the output of go test.
failed() { sed -n 's/^--- FAIL: \([^ ]*\) .*/\1/p' "$1" | sort -u; }

names=$(failed "$log" | paste -sd '|')
count=$(failed "$log" | wc -l)
# A panic, a timeout or a package that does not compile is no failed test.
if ((count >= 1 && count <= ${RERUN_FAILED:-0})) && ! grep -qE '^(panic|fatal error): |\[build failed\]' "$log"; then
  package=$(sed -n 's/^FAIL\t\([^ \t]*\)\t.*/\1/p' "$log")
  echo "$step: ${names//|/ } failed; running these alone three times"
  if go test -vet=off -timeout 30m -parallel 1 -count 3 -run "^($names)\$" $package 2>&1 | tee "$log.rerun"; then
    echo "UNSTEADY: ${names//|/ }"
    exit 0
  fi
  log=$log.rerun
fi

echo
echo "=== $step failed: ${names:-no test} (the whole output is in $log)"
awk '/^--- (FAIL|PASS|SKIP)/ { shown = /^--- FAIL/ ? 30 : 0 } shown-- > 0' "$log"
grep -E '^(FAIL\t|panic: |logs of every process)' "$log"
exit "$status"
