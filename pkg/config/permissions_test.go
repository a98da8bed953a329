// SPDX-License-Identifier: Apache-2.0

package config

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	pacv1alpha1 "github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode/v1alpha1"
)

// S28: a run's token reads its repository, and more only where the Repository asks and the
// administrator allows.
func TestRunToken(t *testing.T) {
	for name, test := range map[string]struct {
		allowed string
		asked   map[string]pacv1alpha1.PermissionLevel
		want    Permissions
		denied  []string
	}{
		"no permission is requested": {
			allowed: "checks: write", want: Permissions{"contents": "read", "metadata": "read"},
		},
		"nothing is allowed unless it is set": {
			asked: map[string]pacv1alpha1.PermissionLevel{"statuses": "write", "checks": "write"},
			want:  Permissions{"contents": "read", "metadata": "read"}, denied: []string{"checks: write", "statuses: write"},
		},
		"what is allowed is granted": {
			allowed: "pull_requests: write, contents: write",
			asked:   map[string]pacv1alpha1.PermissionLevel{"pull_requests": "read", "contents": "write"},
			want:    Permissions{"contents": "write", "metadata": "read", "pull_requests": "read"},
		},
		"more than is allowed is granted as far as it is": {
			allowed: "packages: read", asked: map[string]pacv1alpha1.PermissionLevel{"packages": "write"},
			want: Permissions{"contents": "read", "metadata": "read", "packages": "read"}, denied: []string{"packages: write"},
		},
		"less than each token has takes nothing away": {asked: map[string]pacv1alpha1.PermissionLevel{"contents": "read",
			"metadata": ""}, want: Permissions{"contents": "read", "metadata": "read"}},
	} {
		t.Run(name, func(t *testing.T) {
			c, err := New(map[string]string{keyRunPermissions: test.allowed})
			if err != nil {
				t.Fatal(err)
			}
			got, denied := c.RunToken(test.asked)
			if diff := cmp.Diff(test.want, got) + cmp.Diff(test.denied, denied); diff != "" {
				t.Error(diff)
			}
		})
	}
}
