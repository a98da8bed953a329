// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"cmp"
	"errors"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// pageSize is how many objects one call reads by default.
const pageSize = 500

// Pages calls list for one page after the other. If the API server has discarded the version of the
// earlier pages, it offers the rest as it is now, and that is read.
func Pages(o metav1.ListOptions, list func(metav1.ListOptions) (next string, err error)) error {
	o.Limit = cmp.Or(o.Limit, pageSize)
	for {
		next, err := list(o)
		if rest := restOf(err); rest != "" && rest != o.Continue {
			o.Continue = rest
			continue
		}
		if err != nil || next == "" {
			return err
		}
		o.Continue = next
	}
}

// restOf returns where a list continues that has expired, "" if the error does not say that.
func restOf(err error) string {
	if answer := apierrors.APIStatus(nil); apierrors.IsResourceExpired(err) && errors.As(err, &answer) {
		return answer.Status().Continue
	}
	return ""
}
