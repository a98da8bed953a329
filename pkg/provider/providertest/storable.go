// SPDX-License-Identifier: Apache-2.0

package providertest

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/provider"
)

type field struct {
	name, value string
	limit       int
}

// Storable checks the limits of the GitEvent CRD that a delivery could exceed.
func Storable(t *testing.T, spec *v1alpha1.GitEventSpec) {
	t.Helper()
	project := spec.Project
	limits := []field{
		{"host", spec.Host, 255}, {"deliveryKey", spec.DeliveryKey, 255}, {"action", spec.Action, 63},
		{"project.owner", project.Owner, 1024}, {"project.name", project.Name, 255}, {"project.url", project.URL, 2048},
		{"project.defaultBranch", project.DefaultBranch, 1024}, {"before", spec.Before, 64},
		{"baseRef", spec.BaseRef, 1024}, {"headRef", spec.HeadRef, 1024}, {"headURL", spec.HeadURL, 2048},
		{"sender", spec.Sender, 255}, {"actor", spec.Actor, 255},
	}
	if c := spec.Commit; c != nil {
		limits = append(limits, field{"commit.title", c.Title, 1024}, field{"commit.url", c.URL, 2048})
	}
	if p := spec.PullRequest; p != nil {
		limits = append(limits, field{"title", p.Title, 1024}, field{"author", p.Author, 255},
			field{"labels", strings.Join(p.Labels, ""), 100 * 255})
	}
	for _, l := range limits {
		if len(l.value) > l.limit || strings.Contains(l.value, "\x00") {
			t.Errorf("%s has %d bytes, at most %d are stored: %.50q", l.name, len(l.value), l.limit, l.value)
		}
	}
	if !provider.IsSHA(spec.SHA) && (spec.Comment == nil || spec.SHA != "") {
		t.Errorf("SHA %q", spec.SHA)
	}
	data, err := json.Marshal(spec)
	if err != nil {
		t.Fatal(err)
	}
	stored := &v1alpha1.GitEventSpec{}
	if err := json.Unmarshal(data, stored); err != nil {
		t.Fatal(err)
	}
	options := cmp.Options{
		cmpopts.EquateEmpty(),
		cmpopts.IgnoreFields(v1alpha1.Comment{}, "Body"),
		cmpopts.IgnoreFields(v1alpha1.GitEventSpec{}, "Body"),
	}
	if diff := cmp.Diff(spec, stored, options); diff != "" {
		t.Errorf("changed on the way to the API server and back: %s", diff)
	}
}
