// SPDX-License-Identifier: Apache-2.0

package migrate

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	pipelinev1 "github.com/tektoncd/pipeline/pkg/apis/pipeline/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/plumbline-ci/plumbline/cmd/plumb/internal/kube"
	pacv1alpha1 "github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline"
	"github.com/plumbline-ci/plumbline/pkg/config"
	"github.com/plumbline-ci/plumbline/pkg/provider/gitlab"
)

// Namespaces moves namespaces to Plumbline, or back.
type Namespaces struct {
	Migration
	// Names are the namespaces; All means all that have a Repository, or, on the way back, all that
	// have moved.
	Names []string
	All   bool
	// Back moves them back to PaC.
	Back bool
	// CancelQueued cancels PaC's runs that wait in its queue. Wait waits until PaC's runs have
	// finished.
	CancelQueued, Wait bool
}

// Run moves the namespaces.
func (n *Namespaces) Run(ctx context.Context) error {
	if err := n.flags(); err != nil {
		return err
	}
	cm, err := n.settings(ctx)
	if err != nil {
		return err
	}
	if strings.TrimSpace(cm.Data[keyPaC]) == "" {
		return fmt.Errorf("ConfigMap %s/%s has no %s: run plumb migrate start first", n.Namespace, n.ConfigMap, keyPaC)
	}
	if err := n.pac(ctx); err != nil {
		return err
	}
	repositories, err := n.repositories(ctx)
	if err != nil {
		return err
	}
	if err := n.choose(ctx, cm, repositories); err != nil {
		return err
	}
	if _, err := n.edit(cm.Data[keyNamespaces]); err != nil {
		return err
	}
	if err := n.Cluster.CheckRights(ctx, n.rights()); err != nil {
		return err
	}
	if err := n.move(ctx); err != nil {
		return err
	}
	if err := n.awaitClaims(ctx); err != nil {
		return err
	}
	if n.Back {
		n.say("Pipelines-as-Code serves %s again. Plumbline finishes what it has recorded: kubectl -n %s get gitevents",
			strings.Join(n.Names, ", "), n.Namespace)
		return nil
	}
	n.say("Plumbline serves %s.", strings.Join(n.Names, ", "))
	if err := n.left(ctx); err != nil {
		return err
	}
	n.hooks(cm, repositories)
	return nil
}

func (n *Namespaces) flags() error {
	switch {
	case n.All && len(n.Names) > 0:
		return errors.New("--all moves every namespace: leave out their names, or --all")
	case !n.All && len(n.Names) == 0:
		return errors.New("name the namespaces to move, or add --all")
	case n.Back && (n.CancelQueued || n.Wait):
		return errors.New("--cancel-queued and --wait are about runs of Pipelines-as-Code in a namespace that leaves it: " +
			"leave them out with --back")
	}
	return nil
}

// pac returns an error if namespaces would be moved back to a PaC that does not run.
func (n *Namespaces) pac(ctx context.Context) error {
	pac, err := FindPaC(ctx, n.Cluster)
	if err != nil {
		return err
	}
	running := pac.Running()
	stopped := !slices.Contains(running, pacController) || !slices.Contains(running, pacWatcher)
	switch {
	case stopped && n.Back:
		return errors.New(
			"Pipelines-as-Code does not run, so nothing would serve the namespaces: start its Deployments first",
		)
	case stopped:
		n.say(
			"Pipelines-as-Code does not run: after the last namespace, plumb migrate finish concludes what it has left open",
		)
	}
	return nil
}

// repositories returns the Repositories with a URL, by their namespaces. Those of Plumbline's own
// namespace never move.
func (n *Namespaces) repositories(ctx context.Context) (map[string][]pacv1alpha1.Repository, error) {
	list, err := n.Cluster.Own.PipelinesascodeV1alpha1().Repositories(metav1.NamespaceAll).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, kube.Failed("listing the Repositories", err)
	}
	all := map[string][]pacv1alpha1.Repository{}
	for _, repository := range list.Items {
		if repository.Spec.URL != "" && repository.Namespace != n.Namespace {
			all[repository.Namespace] = append(all[repository.Namespace], repository)
		}
	}
	return all, nil
}

// choose checks the names, or fills them in for All.
func (n *Namespaces) choose(
	ctx context.Context, cm *corev1.ConfigMap, repositories map[string][]pacv1alpha1.Repository,
) error {
	listed := entries(cm.Data[keyNamespaces])
	if n.All {
		n.Names = slices.Sorted(maps.Keys(repositories))
		if n.Back {
			n.Names = slices.DeleteFunc(listed, func(name string) bool { return name == n.Namespace })
		}
		if len(n.Names) == 0 {
			return errors.New("no namespace has a Repository that could be moved")
		}
		return nil
	}
	n.Names = slices.Compact(slices.Sorted(slices.Values(n.Names)))
	var wrong []error
	for _, name := range n.Names {
		if name == n.Namespace {
			wrong = append(wrong, fmt.Errorf("namespace %s is Plumbline's own, which it always serves", name))
			continue
		}
		if n.Back && slices.Contains(listed, name) {
			continue // also if its Repositories, or itself, were deleted
		}
		if len(repositories[name]) > 0 {
			continue
		}
		_, err := n.Cluster.Kube.CoreV1().Namespaces().Get(ctx, name, metav1.GetOptions{})
		switch {
		case apierrors.IsNotFound(err):
			wrong = append(wrong, fmt.Errorf("namespace %s does not exist: check its name", name))
		case err != nil && !apierrors.IsForbidden(err):
			return kube.Failed("reading namespace "+name, err)
		default:
			wrong = append(wrong, fmt.Errorf("namespace %s has no Repository with a URL, so there is nothing to move", name))
		}
	}
	return errors.Join(wrong...)
}

