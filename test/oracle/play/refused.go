// SPDX-License-Identifier: Apache-2.0

package play

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	pacv1alpha1 "github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode/v1alpha1"
	"github.com/plumbline-ci/plumbline/test/cluster"
	"github.com/plumbline-ci/plumbline/test/forge"
)

const (
	// refusedName is that of the repository and of the namespace; no scenario has it.
	refusedName  = "ci"
	refusedLimit = 2 * time.Minute
)

const refusedPipeline = `apiVersion: tekton.dev/v1
kind: PipelineRun
metadata:
  name: build
  annotations:
    pipelinesascode.tekton.dev/on-event: "[push]"
    pipelinesascode.tekton.dev/on-target-branch: "[main]"
spec:
  pipelineSpec:
    tasks:
      - {name: clone, taskSpec: {steps: [{name: step, image: busybox, script: exit 0}]}}
`

// RefusedPatch returns the check that Pipelines-as-Code shows after Tekton's admission webhook was
// dead between the create of a PipelineRun and the first patch of it, and the PipelineRun
// succeeded.
func (s *Stage) RefusedPatch(ctx context.Context) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, refusedLimit)
	defer cancel()
	repo := organisation + "/" + refusedName
	url := s.forge.CreateRepo(organisation, refusedName, forge.RepoOptions{}).HTMLURL
	if err := s.pac.cluster.MakeNamespace(ctx, refusedName); err != nil {
		return "", err
	}
	object := &pacv1alpha1.Repository{
		ObjectMeta: metav1.ObjectMeta{Name: "app"}, Spec: pacv1alpha1.RepositorySpec{URL: url},
	}
	if _, err := s.pac.plumbline.PipelinesascodeV1alpha1().Repositories(refusedName).Create(ctx, object,
		metav1.CreateOptions{}); err != nil {
		return "", err
	}
	files := map[string]string{".tekton/build.yaml": refusedPipeline}
	sha := s.forge.Commit(repo, "main", forge.Change{Files: files, Message: "x"})
	dead := make(chan struct{})
	held := s.pac.proxy.Add(cluster.Rule{
		Match: func(c cluster.Call) bool { return c.Is("patch", "pipelineruns") }, Count: 1, Do: cluster.Hold(dead),
	})
	defer held.Remove()
	push := s.forge.PushDelivery(forge.PushEvent{Repo: repo, Ref: "refs/heads/main", AppID: s.pac.app.ID})
	push.Header = push.Header.Clone()
	maps.Copy(push.Header, s.pac.header)
	if code, body, err := s.forge.Deliver(ctx, s.pac.hook, push); err != nil || code/100 != 2 {
		return "", errors.Join(err, fmt.Errorf("Pipelines-as-Code answers %d %s", code, body))
	}
	if err := cluster.Poll(ctx, 100*time.Millisecond, func() error {
		if held.Hits() == 0 {
			return errors.New("the PipelineRun is not patched yet")
		}
		return nil
	}); err != nil {
		return "", err
	}
	webhook := s.pac.cluster.Part(cluster.TektonWebhook)
	if err := webhook.Kill(); err != nil {
		return "", err
	}
	close(dead)
	if err := s.concluded(ctx, repo, sha); err != nil {
		return "", err
	}
	if err := webhook.Start(ctx); err != nil {
		return "", err
	}
	if err := s.succeeded(ctx); err != nil {
		return "", err
	}
	return s.staying(ctx, repo, sha)
}

const refusedCheck = Application + " / build"

// concluded waits until Pipelines-as-Code has concluded its check.
func (s *Stage) concluded(ctx context.Context, repo, sha string) error {
	return cluster.Poll(ctx, 100*time.Millisecond, func() error {
		if check, _ := s.forge.Current(repo, sha, refusedCheck); check.Status != "completed" {
			return errors.New("the check is not completed")
		}
		return nil
	})
}

// succeeded waits until the PipelineRun has succeeded.
func (s *Stage) succeeded(ctx context.Context) error {
	return cluster.Poll(ctx, 100*time.Millisecond, func() error {
		runs, err := s.pac.dynamic.Resource(cluster.PipelineRuns()).Namespace(refusedName).List(ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}
		for i := range runs.Items {
			if cluster.ConditionOf(&runs.Items[i], "Succeeded").Status == "True" {
				return nil
			}
		}
		return fmt.Errorf("none of %d PipelineRuns has succeeded", len(runs.Items))
	})
}

// staying returns the check after nothing has changed it for a while.
func (s *Stage) staying(ctx context.Context, repo, sha string) (text string, err error) {
	last, since := -1, time.Now()
	err = cluster.Poll(ctx, 300*time.Millisecond, func() error {
		check, _ := s.forge.Current(repo, sha, refusedCheck)
		if check.Updates != last {
			last, since = check.Updates, time.Now()
		}
		if time.Since(since) < quiet {
			return errors.New("the check may still change")
		}
		text = sameText(fmt.Sprintf("%s\n%s\n%s\n\n%s\n\n%s\n",
			check.Name, check.Conclusion, check.Title, check.Summary, check.Text))
		return nil
	})
	return text, err
}

// sameText replaces what another play has otherwise: ports, the ends of names, and how the API
// server notices that the webhook is dead (a connection that it had open breaks, or a new one is
// refused).
func sameText(text string) string {
	text = regexp.MustCompile(`127\.0\.0\.1:\d+`).ReplaceAllString(text, "10.96.0.1:443")
	text = regexp.MustCompile(`\.svc:\d+`).ReplaceAllString(text, ".svc:443")
	text = regexp.MustCompile(`((write|read) tcp \S+: (write: broken pipe|read: connection reset by peer)|EOF)\b`).
		ReplaceAllString(text, "dial tcp 10.96.0.1:443: connect: connection refused")
	return regexp.MustCompile(`\bbuild-[a-z0-9]{5}\b`).ReplaceAllString(text, "build-abc")
}
