// SPDX-License-Identifier: Apache-2.0

package migrate

import (
	"context"
	"fmt"
	"slices"
	"strings"

	pipelinev1 "github.com/tektoncd/pipeline/pkg/apis/pipeline/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/wait"

	pacv1alpha1 "github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/provider/gitlab"
)

// left lists PaC's unfinished runs in the namespaces, and cancels or awaits them if that is wanted.
func (n *Namespaces) left(ctx context.Context) error {
	runs, err := n.unfinished(ctx, n.Names...)
	if err != nil || len(runs) == 0 {
		return err
	}
	n.list("Pipelines-as-Code finishes and reports its own runs", runs)
	if n.CancelQueued {
		waiting := slices.DeleteFunc(slices.Clone(runs), func(run *pipelinev1.PipelineRun) bool { return !queued(run) })
		if err := n.cancel(ctx, waiting, true); err != nil {
			return err
		}
	}
	if !n.Wait {
		return nil
	}
	return n.awaitRuns(ctx, runs, n.Names...)
}

// awaitRuns waits until the runs have finished, and others of PaC that have started in the
// namespaces meanwhile. It lists PipelineRuns only when those that it knows have finished, because
// a cluster may have thousands.
func (m *Migration) awaitRuns(ctx context.Context, runs []*pipelinev1.PipelineRun, namespaces ...string) error {
	err := m.until(ctx, func(ctx context.Context) (bool, error) {
		left, err := m.stillUnfinished(ctx, runs)
		if err == nil && len(left) == 0 {
			left, err = m.unfinished(ctx, namespaces...)
		}
		if err != nil {
			return false, err
		}
		runs = left
		return len(runs) == 0, nil
	})
	if wait.Interrupted(err) && len(runs) > 0 {
		m.list("Not finished", runs)
		return fmt.Errorf("%d runs of Pipelines-as-Code have not finished after %s: run the command again",
			len(runs), m.Timeout)
	}
	if err == nil {
		m.say("All runs of Pipelines-as-Code have finished.")
	}
	return err
}

// hooks says which repositories have webhooks of their own, which are to be changed. Only a user
// with a token may read where they lead.
func (n *Namespaces) hooks(cm *corev1.ConfigMap, repositories map[string][]pacv1alpha1.Repository) {
	first := true
	for _, name := range n.Names {
		for _, repository := range repositories[name] {
			git, page := repository.Spec.GitProvider, "/-/hooks"
			switch {
			case git != nil && git.Type == gitlab.Name:
			case git != nil && git.Secret != nil && repository.OnGitHub():
				page = "/settings/hooks"
			default:
				continue
			}
			if first {
				n.say("Change the URL of these repositories' webhooks to %s, if they lead to Pipelines-as-Code. Until then it "+
					"serves their events. GitLab removes the secret token when the URL changes: enter the token again before you "+
					"save. It is in the Secret that git_provider.webhook_secret names.", receiverURL(cm))
			}
			first = false
			n.say("  %s%s", strings.TrimSuffix(strings.TrimRight(repository.Spec.URL, "/"), ".git"), page)
		}
	}
}
