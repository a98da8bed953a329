#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Runs plumb plan before a commit. During a rebase no branch is checked out, and plumb needs a name.
set -eu
git symbolic-ref --quiet HEAD >/dev/null || set -- "$@" --head detached
exec "$(dirname -- "$0")/plumb.sh" plan "$@"
