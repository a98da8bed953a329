// SPDX-License-Identifier: Apache-2.0

package gitlab

import (
	"context"

	gl "github.com/xanzy/go-gitlab"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/provider"
	"github.com/plumbline-ci/plumbline/pkg/provider/gitlab/api"
)

// identify implements provider.Provider.Identify.
func (s *service) identify(
	ctx context.Context, baseURL string, p v1alpha1.Project, c provider.Credentials,
) (int64, error) {
	base, err := baseOf(baseURL, p)
	if err != nil {
		return 0, err
	}
	client, _, err := s.client(base, c)
	if err != nil {
		return 0, err
	}
	path := p.Owner + "/" + p.Name
	found, _, err := client.Projects.GetProject(path, nil, gl.WithContext(ctx))
	switch {
	case err != nil:
		return 0, provider.Failed("reading "+path, err)
	case found.ID <= 0:
		return 0, api.NoAnswer("reading " + path)
	}
	return int64(found.ID), nil
}
