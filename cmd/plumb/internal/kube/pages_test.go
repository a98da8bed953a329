// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"errors"
	"slices"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestPagesContinuesWhereAListExpired(t *testing.T) {
	var read []string
	err := Pages(metav1.ListOptions{}, func(o metav1.ListOptions) (string, error) {
		read = append(read, o.Continue)
		if o.Continue == "second" {
			expired := apierrors.NewResourceExpired("too old")
			expired.ErrStatus.Continue = "second as it is now"
			return "", expired
		}
		return map[string]string{"": "second"}[o.Continue], nil
	})
	if want := []string{"", "second", "second as it is now"}; err != nil || !slices.Equal(read, want) {
		t.Errorf("%v: read %q, want %q", err, read, want)
	}
}

func TestPagesReturnsErrors(t *testing.T) {
	for _, want := range []error{errors.New("refused"), apierrors.NewResourceExpired("too old, without the rest")} {
		calls := 0
		err := Pages(metav1.ListOptions{}, func(metav1.ListOptions) (string, error) {
			calls++
			return "", want
		})
		if calls != 1 || !errors.Is(err, want) {
			t.Errorf("%d calls, and %v", calls, err)
		}
	}
}
