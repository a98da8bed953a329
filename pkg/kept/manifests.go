// SPDX-License-Identifier: Apache-2.0

// Package kept is what was planned for an event: PipelineRuns as they will be created, with markers for secret values, and
// those values. It is kept beside the GitEvent until that is settled.
package kept

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	pipelinev1 "github.com/tektoncd/pipeline/pkg/apis/pipeline/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/blob"
	payloadclient "github.com/plumbline-ci/plumbline/pkg/client/clientset/versioned/typed/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/pkg/memory"
)

// Plan is what was planned for one event, as one reconcile reads it: each thing once.
type Plan struct {
	event     *v1alpha1.GitEvent
	payloads  payloadclient.EventPayloadInterface
	secrets   corev1client.SecretInterface
	manifests map[string]json.RawMessage // by name, as far as they were read; as objects they would take many times as much
	values    map[string]string          // what the markers stand for
	room      *memory.Room
	held      map[string]int // bytes of the room, by what for
	total     int            // of them
}

// Manifest is a planned PipelineRun in JSON.
type Manifest struct {
	Name string
	JSON []byte
}

// roomRetry is when whoever found no memory tries again although nobody has woken it: what it needs was read for that, and is read
// again.
const roomRetry = time.Minute

// New returns what is kept of an event. The clients are those of the event's namespace. It takes memory of the room until Release.
func New(event *v1alpha1.GitEvent, payloads payloadclient.EventPayloadInterface, secrets corev1client.SecretInterface, room *memory.Room) *Plan {
	return &Plan{event: event, payloads: payloads, secrets: secrets, room: room, held: map[string]int{}}
}

// Hold takes memory for something until so many bytes are held for it: memory.MaxHeld at most, and memory.MaxEvent for all of the
// event. What is held already counts. The error is a Throttled fault with reason Busy.
func (p *Plan) Hold(what string, bytes int) error {
	more := min(min(bytes, memory.MaxHeld)-p.held[what], memory.MaxEvent-p.total)
	if more <= 0 {
		return nil
	}
	if !p.room.Take(p.event.Name, p.owner(), more, p.total) {
		return fault.Throttledf(fault.ReasonBusy, roomRetry, "the memory for large events is taken by others")
	}
	p.held[what] += more
	p.total += more
	return nil
}

// Release gives back what is held; the Plan is not used any more.
func (p *Plan) Release() {
	p.room.Give(p.owner(), p.total)
	p.held, p.total = nil, 0
}

// owner is whose part of the room is taken.
func (p *Plan) owner() string { return p.event.Spec.Repository.Namespace }

// Forget drops the manifests that were read or stored in this reconcile: the status that names them was not written. What the
// markers stand for stays known: it is read only once a written status names it.
func (p *Plan) Forget() { p.manifests = nil }

// Keep stores the manifests and what their markers stand for, so that what is created later is what was planned now,
// whatever changes meanwhile.
func (p *Plan) Keep(ctx context.Context, plan *v1alpha1.Plan, manifests []Manifest, secrets map[string]string) error {
	if len(manifests) == 0 {
		return nil
	}
	if err := p.keepSecrets(ctx, plan, secrets); err != nil {
		return err
	}
	data := list(manifests)
	name := p.event.Name + "-plan-" + strings.TrimPrefix(blob.Digest(data...), "sha256:")[:12]
	ref, chunks, err := blob.Make(p.event.Namespace, name, p.event.Name, data...)
	if err != nil {
		return fmt.Errorf("packing the planned PipelineRuns: %w", err)
	}
	if err := blob.Write(ctx, p.payloads, chunks); err != nil {
		return fmt.Errorf("storing the plan: %w", err)
	}
	plan.Blobs = append(plan.Blobs, ref)
	for _, manifest := range manifests {
		p.know(manifest.Name, manifest.JSON)
	}
	return nil
}

// list is a list of the manifests in JSON, in parts.
func list(manifests []Manifest) [][]byte {
	var parts [][]byte
	separator := []byte("[")
	for _, manifest := range manifests {
		parts = append(parts, separator, manifest.JSON)
		separator = []byte(",")
	}
	return append(parts, []byte("]"))
}

func (p *Plan) know(name string, manifest json.RawMessage) {
	if p.manifests == nil {
		p.manifests = map[string]json.RawMessage{}
	}
	p.manifests[name] = manifest
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
	data, ok := p.manifests[name]
	if !ok && missing != nil {
		return nil, missing
	}
	if !ok {
		return nil, fmt.Errorf("the plan has no PipelineRun %s", name)
	}
	manifest := &pipelinev1.PipelineRun{}
	if err := json.Unmarshal(data, manifest); err != nil {
		return nil, fmt.Errorf("decoding the planned PipelineRun %s: %w", name, err)
	}
	return manifest, nil
}

func (p *Plan) read(ctx context.Context, ref v1alpha1.BlobReference) error {
	data, err := p.Blob(ctx, ref)
	if err != nil {
		return fmt.Errorf("reading the plan: %w", err)
	}
	var manifests []json.RawMessage
	if err := json.Unmarshal(data, &manifests); err != nil {
		return fmt.Errorf("decoding the plan: %w", err)
	}
	for _, manifest := range manifests {
		var named metav1.PartialObjectMetadata
		if err := json.Unmarshal(manifest, &named); err != nil {
			return fmt.Errorf("decoding the plan: %w", err)
		}
		p.know(named.Name, manifest)
	}
	return nil
}
