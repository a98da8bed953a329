// SPDX-License-Identifier: Apache-2.0

package installation

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	kubeclient "knative.dev/pkg/client/injection/kube/client"
	"knative.dev/pkg/injection"

	pacv1alpha1 "github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/client/clientset/versioned"
	"github.com/plumbline-ci/plumbline/pkg/runtime/kubeevents"
)

// controllerAccount is a client configuration with the rights of the controller's ServiceAccount.
func controllerAccount() *rest.Config {
	config := rest.CopyConfig(shared.Cluster.RESTConfig())
	config.Impersonate = rest.ImpersonationConfig{
		UserName: "system:serviceaccount:" + product + ":plumbline-controller",
		Groups:   []string{"system:serviceaccounts", "system:authenticated"},
	}
	return config
}

// The controller's account writes status.recent, the API server stores each field of it, and
// kubectl get shows the newest outcome and the age.
func TestRecentEventsAreStoredAndShown(t *testing.T) {
	ctx := within(t)
	namespace := shared.Cluster.Namespace(t, "team")
	account := versioned.NewForConfigOrDie(controllerAccount())
	repositories := account.PipelinesascodeV1alpha1().Repositories(namespace)
	object, err := shared.Plumbline.PipelinesascodeV1alpha1().Repositories(namespace).Create(ctx, &pacv1alpha1.Repository{
		ObjectMeta: metav1.ObjectMeta{Name: "app"}, Spec: pacv1alpha1.RepositorySpec{URL: "https://github.com/acme/recent"},
	}, metav1.CreateOptions{})
	must(t, err)
	last, age := shownBy(ctx, t, account, namespace)
	if last != nil || age == "" {
		t.Errorf("without events LAST is %v and AGE is %q", last, age)
	}

	at := metav1.NewTime(time.Now().Truncate(time.Second))
	for n := range pacv1alpha1.MaxRecent {
		object.Status.Recent = append(object.Status.Recent, pacv1alpha1.RecentEvent{
			Event: fmt.Sprint("push-", n), Commit: strings.Repeat("a", 40), Ref: "main", Trigger: "push",
			Outcome: fmt.Sprintf("Failed: %d of 10", n+1), Reason: "Selected", Message: strings.Repeat("m", 256),
			Runs: slices.Repeat([]string{"build-b5oippflxfeh5"}, pacv1alpha1.MaxRecentRuns), Time: at, FinishedAt: &at,
		})
	}
	stored, err := repositories.UpdateStatus(ctx, object, metav1.UpdateOptions{})
	must(t, err)
	if !equality.Semantic.DeepEqual(stored.Status.Recent, object.Status.Recent) {
		t.Errorf("stored is\n%+v\nwant\n%+v", stored.Status.Recent, object.Status.Recent)
	}
	if last, _ := shownBy(ctx, t, account, namespace); last != "Failed: 1 of 10" {
		t.Errorf("LAST is %v", last)
	}

	stored.Status.Recent = append(stored.Status.Recent, pacv1alpha1.RecentEvent{Event: "one-more", Time: at})
	if _, err := repositories.UpdateStatus(ctx, stored, metav1.UpdateOptions{}); !apierrors.IsInvalid(err) {
		t.Errorf("%d events: %v, want that they are invalid", len(stored.Status.Recent), err)
	}
}

// shownBy returns the cells LAST and AGE of the namespace's only Repository, as kubectl gets them.
func shownBy(ctx context.Context, t *testing.T, account versioned.Interface, namespace string) (last, age any) {
	t.Helper()
	table := &metav1.Table{}
	must(t, account.PipelinesascodeV1alpha1().RESTClient().Get().Namespace(namespace).Resource("repositories").
		SetHeader("Accept", "application/json;as=Table;v=v1;g=meta.k8s.io").Do(ctx).Into(table))
	if len(table.Rows) != 1 {
		t.Fatalf("the table has %d rows, want one", len(table.Rows))
	}
	cell := func(name string) any {
		n := slices.IndexFunc(table.ColumnDefinitions, func(c metav1.TableColumnDefinition) bool { return c.Name == name })
		if n < 0 {
			t.Fatalf("kubectl get has no column %s: %+v", name, table.ColumnDefinitions)
		}
		return table.Rows[0].Cells[n]
	}
	return cell("Last"), cell("Age")
}

// The controller's account may write Kubernetes Events in a team's namespace, and count one that
// happens again.
func TestControllerWritesEventsInTeamsNamespaces(t *testing.T) {
	ctx := within(t)
	namespace := shared.Cluster.Namespace(t, "team")
	about := &corev1.ObjectReference{
		APIVersion: pacv1alpha1.SchemeGroupVersion.String(), Kind: "Repository", Namespace: namespace, Name: "app",
	}
	config := controllerAccount()
	recorder := kubeevents.Recorder(injection.WithConfig(
		context.WithValue(ctx, kubeclient.Key{}, kubernetes.NewForConfigOrDie(config)), config))
	for range 2 {
		recorder.Event(about, corev1.EventTypeNormal, "RepositoryNoMatch", "No pipeline matches")
	}
	eventually(ctx, t, "one Event that happened twice", func() error {
		list, err := shared.Kube.CoreV1().Events(namespace).List(ctx, metav1.ListOptions{})
		if err != nil || len(list.Items) != 1 || list.Items[0].Count != 2 {
			return fmt.Errorf("%d Events: %+v, %w", len(list.Items), list.Items, err)
		}
		return nil
	})
}
