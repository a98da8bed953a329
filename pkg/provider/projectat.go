// SPDX-License-Identifier: Apache-2.0

package provider

import (
	"net/url"
	"path"
	"strings"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
)

// ProjectAt reads a project's path off its canonical URL. Without git_provider.url a server is
// taken to be at the root of its host.
func ProjectAt(base, canonical string) v1alpha1.Project {
	project := v1alpha1.Project{URL: canonical}
	at, err := url.Parse(base)
	page, err2 := url.Parse(canonical)
	if err != nil || err2 != nil {
		return project // which the service refuses
	}
	own := strings.Trim(page.Path, "/")
	below := strings.Trim(at.Path, "/")
	if below != "" && len(own) > len(below) && strings.EqualFold(own[:len(below)+1], below+"/") {
		own = own[len(below)+1:]
	}
	project.Owner, project.Name = path.Split(own)
	project.Owner = strings.Trim(project.Owner, "/")
	return project
}
