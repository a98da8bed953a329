// SPDX-License-Identifier: Apache-2.0

package webhooksecret

import (
	"testing"

	pacv1alpha1 "github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode/v1alpha1"
)

// The secrets of spec.incoming are copied too: a Repository's own, and for one without rules those
// of the global Repository. A missing one is no problem of the webhook.
func TestSecretsOfIncomingRulesAreCopied(t *testing.T) {
	w := newEnv(t,
		secret("team", "calls", map[string]string{"secret": "one", "k": "two", "k.previous": "before"}),
		secret(system, "all", map[string]string{"secret": "of all"}))
	rules := func(namespace, name string, rules ...pacv1alpha1.Incoming) {
		r := &pacv1alpha1.Repository{}
		r.Namespace, r.Name, r.Spec.URL = namespace, name, "https://git.example/"+namespace+"/"+name
		if rules != nil {
			r.Spec.Incomings = &rules
		}
		if err := w.cached.Add(r); err != nil {
			t.Fatal(err)
		}
		w.r.names.changed()
	}
	rules("team", "app", pacv1alpha1.Incoming{Secret: pacv1alpha1.Secret{Name: "calls"}},
		pacv1alpha1.Incoming{Secret: pacv1alpha1.Secret{Name: "calls", Key: "k"}},
		pacv1alpha1.Incoming{Secret: pacv1alpha1.Secret{Name: "gone"}}, pacv1alpha1.Incoming{})
	rules("other", "app")
	rules(system, "pipelines-as-code", pacv1alpha1.Incoming{Secret: pacv1alpha1.Secret{Name: "all"}})
	w.reconcile()
	w.wantCopy("team", "calls", "secret", "one")
	w.wantCopy("team", "calls", "k", "two before")
	w.wantCopy("team", "gone", "secret", "")
	w.wantCopy(system, "all", "secret", "of all")
	if !w.complete() {
		t.Error("no receiver becomes ready because of a missing secret")
	}
	rules("team", "app")
	w.reconcile()
	w.wantCopy("team", "calls", "secret", "")
}
