// SPDX-License-Identifier: Apache-2.0

package webhooksecret

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/flowcontrol"

	copies "github.com/plumbline-ci/plumbline/pkg/credentials/webhooksecret"
	"github.com/plumbline-ci/plumbline/pkg/fault"
)

// state is the result of copying a secret.
type state string

const (
	copied  state = "copied"
	missing state = "missing" // the API server says that the Secret or the key is missing or empty
	refused state = "refused" // over a budget
	unread  state = "unread"  // not read yet, or the read failed: an existing copy stays
)

// pass is one reconcile of a shard.
type pass struct {
	*Reconciler
	wanted     map[string]named
	incomplete bool // other secrets may be wanted, too
	memory          // of the last pass
	next       memory
	data       map[string][]byte // of the shard, as it should be
	// sources are the Secrets that were read in this pass: several keys of one Secret cost one
	// read.
	sources map[types.NamespacedName]source
	// found is what the conditions of Repositories say after the shard is written.
	found []found
}

type source struct {
	secret *corev1.Secret
	err    error
}

// due is a secret that is to be read now.
type due struct {
	id string
	// budget limits these reads.
	budget flowcontrol.PassiveRateLimiter
}

// reconcile reads what is due and writes what has changed. It reports whether more is due.
func (p *pass) reconcile(ctx context.Context, name string) (more bool, err error) {
	live, err := p.get(ctx, p.namespace, name)
	if err != nil {
		return false, err
	}
	p.data, p.sources = map[string][]byte{}, map[types.NamespacedName]source{}
	if live != nil {
		maps.Copy(p.data, live.Data)
	}
	p.prune()
	due := p.due()
	p.fetch(ctx, due)
	for _, d := range due {
		if !p.read(d) {
			more = true
		}
	}
	if err := p.write(ctx, name, live, p.complete()); err != nil {
		return false, err
	}
	return !p.report(ctx) || more, nil
}

// prune drops the copies that no Repository names any more, unless the list may be incomplete, and
// carries over the memory of the others.
func (p *pass) prune() {
	for id := range p.data {
		if _, named := p.wanted[strings.TrimSuffix(id, copies.PreviousSuffix)]; !named && !p.incomplete {
			delete(p.data, id)
		}
	}
	p.next = memory{
		requested: map[string]bool{},
		read:      map[string]time.Time{},
		failed:    map[string]int{},
		states:    map[string]state{},
	}
	for id := range p.wanted {
		p.next.states[id] = cmp.Or(p.memory.states[id], unread)
		if at, known := p.memory.read[id]; known {
			p.next.read[id] = at
		}
		if n := p.failed[id]; n > 0 {
			p.next.failed[id] = n
		}
		if p.requested[id] {
			p.next.requested[id] = true
		}
	}
}

// lost reports whether another writer removed a copy from the shard.
func (p *pass) lost(id string) bool {
	_, there := copies.Copy(p.data, id)
	return !there && p.next.states[id] == copied
}

// due returns what is to be read: what receivers requested, then what has no copy, then the rest.
// Each has a budget of its own, so a user who creates many Repositories delays no rotation. Secrets
// whose reads failed come later, so that they take no reads from others, then those that were read
// last.
func (p *pass) due() []due {
	var all []due
	rank, budgets := map[string]int{}, []flowcontrol.PassiveRateLimiter{p.onRequest, p.firsts, p.regular}
	for id := range p.wanted {
		at, known := p.next.read[id]
		_, there := copies.Copy(p.data, id)
		switch {
		case p.next.requested[id]:
			rank[id] = 0
		case !known && !there, p.lost(id):
			rank[id] = 1
		case p.clock.Since(at) >= readEvery:
			rank[id] = 2
		default:
			continue
		}
		all = append(all, due{id: id, budget: budgets[rank[id]]})
	}
	slices.SortFunc(all, func(a, b due) int {
		return cmp.Or(cmp.Compare(rank[a.id], rank[b.id]), cmp.Compare(p.next.failed[a.id], p.next.failed[b.id]),
			p.next.read[a.id].Compare(p.next.read[b.id]), cmp.Compare(a.id, b.id))
	})
	return all
}

// read copies one secret. It returns false if that has to be retried soon.
func (p *pass) read(d due) bool {
	n := p.wanted[d.id]
	from, fetched := p.sources[n.secret()]
	if !fetched {
		return false
	}
	became, problem := p.take(d.id, n, from)
	p.next.states[d.id] = became
	if became != unread {
		p.found = append(p.found, found{d.id, problem, p.next.read[d.id], p.next.requested[d.id]})
	} else if fault.Of(from.err).Class != fault.Operator && !p.countFailure(d.id) {
		return false // what an operator has to fix, for example a right, is read as often as everything else
	}
	p.next.read[d.id] = p.clock.Now()
	delete(p.next.requested, d.id)
	return true
}

