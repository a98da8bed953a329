// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"
)

// A module in the same version is compiled once for all programs. Kubernetes has its own modules.
func TestProgramsShareModuleVersions(t *testing.T) {
	root, err := Root()
	must(t, err)
	ours := versions(t, root)
	kubernetes := regexp.MustCompile(`^(k8s\.io|sigs\.k8s\.io|cel\.dev|golang\.org/x/exp|github\.com/(google/cel-go|antlr4-go|go-openapi|mailru|davecgh|pmezard|spf13))/`)
	for _, group := range []string{"etcd", "kubernetes", "tekton"} {
		for module, version := range versions(t, filepath.Join(root, binariesDir, group)) {
			want, shared := ours[module]
			if shared && want != version && (group != "kubernetes" || !kubernetes.MatchString(module+"/")) {
				t.Errorf("%s is %s in go.mod and %s here: go -C %s/%s get %[1]s@%[2]s", module, want, version, binariesDir, group)
			}
		}
	}
}

// versions are those of the modules that a go.mod requires.
func versions(t *testing.T, dir string) map[string]string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(dir, "go.mod"))
	must(t, err)
	all := map[string]string{}
	for _, match := range regexp.MustCompile(`(?m)^\t(\S+) (v\S+)`).FindAllStringSubmatch(string(data), -1) {
		all[match[1]] = match[2]
	}
	return all
}
