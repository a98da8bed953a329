// SPDX-License-Identifier: Apache-2.0

package gitevent

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"

	pipelinev1 "github.com/tektoncd/pipeline/pkg/apis/pipeline/v1"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/blob"
)

// keep stores the manifests, so that what is created later is what was planned now, whatever changes meanwhile.
func (w *work) keep(ctx context.Context, plan *v1alpha1.Plan, manifests []*pipelinev1.PipelineRun) error {
	if len(manifests) == 0 {
		return nil
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
	plan.Blob = &ref
	w.manifests = byName(manifests)
	return nil
}

func byName(manifests []*pipelinev1.PipelineRun) map[string]*pipelinev1.PipelineRun {
	m := make(map[string]*pipelinev1.PipelineRun, len(manifests))
	for _, manifest := range manifests {
		m[manifest.Name] = manifest
	}
	return m
}

// manifest returns a planned PipelineRun as it was written down.
func (w *work) manifest(ctx context.Context, name string) (*pipelinev1.PipelineRun, error) {
	if w.manifests == nil {
		plan := w.event.Status.Plan
		if plan.Blob == nil {
			return nil, errors.New("the plan names no stored PipelineRuns")
		}
		data, err := blob.Read(ctx, w.r.payloads, *plan.Blob)
		if err != nil {
			return nil, fmt.Errorf("reading the plan: %w", err)
		}
		var manifests []*pipelinev1.PipelineRun
		if err := json.Unmarshal(data, &manifests); err != nil {
			return nil, fmt.Errorf("decoding the plan: %w", err)
		}
		w.manifests = byName(manifests)
	}
	manifest, ok := w.manifests[name]
	if !ok {
		return nil, fmt.Errorf("the plan has no PipelineRun %s", name)
	}
	return manifest.DeepCopy(), nil
}
