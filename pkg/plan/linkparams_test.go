// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	pacv1alpha1 "github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/config"
	"github.com/plumbline-ci/plumbline/pkg/git"
	"github.com/plumbline-ci/plumbline/pkg/pipeline/template"
)

// Links use the params of the event. They never use the value of a Secret, which is not even read,
// and no pipeline waits for what a link needs.
func TestLinkParams(t *testing.T) {
	t.Parallel()
	const base = "https://lens.example.com"
	settings := func(template string) *config.Config {
		c, err := config.New(map[string]string{
			"custom-console-url": base, "custom-console-url-pr-details": base + template,
		})
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	params := []pacv1alpha1.Params{
		{Name: "team", Value: "blue & green"},
		{Name: "area", Value: "pulls", Filter: `event == "pull_request"`},
		{Name: "area", Value: "pushes", Filter: `event == "push"`},
		{Name: "urgent", Value: "yes", Filter: `body.urgent`},
		{Name: "long", Value: strings.Repeat("x", 257)},
		{Name: "password", SecretRef: &pacv1alpha1.Secret{Name: "passwords", Key: "one"}},
	}
	for name, test := range map[string]struct {
		template string
		want     map[string]string
		link     string
		failing  bool
	}{
		"no params": {"/{{ namespace }}", nil, base + "/ci", false},
		"params of this event": {
			"/{{ team }}/{{ area }}", map[string]string{"team": "blue & green", "area": "pushes"}, base + "/blue%20%26%20green/pushes", false,
		},
		"standard variables":       {"/{{ revision }}", map[string]string{"revision": sha}, base + "/" + sha, false},
		"a secret":                 {"/{{ team }}?p={{ password }}", map[string]string{"team": "blue & green"}, base, false},
		"a name that no param has": {"/{{ tame }}", nil, base, false},
		"a long value":             {"/{{ long }}", nil, base, false},
		"a filter of the payload":  {"/{{ urgent }}", map[string]string{"urgent": "yes"}, base + "/yes", false},
		"a filter whose payload cannot be read delays nothing": {"/{{ urgent }}", nil, base, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			in := with(push(), params...)
			in.Config = settings(test.template)
			in.Repository.Namespace = "ci"
			w := &env{
				files: []git.File{pipeline("build")}, payload: `{"urgent":true}`,
				secrets: map[template.SecretRef]string{{Name: "passwords", Key: "one"}: "correct horse"},
			}
			if test.failing {
				w.payloadErr = down()
			}
			made := w.make(t, in)
			if len(made.Runs) != 1 || made.Runs[0].Unresolved || made.Wait != nil {
				t.Fatalf("runs %+v, wait %v", made.Runs, made.Wait)
			}
			if diff := cmp.Diff(test.want, made.Runs[0].LinkParams); diff != "" {
				t.Errorf("params (-want +got):\n%s", diff)
			}
			link := decoded(t, made.Runs[0]).Annotations["pipelinesascode.tekton.dev/log-url"]
			if link = strings.ReplaceAll(link, made.Runs[0].Namespace, "ci"); link != test.link {
				t.Errorf("the run links to %q, want %q", link, test.link)
			}
			if w.count("secret") != 0 {
				t.Errorf("a secret was read: %q", w.asked)
			}
		})
	}
}
