#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Plays the short campaign against receivers and controllers that are wrong in one way each: the patches of test/campaign/mutants.
# Each campaign has to break the invariant that the patch names in its first line. The argument, a regular expression, chooses some.
set -euo pipefail
cd "$(dirname "$0")/.."
chosen=${1:-.}
seeds=${SEEDS:-1 2 3} # a mutant shows only if what it gets wrong happens: the next seed is tried when one finds nothing
work=$(mktemp -d)
trap 'git worktree remove --force "$work/tree" 2>/dev/null; rm -rf "$work"' EXIT
go build -o "$work/campaign" ./test/campaign/cmd/campaign
survived=0
for patch in test/campaign/mutants/*.patch; do
  name=$(basename "$patch" .patch)
  [[ $name =~ $chosen ]] || continue
  invariant=$(sed -n '1s/^Breaks: //p' "$patch")
  git worktree remove --force "$work/tree" 2>/dev/null || true
  git worktree add -q --detach "$work/tree" HEAD
  git -C "$work/tree" apply "$PWD/$patch"
  found=
  for seed in $seeds; do
    # The campaign is this tree's; what it installs and builds is the mutant's.
    PLUMBLINE_OF="$work/tree" "$work/campaign" -seed "$seed" -minutes "${MUTANT_MINUTES:-0.5}" -settle "${MUTANT_SETTLE:-60s}" >"$work/log" 2>&1 || true
    if grep -q " breaks $invariant: " "$work/log"; then
      found=$seed
      break
    fi
  done
  if [[ -n $found ]]; then
    echo "$invariant  $name  is found with SEED=$found"
    continue
  fi
  survived=$((survived + 1))
  echo "$invariant  $name  SURVIVES; what the last campaign says:"
  grep -E ' breaks |holds|campaign:' "$work/log" | cut -c1-200 | head -5 || true
done
exit $((survived > 0))
