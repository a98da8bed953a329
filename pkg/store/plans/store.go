// SPDX-License-Identifier: Apache-2.0

// Package plans is what is kept for an open event until it settles: the body of its delivery, and
// what was planned, which is PipelineRuns as they will be created, with markers for secret values,
// and those values.
package plans

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	"golang.org/x/time/rate"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	payloadclient "github.com/plumbline-ci/plumbline/pkg/client/clientset/versioned/typed/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/pkg/flowcontrol/memory"
	"github.com/plumbline-ci/plumbline/pkg/flowcontrol/quota"
	"github.com/plumbline-ci/plumbline/pkg/store/blob"
)

// Events is what is asked of the GitEvents' client.
type Events interface {
	Get(ctx context.Context, name string, o metav1.GetOptions) (*v1alpha1.GitEvent, error)
	Patch(
		ctx context.Context,
		name string,
		pt types.PatchType,
		data []byte,
		o metav1.PatchOptions,
		subresources ...string,
	) (*v1alpha1.GitEvent, error)
}

// Store is where it is kept: the clients are those of Plumbline's own namespace.
type Store struct {
	Events   Events
	Payloads payloadclient.EventPayloadInterface
	Secrets  corev1client.SecretInterface
	// Room is the memory for all events that are worked on at once, Budget what all open events
	// keep in the API server.
	Memory *memory.Budget
	Budget *quota.Ledger
	// Pace is that of all plans that are larger than nearly all are (NewPace).
	Rate *rate.Limiter
	// Changed is told of each event that was changed outside of its status, or may have been: who
	// knows it knows an old version.
	Changed func(event string)
}

// Plan is what was planned for one event, as one reconcile reads it: each thing once.
type Plan struct {
	*Store
	event     *v1alpha1.GitEvent
	manifests map[string]json.RawMessage // by name, as far as they were read; as objects they would take many times as much
	values    map[string]string          // what the markers stand for

	mu    sync.Mutex
	held  map[string]int // bytes of the room, by what for; nil once they are released
	total int            // of them
}

// Manifest is a planned PipelineRun in JSON.
type Manifest struct {
	Name string
	JSON []byte
}

// roomRetry is when whoever found no memory looks again although nobody has woken it.
const roomRetry = time.Minute

// Of returns what is kept of an event. It takes memory of the room until Release.
func (s *Store) Of(event *v1alpha1.GitEvent) *Plan {
	return &Plan{Store: s, event: event, held: map[string]int{}}
}

// Hold takes memory for something until so many bytes are held for it: memory.MaxHeld at most, and
// memory.MaxEvent for all of the event. What is held already counts. The error is a Throttled fault
// with reason Busy. Safe for concurrent use.
func (p *Plan) Hold(what string, bytes int) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.hold(what, bytes)
}

func (p *Plan) hold(what string, bytes int) error {
	more := min(min(bytes, memory.MaxPart)-p.held[what], memory.MaxEvent-p.total)
	if more <= 0 || p.held == nil {
		return nil
	}
	if !p.Memory.Reserve(p.event.Name, p.owner(), more, p.total) {
		return noMemory()
	}
	p.held[what] += more
	p.total += more
	return nil
}

// Waits returns the error of Hold for an event that found no memory at an attempt before, and whose
// turn has not come. It is asked before anything is held.
func (p *Plan) Waits() error {
	if !p.Memory.Queued(p.event.Name) {
		return nil
	}
	return noMemory()
}

func noMemory() error {
	return fault.Throttledf(fault.ReasonBusy, roomRetry, "the memory for large events is taken by others")
}

// HoldAnswers is Hold for so many bytes more of what Git services answer: some calls are made at
// once.
func (p *Plan) HoldAnswers(more int) error {
	const what = "answers"
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.hold(what, p.held[what]+more)
}

// Release gives back what is held; the Plan is not used any more.
func (p *Plan) Release() {
	p.mu.Lock()
	total := p.total
	p.held, p.total = nil, 0
	p.mu.Unlock()
	p.Memory.Release(p.event.Name, p.owner(), total)
}

// owner is whose part of the room is taken.
func (p *Plan) owner() string { return p.event.Spec.Repository.Namespace }

// Forget drops the manifests that were read or stored in this reconcile: the status that names them
// was not written. What the markers stand for stays known: it is read only once a written status
// names it.
func (p *Plan) Forget() { p.manifests = nil }

// Remove deletes the payload and the manifests, before the event is settled; of the status it takes
// nothing. It may be repeated.
func (p *Plan) Remove(ctx context.Context) error {
	refs := p.event.Status.Plan.Blobs
	if payload := p.event.Spec.Payload; payload.Chunks > 0 {
		refs = append([]v1alpha1.BlobReference{payload}, refs...)
	} else if err := p.patch(ctx, "removing the payload of", map[string]any{"payload": nil}); err != nil {
		return err
	}
	for _, ref := range refs {
		if err := blob.Delete(ctx, p.Payloads, ref); err != nil {
			return err
		}
	}
	return nil
}

// patch changes the event outside of its status, if nobody has changed it since it was read.
// Afterwards the event has the version that this has made, so that its status can be written.
func (p *Plan) patch(ctx context.Context, doing string, change map[string]any) error {
	meta, _ := change["metadata"].(map[string]any)
	if meta == nil {
		meta = map[string]any{}
	}
	meta["resourceVersion"] = p.event.ResourceVersion
	change["metadata"] = meta
	data, err := json.Marshal(change)
	if err != nil {
		return fmt.Errorf("%s GitEvent %s: %w", doing, p.event.Name, err)
	}
	defer p.Changed(p.event.Name)
	patched, err := p.Events.Patch(ctx, p.event.Name, types.MergePatchType, data, metav1.PatchOptions{})
	if err != nil {
		return fault.FromKube(fault.VerbPatch, fmt.Errorf("%s GitEvent %s: %w", doing, p.event.Name, err))
	}
	p.event.ResourceVersion, p.event.Labels, p.event.Annotations, p.event.Payload = patched.ResourceVersion, patched.Labels, patched.Annotations, nil
	return nil
}
