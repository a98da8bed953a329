// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"errors"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func TestRightNamesVerbResourceAndNamespace(t *testing.T) {
	forbidden := func(why string) error {
		return apierrors.NewForbidden(schema.GroupResource{Resource: "x"}, "y", errors.New(why))
	}
	for name, test := range map[string]struct {
		err  error
		want string
	}{
		"in a namespace": {forbidden(`User "eve" cannot get resource "secrets" in API group "" in the namespace "ci"`), "get secrets in namespace ci"},
		"of the cluster": {
			forbidden(`User "eve" cannot create resource "subjectaccessreviews" in API group "authorization.k8s.io" at the cluster scope`),
			"create subjectaccessreviews.authorization.k8s.io in all namespaces",
		},
		"of a path": {
			apierrors.NewForbidden(schema.GroupResource{}, "", errors.New(`User "eve" cannot get path "/openapi/v3"`)),
			"get /openapi/v3",
		},
		"by a policy":   {forbidden("exceeded quota: pods"), `x "y" is forbidden: exceeded quota: pods`},
		"another error": {errors.New("connection refused"), ""},
		"no error":      {nil, ""},
	} {
		if got := Right(test.err); got != test.want {
			t.Errorf("%s: the right is %q, want %q", name, got, test.want)
		}
	}
	said := Failed("reading the Secret", forbidden(`User "eve" cannot get resource "secrets" in API group "" in the namespace "ci"`)).Error()
	if !strings.Contains(said, "this account lacks the right to get secrets in namespace ci") {
		t.Error(said)
	}
}

func TestHostIsPrintedWithoutPassword(t *testing.T) {
	for address, want := range map[string]string{
		"https://eve:secret@10.0.0.1:6443": "https://10.0.0.1:6443", "https://a.example": "https://a.example", ":": ":",
	} {
		if got := withoutUser(address); got != want {
			t.Errorf("%s is printed as %s, want %s", address, got, want)
		}
	}
}
