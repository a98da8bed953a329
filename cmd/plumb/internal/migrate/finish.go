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
	admissionv1 "k8s.io/api/admissionregistration/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/plumbline-ci/plumbline/cmd/plumb/internal/kube"
	"github.com/plumbline-ci/plumbline/cmd/plumb/internal/pac"
	"github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode"
	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/config"
	"github.com/plumbline-ci/plumbline/pkg/status"
	"github.com/plumbline-ci/plumbline/pkg/status/diagnosis"
)

// finalizer is what PaC's watcher adds to PipelineRuns. Without the watcher they cannot be deleted.
const finalizer = pipelinesascode.GroupName + "/finalizer"

// Finish ends a migration: PaC is not needed any more, and nothing of it stays.
type Finish struct {
	Migration
	// AppSecret and Global are the names of Plumbline's Secret of the GitHub App and of its global
	// Repository.
	AppSecret, Global string
	// Cancel cancels PaC's runs that have not finished. Wait waits for them.
	Cancel, Wait bool
	// LeaveChecks also finishes runs whose checks cannot be concluded.
	LeaveChecks bool
}

// Run finishes the migration.
func (f *Finish) Run(ctx context.Context) error {
	found, err := pac.Find(ctx, f.Cluster.Kube)
	if err != nil {
		return err
	}
	if err := f.allMoved(ctx, found); err != nil {
		return err
	}
	running, namespaces, err := f.survey(ctx)
	if err != nil {
		return err
	}
	if err := f.Cluster.CheckRights(ctx, f.rights(found, namespaces)); err != nil {
		return err
	}
	if err := f.end(ctx, running); err != nil {
		return err
	}
	if running := found.Running(); len(running) > 0 {
		return fmt.Errorf("nothing of Pipelines-as-Code is needed any more, and it runs in namespace %s (%s): stop it, "+
			"then run this command again. All webhooks must lead to Plumbline before: plumb migrate namespace --all lists those "+
			"of single repositories. To stop it: %s", found.Namespace, strings.Join(running, ", "), found.HowToStop())
	}
	if err := f.podsEnd(ctx, found); err != nil {
		return err
	}
	if err := f.deleteWebhook(ctx); err != nil {
		return err
	}
	if err := f.unrestrict(ctx); err != nil {
		return err
	}
	if err := f.release(ctx, found); err != nil {
		return err
	}
	f.say("The migration is finished.")
	return nil
}

// allMoved returns an error that lists the namespaces that PaC still serves.
func (f *Finish) allMoved(ctx context.Context, found *pac.Installation) error {
	cm, err := f.settings(ctx)
	if err != nil {
		return err
	}
	if cm.Data[keyPaC] == "" {
		if len(found.Running()) > 0 {
			return fmt.Errorf("Pipelines-as-Code runs in namespace %s, and no migration has started: "+
				"run plumb migrate start first", found.Namespace)
		}
		return nil
	}
	return f.nothingLeft(ctx, cm)
}

// nothingLeft returns an error that lists the namespaces that are left to PaC by ConfigMap
// plumbline.
func (m *Migration) nothingLeft(ctx context.Context, cm *corev1.ConfigMap) error {
	settings, err := config.New(cm.Data)
	if settings.Namespaces.Broken != "" {
		return fmt.Errorf("ConfigMap %s/%s: %w", m.Namespace, m.ConfigMap, err)
	}
	repositories, err := m.repositories(ctx)
	if err != nil {
		return err
	}
	served := func(name string) bool { return settings.Namespaces.Serve(name) }
	names := slices.DeleteFunc(slices.Sorted(maps.Keys(repositories)), served)
	if len(names) > 0 {
		return fmt.Errorf("Pipelines-as-Code still serves these namespaces: %s. Move them with plumb migrate namespace --all",
			strings.Join(names, ", "))
	}
	claims, err := m.claims(ctx)
	if err != nil {
		return err
	}
	return allClaimed(claims, repositories)
}

// survey returns PaC's runs that have not finished, and the namespaces of those whose checks may be
// open.
func (f *Finish) survey(
	ctx context.Context,
) (running []*pipelinev1.PipelineRun, namespaces map[string]bool, err error) {
	namespaces = map[string]bool{}
	err = f.eachRun(ctx, metav1.NamespaceAll, func(run *pipelinev1.PipelineRun) {
		if unfinished(run) {
			running = append(running, run)
		}
		if open(run) {
			namespaces[run.Namespace] = true
		}
	})
	return running, namespaces, err
}

// open reports whether the check of a run may be open. PaC marks a run as failed if it could not
// report its end.
func open(run *pipelinev1.PipelineRun) bool {
	return ofPaC(run) && run.Annotations[pipelinesascode.State] != pipelinesascode.StateCompleted
}

