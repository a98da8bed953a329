// SPDX-License-Identifier: Apache-2.0

package git

import (
	"net/url"
	"strconv"
	"strings"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
)

// The values of GitEventSpec.Provider.
const (
	GitHub = "github"
	GitLab = "gitlab"
)

// FilePage returns the web page of a file at a commit, and of a line of it if line is not 0. It is
// "" for a Git service whose pages are unknown.
func FilePage(spec *v1alpha1.GitEventSpec, sha, path string, line int) string {
	infix, known := map[string]string{GitHub: "/blob/", GitLab: "/-/blob/"}[spec.Provider]
	if !known || sha == "" || path == "" {
		return ""
	}
	parts := strings.Split(path, "/")
	for i := range parts {
		parts[i] = url.PathEscape(parts[i])
	}
	page := strings.TrimSuffix(spec.Project.URL, "/") + infix + sha + "/" + strings.Join(parts, "/")
	if line > 0 {
		page += "#L" + strconv.Itoa(line)
	}
	return page
}

// ServiceName returns the name that people know the Git service of an event by.
func ServiceName(spec *v1alpha1.GitEventSpec) string {
	if name, known := map[string]string{GitHub: "GitHub", GitLab: "GitLab"}[spec.Provider]; known {
		return name
	}
	return "the Git service"
}
