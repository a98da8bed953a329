// SPDX-License-Identifier: Apache-2.0

// Package plans stores what an unsettled event needs until it settles: the body of its delivery,
// and its plan. A plan is the PipelineRuns as they will be created, with markers for secret values,
// and these values.
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

// Events is the part of the GitEvents' client that a Store needs.
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

// Store reads and writes what is stored of events, in Plumbline's own namespace.
type Store struct {
	Events   Events
	Payloads payloadclient.EventPayloadInterface
	Secrets  corev1client.SecretInterface
	// Memory is shared by all events that are reconciled at once. Budget limits what all unsettled
	// events store in the API server.
	Memory *memory.Budget
	Budget *quota.Ledger
	// Rate limits the CPU time for large plans (NewRate).
	Rate *rate.Limiter
	// Changed is called for each event whose object, other than its status, was changed or may have
	// been: a cached version of it is old.
	Changed func(event string)
}

// StoredPlan is what was planned for one event, as one reconcile reads it: each thing once.
type StoredPlan struct {
	*Store
	event     *v1alpha1.GitEvent
	manifests map[string]json.RawMessage // by name, as far as they were read; objects would take many times the memory
	values    map[string]string          // of the markers

	mu       sync.Mutex
	reserved map[string]int // bytes of memory by purpose; nil once they are released
	total    int            // of them
}

// Manifest is a planned PipelineRun in JSON.
type Manifest struct {
	Name string
	JSON []byte
}

// memoryRetry is when an event that is queued for memory is requeued although nothing has woken it.
const memoryRetry = time.Minute

// Of returns what is stored of an event. The memory that it reserves is in use until Release.
func (s *Store) Of(event *v1alpha1.GitEvent) *StoredPlan {
	return &StoredPlan{Store: s, event: event, reserved: map[string]int{}}
}

// Reserve reserves memory for a purpose until the purpose has so many bytes. The limits are
// memory.MaxPart for the purpose, and memory.MaxEvent for the event. Memory that the purpose
// already has counts. The error is a Throttled fault with reason Busy. Reserve is safe for
// concurrent use.
func (p *StoredPlan) Reserve(what string, bytes int) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.reserve(what, bytes)
}

func (p *StoredPlan) reserve(what string, bytes int) error {
	more := min(min(bytes, memory.MaxPart)-p.reserved[what], memory.MaxEvent-p.total)
	if more <= 0 || p.reserved == nil {
		return nil
	}
	if !p.Memory.Reserve(p.event.Name, p.owner(), more, p.total) {
		return noMemory()
	}
	p.reserved[what] += more
	p.total += more
	return nil
}

// Queued returns the error of Reserve while the event is queued for memory since an earlier
// reconcile. Call it before Reserve.
func (p *StoredPlan) Queued() error {
	if !p.Memory.Queued(p.event.Name) {
		return nil
	}
	return noMemory()
}

func noMemory() error {
	return fault.Throttledf(fault.ReasonBusy, memoryRetry, "waiting for memory: other large events use all of it")
}

// ReserveAnswers reserves so many bytes more for the answers of Git services. Concurrent calls may
// use it.
func (p *StoredPlan) ReserveAnswers(more int) error {
	const what = "answers"
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.reserve(what, p.reserved[what]+more)
}

// Release releases the memory. The Plan must not be used any more.
func (p *StoredPlan) Release() {
	p.mu.Lock()
	total := p.total
	p.reserved, p.total = nil, 0
	p.mu.Unlock()
	p.Memory.Release(p.event.Name, p.owner(), total)
}

// owner returns the owner of the memory.
func (p *StoredPlan) owner() string { return p.event.Spec.Repository.Namespace }

// Forget drops the manifests that were read or stored in this reconcile, because the status that
// names them was not written. It does not drop the values of the markers: these are read only when
// the stored status names them.
func (p *StoredPlan) Forget() { p.manifests = nil }

// Remove deletes the payload and the manifests, before the event is settled. It does not change the
// status. It may be repeated.
func (p *StoredPlan) Remove(ctx context.Context) error {
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

// patch changes the event's object, not its status, unless it was changed since it was read.
// Afterwards p.event has the new version, so that the status can be written.
func (p *StoredPlan) patch(ctx context.Context, doing string, change map[string]any) error {
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
	p.event.ResourceVersion, p.event.Payload = patched.ResourceVersion, nil
	p.event.Labels, p.event.Annotations = patched.Labels, patched.Annotations
	return nil
}
