// SPDX-License-Identifier: Apache-2.0

package migrate

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-ci/plumbline/cmd/plumb/internal/kube"
	"github.com/plumbline-ci/plumbline/pkg/config"
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
	done, err := o.done(ctx, s)
	if err != nil {
		return err
	}
	switch {
	case done:
		o.finished(s)
		return nil
	case s.config == nil && s.pac == "":
		return errors.New(
			"no Tekton operator manages Pipelines-as-Code in this cluster: there is no TektonConfig " + configName,
		)
	case !o.Apply:
		o.describe(s)
		return nil
	}
	if err := o.Cluster.CheckRights(ctx, operatorRights()); err != nil {
		return err
	}
	if err := o.turn(ctx, s); err != nil {
		return fmt.Errorf(
			"%w\nCall the command again. Until it succeeds, ValidatingAdmissionPolicy %s keeps the Repositories", err, guardName,
		)
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
	if err := change(ctx, s); err != nil {
		return err
	}
	return o.unguard(ctx)
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
	err := o.until(ctx, func(ctx context.Context) (gone bool, err error) {
		if now, err = o.kept(ctx, s); err != nil {
			return false, err
		}
		// The operator may have added the owner reference again before it read enable: false.
		if err := o.release(ctx, now); err != nil {
			return false, err
		}
		left, err := o.left(ctx, now)
		return len(left) == 0 && len(now.owners()) == 0, err
	})
	if err != nil {
		left, _ := o.left(ctx, now)
		return stillThere(err, left)
	}
	if pac, err := FindPaC(ctx, o.Cluster); pac != nil || err != nil {
		return err // another PaC, which the operator does not manage
	}
	return o.deleteWebhook(ctx)
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
	guarded, err := o.guarded(ctx)
	if guarded || err != nil || s.enabled != o.Back {
		return false, err
	}
	if o.Back {
		return o.installed(ctx, s)
	}
	left, err := o.left(ctx, s)
	return len(left) == 0 && len(s.owners()) == 0, err
}

// installed reports whether the operator owns the definition, and PaC runs.
func (o *Operator) installed(ctx context.Context, s *operated) (bool, error) {
	owners := s.owners()
	if len(owners) == 0 || slices.ContainsFunc(owners, func(r metav1.OwnerReference) bool { return r.UID != s.pac }) {
		return false, nil
	}
	pac, err := FindPaC(ctx, o.Cluster)
	running := pac.Running()
	return slices.Contains(running, pacController) && slices.Contains(running, pacWatcher), err
}

// left returns what the operator has not deleted yet.
func (o *Operator) left(ctx context.Context, s *operated) (left []string, err error) {
	if s.pac != "" {
		left = append(left, "OpenShiftPipelinesAsCode "+pacName)
	}
	for _, set := range s.sets {
		left = append(left, "TektonInstallerSet "+set)
	}
	pac, err := FindPaC(ctx, o.Cluster)
	if err == nil && pac != nil && pac.Operated() {
		left = append(left, "the Deployments of Pipelines-as-Code in namespace "+pac.Namespace)
	}
	return left, err
}

func stillThere(err error, left []string) error {
	if !errors.Is(err, context.DeadlineExceeded) || len(left) == 0 {
		return err
	}
	return fmt.Errorf("the operator has not deleted %s in time: read its log. "+
		"If another program writes TektonConfig %s, for example GitOps, turn Pipelines-as-Code off there",
		strings.Join(left, ", "), configName)
}

// check returns an error if turning PaC off or on would lose deliveries or run them twice.
func (o *Operator) check(ctx context.Context, s *operated) error {
	cm, err := o.Cluster.Kube.CoreV1().ConfigMaps(o.Namespace).Get(ctx, o.ConfigMap, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		o.say("Plumbline is not installed in namespace %s", o.Namespace)
		return nil
	}
	if err != nil {
		return kube.Failed(fmt.Sprintf("reading ConfigMap %s/%s", o.Namespace, o.ConfigMap), err)
	}
	url := strings.TrimSpace(cm.Data[keyPaC])
	if o.Back && url == "" && !s.enabled {
		return fmt.Errorf("ConfigMap %[1]s/%[2]s has no %[3]s, so the watcher of Pipelines-as-Code would adopt Plumbline's "+
			"PipelineRuns: set it first, then wait until the PipelineRuns from before have finished:\n"+
			`  kubectl -n %[1]s patch configmap %[2]s --type=merge -p '{"data":{"%[3]s":"http://%[4]s.%[5]s.svc.cluster.local:8080"}}'`,
			o.Namespace, o.ConfigMap, keyPaC, pacController, s.target())
	}
	if o.Back || url == "" {
		return nil
	}
	return o.allMoved(s, cm)
}

// allMoved returns an error if Pipelines-as-Code still serves a namespace with Repositories.
func (o *Operator) allMoved(s *operated, cm *corev1.ConfigMap) error {
	settings, _ := config.New(cm.Data)
	var unmoved []string
	for _, r := range s.repositories {
		if r.Namespace != o.Namespace && r.Namespace != s.target() && !settings.Namespaces.Serve(r.Namespace) {
			unmoved = append(unmoved, r.Namespace)
		}
	}
	if len(unmoved) == 0 {
		return nil
	}
	slices.Sort(unmoved)
	return fmt.Errorf("Pipelines-as-Code still serves namespaces with Repositories: %s. "+
		"Move each one first: plumb migrate namespace NAMESPACE", strings.Join(slices.Compact(unmoved), ", "))
}

// describe says what Run would do.
func (o *Operator) describe(s *operated) {
	o.say("The Tekton operator manages Pipelines-as-Code in this cluster. It is turned %s in TektonConfig %s.",
		map[bool]string{true: "on", false: "off"}[s.enabled], configName)
	for _, owner := range s.owners() {
		o.say("%s %s owns CustomResourceDefinition %s: if it is deleted, all %d Repositories are deleted with it.",
			owner.Kind, owner.Name, definitionName, len(s.repositories))
	}
	steps := []string{
		fmt.Sprintf("write all %d Repositories to the file %s", len(s.repositories), o.Backup),
		"create ValidatingAdmissionPolicy " + guardName + ", which refuses to delete the CustomResourceDefinition, " +
			"and wait until the API server enforces it",
		"remove the owner references of the operator from CustomResourceDefinition " + definitionName,
		fmt.Sprintf("set spec.platforms.%s.pipelinesAsCode.enable: false in TektonConfig %s", s.platform, configName),
		"wait until the operator has deleted Pipelines-as-Code. It also deletes its ConfigMap, Service and Route",
		"delete the policy",
	}
	if o.Back {
		steps[2] = fmt.Sprintf("set spec.platforms.%s.pipelinesAsCode.enable: true in TektonConfig %s",
			s.platform, configName)
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
