// SPDX-License-Identifier: Apache-2.0

package applog

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	pacv1alpha1 "github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline"
	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/config"
)

// A URL is bound to the number of a repository that was deleted at the Git service and made anew:
// the new one's is not known until an event of it is planned, if the Repository was made anew as
// well or says that the new one is the right one.
func TestANumberOfBefore(t *testing.T) {
	for name, c := range map[string]struct {
		by          types.UID
		annotations map[string]string
		want        bool
	}{
		"the Repository was made anew":              {by: "before", want: true},
		"the new one is confirmed":                  {by: "uid", annotations: map[string]string{plumbline.RepositoryIDAnnotation: "17/4"}, want: true},
		"the new one is not confirmed":              {by: "uid"},
		"the old one is confirmed":                  {by: "uid", annotations: map[string]string{plumbline.RepositoryIDAnnotation: "17/9"}},
		"what is confirmed cannot be read":          {by: "uid", annotations: map[string]string{plumbline.RepositoryIDAnnotation: "4"}},
		"made anew, and says that it is of another": {by: "before", annotations: map[string]string{plumbline.RepositoryIDAnnotation: "17/5"}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			url := "https://github.com/acme/app"
			repository := &pacv1alpha1.Repository{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "app", UID: "uid", Annotations: c.annotations}, Spec: pacv1alpha1.RepositorySpec{URL: url}}
			claim := &v1alpha1.RepositoryClaim{
				ObjectMeta: metav1.ObjectMeta{Namespace: system, Name: v1alpha1.ClaimName(url)},
				Spec:       v1alpha1.RepositoryClaimSpec{URL: url, Repository: v1alpha1.ClaimOwner{Namespace: "team", Name: "app", UID: "before"}},
				Status:     v1alpha1.RepositoryClaimStatus{Bound: &v1alpha1.BoundProject{ProjectIdentity: v1alpha1.ProjectIdentity{ID: 9, OwnerID: 17}, RepositoryUID: c.by}},
			}
			if err := w.repos.Add(repository); err != nil {
				t.Fatal(err)
			}
			if err := w.claims.Add(claim); err != nil {
				t.Fatal(err)
			}
			w.receive = nobody
			w.deliver("missed", 4)
			w.receive = nil
			w.heard()
			w.run(time.Minute)
			if got := w.recorded["missed"] > 0; got != c.want {
				t.Errorf("it is recorded: %t, want %t", got, c.want)
			}
		})
	}
}

// What another installation serves is not asked for, also while this one has a claim of before.
func TestNothingIsAskedForNamespacesThatAreNotServed(t *testing.T) {
	w := newWorld(t)
	w.serve(1)
	for setting, want := range map[string]bool{"team": true, "!team": false} {
		w.settings.OnConfigChanged(&corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Namespace: system, Name: config.Name}, Data: map[string]string{"serve-namespaces": setting},
		})
		if got := w.process.servedAt("https://github.com").may(1); got != want {
			t.Errorf("%s: %t, want %t", setting, got, want)
		}
	}
}

// A controller that starts with a bad value does not know what is served: what is missed stays
// written down until it does.
func TestNothingMissedIsDroppedWhileTheSettingCannotBeRead(t *testing.T) {
	w := newWorld(t)
	w.serve(1)
	w.receive = nobody
	w.deliver("missed", 1)
	configure := func(value string) {
		w.settings.OnConfigChanged(&corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Namespace: system, Name: config.Name}, Data: map[string]string{"serve-namespaces": value},
		})
	}
	configure("bad_value")
	w.heard()
	w.run(10 * time.Minute)
	w.receive = nil
	w.run(time.Hour)
	w.deliver("later", 2)
	w.run(10 * time.Minute)
	configure("team")
	w.heard()
	w.run(10 * time.Minute)
	if w.recorded["missed"] == 0 {
		t.Error("it is not asked for")
	}
}
