// SPDX-License-Identifier: Apache-2.0

package uninstall

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/plumbline-ci/plumbline/cmd/internal/preflight"
	"github.com/plumbline-ci/plumbline/cmd/plumb/internal/kube"
	"github.com/plumbline-ci/plumbline/pkg/config"
)

// What happens to the checks that are open.
const (
	// Cancel cancels their runs, and closes them as cancelled.
	Cancel = "cancel"
	// Wait waits until their runs have finished.
	Wait = "wait"
	// Leave leaves them open at the Git service.
	Leave = "no"
)

// Uninstaller removes the installation in a namespace.
type Uninstaller struct {
	Cluster   *kube.Cluster
	Namespace string
	// AppSecret is the name of the Secret of the GitHub App, which stays.
	AppSecret string
	// CloseChecks is Cancel, Wait, Leave, or "" if the user has not decided.
	CloseChecks string
	// Repositories also deletes the kind Repository, with all Repositories.
	Repositories bool
	// Yes deletes. Without it Run only says what it would do.
	Yes bool
	// Timeout is how long to wait for checks and pods. Poll is how often to read them.
	Timeout, Poll time.Duration
	Out           io.Writer
}

// errUndecided is returned if checks are open and the user has not decided what happens to them.
var errUndecided = errors.New(
	"checks are open, and without Plumbline they stay open: add --close-checks to cancel their runs, " +
		"--close-checks=wait to let them finish, or --close-checks=no to leave them open",
)

// Run removes the installation.
func (u *Uninstaller) Run(ctx context.Context) error {
	release, err := u.release(ctx)
	if err != nil {
		return err
	}
	others, err := u.others(ctx)
	if err != nil {
		return err
	}
	objects, err := u.objects(ctx, others)
	if err != nil {
		return err
	}
	pending, err := u.pending(ctx)
	if err != nil {
		return err
	}
	u.describe(pending, objects, release)
	u.keeps(others)
	if err := u.Cluster.CheckRights(ctx, u.rights(objects, release)); err != nil {
		return err
	}
	switch {
	case !u.Yes:
		u.say("\nNothing was changed. Add --yes to uninstall.")
		return nil
	case len(open(pending)) > 0 && u.CloseChecks == "":
		return errUndecided
	}
	return u.remove(ctx, objects, release)
}

// describe prints what is open and what is deleted.
func (u *Uninstaller) describe(pending []Pending, objects []object, release string) {
	unsettled := open(pending)
	if len(unsettled) > 0 {
		u.list("Open checks, which only Plumbline closes", unsettled)
	}
	if len(pending) > len(unsettled) {
		var settled []Pending
		for _, p := range pending {
			if p.Settled {
				settled = append(settled, p)
			}
		}
		u.list("Checks that stay open in any case: they wait for an approval, or the Git service refused their results",
			settled)
	}
	if release != "" {
		u.say("Helm has installed this: after the checks, plumb leaves the rest to helm -n %s uninstall %s",
			u.Namespace, release)
		return
	}
	u.say("Deleted, in this order:")
	for _, o := range objects {
		u.say("  %s", o)
	}
}

// keeps prints what stays.
func (u *Uninstaller) keeps(others []string) {
	u.say("Kept:")
	u.say("  Namespace %s and Secret %s in it: kubectl delete namespace %s", u.Namespace, u.AppSecret, u.Namespace)
	if !u.Repositories {
		u.say("  the Repositories and their kind: --delete-repositories deletes them")
	}
	for _, other := range others {
		u.say("  ClusterRoles, kinds and shared bindings, which the installation in namespace %s uses, and this one's GitEvents",
			other)
	}
	u.say("  PipelineRuns, with the Secrets of those that have not finished")
	u.say("  the GitHub App and the webhooks of repositories: delete them at the Git service")
}

