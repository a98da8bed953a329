// SPDX-License-Identifier: Apache-2.0

package git

import (
	"testing"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
)

func TestFilePageIsThatOfTheService(t *testing.T) {
	for _, test := range []struct {
		provider, url, sha, path string
		line                     int
		want                     string
	}{
		{"github", "https://github.com/acme/app", "abc", ".tekton/build.yaml", 3,
			"https://github.com/acme/app/blob/abc/.tekton/build.yaml#L3"},
		{"gitlab", "https://git.example/sub/acme/app", "abc", ".tekton/build.yaml", 3,
			"https://git.example/sub/acme/app/-/blob/abc/.tekton/build.yaml#L3"},
		{"github", "https://github.com/acme/app/", "abc", ".tekton/a b/#1?.yaml", 0,
			"https://github.com/acme/app/blob/abc/.tekton/a%20b/%231%3F.yaml"},
		{"github", "https://github.com/acme/app", "", ".tekton/build.yaml", 3, ""},
		{"github", "https://github.com/acme/app", "abc", "", 3, ""},
		{"other", "https://example.com/acme/app", "abc", ".tekton/build.yaml", 3, ""},
	} {
		spec := &v1alpha1.GitEventSpec{Provider: test.provider, Project: v1alpha1.Project{URL: test.url}}
		if got := FilePage(spec, test.sha, test.path, test.line); got != test.want {
			t.Errorf("%+v: %q", test, got)
		}
	}
}
