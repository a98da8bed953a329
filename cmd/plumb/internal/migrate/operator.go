// SPDX-License-Identifier: Apache-2.0

package migrate

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-ci/plumbline/cmd/plumb/internal/kube"
	"github.com/plumbline-ci/plumbline/cmd/plumb/internal/pac"
)

// Operator turns PaC off where the Tekton operator has installed it, and on again.
//
// The operator's object OpenShiftPipelinesAsCode owns the CustomResourceDefinition of Repositories.
// When PaC is turned off, the operator deletes this object, and the garbage collector deletes the
// definition with all Repositories. The operator may add the owner reference again at any time. So
// a policy refuses to delete the definition until nothing can own it any more.
type Operator struct {
	Migration
	// Backup is the file that gets the Repositories.
	Backup string
	// Back turns PaC on again.
	Back bool
	// Apply changes the cluster. Without it Run says what it would do.
	Apply bool
}

// Run turns PaC off or on.
func (o *Operator) Run(ctx context.Context) error {
	s, err := o.read(ctx)
	if err != nil {
		return err
	}
	if err := o.check(ctx, s); err != nil {
		return err
	}
	guarded, err := o.guarded(ctx)
	if err != nil {
		return err
	}
	done, err := o.done(ctx, s)
	if err != nil {
		return err
	}
	switch {
	case guarded: // an earlier call was interrupted
	case done:
		o.finished(s)
		return nil
	case s.config == nil && s.pac == "":
		return errors.New(
			"no Tekton operator manages Pipelines-as-Code in this cluster: there is no TektonConfig " + configName,
		)
	}
	if !o.Apply {
		o.describe(s)
		return nil
	}
	if err := o.Cluster.CheckRights(ctx, operatorRights()); err != nil {
		return err
	}
	if err := o.turn(ctx, s); err != nil {
		return err
	}
	o.finished(s)
	return nil
}

// turn does all steps. Each may have been done by an earlier call already.
func (o *Operator) turn(ctx context.Context, s *operated) error {
	if err := o.backUp(s); err != nil {
		return err
	}
	if err := o.guard(ctx, s); err != nil {
		return err
	}
	change := o.off
	if o.Back {
		change = o.on
	}
	err := change(ctx, s)
	if err == nil {
		err = o.unguard(ctx)
	}
	if err != nil {
		return fmt.Errorf("%w\nCall the command again. Until it succeeds, ValidatingAdmissionPolicy %s keeps the Repositories",
			err, guardName)
	}
	return nil
}

// off turns PaC off and waits until the operator has deleted what it had installed.
func (o *Operator) off(ctx context.Context, s *operated) error {
	if err := o.release(ctx, s); err != nil {
		return err
	}
	o.say("Nothing of the operator owns CustomResourceDefinition %s now", definitionName)
	if err := o.still(ctx, s); err != nil {
		return err
	}
	if err := o.enable(ctx, s, false); err != nil {
		return err
	}
	o.say("Waiting until the operator has deleted Pipelines-as-Code ...")
	now := s
	err := o.until(ctx, func(ctx context.Context) (bool, error) {
		read, err := o.kept(ctx, s)
		if err != nil {
			return false, err
		}
		now = read
		// The operator may have added the owner reference again before it read enable: false.
		if err := o.release(ctx, now); err != nil {
			return false, err
		}
		return len(now.left()) == 0 && len(now.owners()) == 0, nil
	})
	if left := now.left(); errors.Is(err, context.DeadlineExceeded) && len(left) > 0 {
		return fmt.Errorf("the operator has not deleted %s in time: read its log. "+
			"If another program writes TektonConfig %s, for example GitOps, turn Pipelines-as-Code off there",
			strings.Join(left, ", "), configName)
	}
	return err
}

// on turns PaC on and waits until the operator has installed it.
func (o *Operator) on(ctx context.Context, s *operated) error {
	if err := o.enable(ctx, s, true); err != nil {
		return err
	}
	o.say("Waiting until the operator has installed Pipelines-as-Code ...")
	err := o.until(ctx, func(ctx context.Context) (bool, error) {
		now, err := o.kept(ctx, s)
		if err != nil || now.pac == "" {
			return false, err
		}
		if err := o.release(ctx, now); err != nil { // only references to an object that is gone
			return false, err
		}
		return o.installed(ctx, now)
	})
	if err != nil {
		return fmt.Errorf("the operator has not installed Pipelines-as-Code: %w", err)
	}
	return nil
}

// done reports whether nothing is left to do.
func (o *Operator) done(ctx context.Context, s *operated) (bool, error) {
	switch {
	case s.enabled != o.Back:
		return false, nil
	case o.Back:
		return o.installed(ctx, s)
	}
	return len(s.left()) == 0 && len(s.owners()) == 0, nil
}

