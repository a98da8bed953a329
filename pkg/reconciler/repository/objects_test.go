// SPDX-License-Identifier: Apache-2.0

package repository

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	pacv1alpha1 "github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
)

func repo(namespace, name, url string) *pacv1alpha1.Repository {
	return &pacv1alpha1.Repository{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: name, UID: types.UID(namespace + "-" + name), ResourceVersion: "7", Generation: 3,
		},
		Spec: pacv1alpha1.RepositorySpec{URL: url},
	}
}

func claimed(url, namespace, name string, releasedAt *metav1.Time) *v1alpha1.RepositoryClaim {
	c := makeClaim(systemNS, url, repo(namespace, name, url))
	c.UID, c.ResourceVersion = "claim-uid", "11"
	c.Status.ReleasedAt = releasedAt
	return c
}

func waiting(name string, waits ...v1alpha1.Wait) *v1alpha1.GitEvent {
	return &v1alpha1.GitEvent{
		ObjectMeta: metav1.ObjectMeta{Namespace: systemNS, Name: name},
		Spec:       v1alpha1.GitEventSpec{Repository: v1alpha1.RepositoryReference{Namespace: "one", Name: "app"}},
		Status:     v1alpha1.GitEventStatus{Waits: waits},
	}
}

func operatorWait(reason string, since time.Duration) v1alpha1.Wait {
	return v1alpha1.Wait{
		Step: "report", Class: "Operator", Reason: reason, Message: "message of " + reason,
		Since: metav1.NewTime(start.Add(since)),
	}
}
