// SPDX-License-Identifier: Apache-2.0

package gitevent

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
	"github.com/plumbline-ci/plumbline/pkg/resources"
	"github.com/plumbline-ci/plumbline/pkg/template"
)

// A plan that uses secret params has two halves: manifests with markers where the values stand, in EventPayloads, and
// the values, in one Secret of Plumbline's namespace. So what is created is what was planned although a team changes its
// Secret meanwhile, and every text about the run can be searched for the values before it is told.

// readSecret reads a value that a custom param refers to.
func (w *work) readSecret(ctx context.Context, ref template.SecretRef) (string, error) {
	namespace := w.event.Spec.Repository.Namespace
	secret, err := w.session.Secret(ctx, namespace, ref.Name)
	if apierrors.IsNotFound(err) {
		return "", fault.Operatorf(fault.ReasonSecretMissing, "a custom param needs secret %s/%s, which does not exist: create it with the key %s", namespace, ref.Name, ref.Key)
	}
	if err != nil {
		return "", fault.FromKube(fault.VerbRead, fmt.Errorf("reading secret %s/%s for a custom param: %w", namespace, ref.Name, err))
	}
	value, found := secret.Data[ref.Key]
	if !found {
		return "", fault.Operatorf(fault.ReasonSecretMissing, "a custom param needs the key %s of secret %s/%s, which has no such key", ref.Key, namespace, ref.Name)
	}
	return string(value), nil
}

// keepSecrets stores what the markers of the manifests stand for. An attempt before this one may have stored other
// values: they are replaced, none is removed.
func (w *work) keepSecrets(ctx context.Context, plan *v1alpha1.Plan, values map[string]string) error {
	if len(values) == 0 {
		return nil
	}
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: w.event.Namespace, Name: resources.PlanSecretName(w.event.Name), Labels: map[string]string{plumbline.EventLabel: w.event.Name},
			OwnerReferences: []metav1.OwnerReference{{APIVersion: v1alpha1.SchemeGroupVersion.String(), Kind: "GitEvent", Name: w.event.Name, UID: w.event.UID}},
		},
		Type: corev1.SecretTypeOpaque,
		Data: map[string][]byte{},
	}
	for marker, value := range values {
		secret.Data[marker] = []byte(value)
	}
	_, err := w.r.kube.Secrets(secret.Namespace).Create(ctx, secret, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		var patch []byte
		if patch, err = json.Marshal(map[string]any{"data": secret.Data}); err == nil {
			_, err = w.r.kube.Secrets(secret.Namespace).Patch(ctx, secret.Name, types.MergePatchType, patch, metav1.PatchOptions{})
		}
	}
	if err != nil {
		return asOwn(fault.FromKube(fault.VerbCreate, fmt.Errorf("storing the secret values of the plan in %s/%s: %w", secret.Namespace, secret.Name, err)))
	}
	plan.Secret = secret.Name
	return nil
}

// values returns what the markers of the plan stand for; nil when it has none.
func (w *work) values(ctx context.Context) (map[string]string, error) {
	plan := w.event.Status.Plan
	if plan == nil || plan.Secret == "" || w.secrets != nil {
		return w.secrets, nil
	}
	secret, err := w.r.kube.Secrets(w.event.Namespace).Get(ctx, plan.Secret, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, fault.Operatorf(fault.ReasonSecretMissing, "secret %s/%s with the secret values of the plan was deleted: let the Git service send a new event", w.event.Namespace, plan.Secret)
	}
	if err != nil {
		return nil, asOwn(fault.FromKube(fault.VerbRead, fmt.Errorf("reading the secret values of the plan: %w", err)))
	}
	w.secrets = make(map[string]string, len(secret.Data))
	for marker, value := range secret.Data {
		w.secrets[marker] = string(value)
	}
	return w.secrets, nil
}

// reveal puts the values into a manifest that is about to be created.
func reveal(manifest *pipelinev1.PipelineRun, values map[string]string) (*pipelinev1.PipelineRun, error) {
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

// hiding returns what takes the values out of Tekton's words. When they are not known any more, nothing can be told from
// them, and the words are left out: the verdict does not wait for a text.
func (w *work) hiding(ctx context.Context) (func(string) string, error) {
	values, err := w.values(ctx)
	if fault.Is(err, fault.Operator) {
		return func(string) string { return wordsLeftOut }, nil
	}
	if err != nil {
		return nil, err
	}
	return func(text string) string { return template.Mask(text, values) }, nil
}

const wordsLeftOut = "(left out: it may repeat a secret, and which one cannot be read any more)"

// hideIn returns a copy of a run's conditions without the values.
func hideIn(conditions duckv1.Conditions, hide func(string) string) duckv1.Conditions {
	hidden := slices.Clone(conditions)
	for i := range hidden {
		hidden[i].Message = hide(hidden[i].Message)
	}
	return hidden
}

// masked is an error without the values in its words.
func masked(err error, values map[string]string) error {
	f := fault.Of(err)
	if f == nil || len(values) == 0 {
		return err
	}
	return f.Reworded(template.Mask(f.Message, values))
}
