// SPDX-License-Identifier: Apache-2.0

package installation

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	pipelinev1 "github.com/tektoncd/pipeline/pkg/apis/pipeline/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	pacv1alpha1 "github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/config"
	"github.com/plumbline-ci/plumbline/test/cluster"
	"github.com/plumbline-ci/plumbline/test/forge"
)

const (
	pacNamespace = "openshift-pipelines"
	pacFinalizer = "pipelinesascode.tekton.dev/finalizer"
)

// migration is a cluster with PaC's objects, a second installation of Plumbline, and plumb with the
// rights of config/optional/migrate.yaml.
type migration struct {
	*testing.T
	*Installation
	plumb   tool
	proxy   *cluster.Proxy
	team    string
	repo    forge.Repo
	sha     string
	install int64
}

// plumb migrate moves namespaces on a real API server, whenever it is killed. It has no more rights
// than config/optional/migrate.yaml grants.
func migrates(t *testing.T, plumb tool) {
	ctx, cancel := context.WithTimeout(t.Context(), 8*time.Minute) // some hundred processes
	t.Cleanup(cancel)
	m := newMigration(ctx, t, plumb)
	args := []string{"--system-namespace=" + m.Namespace}
	m.everyCall(ctx, nil, append([]string{"migrate", "start"}, args...)...)
	m.served(ctx, m.Namespace)
	if _, err := m.Kube.CoreV1().Secrets(m.Namespace).Get(ctx, appSecret, metav1.GetOptions{}); err != nil {
		t.Fatal(err)
	}
	requireController(ctx, m)

	waiting := m.run(ctx, "waiting", "queued", func(run *pipelinev1.PipelineRun) {
		run.Spec.Status = pipelinev1.PipelineRunSpecStatusPending
	})
	held := m.run(ctx, "held", "started", func(run *pipelinev1.PipelineRun) {
		run.Annotations[cluster.HoldAnnotation] = "true"
	})
	good := m.run(ctx, "good", "started", func(*pipelinev1.PipelineRun) {})
	bad := m.run(ctx, "bad", "failed", func(run *pipelinev1.PipelineRun) {
		run.Annotations[cluster.ExitCodeAnnotation] = "1"
	})
	for _, run := range []string{good, bad} {
		_, err := m.Cluster.WaitRun(ctx, m.team, run)
		must(t, err)
	}

	move := append([]string{"migrate", "namespace", m.team}, args...)
	m.everyCall(ctx, func() { m.onlyOneServes(ctx) }, move...)
	m.served(ctx, m.Namespace+", "+m.team)
	must(t, m.Claimed(ctx, m.repo.HTMLURL))
	m.everyCall(ctx, func() { m.onlyOneServes(ctx) }, append(move, "--back")...)
	m.served(ctx, m.Namespace)
	shown := m.says(ctx, 0, append(move, "--cancel-queued")...)
	cancelled := "Cancelled PipelineRun " + m.team + "/" + waiting
	for _, line := range []string{waiting + ": queued", held + ": running", cancelled} {
		if !strings.Contains(shown, line) {
			t.Errorf("it does not say %q:\n%s", line, shown)
		}
	}
	_, err := m.Cluster.WaitRun(ctx, m.team, waiting)
	must(t, err)

	finish := append([]string{"migrate", "finish"}, args...)
	m.says(ctx, 0, append([]string{"migrate", "namespace", "--all"}, args...)...)
	if shown := m.says(ctx, 2, finish...); !strings.Contains(shown, held+": running") {
		t.Error(shown)
	}
	if shown := m.says(
		ctx,
		2,
		append(finish, "--cancel")...); !strings.Contains(
		shown,
		"kubectl -n "+pacNamespace+" scale",
	) {
		t.Error(shown)
	}
	m.pages(ctx)
	m.stopPaC(ctx)
	m.everyCall(ctx, func() { m.nothingLost(ctx, map[string]string{good: "success", bad: "failure"}) }, finish...)
	for run, want := range map[string]string{good: "success", bad: "failure", waiting: "cancelled", held: "cancelled"} {
		if got := m.conclusion(run); got != want {
			t.Errorf("the check of %s is %q, want %q", run, got, want)
		}
	}
	m.released(ctx)
	cm, err := m.Kube.CoreV1().ConfigMaps(m.Namespace).Get(ctx, config.Name, metav1.GetOptions{})
	if err != nil || cm.Data["pipelines-as-code-url"] != "" || cm.Data["serve-namespaces"] != "" {
		t.Errorf("%v: the ConfigMap is %v", err, cm.Data)
	}
}

