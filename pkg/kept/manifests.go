// SPDX-License-Identifier: Apache-2.0

// Package kept is what was planned for an event: PipelineRuns as they will be created, with markers for secret values, and
// those values. It is kept beside the GitEvent until that is settled.
package kept

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"

	pipelinev1 "github.com/tektoncd/pipeline/pkg/apis/pipeline/v1"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/blob"
	payloadclient "github.com/plumbline-ci/plumbline/pkg/client/clientset/versioned/typed/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/fault"
)

// Plan is what was planned for one event, as one reconcile reads it: each thing once.
type Plan struct {
	event     *v1alpha1.GitEvent
	payloads  payloadclient.EventPayloadInterface
	secrets   corev1client.SecretInterface
	manifests map[string]*pipelinev1.PipelineRun // by name, as far as they were read
	values    map[string]string                  // what the markers stand for
}

// New returns what is kept of an event. The clients are those of the event's namespace.
func New(event *v1alpha1.GitEvent, payloads payloadclient.EventPayloadInterface, secrets corev1client.SecretInterface) *Plan {
	return &Plan{event: event, payloads: payloads, secrets: secrets}
}

// Forget drops the manifests that were read or stored in this reconcile: the status that names them was not written. What the
// markers stand for stays known: it is read only once a written status names it.
func (p *Plan) Forget() { p.manifests = nil }

// Keep stores the manifests and what their markers stand for, so that what is created later is what was planned now,
// whatever changes meanwhile.
func (p *Plan) Keep(ctx context.Context, plan *v1alpha1.Plan, manifests []*pipelinev1.PipelineRun, secrets map[string]string) error {
	if len(manifests) == 0 {
		return nil
	}
	if err := p.keepSecrets(ctx, plan, secrets); err != nil {
		return err
	}
	data, err := json.Marshal(manifests)
	if err != nil {
		return fmt.Errorf("encoding the planned PipelineRuns: %w", err)
	}
	digest := sha256.Sum256(data)
	name := p.event.Name + "-plan-" + hex.EncodeToString(digest[:6])
	ref, chunks, err := blob.Make(p.event.Namespace, name, p.event.Name, data)
	if err != nil {
		return fmt.Errorf("packing the planned PipelineRuns: %w", err)
	}
	if err := blob.Write(ctx, p.payloads, chunks); err != nil {
		return fmt.Errorf("storing the plan: %w", err)
	}
	plan.Blobs = append(plan.Blobs, ref)
	p.know(manifests)
	return nil
}

func (p *Plan) know(manifests []*pipelinev1.PipelineRun) {
	if p.manifests == nil {
		p.manifests = map[string]*pipelinev1.PipelineRun{}
	}
	for _, manifest := range manifests {
		p.manifests[manifest.Name] = manifest
	}
}

// Manifest returns a planned PipelineRun as it was written down. A blob that is missing matters to the PipelineRuns in it.
func (p *Plan) Manifest(ctx context.Context, name string) (*pipelinev1.PipelineRun, error) {
	var missing error
	if _, known := p.manifests[name]; !known {
		for _, ref := range p.event.Status.Plan.Blobs {
			err := p.read(ctx, ref)
			if f := fault.Of(err); f != nil && f.Reason == ReasonPayloadMissing {
				missing = err
				continue
			}
			if err != nil {
				return nil, err
			}
		}
	}
	manifest, ok := p.manifests[name]
	if !ok && missing != nil {
		return nil, missing
	}
	if !ok {
		return nil, fmt.Errorf("the plan has no PipelineRun %s", name)
	}
	return manifest.DeepCopy(), nil
}

func (p *Plan) read(ctx context.Context, ref v1alpha1.BlobReference) error {
	data, err := p.Blob(ctx, ref)
	if err != nil {
		return fmt.Errorf("reading the plan: %w", err)
	}
	var manifests []*pipelinev1.PipelineRun
	if err := json.Unmarshal(data, &manifests); err != nil {
		return fmt.Errorf("decoding the plan: %w", err)
	}
	p.know(manifests)
	return nil
}
