// SPDX-License-Identifier: Apache-2.0

package installation

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	pacv1alpha1 "github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/config"
	"github.com/plumbline-ci/plumbline/pkg/credentials/webhooksecret"
	"github.com/plumbline-ci/plumbline/test/forge"
)

// With the flags, both processes read the ConfigMap and the Secret that have the names of
// Pipelines-as-Code. They need no objects of the default names, and no rights but those of
// config/optional/config-map.yaml.
func TestSettingsHaveTheNamesOfPipelinesAsCode(t *testing.T) {
	const settings, credentials, repository = "pipelines-as-code", "pipelines-as-code-secret", "acme/renamed"
	ctx := within(t)
	app := shared.Forge.CreateApp(11, "renamed", "", "webhook-secret-of-the-renamed")
	i, err := New(ctx, Options{Cluster: shared.Cluster, Forge: shared.Forge, App: app, Programs: shared.programs})
	must(t, err)
	team := shared.Cluster.Namespace(t, "team")
	t.Cleanup(func() { _ = i.Close(team) })

	maps, secrets := i.Kube.CoreV1().ConfigMaps(i.Namespace), i.Kube.CoreV1().Secrets(i.Namespace)
	renamed, err := maps.Get(ctx, config.Name, metav1.GetOptions{})
	must(t, err)
	renamed.ObjectMeta = metav1.ObjectMeta{Name: settings}
	renamed.Data["application-name"] = "Acme CI"
	must(t, first(maps.Create(ctx, renamed, metav1.CreateOptions{})))
	must(t, maps.Delete(ctx, config.Name, metav1.DeleteOptions{}))
	secret, err := secrets.Get(ctx, appSecret, metav1.GetOptions{})
	must(t, err)
	secret.ObjectMeta = metav1.ObjectMeta{Name: credentials}
	must(t, first(secrets.Create(ctx, secret, metav1.CreateOptions{})))
	must(t, secrets.Delete(ctx, appSecret, metav1.DeleteOptions{}))
	for shard := range webhooksecret.Shards { // New has made copies of the Secret that was deleted
		must(t, secrets.Delete(ctx, webhooksecret.ShardName(shard), metav1.DeleteOptions{}))
	}
	top, err := root()
	must(t, err)
	rights, err := os.ReadFile(filepath.Join(top, "config", "optional", "config-map.yaml"))
	must(t, err)
	here := strings.ReplaceAll(string(rights), "namespace: plumbline", "namespace: "+i.Namespace)
	must(t, i.Cluster.Apply(ctx, []byte(here)))

	flags := []string{"-config-map=" + settings, "-github-app-secret=" + credentials}
	receiver, err := i.Receiver(ctx, false, flags...)
	must(t, err)
	controller, err := i.Controller(ctx, false, flags...)
	must(t, err)
	must(t, controller.Start(ctx))
	must(t, receiver.Start(ctx)) // it needs the controller's copies

	url := shared.Forge.CreateRepo("acme", "renamed", forge.RepoOptions{}).HTMLURL
	shared.Forge.Install(app.ID, "acme", repository)
	must(t, first(i.Serve(ctx, team, "app", pacv1alpha1.RepositorySpec{URL: url})))
	sha := shared.Forge.Commit(repository, "main", forge.Change{
		Files: map[string]string{".tekton/build.yaml": pipeline}, Message: "x",
	})
	push := shared.Forge.PushDelivery(forge.PushEvent{Repo: repository, Ref: "refs/heads/main", AppID: app.ID})
	eventually(ctx, t, "the push is accepted", func() error {
		status, body, err := shared.Forge.Deliver(ctx, receiver.URL, push)
		if err == nil && status != http.StatusAccepted {
			err = fmt.Errorf("answered %d %s", status, body)
		}
		return err
	})
	eventually(ctx, t, "the check has the application's name, and is green", func() error {
		check, _ := shared.Forge.Current(repository, sha, "Acme CI / build")
		if check.Conclusion != "success" {
			return fmt.Errorf("the check is %q %q: %s", check.Status, check.Conclusion, check.Title)
		}
		return nil
	})
}