// installed reports whether the operator owns the definition, and PaC runs.
func (o *Operator) installed(ctx context.Context, s *operated) (bool, error) {
	owners := s.owners()
	if len(owners) == 0 || slices.ContainsFunc(owners, func(r metav1.OwnerReference) bool { return r.UID != s.pac }) {
		return false, nil
	}
	found, err := pac.Find(ctx, o.Cluster.Kube)
	return found.Stopped() == "", err
}

// check returns an error if turning PaC off or on would lose deliveries or run them twice.
func (o *Operator) check(ctx context.Context, s *operated) error {
	cm, err := o.settings(ctx)
	if apierrors.IsNotFound(err) {
		o.say("Plumbline is not installed in namespace %s", o.Namespace)
		return nil
	}
	if err != nil {
		return err
	}
	url := strings.TrimSpace(cm.Data[keyPaC])
	if o.Back && url == "" && !s.enabled {
		return fmt.Errorf("ConfigMap %[1]s/%[2]s has no %[3]s, so the watcher of Pipelines-as-Code would adopt Plumbline's "+
			"PipelineRuns: set it first, then wait until the PipelineRuns from before have finished:\n"+
			`  kubectl -n %[1]s patch configmap %[2]s --type=merge -p '{"data":{"%[3]s":"http://%[4]s.%[5]s.svc.cluster.local:8080"}}'`,
			o.Namespace, o.ConfigMap, keyPaC, pac.ControllerName, s.target())
	}
	if o.Back {
		return o.namesFree(ctx, s.target())
	}
	if url == "" && !s.enabled {
		return nil
	}
	return o.nothingLeft(ctx, cm)
}

// namesFree returns an error if an alias for PaC's Service exists (config/optional/
// pipelines-as-code-names.yaml): the operator would leave it an alias, so that PaC's address led
// back to Plumbline.
func (o *Operator) namesFree(ctx context.Context, namespace string) error {
	service, err := o.Cluster.Kube.CoreV1().Services(namespace).Get(ctx, pac.ControllerName, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return kube.Failed(fmt.Sprintf("reading Service %s/%s", namespace, pac.ControllerName), err)
	}
	if service.Labels["app.kubernetes.io/part-of"] != "plumbline" {
		return nil
	}
	return fmt.Errorf("the Service %[1]s/%[2]s is an alias that leads to Plumbline: with Helm, set "+
		"pipelinesAsCode.service.enabled and pipelinesAsCode.info.enabled to false. "+
		"Otherwise: kubectl -n %[1]s delete service/%[2]s configmap/pipelines-as-code-info",
		namespace, pac.ControllerName)
}

// describe says what Run would do.
func (o *Operator) describe(s *operated) {
	o.say("The Tekton operator manages Pipelines-as-Code in this cluster. It is turned %s in TektonConfig %s.",
		onOrOff(s.enabled), configName)
	for _, owner := range s.owners() {
		o.say("%s %s owns CustomResourceDefinition %s: if it is deleted, all %d Repositories are deleted with it.",
			owner.Kind, owner.Name, definitionName, len(s.repositories))
	}
	steps := []string{
		fmt.Sprintf("write all %d Repositories to the file %s", len(s.repositories), o.Backup),
		"create ValidatingAdmissionPolicy " + guardName + ", which refuses to delete the CustomResourceDefinition, " +
			"and wait until the API server enforces it",
		"remove the owner references of the operator from CustomResourceDefinition " + definitionName,
		s.setting(false),
		"wait until the operator has deleted Pipelines-as-Code. It also deletes its ConfigMap, Service and Route",
		"delete the policy",
	}
	if o.Back {
		steps[2] = s.setting(true)
		steps[3] = "wait until the operator has installed Pipelines-as-Code. It replaces the CustomResourceDefinition"
		steps = append(steps[:4], steps[5])
	}
	o.say("With --apply, plumb would:")
	for i, step := range steps {
		o.say("  %d. %s", i+1, step)
	}
	o.say("It compares the Repositories after each step, and stops if one is missing.\n\nNothing was changed.")
}

// finished says what comes next.
func (o *Operator) finished(s *operated) {
	if o.Back {
		o.say(`Pipelines-as-Code is turned on in the operator. All %d Repositories are there.

Next: apply Plumbline's definition again, which has the fields of both products:
  kubectl apply -f config/300-crd-repositories.yaml
  kubectl -n %s rollout restart deployment plumbline-controller plumbline-receiver`, len(s.repositories), o.Namespace)
		return
	}
	o.say(`Pipelines-as-Code is turned off in the operator, and nothing of the operator owns the Repositories.
All %d Repositories are there.

Next: plumb migrate finish`, len(s.repositories))
}