func newMigration(ctx context.Context, t *testing.T, plumb tool) *migration {
	t.Helper()
	m := &migration{T: t, plumb: plumb}
	for _, name := range []string{"pipelines-as-code-controller", "pipelines-as-code-watcher"} {
		runPaC(pacNamespace, name)(ctx, t)
		if name == "pipelines-as-code-controller" { // it is created with each Deployment
			must(t, shared.Kube.AdmissionregistrationV1().ValidatingWebhookConfigurations().
				Delete(ctx, leftOver, metav1.DeleteOptions{}))
		}
	}
	t.Cleanup(func() {
		_ = shared.Kube.AppsV1().Deployments(pacNamespace).
			DeleteCollection(context.WithoutCancel(ctx), metav1.DeleteOptions{}, metav1.ListOptions{})
	})
	app := shared.Forge.CreateApp(9, "migrated", "", "webhook-secret-of-the-app")
	must(t, first(shared.Kube.CoreV1().Services(pacNamespace).Create(ctx, &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: "pipelines-as-code-controller"},
		Spec: corev1.ServiceSpec{
			Selector: map[string]string{"app": "pac"}, Ports: []corev1.ServicePort{{Name: "http-listener", Port: 8080}},
		},
	}, metav1.CreateOptions{})))
	must(t, first(shared.Kube.CoreV1().Secrets(pacNamespace).Create(ctx, &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: "pipelines-as-code-secret"},
		StringData: map[string]string{
			"github-application-id": fmt.Sprint(app.ID), "github-private-key": app.PrivateKeyPEM,
			"webhook.secret": app.WebhookSecret,
		},
	}, metav1.CreateOptions{})))
	var err error
	m.Installation, err = New(
		ctx,
		Options{Cluster: shared.Cluster, Forge: shared.Forge, App: app, Programs: shared.programs},
	)
	must(t, err)
	must(t, m.Kube.CoreV1().Secrets(m.Namespace).Delete(ctx, appSecret, metav1.DeleteOptions{}))
	m.team = shared.Cluster.Namespace(t, "team")
	t.Cleanup(func() { _ = m.Close(m.team) })
	m.repo = shared.Forge.CreateRepo("acme", "migrated", forge.RepoOptions{})
	m.install = shared.Forge.Install(app.ID, "acme")
	m.sha = shared.Forge.Commit("acme/migrated", "main", forge.Change{Files: map[string]string{"a": "b"}, Message: "x"})
	must(t, first(m.Serve(ctx, m.team, "app", pacv1alpha1.RepositorySpec{URL: m.repo.HTMLURL})))
	m.least(ctx)
	return m
}

func first[T any](_ T, err error) error { return err }

// least gives plumb the rights of config/optional/migrate.yaml, and no others.
func (m *migration) least(ctx context.Context) {
	m.Helper()
	top, err := root()
	must(m.T, err)
	text, err := os.ReadFile(filepath.Join(top, "config", "optional", "migrate.yaml"))
	must(m.T, err)
	must(m.T, m.Cluster.Apply(ctx, text))
	account := metav1.ObjectMeta{Namespace: m.team, Name: "migrator"}
	must(m.T, first(m.Kube.CoreV1().ServiceAccounts(m.team).
		Create(ctx, &corev1.ServiceAccount{ObjectMeta: account}, metav1.CreateOptions{})))
	must(m.T, first(m.Kube.RbacV1().ClusterRoleBindings().Create(ctx, &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "migrator-" + m.team},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "plumbline-migrate"},
		Subjects:   []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: m.team, Name: "migrator"}},
	}, metav1.CreateOptions{})))
	token, err := m.Cluster.Token(ctx, m.team, "migrator")
	must(m.T, err)
	m.proxy, err = cluster.NewProxy(m.Cluster)
	must(m.T, err)
	m.Cleanup(m.proxy.Close)
	m.plumb.kubeconfig = filepath.Join(m.TempDir(), "migrator")
	must(m.T, m.proxy.Kubeconfig(m.plumb.kubeconfig, token))
}

// requireController starts the controller, which claims what serve-namespaces says. It starts next
// to PaC because of pipelines-as-code-url.
func requireController(ctx context.Context, m *migration) {
	m.Helper()
	controller, err := m.Controller(ctx, false)
	must(m.T, err)
	must(m.T, controller.Start(ctx))
}

// everyCall kills the command at its first call, then at its second, and so on, until it ends by
// itself; after each it calls check. So the command has to continue what any earlier call has left.
func (m *migration) everyCall(ctx context.Context, check func(), args ...string) {
	m.Helper()
	for n := 1; ; n++ {
		m.proxy.Reset()
		ctx, kill := context.WithCancel(ctx)
		m.proxy.OnCall(func(c cluster.Call) {
			if c.N == n {
				kill()
			}
		})
		code, shown, err := m.plumb.run(ctx, args...)
		made := len(m.proxy.Calls())
		kill()
		if check != nil {
			check()
		}
		if made < n {
			if code != 0 || err != nil || n < 4 {
				m.Fatalf("%v ended with %d, %v, after %d calls: %s", args, code, err, made, shown)
			}
			m.proxy.Reset()
			return
		}
	}
}

// says runs a command to its end.
func (m *migration) says(ctx context.Context, want int, args ...string) string {
	m.Helper()
	code, shown, err := m.plumb.run(ctx, args...)
	if code != want || err != nil {
		m.Fatalf("%v ended with %d, %v: %s", args, code, err, shown)
	}
	return shown
}
