// SPDX-License-Identifier: Apache-2.0

package plans

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	pipelinev1 "github.com/tektoncd/pipeline/pkg/apis/pipeline/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	duckv1 "knative.dev/pkg/apis/duck/v1"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline"
	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/pkg/pipeline/resources"
	"github.com/plumbline-ci/plumbline/pkg/pipeline/template"
)

// A plan that uses secret params has two parts: manifests with markers in place of the values, and
// the values, in one Secret of Plumbline's namespace. So what is created is what was planned, even
// if a team changes its Secret meanwhile. And the values can be removed from every text about the
// run before it is reported.

// saveSecrets stores the values of the markers. It replaces values that an earlier reconcile has
// stored, and removes none.
func (p *StoredPlan) saveSecrets(ctx context.Context, plan *v1alpha1.Plan, values map[string]string) error {
	if len(values) == 0 {
		return nil
	}
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: p.event.Namespace,
			Name:      resources.PlanSecretName(p.event.Name),
			Labels:    map[string]string{plumbline.EventLabel: p.event.Name},
			OwnerReferences: []metav1.OwnerReference{
				{APIVersion: v1alpha1.SchemeGroupVersion.String(), Kind: "GitEvent", Name: p.event.Name, UID: p.event.UID},
			},
		},
		Type: corev1.SecretTypeOpaque,
		Data: map[string][]byte{},
	}
	for marker, value := range values {
		secret.Data[marker] = []byte(value)
	}
	_, err := p.Secrets.Create(ctx, secret, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		var patch []byte
		if patch, err = json.Marshal(map[string]any{"data": secret.Data}); err == nil {
			_, err = p.Secrets.Patch(ctx, secret.Name, types.MergePatchType, patch, metav1.PatchOptions{})
		}
	}
	if err != nil {
		return fault.FromKube(fault.VerbCreate, fmt.Errorf("storing the secret values of the plan in %s/%s: %w", secret.Namespace, secret.Name, err)).
			AsOwn()
	}
	plan.Secret = secret.Name
	return nil
}

// Values returns the values of the plan's markers; nil when it has none.
func (p *StoredPlan) Values(ctx context.Context) (map[string]string, error) {
	plan := p.event.Status.Plan
	if plan == nil || plan.Secret == "" || p.values != nil {
		return p.values, nil
	}
	secret, err := p.Secrets.Get(ctx, plan.Secret, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, fault.Operatorf(fault.ReasonSecretMissing,
			"secret %s/%s with the secret values of the plan was deleted: let the Git service send a new event",
			p.event.Namespace, plan.Secret)
	}
	if err != nil {
		return nil, fault.FromKube(fault.VerbRead, fmt.Errorf("reading the secret values of the plan: %w", err)).AsOwn()
	}
	p.values = make(map[string]string, len(secret.Data))
	for marker, value := range secret.Data {
		p.values[marker] = string(value)
	}
	return p.values, nil
}

// Reveal puts the values into a manifest that is about to be created.
func Reveal(manifest *pipelinev1.PipelineRun, values map[string]string) (*pipelinev1.PipelineRun, error) {
	if len(values) == 0 {
		return manifest, nil
	}
	data, err := json.Marshal(manifest)
	if err != nil {
		return nil, fmt.Errorf("encoding PipelineRun %s: %w", manifest.Name, err)
	}
	revealed := &pipelinev1.PipelineRun{}
	if err := json.Unmarshal(template.Fill(data, values), revealed); err != nil {
		return nil, fmt.Errorf("decoding PipelineRun %s with its secret values", manifest.Name) // the error could repeat one
	}
	return revealed, nil
}

// Hiding returns a function that removes the values from Tekton's texts. If the values are gone,
// the function replaces the whole text, because the verdict does not wait for a text.
func (p *StoredPlan) Hiding(ctx context.Context) (func(string) string, error) {
	values, err := p.Values(ctx)
	if fault.Is(err, fault.Operator) {
		return func(string) string { return wordsLeftOut }, nil
	}
	if err != nil {
		return nil, err
	}
	return func(text string) string { return template.Mask(text, values) }, nil
}

const wordsLeftOut = "(left out: it may repeat a secret, and which one cannot be read any more)"

// HideIn returns a copy of a run's conditions with hide applied to their messages.
func HideIn(conditions duckv1.Conditions, hide func(string) string) duckv1.Conditions {
	hidden := slices.Clone(conditions)
	for i := range hidden {
		hidden[i].Message = hide(hidden[i].Message)
	}
	return hidden
}

// Masked returns an error without the values in its message.
func Masked(err error, values map[string]string) error {
	f := fault.Of(err)
	if f == nil || len(values) == 0 {
		return err
	}
	return f.Reworded(template.Mask(f.Message, values))
}
