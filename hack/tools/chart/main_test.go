// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"
)

var update = flag.Bool("update", false, "write the golden files")

const config = "../../../config"

// objects are the documents of a render, by kind, namespace and name.
type objects map[string]map[string]any

// tool runs a command.
func tool(t *testing.T, args ...string) (string, error) {
	t.Helper()
	var out bytes.Buffer
	err := run(args, &out)
	return out.String(), err
}

// rendered renders the chart in the namespace plumbline.
func rendered(t *testing.T, args ...string) objects {
	t.Helper()
	out, err := tool(t, append([]string{"template"}, args...)...)
	if err != nil {
		t.Fatal(err)
	}
	return parse(t, out)
}

func parse(t *testing.T, text string) objects {
	t.Helper()
	all := objects{}
	for _, document := range strings.Split("\n"+text, "\n---\n") {
		var object map[string]any
		if err := yaml.Unmarshal([]byte(document+"\n"), &object); err != nil {
			t.Fatalf("%v in\n%s", err, document)
		}
		if len(object) == 0 {
			continue
		}
		metadata := object["metadata"].(map[string]any)
		key := fmt.Sprint(object["kind"], " ", metadata["namespace"], "/", metadata["name"])
		if all[key] != nil {
			t.Fatalf("%s is there twice", key)
		}
		all[key] = object
	}
	return all
}

// manifests reads what `kubectl apply -f config/` applies.
func manifests(t *testing.T) objects {
	t.Helper()
	files, err := filepath.Glob(config + "/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("no manifests: %v", err)
	}
	var texts []string
	for _, file := range files {
		texts = append(texts, read(t, file))
	}
	return parse(t, strings.Join(texts, "\n---\n"))
}

// at returns a value within an object; a number is an index.
func at(t *testing.T, value any, path ...any) any {
	t.Helper()
	for _, step := range path {
		switch step := step.(type) {
		case string:
			value = value.(map[string]any)[step]
		case int:
			value = value.([]any)[step]
		}
	}
	return value
}

func container(t *testing.T, all objects, component string) map[string]any {
	t.Helper()
	deployment := all["Deployment plumbline/plumbline-"+component]
	return at(t, deployment, "spec", "template", "spec", "containers", 0).(map[string]any)
}

// golden compares what all has beyond base with a file, and names what it lacks.
func golden(t *testing.T, file string, base, all objects) {
	t.Helper()
	var out strings.Builder
	out.WriteString("# What differs from config/. Written by `go test . -update` in hack/tools/chart.\n")
	for _, key := range slices.Sorted(maps.Keys(base)) {
		if all[key] == nil {
			fmt.Fprintf(&out, "# Removed: %s\n", key)
		}
	}
	for _, key := range slices.Sorted(maps.Keys(all)) {
		if cmp.Equal(base[key], all[key]) {
			continue
		}
		object, err := yaml.Marshal(shortened(all[key]))
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&out, "---\n%s", object)
	}
	file = filepath.Join("testdata", file)
	if *update {
		if err := os.WriteFile(file, []byte(out.String()), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff(read(t, file), out.String()); diff != "" {
		t.Errorf("%s (-want +got):\n%s", file, diff)
	}
}

// shortened leaves out long texts, which other tests compare: the dashboard, the rules and the
// comments of the ConfigMap.
func shortened(object map[string]any) map[string]any {
	switch short := maps.Clone(object); object["kind"] {
	case "ConfigMap":
		data := maps.Clone(object["data"].(map[string]any))
		for key, value := range data {
			if len(value.(string)) > 1000 {
				data[key] = "(not in this file)"
			}
		}
		short["data"] = data
		return short
	case "PrometheusRule":
		short["spec"] = "(not in this file)"
		return short
	}
	return object
}

func read(t *testing.T, file string) string {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func values(t *testing.T, text string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "values.yaml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}
