// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"knative.dev/pkg/leaderelection"
	"knative.dev/pkg/system"
)

// errNotYet is the response of an API server that has not read the roles yet.
var errNotYet = apierrors.NewForbidden(corev1.Resource("configmaps"), "leader-election", errors.New("not yet"))

// An API server that refuses is read again for ten seconds. Only a missing object counts as none.
func TestElectionSettingsAreRetried(t *testing.T) {
	t.Setenv(system.NamespaceEnvKey, "plumbline")
	theirs := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: "plumbline", Name: leaderelection.ConfigMapName()},
	}
	for name, tc := range map[string]struct {
		objects   []runtime.Object
		refusals  int
		want      string
		wantError error
		wantWait  time.Duration
	}{
		"there": {objects: []runtime.Object{theirs}, want: theirs.Name},
		"there, refused twice": {
			objects: []runtime.Object{theirs}, refusals: 2, want: theirs.Name, wantWait: 2 * time.Second,
		},
		"none":               {},
		"none, refused once": {refusals: 1, wantWait: time.Second},
		"refused, and not ended": {
			objects: []runtime.Object{theirs}, refusals: 1000, wantError: errNotYet, wantWait: settingsWithin,
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				client, refusals, begin := fake.NewClientset(tc.objects...), tc.refusals, time.Now()
				client.PrependReactor("get", "configmaps", func(clienttesting.Action) (bool, runtime.Object, error) {
					refusals--
					return refusals >= 0, nil, errNotYet
				})
				cm, err := electionSettings(t.Context(), client)
				if !errors.Is(err, tc.wantError) {
					t.Errorf("error %v, want %v", err, tc.wantError)
				}
				switch {
				case tc.want == "" && cm != nil:
					t.Errorf("ConfigMap %s, want none", cm.Name)
				case tc.want != "" && (cm == nil || cm.Name != tc.want):
					t.Errorf("ConfigMap %v, want %s", cm, tc.want)
				}
				if waited := time.Since(begin); waited != tc.wantWait {
					t.Errorf("retried for %s, want %s", waited, tc.wantWait)
				}
			})
		})
	}
}
