// SPDX-License-Identifier: Apache-2.0

package migrate

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/plumbline-ci/plumbline/cmd/plumb/internal/kube"
	"github.com/plumbline-ci/plumbline/cmd/plumb/internal/pac"
	pacv1alpha1 "github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline"
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
	if err := n.running(ctx); err != nil {
		return err
	}
	repositories, err := n.repositories(ctx)
	if err != nil {
		return err
	}
	if err := n.choose(ctx, cm, repositories); err != nil {
		return err
	}
	if _, err := n.keys(cm); err != nil {
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
	return n.after(ctx, cm, repositories)
}

// after says what the move has left to do.
func (n *Namespaces) after(
	ctx context.Context, cm *corev1.ConfigMap, repositories map[string][]pacv1alpha1.Repository,
) error {
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
	if n.All {
		n.say("No namespace is left. When the webhooks are changed: plumb migrate finish")
	}
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

// running returns an error if namespaces would be moved back to a PaC that does not run.
func (n *Namespaces) running(ctx context.Context) error {
	found, err := pac.Find(ctx, n.Cluster.Kube)
	if err != nil {
		return err
	}
	switch stopped := found.Stopped(); {
	case stopped != "" && n.Back:
		return fmt.Errorf("the Deployment %s of Pipelines-as-Code does not run, so nothing would serve the namespaces: "+
			"start it first", stopped)
	case stopped != "":
		n.say(
			"Pipelines-as-Code does not run: after the last namespace, plumb migrate finish concludes what it has left open",
		)
	}
	return nil
}

// repositories returns the Repositories with a URL, by their namespaces. Those of Plumbline's own
// namespace never move.
func (m *Migration) repositories(ctx context.Context) (map[string][]pacv1alpha1.Repository, error) {
	list, err := m.Cluster.Own.PipelinesascodeV1alpha1().Repositories(metav1.NamespaceAll).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, kube.Failed("listing the Repositories", err)
	}
	all := map[string][]pacv1alpha1.Repository{}
	for _, repository := range list.Items {
		if repository.Spec.URL != "" && repository.Namespace != m.Namespace {
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
	if n.All && n.Back {
		return n.chooseMoved(ctx, listed)
	}
	if n.All {
		if n.Names = slices.Sorted(maps.Keys(repositories)); len(n.Names) == 0 {
			return errors.New("no namespace has a Repository that could be moved")
		}
		return nil
	}
	n.Names = slices.Compact(slices.Sorted(slices.Values(n.Names)))
	var wrong []error
	for _, name := range n.Names {
		gone := n.Back && slices.Contains(listed, name) // its Repositories, or itself, may have been deleted
		if name == n.Namespace || !gone && len(repositories[name]) == 0 {
			wrong = append(wrong, n.wrong(ctx, name))
		}
	}
	return errors.Join(wrong...)
}

// chooseMoved chooses the namespaces that are listed, and those whose URLs are still claimed: an
// earlier call may have been killed after it had changed the list.
func (n *Namespaces) chooseMoved(ctx context.Context, listed []string) error {
	claims, err := n.claims(ctx)
	if err != nil {
		return err
	}
	all := sets.New(listed...)
	for _, claim := range claims {
		if claim.Status.ReleasedAt == nil {
			all.Insert(claim.Spec.Repository.Namespace)
		}
	}
	if n.Names = sets.List(all.Delete(n.Namespace)); len(n.Names) == 0 {
		return errors.New("no namespace is at Plumbline that could be moved back")
	}
	return nil
}

// wrong says why a namespace cannot move.
func (n *Namespaces) wrong(ctx context.Context, name string) error {
	if name == n.Namespace {
		return fmt.Errorf("namespace %s is Plumbline's own, which it always serves", name)
	}
	_, err := n.Cluster.Kube.CoreV1().Namespaces().Get(ctx, name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return fmt.Errorf("namespace %s does not exist: check its name", name)
	case err != nil && !apierrors.IsForbidden(err):
		return kube.Failed("reading namespace "+name, err)
	}
	return fmt.Errorf("namespace %s has no Repository with a URL, so there is nothing to move", name)
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
		for verb, needed := range map[string]bool{
			"list": true, "get": n.CancelQueued || n.Wait, "patch": n.CancelQueued,
		} {
			if needed {
				all = append(all, authorizationv1.ResourceAttributes{
					Verb: verb, Group: "tekton.dev", Resource: "pipelineruns", Namespace: name,
				})
			}
		}
	}
	return all
}
