#!/usr/bin/env bash
# Regenerates deep copies, clients, listers, informers, injection and CRDs from the types in pkg/apis.
# With --verify it generates into a copy, changes nothing, and fails if the tree is not what would be generated.
set -euo pipefail
cd "$(dirname "$0")/.."
root=$PWD

if [[ "${1:-}" == --verify ]]; then
  copy=$(mktemp -d)
  trap 'rm -rf "$copy"' EXIT
  mkdir -p "$copy/pkg"
  cp -r go.mod go.sum hack config "$copy/"
  cp -r pkg/apis "$copy/pkg/"
  cd "$copy"
fi

module=$(go list -m)
groups=(plumbline/v1alpha1 pipelinesascode/v1alpha1)
inputs=("${groups[@]/#/$module/pkg/apis/}")
header=hack/boilerplate.go.txt
client=$module/pkg/client
plurals=GitEvent:GitEvents
tool() { go tool -modfile=hack/tools/codegen/go.mod "$@"; }
joined() { local IFS=,; echo "$*"; }

rm -rf pkg/client
tool deepcopy-gen --go-header-file $header --output-file zz_generated.deepcopy.go "${inputs[@]}"
tool client-gen --go-header-file $header --clientset-name versioned --input-base "$module/pkg/apis" --input "$(joined "${groups[@]}")" \
  --output-dir pkg/client/clientset --output-pkg "$client/clientset" --plural-exceptions $plurals
tool lister-gen --go-header-file $header --output-dir pkg/client/listers --output-pkg "$client/listers" --plural-exceptions $plurals "${inputs[@]}"
tool informer-gen --go-header-file $header --output-dir pkg/client/informers --output-pkg "$client/informers" --plural-exceptions $plurals \
  --versioned-clientset-package "$client/clientset/versioned" --listers-package "$client/listers" "${inputs[@]}"
tool injection-gen --go-header-file $header --input-dirs "$(joined "${inputs[@]}")" --output-dir pkg/client/injection \
  --output-package "$client/injection" --versioned-clientset-package "$client/clientset/versioned" \
  --external-versions-informers-package "$client/informers/externalversions" --listers-package "$client/listers"
tool controller-gen crd:crdVersions=v1 paths=./pkg/apis/... output:crd:dir=config/300-crds

if [[ "${1:-}" == --verify ]]; then
  for path in pkg/apis pkg/client config/300-crds; do
    diff -r "$root/$path" "$copy/$path" || { echo "generated code is out of date: run 'make generate' and commit the result" >&2; exit 1; }
  done
fi