// entries splits serve-namespaces.
func entries(value string) []string {
	return strings.FieldsFunc(
		value,
		func(r rune) bool { return r == ',' || r == ' ' || r == '\n' || r == '\t' || r == '\r' },
	)
}

// edit returns serve-namespaces after the move.
func (n *Namespaces) edit(value string) (string, error) {
	what := fmt.Sprintf("%s of ConfigMap %s/%s", keyNamespaces, n.Namespace, n.ConfigMap)
	served := func(value string) (config.Namespaces, error) {
		settings, err := config.New(map[string]string{keyNamespaces: value})
		if err != nil {
			return config.Namespaces{}, fmt.Errorf("%s is not valid: %w", what, err)
		}
		return settings.Namespaces, nil
	}
	before, err := served(value)
	if err != nil {
		return "", err
	}
	list := entries(value)
	if !slices.Contains(list, n.Namespace) { // an empty list means every namespace
		list = append([]string{n.Namespace}, list...)
	}
	for _, name := range n.Names {
		switch {
		case n.Back:
			list = slices.DeleteFunc(list, func(entry string) bool { return entry == name })
		case !before.Serve(name):
			list = append(list, name)
		}
	}
	result := strings.Join(list, ", ")
	after, err := served(result)
	if err != nil {
		return "", err
	}
	for _, name := range n.Names {
		if after.Serve(name) == n.Back {
			return "", fmt.Errorf("%s has an entry with * or ! that decides about namespace %s: %q. Name each namespace instead",
				what, name, value)
		}
	}
	return result, nil
}

// rights returns the rights that Run uses after it has read the ConfigMap, PaC's Deployments and
// the Repositories.
func (n *Namespaces) rights() []authorizationv1.ResourceAttributes {
	all := []authorizationv1.ResourceAttributes{
		{Verb: "patch", Resource: "configmaps", Namespace: n.Namespace, Name: n.ConfigMap},
		{Verb: "list", Group: plumbline.GroupName, Resource: "repositoryclaims", Namespace: n.Namespace},
	}
	for _, name := range n.Names {
		if n.Back {
			continue
		}
		runs := authorizationv1.ResourceAttributes{
			Verb:      "list",
			Group:     "tekton.dev",
			Resource:  "pipelineruns",
			Namespace: name,
		}
		all = append(all, runs)
		if n.CancelQueued {
			runs.Verb = "patch"
			all = append(all, runs)
		}
	}
	return all
}

// move changes serve-namespaces.
func (n *Namespaces) move(ctx context.Context) error {
	changed, err := n.change(ctx, func(cm *corev1.ConfigMap) (map[string]*string, error) {
		value, err := n.edit(cm.Data[keyNamespaces])
		if err != nil || slices.Equal(entries(value), entries(cm.Data[keyNamespaces])) {
			return nil, err
		}
		return map[string]*string{keyNamespaces: &value}, nil
	})
	if err != nil {
		return err
	}
	if changed {
		n.say("ConfigMap %s/%s: %s was changed", n.Namespace, n.ConfigMap, keyNamespaces)
	}
	return nil
}

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
	return n.awaitRuns(ctx, n.Names...)
}

// awaitRuns waits until PaC's runs in the namespaces have finished.
func (m *Migration) awaitRuns(ctx context.Context, namespaces ...string) error {
	var runs []*pipelinev1.PipelineRun
	err := m.until(ctx, func(ctx context.Context) (done bool, err error) {
		runs, err = m.unfinished(ctx, namespaces...)
		return err == nil && len(runs) == 0, err
	})
	if wait.Interrupted(err) && len(runs) > 0 {
		m.list("Not finished", runs)
		return fmt.Errorf(
			"%d runs of Pipelines-as-Code have not finished after %s: run the command again",
			len(runs),
			m.Timeout,
		)
	}
	if err == nil {
		m.say("All runs of Pipelines-as-Code have finished.")
	}
	return err
}

// hooks says which webhooks of GitLab projects are to be changed. Only a user with a token may read
// where they lead.
func (n *Namespaces) hooks(cm *corev1.ConfigMap, repositories map[string][]pacv1alpha1.Repository) {
	first := true
	for _, name := range n.Names {
		for _, repository := range repositories[name] {
			if git := repository.Spec.GitProvider; git == nil || git.Type != gitlab.Name {
				continue
			}
			if first {
				n.say("Change the URL of these GitLab projects' webhooks to %s, if they lead to Pipelines-as-Code. "+
					"Until then it serves their events.", receiverURL(cm))
			}
			first = false
			n.say("  %s/-/hooks (or delete the webhook there, then: plumb webhook add %s --namespace %s)",
				strings.TrimSuffix(strings.TrimRight(repository.Spec.URL, "/"), ".git"), repository.Name, name)
		}
	}
}
