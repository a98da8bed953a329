#!/usr/bin/env bash
# Builds a release of the commit that is checked out: all that docs/releases.md lists, in dist/release. The same commit, the
# same variables and the same Go give the same bytes, on any machine and in any directory.
#
#   VERSION          the version, for example v0.1.0; CHANGELOG.md must have a section of it
#   REGISTRY         where the images will be pushed to; ghcr.io/plumbline-ci/plumbline
#   PLATFORMS        platforms of the images
#   PLUMB_PLATFORMS  platforms of plumb
#   BUILDER          the URI of who builds, for the provenance
set -euo pipefail
cd "$(dirname "$0")/.."
root=$PWD

: "${VERSION:?is not set: name the version, for example VERSION=v0.1.0}"
registry=${REGISTRY:-ghcr.io/plumbline-ci/plumbline}
out=dist/release
plumb_platforms=${PLUMB_PLATFORMS:-linux/amd64,linux/arm64,darwin/amd64,darwin/arm64,windows/amd64,windows/arm64}
builder=${BUILDER:-https://github.com/plumbline-ci/plumbline/blob/main/docs/releases.md#make-a-release}

# What hack/tools/ko/release would refuse too, after minutes of builds.
if [[ ! $VERSION =~ ^v[0-9]+\.[0-9]+\.[0-9]+(-[0-9A-Za-z.-]+)?$ ]]; then
  echo "'$VERSION' is not a version such as v0.1.0" >&2
  exit 1
fi
section=${VERSION#v} section=${section%%-*}
if ! grep -qF "## [$section]" CHANGELOG.md; then
  echo "CHANGELOG.md has no section for $VERSION: add the heading ## [$section]" >&2
  exit 1
fi
# The provenance names tag and commit. The tag need not exist yet.
if tagged=$(git rev-parse --quiet --verify "refs/tags/$VERSION^{commit}") && [[ $tagged != "$(git rev-parse HEAD)" ]]; then
  echo "the tag $VERSION is another commit, $tagged: check it out, or choose another version" >&2
  exit 1
fi

if [[ -n $(git status --porcelain) ]]; then
  echo 'A release is of a commit, and these files are not committed:' >&2
  git status --short >&2
  exit 1
fi

# What would otherwise differ between machines, or between a clone with the tag and one without.
export CGO_ENABLED=0 GOFLAGS=-buildvcs=false GOAMD64=v1 GOARM64=v8.0 GOPPC64=power8 GOEXPERIMENT=
SOURCE_DATE_EPOCH=$(git log -1 --format=%ct)
export SOURCE_DATE_EPOCH

rm -rf "$out"
mkdir -p "$out"
# One line for each image, as sha256sum writes them: <digest>  <name>. hack/tools/ko/release adds the chart.
OUT=$out PLATFORMS=${PLATFORMS:-linux/amd64,linux/arm64,linux/ppc64le,linux/s390x} ./hack/images.sh |
  while read -r layout digest; do echo "${digest#sha256:}  $registry/${layout##*/}"; done >"$out/digests.txt"

IFS=, read -ra all <<<"$plumb_platforms"
for platform in "${all[@]}"; do
  os=${platform%/*} architecture=${platform#*/} suffix=
  [[ $os != windows ]] || suffix=.exe
  echo "building plumb-$os-$architecture$suffix" >&2
  GOOS=$os GOARCH=$architecture go build -trimpath -ldflags "-s -w -X main.version=$VERSION" \
    -o "$out/plumb-$os-$architecture$suffix" ./cmd/plumb
done

go -C hack/tools/chart run . package -version "$VERSION" -digests "$root/$out/digests.txt" -out "$root/$out"

go -C hack/tools/ko run ./release write -dir "$root/$out" -source "$root" -version "$VERSION" -registry "$registry" \
  -commit "$(git rev-parse HEAD)" -builder "$builder"
