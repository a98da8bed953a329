#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Plays the short campaign against receivers and controllers that are wrong in one way each: the patches of test/campaign/mutants.
# Each campaign has to break the invariant that the patch names in its first line. The argument, a regular expression, chooses some;
# "today" chooses five, other ones each day.
set -euo pipefail
cd "$(dirname "$0")/.."
chosen=${1:-.}
if [[ $chosen == today ]]; then
  all=(test/campaign/mutants/*.patch)
  chosen=
  for i in {0..4}; do
    chosen+="${chosen:+|}^$(basename "${all[(($(date +%s) / 86400) * 5 + i) % ${#all[@]}]}" .patch)\$"
  done
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
go build -o "$work/campaign" ./test/campaign/cmd/campaign

# mutate makes an overlay for go build, in which patched copies take the place of this tree's files: nothing else is compiled anew.
mutate() {
  rm -rf "$work/tree"
  mkdir "$work/tree"
  local replaced=""
  for file in $(sed -n 's|^+++ b/||p' "$1"); do
    mkdir -p "$work/tree/$(dirname "$file")"
    cp "$file" "$work/tree/$file"
    replaced+="${replaced:+, }\"$PWD/$file\": \"$work/tree/$file\""
  done
  (cd "$work/tree" && GIT_CEILING_DIRECTORIES=$work git apply "$OLDPWD/$1")
  echo "{\"Replace\": {$replaced}}" >"$work/overlay.json"
}

survived=0
for patch in test/campaign/mutants/*.patch; do
  name=$(basename "$patch" .patch)
  [[ $name =~ $chosen ]] || continue
  invariant=$(sed -n '1s/^Breaks: //p' "$patch")
  # A mutant shows only if what it gets wrong happens: the next seed is tried when one finds nothing. A patch that needs what is rare names
  # seeds whose schedules have it, in its second line.
  seeds=$(sed -n '2s/^Seeds: //p' "$patch")
  seeds=${SEEDS:-${seeds:-1 2 3 4 5}}
  mutate "$patch"
  found=
  for seed in $seeds; do
    GOFLAGS="-overlay=$work/overlay.json" "$work/campaign" -seed "$seed" -minutes "${MUTANT_MINUTES:-0.5}" -settle "${MUTANT_SETTLE:-60s}" >"$work/log" 2>&1 || true
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
