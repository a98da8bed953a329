// SPDX-License-Identifier: Apache-2.0

package settings

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	pacv1alpha1 "github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode/v1alpha1"
)

const repository = `apiVersion: pipelinesascode.tekton.dev/v1alpha1
kind: Repository
metadata: {name: app}
spec:
  url: https://github.com/acme/app
  params: [{name: tier, value: gold}, {name: tier, value: silver, filter: 'pac.event == "push"'}, {name: region, value: eu}]
`

const configMap = `apiVersion: v1
kind: ConfigMap
metadata: {name: plumbline, namespace: plumbline}
data: {secret-auto-create: "false"}
`

func TestFromFiles(t *testing.T) {
	got, err := FromFiles([]byte("---\n# mine\n"+repository+"---\n"), []byte(configMap), "team")
	if err != nil {
		t.Fatal(err)
	}
	if got.Repository.Namespace != "team" || got.Repository.Name != "app" || got.Config.SecretAutoCreate ||
		len(got.Warnings) != 0 {
		t.Errorf("got %+v, %+v, %v", got.Repository.ObjectMeta, got.Config, got.Warnings)
	}
	// What kubectl get -o yaml adds is no mistake.
	served := strings.Replace(repository, "metadata: {name: app}",
		"metadata: {name: app, namespace: own, uid: x, resourceVersion: '1', managedFields: [{manager: kubectl}]}", 1) +
		"status: {conditions: [{type: Ready, status: 'True'}]}\n"
	if got, err = FromFiles([]byte(served), nil, ""); err != nil || got.Repository.Namespace != "own" ||
		!got.Config.SecretAutoCreate {
		t.Errorf("got %+v, %v", got, err)
	}
	if got, err = FromFiles([]byte(repository), nil, ""); err != nil || got.Repository.Namespace != "default" {
		t.Errorf("got %+v, %v, want the namespace default", got, err)
	}
}

func TestFromFilesWarns(t *testing.T) {
	got, err := FromFiles(nil, []byte(strings.Replace(configMap, "secret-auto-create", "secret-create", 1)), "")
	if err != nil || len(got.Warnings) != 1 || !strings.Contains(got.Warnings[0], `key "secret-create"`) {
		t.Errorf("got %v, %v, want one about the key", got.Warnings, err)
	}
}

func TestFromFilesRefuses(t *testing.T) {
	for name, test := range map[string]struct{ repository, config, namespace, want string }{
		"a field that is misspelt": {repository: strings.Replace(repository, "params:", "parms:", 1),
			want: `--repository: this is not a Repository: unknown field "spec.parms"`},
		"a field twice": {
			repository: repository + "  url: https://github.com/acme/other\n", want: `key "url" already set`,
		},
		"a value of another type": {repository: strings.Replace(repository, "value: gold", "value: [gold]", 1),
			want: "--repository: this is not a Repository: spec.params.value cannot be a list"},
		"a ConfigMap": {repository: configMap,
			want: "--repository: this is a ConfigMap of v1, not a Repository of pipelinesascode.tekton.dev/v1alpha1"},
		"a Repository of another API": {repository: strings.Replace(repository, "tekton.dev/v1alpha1", "tekton.dev/v2", 1),
			want: "this is a Repository of pipelinesascode.tekton.dev/v2, not"},
		"no kind": {repository: "spec: {}", want: "this is an object without a kind"},
		"no name": {
			repository: strings.Replace(repository, "name: app", "labels: {}", 1), want: "metadata.name is empty",
		},
		"no YAML": {repository: "a: b: c",
			want: "--repository: this is not a Repository in YAML: line 2: mapping values are not allowed"},
		"a text": {
			repository: "hello", want: "--repository: this is not a Repository in YAML: it cannot be a text",
		},
		"a list": {
			repository: "[1]", want: "--repository: this is not a Repository in YAML: it cannot be a list",
		},
		"nothing but comments": {repository: "# nothing\n---\n", want: "it is empty: it must hold one Repository"},
		"several objects": {
			repository: repository + "---\n" + configMap, want: "it holds several objects: it must hold one Repository",
		},
		"another namespace": {repository: strings.Replace(repository, "name: app", "name: app, namespace: a", 1),
			namespace: "b", want: "it is in the namespace a, and --namespace says b"},
		"a Repository as ConfigMap": {config: repository, want: "--config: this is a Repository of"},
		"a ConfigMap of numbers": {config: strings.Replace(configMap, `"false"`, "false", 1),
			want: "--config: this is not a ConfigMap: data cannot be true or false (put quotes around it)"},
		"binary data": {config: configMap + "binaryData: {a: YQ==}\n", want: "binaryData is not read"},
	} {
		t.Run(name, func(t *testing.T) {
			var given, config []byte
			if test.repository != "" {
				given = []byte(test.repository)
			}
			if test.config != "" {
				config = []byte(test.config)
			}
			_, err := FromFiles(given, config, test.namespace)
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want a sentence with %q", err, test.want)
			}
		})
	}
}

func TestServe(t *testing.T) {
	read := func() *Settings {
		s, err := FromFiles([]byte(repository), nil, "")
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	if err := read().Serve("https://GitHub.com/acme/App.git", ""); err != nil {
		t.Errorf("another spelling of the URL: %v", err)
	}
	if err := read().Serve("https://github.com/acme/other", ""); err == nil ||
		!strings.Contains(err.Error(), "Repository default/app is of https://github.com/acme/app") {
		t.Errorf("another URL: got %v", err)
	}
	none := &Settings{}
	if err := none.Serve("https://github.com/acme/My_App", ""); err != nil || none.Repository.Name != "my-app" ||
		none.Repository.Namespace != "default" || none.Repository.Spec.URL == "" {
		t.Errorf("got %+v, %v, want a plain Repository", none.Repository, err)
	}
}

func TestOverride(t *testing.T) {
	s, err := FromFiles([]byte(repository), nil, "")
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Override([]string{"tier=a=b", "new="}); err != nil {
		t.Fatal(err)
	}
	want := []pacv1alpha1.Params{{Name: "region", Value: "eu"}, {Name: "tier", Value: "a=b"}, {Name: "new"}}
	if diff := cmp.Diff(want, *s.Repository.Spec.Params); diff != "" {
		t.Errorf("params (-want +got):\n%s", diff)
	}
	for _, bad := range []string{"tier", "=x", ""} {
		if err := s.Override([]string{bad}); err == nil || !strings.Contains(err.Error(), "--param tier=gold") {
			t.Errorf("%q: got %v, want how to write it", bad, err)
		}
	}
}
