// SPDX-License-Identifier: Apache-2.0

package installation

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	pipelinev1 "github.com/tektoncd/pipeline/pkg/apis/pipeline/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	pacv1alpha1 "github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode/v1alpha1"
	"github.com/plumbline-ci/plumbline/test/forge"
)

// plumb migrate plan reads what Pipelines-as-Code has stored in a real API server, with the rights
// of an administrator and with none.
func TestMigratePlanReadsCluster(t *testing.T) {
	plumb, ctx := newTool(t), within(t)
	text, err := os.ReadFile("../../cmd/plumb/internal/command/testdata/pac-cluster.yaml")
	must(t, err)
	repo := shared.Forge.CreateRepo("acme", "moving", forge.RepoOptions{})
	shared.Forge.Install(shared.App.ID, "acme")
	main := shared.Forge.Commit("acme/moving", "main", forge.Change{Message: "x", Files: map[string]string{
		".tekton/build.yaml": movingPipeline("name: build", `"[push, pull_request]"`, ""),
		".tekton/docs.yaml": movingPipeline("generateName: docs-", "pull_request",
			"pipelinesascode.tekton.dev/on-path-change: docs/**"),
	}})
	topic := shared.Forge.Commit(
		"acme/moving",
		"topic",
		forge.Change{Message: "x", Files: map[string]string{"docs/a": "a"}},
	)
	number := shared.Forge.OpenPullRequest(forge.NewPull{Base: "acme/moving", HeadBranch: "topic"})
	objects := strings.NewReplacer(
		"SHA\n",
		topic+"\n",
		"MAIN\n",
		main+"\n",
		"https://github.com/acme/app",
		repo.HTMLURL,
		`pull-request: "7"`,
		fmt.Sprintf("pull-request: %q", fmt.Sprint(number)),
		`"4711"`,
		fmt.Sprintf(`"%d"`, shared.App.ID),
		"github-private-key: key",
		fmt.Sprintf("github-private-key: %q", shared.App.PrivateKeyPEM),
	).Replace(string(text))
	for document := range strings.SplitSeq(objects, "\n---\n") {
		createPaC(ctx, t, []byte(document))
	}
	t.Run("from the Git service", func(t *testing.T) {
		_, shown, err := plumb.run(ctx, "migrate", "plan", "--remote", "--github-url", shared.Forge.URL(), "-o", "json")
		var report struct{ Events struct{ Compared, Equal int } }
		if err != nil || json.Unmarshal([]byte(shown), &report) != nil || report.Events.Compared != 2 ||
			report.Events.Equal != 2 {
			t.Errorf("%v: %s", err, shown)
		}
	})
	t.Run("with the rights of an administrator", func(t *testing.T) {
		code, shown, err := plumb.run(ctx, "migrate", "plan", "-o", "json")
		var report struct {
			Blocked      bool
			Repositories struct{ Total, Blocked int }
		}
		if err := json.Unmarshal([]byte(shown), &report); err != nil {
			t.Fatalf("%v: %s", err, shown)
		}
		if code != 1 || err != nil || !report.Blocked || report.Repositories.Blocked < 2 {
			t.Errorf("exit %d, %v: %s", code, err, shown)
		}
		for _, says := range []string{"the Git service bitbucket-cloud is not served", "there is no clone of the repository", "is not called: it is not a public address",
			"the Secret for the token of GitLab does not exist", "another Repository has the same URL",
			"ClusterRole pipelines-as-code-aggregate"} {
			if !strings.Contains(shown, says) {
				t.Errorf("it does not say %q:\n%s", says, shown)
			}
		}
	})
	t.Run("without rights", func(t *testing.T) {
		namespace := shared.Cluster.Namespace(t, "nobody")
		account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "nobody"}}
		_, err := shared.Kube.CoreV1().ServiceAccounts(namespace).Create(ctx, account, metav1.CreateOptions{})
		must(t, err)
		token, err := shared.Cluster.Token(ctx, namespace, "nobody")
		must(t, err)
		plumb.kubeconfig = filepath.Join(t.TempDir(), "nobody")
		must(t, shared.Cluster.WriteKubeconfig(plumb.kubeconfig, token))
		code, shown, err := plumb.run(ctx, "migrate", "plan")
		if code != 2 || err != nil {
			t.Errorf("exit %d, %v", code, err)
		}
		for _, right := range []string{"list deployments.apps", "list repositories.pipelinesascode.tekton.dev",
			"list rolebindings.rbac.authorization.k8s.io"} {
			if !strings.Contains(shown, "lacks the right to "+right) {
				t.Errorf("it does not name the right to %s:\n%s", right, shown)
			}
		}
	})
}

