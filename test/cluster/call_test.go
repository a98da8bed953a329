// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"net/http/httptest"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

func TestCallIsReadFromTheRequest(t *testing.T) {
	const tekton = "/apis/tekton.dev/v1"
	for _, test := range []struct {
		about, method, path string
		want                Call
	}{
		{"a list in a namespace", "GET", tekton + "/namespaces/ci/pipelineruns",
			Call{Verb: "list", Group: "tekton.dev", Resource: "pipelineruns", Namespace: "ci"}},
		{"a list over all namespaces", "GET", tekton + "/pipelineruns",
			Call{Verb: "list", Group: "tekton.dev", Resource: "pipelineruns"}},
		{"a watch", "GET", tekton + "/pipelineruns?watch=true",
			Call{Verb: "watch", Group: "tekton.dev", Resource: "pipelineruns"}},
		{"a watch of one object", "GET", "/api/v1/namespaces/ci/secrets?watch=1&fieldSelector=metadata.name%3Dx",
			Call{Verb: "watch", Resource: "secrets", Namespace: "ci", Name: "x"}},
		{"a get", "GET", tekton + "/namespaces/ci/pipelineruns/x",
			Call{Verb: "get", Group: "tekton.dev", Resource: "pipelineruns", Namespace: "ci", Name: "x"}},
		{"an update of the status", "PUT", tekton + "/namespaces/ci/pipelineruns/x/status",
			Call{
				Verb: "update", Group: "tekton.dev", Resource: "pipelineruns", Subresource: "status", Namespace: "ci", Name: "x",
			}},
		{"a patch", "PATCH", "/api/v1/namespaces/ci/configmaps/x",
			Call{Verb: "patch", Resource: "configmaps", Namespace: "ci", Name: "x"}},
		{"a create", "POST", "/api/v1/namespaces/ci/events",
			Call{Verb: "create", Resource: "events", Namespace: "ci"}},
		{"a token request", "POST", "/api/v1/namespaces/ci/serviceaccounts/default/token",
			Call{Verb: "create", Resource: "serviceaccounts", Subresource: "token", Namespace: "ci", Name: "default"}},
		{"a delete of all", "DELETE", tekton + "/namespaces/ci/pipelineruns",
			Call{Verb: "deletecollection", Group: "tekton.dev", Resource: "pipelineruns", Namespace: "ci"}},
		{"a namespace itself", "DELETE", "/api/v1/namespaces/ci",
			Call{Verb: "delete", Resource: "namespaces", Namespace: "ci", Name: "ci"}},
		{"a namespace's own subresource", "PUT", "/api/v1/namespaces/ci/finalize",
			Call{Verb: "update", Resource: "namespaces", Subresource: "finalize", Namespace: "ci", Name: "ci"}},
		{"all namespaces", "GET", "/api/v1/namespaces", Call{Verb: "list", Resource: "namespaces"}},
		{"discovery names no resource", "GET", "/apis/tekton.dev/v1", Call{Verb: "get", Group: "tekton.dev"}},
		{"the version names no resource", "GET", "/version", Call{Verb: "get"}},
	} {
		t.Run(test.about, func(t *testing.T) {
			got := parseCall(httptest.NewRequest(test.method, test.path, nil))
			if diff := cmp.Diff(test.want, got, cmpopts.IgnoreFields(Call{}, "Time", "UserAgent")); diff != "" {
				t.Errorf("call (-want +got):\n%s", diff)
			}
		})
	}
}
