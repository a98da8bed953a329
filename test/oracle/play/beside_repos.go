// SPDX-License-Identifier: Apache-2.0

package play

import (
	"context"
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	pacv1alpha1 "github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode/v1alpha1"
	"github.com/plumbline-ci/plumbline/test/cluster"
	"github.com/plumbline-ci/plumbline/test/forge"
	"github.com/plumbline-ci/plumbline/test/forge/gitlab"
	"github.com/plumbline-ci/plumbline/test/installation"
)

// author pushes all commits.
const author = "owner"

// tekton is a pipeline of a repository: its name, its event and how it ends. Every tenth repository
// has pipelines that fail.
const tekton = `apiVersion: tekton.dev/v1
kind: PipelineRun
metadata:
  name: %s
  annotations:
    pipelinesascode.tekton.dev/on-event: "[%s]"
    pipelinesascode.tekton.dev/on-target-branch: "[main]"
    ` + cluster.ExitCodeAnnotation + `: "%d"
spec:
  pipelineSpec:
    tasks:
      - {name: build, taskSpec: {steps: [{name: step, image: busybox, script: exit 0}]}}
`

// namespaceOfRepo returns the namespace of a repository's number.
func namespaceOfRepo(n int) string { return fmt.Sprintf("team-%02d", n/perNamespace) }

func nameOfRepo(n int) string { return fmt.Sprintf("app-%03d", n) }

// fails reports whether the pipelines of a repository fail.
func fails(repo string) bool { return strings.HasSuffix(repo, "0") }

// serve makes a repository and a Repository for it. The last one of each namespace is a project of
// GitLab.
func (b *Beside) serve(ctx context.Context, n int) (err error) {
	if n%perNamespace == 0 {
		if err := b.cluster.MakeNamespace(ctx, namespaceOfRepo(n)); err != nil {
			return err
		}
	}
	repo, code := repository{name: organisation + "/" + nameOfRepo(n), onLab: n%perNamespace == perNamespace-1}, 0
	if fails(repo.name) {
		code = 1
	}
	files := map[string]string{
		".tekton/build.yaml": fmt.Sprintf(tekton, "build", "push", code),
		".tekton/pull.yaml":  fmt.Sprintf(tekton, "pull", "pull_request", code),
	}
	var spec pacv1alpha1.RepositorySpec
	if repo.onLab {
		spec, err = b.project(ctx, n, repo.name)
		if err != nil {
			return err
		}
	} else {
		spec.URL = b.forge.CreateRepo(organisation, nameOfRepo(n), forge.RepoOptions{}).HTMLURL
	}
	b.commitTo(repo, "main", files)
	_, err = b.ours.Serve(ctx, namespaceOfRepo(n), nameOfRepo(n), spec)
	b.repos = append(b.repos, repo)
	return err
}

// project makes a project of GitLab, with a webhook.
func (b *Beside) project(ctx context.Context, n int, path string) (pacv1alpha1.RepositorySpec, error) {
	const secret = "webhook-secret-of-a-project" // #nosec G101 -- of a test
	project := b.lab.CreateProject(path, gitlab.ProjectOptions{Unprotected: true})
	b.lab.SetMember(path, author, gitlab.Maintainer)
	b.lab.AddHook(path, b.receivers[0].URL, secret)
	return installation.OnGitLab{
		Service: b.lab.URL(), URL: project.WebURL, Hook: secret,
		Token: b.lab.CreateToken(gitlab.NewToken{Project: path, Level: gitlab.Maintainer}).Value,
	}.Spec(ctx, b.ours, metav1.ObjectMeta{Namespace: namespaceOfRepo(n), Name: nameOfRepo(n)})
}

// Namespaces returns those with Repositories.
func (b *Beside) Namespaces() (all []string) {
	for n := 0; n < len(b.repos); n += perNamespace {
		all = append(all, namespaceOfRepo(n))
	}
	return all
}