func movingPipeline(name, events, more string) string {
	return "apiVersion: tekton.dev/v1\nkind: PipelineRun\nmetadata:\n  " + name + "\n  annotations:\n" +
		"    pipelinesascode.tekton.dev/on-event: " + events + "\n" +
		"    pipelinesascode.tekton.dev/on-target-branch: main\n    " + more + "\n" +
		"spec: {pipelineSpec: {tasks: [{name: t, taskSpec: {steps: [{name: s, image: busybox, script: exit 0}]}}]}}\n"
}

// createPaC creates an object of Pipelines-as-Code, which is deleted with the test.
func createPaC(ctx context.Context, t *testing.T, document []byte) {
	t.Helper()
	var kind struct {
		metav1.TypeMeta
		Metadata struct{ Namespace, Name string }
	}
	must(t, yaml.Unmarshal(document, &kind))
	namespace := kind.Metadata.Namespace
	_, err := shared.Kube.CoreV1().Namespaces().Create(ctx,
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}, metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		t.Fatal(err)
	}
	kube, options := shared.Kube, metav1.CreateOptions{}
	var remove func(context.Context, string, metav1.DeleteOptions) error
	switch kind.Kind {
	case "Deployment":
		client, o := kube.AppsV1().Deployments(namespace), decoded[appsv1.Deployment](t, document)
		o.Spec.Selector.MatchLabels = o.Spec.Template.Labels
		err, remove = discard(client.Create(ctx, o, options)), client.Delete
	case "ConfigMap":
		client := kube.CoreV1().ConfigMaps(namespace)
		err, remove = discard(client.Create(ctx, decoded[corev1.ConfigMap](t, document), options)), client.Delete
	case "Secret":
		client := kube.CoreV1().Secrets(namespace)
		err, remove = discard(client.Create(ctx, decoded[corev1.Secret](t, document), options)), client.Delete
	case "RoleBinding":
		client := kube.RbacV1().RoleBindings(namespace)
		err, remove = discard(client.Create(ctx, decoded[rbacv1.RoleBinding](t, document), options)), client.Delete
	case "Repository":
		client := shared.Plumbline.PipelinesascodeV1alpha1().Repositories(namespace)
		err, remove = discard(client.Create(ctx, decoded[pacv1alpha1.Repository](t, document), options)), client.Delete
	case "PipelineRun":
		client, o := shared.Tekton.TektonV1().PipelineRuns(namespace), decoded[pipelinev1.PipelineRun](t, document)
		o.Spec.PipelineRef = &pipelinev1.PipelineRef{Name: "build"}
		err, remove = discard(client.Create(ctx, o, options)), client.Delete
	default:
		t.Fatalf("%s is not created", kind.Kind)
	}
	if kind.Metadata.Name == "pipelines-info" && apierrors.IsAlreadyExists(err) {
		return // Tekton's
	}
	must(t, err)
	t.Cleanup(func() {
		must(t, remove(context.WithoutCancel(ctx), kind.Metadata.Name, metav1.DeleteOptions{}))
	})
}

func decoded[T any](t *testing.T, document []byte) *T {
	t.Helper()
	var object T
	if err := yaml.Unmarshal(document, &object); err != nil {
		t.Fatal(fmt.Errorf("%w in %s", err, document))
	}
	return &object
}

// discard returns the error of a create.
func discard[T any](_ *T, err error) error { return err }