func finalized(run *pipelinev1.PipelineRun) bool { return slices.Contains(run.Finalizers, finalizer) }

// resultOf returns how a run has ended; nil if it has not. A run that is being deleted does not
// finish any more.
func resultOf(run *pipelinev1.PipelineRun) *v1alpha1.Result {
	if result := status.ResultOf(run, nil, status.Links{}, diagnosis.Facts{}, 0); result != nil {
		return result
	}
	if run.DeletionTimestamp != nil {
		return &v1alpha1.Result{Outcome: v1alpha1.OutcomeDeleted, Reason: string(v1alpha1.OutcomeDeleted)}
	}
	return nil
}

// rights returns the rights that are used after the survey.
func (f *Finish) rights(found *pac.Installation, namespaces map[string]bool) []authorizationv1.ResourceAttributes {
	runs := authorizationv1.ResourceAttributes{Verb: "patch", Group: "tekton.dev", Resource: "pipelineruns"}
	get := runs
	get.Verb = "get"
	all := []authorizationv1.ResourceAttributes{
		runs, get,
		{Verb: "patch", Resource: "configmaps", Namespace: f.Namespace, Name: f.ConfigMap},
		{Verb: "delete", Group: admissionv1.GroupName, Resource: "validatingwebhookconfigurations", Name: pacWebhookConfig},
	}
	if len(namespaces) == 0 {
		return all
	}
	secrets := []string{f.Namespace}
	if found != nil {
		all = append(all, authorizationv1.ResourceAttributes{
			Verb: "get", Resource: "configmaps", Namespace: found.Namespace, Name: found.ConfigMap,
		})
		secrets = append(secrets, found.Namespace)
	}
	for _, namespace := range append(secrets, slices.Sorted(maps.Keys(namespaces))...) {
		all = append(all, authorizationv1.ResourceAttributes{Verb: "get", Resource: "secrets", Namespace: namespace})
	}
	return all
}

// end waits until PaC's runs have finished, or cancels them, as the user has chosen.
func (f *Finish) end(ctx context.Context, runs []*pipelinev1.PipelineRun) error {
	if len(runs) == 0 {
		return nil
	}
	f.list("Runs of Pipelines-as-Code that have not finished", runs)
	switch {
	case f.Cancel:
		if err := f.cancel(ctx, runs, false); err != nil {
			return err
		}
	case !f.Wait:
		return errors.New("runs of Pipelines-as-Code have not finished: " +
			"add --wait to wait for them, or --cancel to cancel them")
	}
	return f.awaitRuns(ctx, runs, metav1.NamespaceAll)
}

// podsEnd waits until no process of PaC can add a finalizer or start a run any more.
func (f *Finish) podsEnd(ctx context.Context, found *pac.Installation) error {
	if found == nil {
		return nil
	}
	for _, d := range found.Deployments {
		selector := metav1.ListOptions{LabelSelector: metav1.FormatLabelSelector(d.Spec.Selector)}
		err := f.until(ctx, func(ctx context.Context) (bool, error) {
			pods, err := f.Cluster.Kube.CoreV1().Pods(found.Namespace).List(ctx, selector)
			if err != nil {
				return false, kube.Failed("listing the pods of "+d.Name, err)
			}
			return len(pods.Items) == 0, nil
		})
		if wait.Interrupted(err) {
			return fmt.Errorf("pods of %s still run after %s: see why with kubectl -n %s get pods, then run the command again",
				d.Name, f.Timeout, found.Namespace)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// unrestrict lets Plumbline serve every namespace, without PaC.
func (f *Finish) unrestrict(ctx context.Context) error {
	kept := ""
	changed, err := f.change(ctx, func(cm *corev1.ConfigMap) (map[string]*string, error) {
		if _, set := cm.Data[keyPaC]; !set {
			return nil, nil
		}
		kept = cm.Data[keyNamespaces]
		keys := map[string]*string{keyPaC: nil}
		if !strings.ContainsAny(kept, "*!") { // otherwise a user has edited it
			keys[keyNamespaces], kept = nil, ""
		}
		return keys, nil
	})
	switch {
	case err != nil || !changed:
		return err
	case kept != "":
		f.say("ConfigMap %s/%s: %s was removed. %s was edited and stays", f.Namespace, f.ConfigMap, keyPaC, keyNamespaces)
	default:
		f.say("ConfigMap %s/%s: %s and %s were removed. Plumbline serves every namespace",
			f.Namespace, f.ConfigMap, keyPaC, keyNamespaces)
	}
	return nil
}
