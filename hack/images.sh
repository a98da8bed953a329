#!/usr/bin/env bash
# Builds the images of receiver and controller with ko, one OCI layout each: dist/images/<command>. It needs neither a
# daemon nor a registry: the base is made by hack/tools/ko/base and found by ko in its cache. Next to each layout is an SBOM
# for each platform, dist/images/<command>-<os>-<architecture>.spdx.json: what is pushed is the layout alone, because the
# tools that push one refuse a layout with more than one image.
#
#   OUT        the directory to write into, relative to the root (ko refuses capitals in the path); dist/images
#   PLATFORMS  what to build for, separated by commas ("linux/amd64,linux/arm64"); this machine's architecture
#   VERSION    written into the binaries; what git describes
#
# To push: crane push dist/images/receiver <registry>/plumbline/receiver:<tag>
#      or: skopeo copy oci:dist/images/receiver docker://<registry>/plumbline/receiver:<tag>
# To attach an SBOM to what was pushed, where admission controllers and scanners find it:
#   oras attach --artifact-type application/spdx+json <registry>/plumbline/receiver@<digest> dist/images/receiver-linux-amd64.spdx.json
set -euo pipefail
cd "$(dirname "$0")/.."
root=$PWD
out=${OUT:-dist/images}

commands=(receiver controller)
platforms=${PLATFORMS:-linux/$(go env GOARCH)}
VERSION=${VERSION:-$(git describe --tags --always --dirty 2>/dev/null || echo devel)}
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct 2>/dev/null || echo 0)}
export VERSION SOURCE_DATE_EPOCH
export KOCACHE=$root/dist/ko KO_CONFIG_PATH=$root/hack/ko.yaml
# Nothing is pushed: ko wants a name to put images under.
export KO_DOCKER_REPO=plumbline.invalid

base=$(cd hack/tools/ko && go run ./base -layout "$KOCACHE/img")
export KO_DEFAULTBASEIMAGE=$base

for command in "${commands[@]}"; do
  layout=$out/$command
  rm -rf "$layout" "$layout"-*.spdx.json
  echo "building $layout ($platforms)" >&2
  # One build at a time: the Go tool uses all processors as it is.
  reference=$(go tool -modfile=hack/tools/ko/go.mod ko build --jobs 1 --push=false --platform="$platforms" \
    --sbom=spdx --sbom-dir="$out" --oci-layout-path="$layout" "./cmd/$command")
  go -C hack/tools/ko run ./sbom "$root/$layout"
  echo "$layout ${reference##*@}"
done
