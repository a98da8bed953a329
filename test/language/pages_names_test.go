// SPDX-License-Identifier: Apache-2.0

package language

import (
	"regexp"
	"strings"
	"testing"

	"github.com/plumbline-ci/plumbline/pkg/config"
)

// Every make target on a page is in the Makefile.
func TestPagesNameMakeTargets(t *testing.T) {
	t.Parallel()
	targets := regexp.MustCompile(`(?m)^([a-z][a-z-]*):`)
	exist := map[string]bool{}
	for _, target := range targets.FindAllStringSubmatch(readFile(t, "../../Makefile"), -1) {
		exist[target[1]] = true
	}
	used := regexp.MustCompile(`^(?:KEEP=1 )?make ([a-z][a-z-]*)`)
	for name, page := range pages(t) {
		for _, line := range code(page) {
			if target := used.FindStringSubmatch(line); target != nil && !exist[target[1]] {
				t.Errorf("%s: make has no target %s", name, target[1])
			}
		}
	}
}

// Every flag of the receiver or a controller on a page exists.
func TestPagesNameFlags(t *testing.T) {
	t.Parallel()
	// Those of knative's injection, of Go's tests and of kubectl; and the end of a role's name.
	exist := map[string]bool{
		"kubeconfig": true, "kube-api-qps": true, "kube-api-burst": true, "short": true, "o": true, "secrets": true,
	}
	defined := regexp.MustCompile(
		`\b(?:flag|f|flags)\.(?:String|Bool|Int|Int64|Duration|Func)(?:Var)?\(\s*(?:&[\w.]+,\s*)?"([a-z-]+)"`,
	)
	for name, text := range sources(t) {
		if strings.HasSuffix(name, ".go") && isProduct(name) && !strings.HasPrefix(name, "cmd/plumb/") {
			for _, flag := range defined.FindAllStringSubmatch(text, -1) {
				exist[flag[1]] = true
			}
		}
	}
	used := regexp.MustCompile(`^-([a-z][a-z-]*)|/ko-app/(?:receiver|controller) -([a-z][a-z-]*)`)
	for name, page := range pages(t) {
		for _, span := range code(page) {
			if flag := used.FindStringSubmatch(span); flag != nil && !exist[flag[1]+flag[2]] {
				t.Errorf("%s: neither program has the flag -%s", name, flag[1]+flag[2])
			}
		}
	}
}

// keys are those of the ConfigMap plumbline.
func keys(t *testing.T) []string {
	t.Helper()
	_, err := config.New(map[string]string{"no-such-key": ""})
	if err == nil {
		t.Fatal("an unknown key is not reported")
	}
	_, allowed, _ := strings.Cut(err.Error(), "allowed: ")
	return strings.Split(allowed, ", ")
}

// Every setting on a page is a key of a ConfigMap or an annotation, and every key is on a page.
func TestPagesNameKeys(t *testing.T) {
	t.Parallel()
	exist := map[string]bool{
		"runtime-profiling": true,                                                // of knative's ConfigMap
		"catalog-N-id":      true, "catalog-N-name": true, "catalog-N-url": true, // for each number
	}
	for _, key := range keys(t) {
		exist[key] = true
	}
	for _, annotation := range regexp.MustCompile(`prefix \+ "([a-z-]+)"`).FindAllStringSubmatch(readFile(t, "../../pkg/apis/pipelinesascode/keys.go"), -1) {
		exist[annotation[1]] = true
	}
	setting := regexp.MustCompile(`^([a-z][a-z0-9]*(?:-[a-z0-9]+)+): "`)
	everything := ""
	for name, page := range pages(t) {
		everything += page
		for _, span := range code(page) {
			if key := setting.FindStringSubmatch(span); key != nil && !exist[key[1]] {
				t.Errorf("%s: %s is neither a key of the ConfigMap nor an annotation", name, key[1])
			}
		}
		for _, key := range keysOfTables(page) {
			if !exist[key] {
				t.Errorf("%s: the ConfigMap has no key %s", name, key)
			}
		}
	}
	for _, key := range keys(t) {
		if !strings.Contains(everything, key) {
			t.Errorf("no page has the key %s", key)
		}
	}
}

// keysOfTables returns the keys in the first columns of tables about the ConfigMap plumbline.
func keysOfTables(page string) (all []string) {
	within, of := false, false
	for line := range strings.Lines(page) {
		switch first, _, _ := strings.Cut(strings.TrimPrefix(line, "| "), " | "); {
		case !strings.HasPrefix(line, "|"):
			within = false
		case !within:
			within, of = true, strings.Contains(first, "ConfigMap `plumbline`")
		case of:
			for _, key := range spans.FindAllString(first, -1) {
				all = append(all, strings.Trim(key, "`"))
			}
		}
	}
	return all
}
