// SPDX-License-Identifier: Apache-2.0

package web

import (
	"net/http"
	"testing"

	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/pkg/provider/egress"
)

func TestHubAddress(t *testing.T) {
	tests := map[string]struct {
		hub             Hub
		kind, reference string
		want            string
	}{
		"a task": {Hub{URL: "https://hub"}, HubTask, "git-clone",
			"https://hub/api/v1/packages/tekton-task/tekton-catalog-tasks/git-clone"},
		"a pipeline": {Hub{URL: "https://hub/"}, HubPipeline, "build",
			"https://hub/api/v1/packages/tekton-pipeline/tekton-catalog-pipelines/build"},
		"a version": {Hub{URL: "https://hub"}, HubTask, "git-clone:0.9.0",
			"https://hub/api/v1/packages/tekton-task/tekton-catalog-tasks/git-clone/0.9.0"},
		"with the API's path": {
			Hub{URL: "https://hub/api/v1"}, HubTask, "x", "https://hub/api/v1/packages/tekton-task/tekton-catalog-tasks/x",
		},
		"the default catalog": {Hub{URL: "https://hub", Catalog: "default"}, HubTask, "x",
			"https://hub/api/v1/packages/tekton-task/tekton-catalog-tasks/x"},
		"a catalog of one's": {
			Hub{URL: "https://hub/sub", Catalog: "a b"}, HubTask, "x", "https://hub/sub/api/v1/packages/tekton-task/a%20b/x",
		},
		"a path is no name":     {Hub{URL: "https://hub"}, HubTask, "../x", ""},
		"a query is no name":    {Hub{URL: "https://hub"}, HubTask, "x?y", ""},
		"a path is no version":  {Hub{URL: "https://hub"}, HubTask, "x:../../y", ""},
		"an empty version":      {Hub{URL: "https://hub"}, HubTask, "x:", ""},
		"no name":               {Hub{URL: "https://hub"}, HubTask, "", ""},
		"dots are no name":      {Hub{URL: "https://hub"}, HubTask, "..", ""},
		"a placeholder is none": {Hub{URL: "https://hub"}, HubTask, "{{ x }}", ""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := test.hub.Address(test.kind, test.reference)
			if got != test.want || (test.want == "") != fault.Is(err, fault.Invalid) {
				t.Errorf("%s, %v", got, err)
			}
		})
	}
}

func TestPackage(t *testing.T) {
	tests := map[string]struct {
		code  int
		body  string
		want  string
		class fault.Class
	}{
		"a definition":             {200, `{"data":{"manifestRaw":"kind: Task"},"version":"1"}`, "kind: Task", -1},
		"none":                     {200, `{"data":{}}`, "", fault.Invalid},
		"a page of something else": {200, `<html>`, "", fault.Transient},
		"JSON of something else":   {200, `{}`, "", fault.Transient},
		"null":                     {200, `null`, "", fault.Transient},
		"not there":                {404, `{"message":"not found"}`, "", fault.Invalid},
		"the hub wants a login":    {401, ``, "", fault.Operator},
		"the hub is down":          {503, ``, "", fault.Transient},
		"the hub is busy":          {429, ``, "", fault.Throttled},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			s := serve(t, func(w http.ResponseWriter, r *http.Request) {
				w.WriteHeader(test.code)
				text(test.body)(w, r)
			})
			// The hub is on this machine and reachable because it is the hub.
			got, err := New(Options{Proxy: direct}).Package(t.Context(), Hub{URL: s.URL}, s.URL+"/x", egress.Policy{})
			if string(got) != test.want || (test.class < 0) != (err == nil) || (err != nil && !fault.Is(err, test.class)) {
				t.Errorf("%q, %v", got, err)
			}
		})
	}
}
