// SPDX-License-Identifier: Apache-2.0

package gitevent

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"

	pipelinev1 "github.com/tektoncd/pipeline/pkg/apis/pipeline/v1"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/blob"
	"github.com/plumbline-ci/plumbline/pkg/fault"
)

// keep stores the manifests and what their markers stand for, so that what is created later is what was planned now,
// whatever changes meanwhile.
func (w *work) keep(ctx context.Context, plan *v1alpha1.Plan, manifests []*pipelinev1.PipelineRun, secrets map[string]string) error {
	if len(manifests) == 0 {
		return nil
	}
	if err := w.keepSecrets(ctx, plan, secrets); err != nil {
		return err
	}
	data, err := json.Marshal(manifests)
	if err != nil {
		return fmt.Errorf("encoding the planned PipelineRuns: %w", err)
	}
	digest := sha256.Sum256(data)
	name := w.event.Name + "-plan-" + hex.EncodeToString(digest[:6])
	ref, chunks, err := blob.Make(w.event.Namespace, name, w.event.Name, data)
	if err != nil {
		return fmt.Errorf("packing the planned PipelineRuns: %w", err)
	}
	if err := blob.Write(ctx, w.r.payloads, chunks); err != nil {
		return fmt.Errorf("storing the plan: %w", err)
	}
	plan.Blobs = append(plan.Blobs, ref)
	w.know(manifests)
	return nil
}

func (w *work) know(manifests []*pipelinev1.PipelineRun) {
	if w.manifests == nil {
		w.manifests = map[string]*pipelinev1.PipelineRun{}
	}
	for _, manifest := range manifests {
		w.manifests[manifest.Name] = manifest
	}
}

// manifest returns a planned PipelineRun as it was written down. A blob that is missing matters to the PipelineRuns in it.
func (w *work) manifest(ctx context.Context, name string) (*pipelinev1.PipelineRun, error) {
	var missing error
	if _, known := w.manifests[name]; !known {
		for _, ref := range w.event.Status.Plan.Blobs {
			err := w.read(ctx, ref)
			if f := fault.Of(err); f != nil && f.Reason == reasonPayloadMissing {
				missing = err
				continue
			}
			if err != nil {
				return nil, err
			}
		}
	}
	manifest, ok := w.manifests[name]
	if !ok && missing != nil {
		return nil, missing
	}
	if !ok {
		return nil, fmt.Errorf("the plan has no PipelineRun %s", name)
	}
	return manifest.DeepCopy(), nil
}

func (w *work) read(ctx context.Context, ref v1alpha1.BlobReference) error {
	data, err := w.storedBlob(ctx, ref)
	if err != nil {
		return fmt.Errorf("reading the plan: %w", err)
	}
	var manifests []*pipelinev1.PipelineRun
	if err := json.Unmarshal(data, &manifests); err != nil {
		return fmt.Errorf("decoding the plan: %w", err)
	}
	w.know(manifests)
	return nil
}
