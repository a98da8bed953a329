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
	again := apierrors.NewResourceExpired("too old, and the rest begins where this page began")
	again.ErrStatus.Continue = "second"
	other := apierrors.NewInternalError(errors.New("not about the version"))
	other.ErrStatus.Continue = "third"
	for _, want := range []error{
		errors.New("refused"), apierrors.NewResourceExpired("too old, without the rest"), again, other,
	} {
		var read []string
		err := Pages(metav1.ListOptions{}, func(o metav1.ListOptions) (string, error) {
			read = append(read, o.Continue)
			if o.Continue == "" {
				return "second", nil
			}
			if len(read) > 2 {
				return "", nil
			}
			return "third", want
		})
		if pages := []string{"", "second"}; !slices.Equal(read, pages) || !errors.Is(err, want) {
			t.Errorf("%v: read %q, and returned %v", want, read, err)
		}
	}
}

func TestPagesAreLimited(t *testing.T) {
	for given, want := range map[int64]int64{0: pageSize, 20: 20} {
		err := Pages(metav1.ListOptions{Limit: given}, func(o metav1.ListOptions) (string, error) {
			if o.Limit != want {
				t.Errorf("limit %d is %d, want %d", given, o.Limit, want)
			}
			return "", nil
		})
		if err != nil {
			t.Error(err)
		}
	}
}
