// SPDX-License-Identifier: Apache-2.0

package installation

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	pacv1alpha1 "github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode/v1alpha1"
	"github.com/plumbline-ci/plumbline/test/cluster"
	"github.com/plumbline-ci/plumbline/test/forge"
	"github.com/plumbline-ci/plumbline/test/testcache"
)

// A first installation works within a minute: from an empty namespace of a cluster that has Tekton
// and no kind of Plumbline to the check of the first push.
const firstMinute = time.Minute

const (
	team       = "team-first"
	repository = "acme/first"
	pipeline   = `apiVersion: tekton.dev/v1
kind: PipelineRun
metadata:
  name: build
  annotations:
    pipelinesascode.tekton.dev/on-event: "[push]"
    pipelinesascode.tekton.dev/on-target-branch: "[main]"
spec:
  pipelineSpec:
    tasks:
      - name: build
        taskSpec:
          steps:
            - {name: step, image: busybox, script: exit 0}
`
)

// rendered returns the objects of a first installation: what Helm renders of the chart, or config/
// in a tree without the chart.
func rendered(ctx context.Context, t *testing.T) []*unstructured.Unstructured {
	t.Helper()
	root, err := root()
	must(t, err)
	chart := filepath.Join(root, "charts", "plumbline")
	if _, err := os.Stat(chart); errors.Is(err, os.ErrNotExist) {
		objects, err := manifests()
		must(t, err)
		return objects
	}
	tool := filepath.Join(root, "hack", "tools", "chart")
	must(t, testcache.Files(chart, tool))
	command := exec.CommandContext(ctx, "go", "run", "-C", tool, ".", "template", "-n", product)
	command.Stderr = os.Stderr
	text, err := command.Output()
	must(t, err)
	objects, err := cluster.Documents(text)
	must(t, err)
	return objects
}

func TestFirstInstallationWorksWithinAMinute(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	objects := rendered(ctx, t)
	c, err := cluster.Start(ctx, cluster.Options{Dir: filepath.Join(t.TempDir(), "cluster")})
	must(t, err)
	defer c.Stop()
	git := forge.New(forge.Options{})
	must(t, git.Start())
	defer func() { _ = git.Close() }()
	app := git.CreateApp(9, "plumbline", "", "webhook-secret-of-the-first")
	url := git.CreateRepo("acme", "first", forge.RepoOptions{}).HTMLURL
	git.Install(app.ID, "acme", repository)
	// The Git service of the test is on this machine.
	must(t, errors.Join(
		Configure(objects, product, "git-allowed-hosts", "127.0.0.1"), Configure(objects, product, "github-url", git.URL())))
	must(t, c.MakeNamespace(ctx, product))
	must(t, c.MakeNamespace(ctx, team))
	i, err := Adopt(c.RESTConfig(), Options{Namespace: product, Cluster: c, Forge: git, App: app})
	must(t, err)

	begin := time.Now()
	at := func(what string) { t.Logf("%5.1f s: %s", time.Since(begin).Seconds(), what) }
	first, stop := context.WithTimeout(ctx, firstMinute)
	defer stop()
	must(t, apply(first, c, objects, all))
	at("the manifests are applied")
	must(t, i.StoreApp(first))
	started := make(chan error, 2)
	var receiver *Process
	for component, path := range map[string]string{"receiver": shared.programs.Receiver, "controller": shared.programs.Controller} {
		p, err := Deployed(first, c, objects, component, path)
		must(t, err)
		defer func() { _ = p.Kill() }()
		if component == "receiver" {
			receiver = p
		}
		go func() { started <- p.Start(first) }()
	}
	_, err = i.Serve(first, team, "first", pacv1alpha1.RepositorySpec{URL: url})
	must(t, err)
	must(t, errors.Join(<-started, <-started))
	at("the receiver and the controller are ready")

	sha := git.Commit(repository, "main", forge.Change{Files: map[string]string{".tekton/build.yaml": pipeline}, Message: "first"})
	push := git.PushDelivery(forge.PushEvent{Repo: repository, Ref: "refs/heads/main"})
	must(t, cluster.Poll(first, 100*time.Millisecond, func() error {
		status, body, err := git.Deliver(first, receiver.URL, push)
		if err == nil && status != http.StatusAccepted {
			err = fmt.Errorf("answered %d %s", status, body)
		}
		return err
	}))
	at("the first push is accepted")
	must(t, cluster.Poll(first, 100*time.Millisecond, func() error {
		check, _ := git.Current(repository, sha, "Pipelines as Code CI / build")
		if check.Conclusion != "success" {
			return fmt.Errorf("the check is %q %q: %s", check.Status, check.Conclusion, check.Title)
		}
		return nil
	}))
	at("its check is green")
}
