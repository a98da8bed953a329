#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# usage: plumb.sh ARGUMENTS...
# Runs plumb: the release PLUMB_VERSION (v0.1.0), whose checksum is verified, else the plumb in PATH,
# else one that Go builds from this directory's repository.
set -eu
releases=${PLUMB_RELEASES:-https://github.com/plumbline-ci/plumbline/releases/download}
cache=${RUNNER_TEMP:-${XDG_CACHE_HOME:-$HOME/.cache}}/plumb
source=$(CDPATH='' cd -- "$(dirname -- "$0")/.." && pwd)

fail() {
	echo "plumb: $1" >&2
	exit 2
}

checked() { # checked DIRECTORY NAME
	(cd "$1" && grep "  $2\$" SHA256SUMS >"$2.sum") || return 1
	if command -v sha256sum >/dev/null; then
		(cd "$1" && sha256sum --check --status "$2.sum")
	else
		(cd "$1" && shasum -a 256 --check --status "$2.sum")
	fi
}

download() { # download VERSION: sets plumb
	case $(uname -s) in
	Linux) os=linux ;;
	Darwin) os=darwin ;;
	MINGW* | MSYS* | CYGWIN*) os=windows ;;
	*) fail "no release for $(uname -s): install Go, and leave the version out" ;;
	esac
	case $(uname -m) in
	x86_64 | amd64) arch=amd64 ;;
	aarch64 | arm64) arch=arm64 ;;
	*) fail "no release for $(uname -m): install Go, and leave the version out" ;;
	esac
	name=plumb-$os-$arch
	[ "$os" = windows ] && name=$name.exe
	plumb=$cache/$1/$name
	[ -x "$plumb" ] && checked "$cache/$1" "$name" && return
	mkdir -p "$cache/$1"
	for file in SHA256SUMS "$name"; do
		curl --fail --silent --show-error --location --retry 3 --output "$cache/$1/$file" "$releases/$1/$file" ||
			fail "release $1 cannot be downloaded from $releases"
	done
	checked "$cache/$1" "$name" || { rm -f "$plumb"; fail "$name of release $1 does not have its checksum in SHA256SUMS"; }
	chmod +x "$plumb"
}

case ${PLUMB_VERSION:-} in
v[0-9]*.[0-9]*.[0-9]*)
	download "$PLUMB_VERSION"
	exec "$plumb" "$@"
	;;
esac
if [ -z "${PLUMB_VERSION:-}" ] && command -v plumb >/dev/null; then
	exec plumb "$@"
fi
command -v go >/dev/null || fail "neither plumb nor Go is installed: install one, or set PLUMB_VERSION to a release"
mkdir -p "$cache/built"
(cd "$source" && CGO_ENABLED=0 go build -o "$cache/built/plumb" ./cmd/plumb) || fail "plumb could not be built"
exec "$cache/built/plumb" "$@"