// take writes or removes the copy of a secret that was read.
func (p *pass) take(id string, n named, from source) (state, *problem) {
	if from.err != nil {
		return unread, nil
	}
	where := fmt.Sprintf("Secret %s/%s", n.key.Namespace, n.key.Name)
	var value copies.Value
	found := false
	if from.secret != nil {
		value, found = copies.In(from.secret, n.key.Key)
	}
	copies.Remove(p.data, id)
	switch {
	case from.secret == nil:
		return missing, &problem{
			"SecretMissing",
			where + " does not exist: create it with the webhook's secret as " + n.key.Key + ". No delivery is accepted until then.",
		}
	case !found:
		return missing, &problem{
			"SecretMissing",
			where + " has no key " + n.key.Key + ", or it is empty: put the webhook's secret there. No delivery is accepted until then.",
		}
	case value.TooLong():
		return refused, &problem{
			"SecretTooLong",
			fmt.Sprintf(
				"%s has more than %d bytes as %s: choose a shorter secret for the webhook. No delivery is accepted until then.",
				where, copies.MaxValueBytes, n.key.Key,
			),
		}
	case !p.room(n, value):
		return refused, &problem{
			"NoRoom",
			fmt.Sprintf(
				"There is no room for a copy of %s: too many webhook secrets, of this namespace or of all. Let Repositories share one.",
				where,
			),
		}
	}
	copies.Put(p.data, id, value)
	return copied, nil
}

// room reports whether a copy fits into the shard, and into the share of its namespace. As much is
// reserved for Plumbline's own namespace, which has the App's secret.
func (p *pass) room(n named, value copies.Value) bool {
	all, own := value.Bytes(), value.Bytes()
	for id, other := range p.wanted {
		copy, there := copies.Copy(p.data, id)
		if !there {
			continue
		}
		all += copy.Bytes()
		if other.key.Namespace == n.key.Namespace {
			own += copy.Bytes()
		}
	}
	if n.key.Namespace == p.namespace {
		return all <= copies.MaxShardBytes
	}
	return all <= copies.MaxShardBytes-copies.MaxNamespaceBytes && own <= copies.MaxNamespaceBytes
}

// complete reports whether each secret is copied, or cannot be copied.
func (p *pass) complete() bool {
	for id := range p.wanted {
		_, known := p.next.read[id]
		if _, there := copies.Copy(p.data, id); !known && !there && p.next.states[id] == unread || p.lost(id) {
			return false
		}
	}
	return true
}

// write creates or patches the shard. If another writer changed it since it was read, the result is
// a conflict.
func (p *pass) write(ctx context.Context, name string, live *corev1.Secret, complete bool) error {
	annotations := map[string]string{}
	if complete {
		annotations[copies.CompleteAnnotation] = "true"
	}
	if live == nil {
		shard := &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{
				Name:        name,
				Annotations: annotations,
				Labels:      map[string]string{"app.kubernetes.io/part-of": "plumbline"},
			},
			Data: p.data,
		}
		if _, err := p.secrets.Secrets(p.namespace).Create(ctx, shard, metav1.CreateOptions{}); err != nil {
			return fmt.Errorf("creating Secret %s/%s: %w", p.namespace, name, fault.FromKube(fault.VerbCreate, err))
		}
		return nil
	}
	change := p.change(live.Data)
	if len(change) == 0 && (!complete || copies.Complete(live)) {
		return nil
	}
	patch, err := json.Marshal(
		map[string]any{
			"metadata": map[string]any{"resourceVersion": live.ResourceVersion, "annotations": annotations},
			"data":     change,
		},
	)
	if err != nil {
		return fmt.Errorf("encoding a change of Secret %s/%s: %w", p.namespace, name, err)
	}
	if _, err := p.secrets.Secrets(p.namespace).
		Patch(ctx, name, types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
		return fmt.Errorf("changing Secret %s/%s: %w", p.namespace, name, fault.FromKube(fault.VerbUpdate, err))
	}
	return nil
}

// change is the merge patch of a shard's data: null removes a key.
func (p *pass) change(was map[string][]byte) map[string]any {
	change := map[string]any{}
	for id := range was {
		if _, stays := p.data[id]; !stays {
			change[id] = nil
		}
	}
	for id, value := range p.data {
		if before, there := was[id]; !there || !bytes.Equal(before, value) {
			change[id] = value
		}
	}
	return change
}