// remove closes checks and deletes the objects.
func (u *Uninstaller) remove(ctx context.Context, objects []object, release string) error {
	if u.CloseChecks != Leave {
		if err := u.closeFirst(ctx); err != nil {
			return err
		}
	}
	if release != "" {
		u.say("Now run: helm -n %s uninstall %s", u.Namespace, release)
		u.say("Then run this command again: it deletes what Helm keeps or has not created")
		return nil
	}
	ended := false
	for _, o := range objects {
		// What the pods create would stay. An earlier call may have deleted the Deployments.
		if o.kind != deployments() && !ended {
			for _, component := range []preflight.Component{preflight.Receiver, preflight.Controller} {
				if err := u.podsEnd(ctx, component); err != nil {
					return err
				}
			}
			ended = true
		}
		if err := u.delete(ctx, o); err != nil {
			return err
		}
	}
	u.say("Plumbline is uninstalled from namespace %s.", u.Namespace)
	return nil
}

// closeFirst stops the receivers, so that no new event is recorded, and closes the checks.
func (u *Uninstaller) closeFirst(ctx context.Context) error {
	if err := u.controllerRuns(ctx); err != nil {
		return err
	}
	if err := u.stopReceivers(ctx); err != nil {
		return err
	}
	if u.CloseChecks == "" { // an event may have arrived before the receivers ended
		pending, err := u.pending(ctx)
		if err == nil && len(open(pending)) > 0 {
			u.list("Open checks of events that arrived in the meantime", open(pending))
			err = errUndecided
		}
		return err
	}
	if err := u.closeChecks(ctx); err != nil {
		return err
	}
	u.say("All checks that Plumbline can close are closed.")
	return nil
}

// release returns the Helm release that installed this; empty if it was not Helm.
func (u *Uninstaller) release(ctx context.Context) (string, error) {
	release, err := preflight.HelmRelease(ctx, u.Cluster.Kube, u.Namespace)
	if err != nil {
		return "", kube.Failed("reading ConfigMap "+config.Name, err)
	}
	return release, nil
}

// controllerRuns returns an error if no controller could close a check.
func (u *Uninstaller) controllerRuns(ctx context.Context) error {
	const name = string(preflight.Controller)
	deployment, err := u.Cluster.Kube.AppsV1().Deployments(u.Namespace).Get(ctx, name, metav1.GetOptions{})
	switch {
	case err != nil && !apierrors.IsNotFound(err):
		return kube.Failed("reading Deployment "+name, err)
	case err == nil && deployment.Status.AvailableReplicas > 0:
		return nil
	}
	pending, err := u.pending(ctx)
	if err != nil || len(open(pending)) == 0 {
		return err
	}
	return fmt.Errorf(
		"no controller runs in namespace %s, so no check can be closed: start it (plumb doctor says what it lacks), "+
			"or leave the checks open with --close-checks=no",
		u.Namespace,
	)
}

// stopReceivers scales the receivers to zero and waits for their end.
func (u *Uninstaller) stopReceivers(ctx context.Context) error {
	name := string(preflight.Receiver)
	_, err := u.Cluster.Kube.AppsV1().Deployments(u.Namespace).
		Patch(ctx, name, types.MergePatchType, []byte(`{"spec":{"replicas":0}}`), metav1.PatchOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		return kube.Failed("scaling Deployment "+name+" to zero", err)
	}
	u.say("Stopped the receivers: deliveries are refused from now on.")
	return u.podsEnd(ctx, preflight.Receiver)
}

// podsEnd waits until a component has no pod.
func (u *Uninstaller) podsEnd(ctx context.Context, component preflight.Component) error {
	selector := metav1.ListOptions{LabelSelector: "app.kubernetes.io/name=" + string(component)}
	err := u.poll(ctx, func(ctx context.Context) (bool, error) {
		pods, err := u.Cluster.Kube.CoreV1().Pods(u.Namespace).List(ctx, selector)
		if err != nil {
			return false, kube.Failed("listing the pods", err)
		}
		return len(pods.Items) == 0, nil
	})
	if wait.Interrupted(err) {
		return fmt.Errorf("pods of %s still run after %s: see why with kubectl -n %s get pods, then run the command again",
			component, u.Timeout, u.Namespace)
	}
	return err
}
