#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Runs plumb plan for the event of a GitHub workflow. The inputs of action.yml are in its environment.
set -eu
set -- plan
case ${GITHUB_EVENT_NAME:-} in
pull_request | pull_request_target) set -- "$@" --head "$GITHUB_HEAD_REF" --base "$GITHUB_BASE_REF" ;;
*)
	if [ "${GITHUB_REF_TYPE:-}" = tag ]; then
		set -- "$@" --tag "$GITHUB_REF_NAME"
	else
		set -- "$@" "--push=$GITHUB_REF_NAME"
	fi
	;;
esac
[ "${PLUMB_STRICT:-true}" = true ] && set -- "$@" --strict
[ -n "${PLUMB_REPOSITORY:-}" ] && set -- "$@" --repository "$PLUMB_REPOSITORY"
names=$(mktemp)
printf '%s\n' "${PLUMB_MUST_START:-}" >"$names"
while IFS= read -r name; do
	[ -n "$name" ] && set -- "$@" --must-start "$name"
done <"$names"
rm -f "$names"
exec "$(dirname -- "$0")/plumb.sh" "$@"
