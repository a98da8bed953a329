// SPDX-License-Identifier: Apache-2.0

package applog

import (
	"fmt"
	"testing"
	"time"

	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	pacv1alpha1 "github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline"
	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/config"
)

// A URL is bound to the number of a repository that was deleted and recreated at GitHub. The new
// number is not known until an event is planned, if the Repository was recreated as well or
// confirms the new one.
func TestNumberOfRecreatedRepository(t *testing.T) {
	for name, c := range map[string]struct {
		by          types.UID
		annotations map[string]string
		want        bool
	}{
		"the Repository was recreated": {by: "before", want: true},
		"the new one is confirmed": {
			by: "uid", annotations: map[string]string{plumbline.RepositoryIDAnnotation: "17/4"}, want: true,
		},
		"the new one is not confirmed": {by: "uid"},
		"the old one is confirmed": {
			by: "uid", annotations: map[string]string{plumbline.RepositoryIDAnnotation: "17/9"},
		},
		"what is confirmed cannot be read": {
			by: "uid", annotations: map[string]string{plumbline.RepositoryIDAnnotation: "4"},
		},
		"recreated, and says that it is of another": {
			by: "before", annotations: map[string]string{plumbline.RepositoryIDAnnotation: "17/5"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			e := newEnv(t)
			url := "https://github.com/acme/app"
			repository := &pacv1alpha1.Repository{ObjectMeta: metav1.ObjectMeta{
				Namespace: "team", Name: "app", UID: "uid", Annotations: c.annotations,
			}, Spec: pacv1alpha1.RepositorySpec{URL: url}}
			claim := &v1alpha1.RepositoryClaim{
				ObjectMeta: metav1.ObjectMeta{Namespace: system, Name: v1alpha1.ClaimName(url)},
				Spec: v1alpha1.RepositoryClaimSpec{
					URL: url, Repository: v1alpha1.ClaimOwner{Namespace: "team", Name: "app", UID: "before"},
				},
				Status: v1alpha1.RepositoryClaimStatus{
					Bound: &v1alpha1.BoundProject{ProjectIdentity: v1alpha1.ProjectIdentity{ID: 9, OwnerID: 17}, RepositoryUID: c.by},
				},
			}
			if err := e.repos.Add(repository); err != nil {
				t.Fatal(err)
			}
			if err := e.claims.Add(claim); err != nil {
				t.Fatal(err)
			}
			e.miss("missed", 4)
			e.signal()
			e.run(time.Minute)
			if got := e.recorded["missed"] > 0; got != c.want {
				t.Errorf("it is recorded: %t, want %t", got, c.want)
			}
		})
	}
}

// Another installation serves such a namespace, even while this one still has a claim. If it is
// Pipelines-as-Code, the receivers forward to it what is requested here.
func TestNamespacesThatAreNotServedGetNoRequests(t *testing.T) {
	e := newEnv(t)
	e.serve(1)
	for _, c := range []struct {
		serve, pac, host string
		want             bool
	}{
		{serve: "team", want: true},
		{serve: "!team", want: false},
		{serve: "!team", pac: "http://pac:8080", want: true},
		{serve: "!team", pac: "http://pac:8080", host: "ghe.", want: false},
		{serve: "!team", pac: "invalid", want: true},
	} {
		e.settings = config.NewStore(zap.NewNop().Sugar())
		e.settings.OnConfigChanged(&corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Namespace: system, Name: config.Name},
			Data:       map[string]string{"serve-namespaces": c.serve, "pipelines-as-code-url": c.pac},
		})
		e.start()
		if got := e.source.servedAt("https://" + c.host + "github.com").may(1); got != c.want {
			t.Errorf("%+v: %t", c, got)
		}
	}
}

// A controller that starts with an invalid serve-namespaces does not know what is served. The
// ledger keeps everything until the setting is valid.
func TestBrokenServeNamespacesDropsNothing(t *testing.T) {
	e := newEnv(t)
	e.serve(1)
	e.receive = unreachable
	e.deliver("missed", 1)
	configure := func(value string) {
		e.settings.OnConfigChanged(&corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Namespace: system, Name: config.Name},
			Data:       map[string]string{"serve-namespaces": value},
		})
	}
	configure("bad_value")
	e.signal()
	e.run(10 * time.Minute)
	e.receive = nil
	e.run(time.Hour)
	e.deliver("later", 2)
	e.run(10 * time.Minute)
	configure("team")
	e.signal()
	e.run(10 * time.Minute)
	if e.recorded["missed"] == 0 {
		t.Error("it is not requested")
	}
}

// Pipelines-as-Code may be down for longer than it takes to give a delivery up that receivers
// refuse. Its deliveries are requested once an hour, until GitHub refuses that.
func TestDeliveriesOfPipelinesAsCodeAreNotGivenUp(t *testing.T) {
	e := newEnv(t)
	e.settings.OnConfigChanged(&corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: system, Name: config.Name},
		Data:       map[string]string{"serve-namespaces": "team", "pipelines-as-code-url": "http://pac:8080"},
	})
	theirs := &pacv1alpha1.Repository{
		ObjectMeta: metav1.ObjectMeta{Namespace: "theirs", Name: "app"},
		Spec:       pacv1alpha1.RepositorySpec{URL: "https://github.com/acme/theirs"},
	}
	if err := e.repos.Add(theirs); err != nil {
		t.Fatal(err)
	}
	e.receive = refuses("theirs")
	e.deliver("theirs", 99)
	for n := range 24 {
		e.deliver(fmt.Sprint("good-", n), 1)
		e.run(time.Hour)
	}
	if n := len(e.requests); n < 20 || n > 40 {
		t.Errorf("it was requested %d times in a day", n)
	}
	e.receive = nil
	e.run(2 * time.Hour)
	e.wantRecorded("theirs")
}
