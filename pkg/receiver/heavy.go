// SPDX-License-Identifier: Apache-2.0

package receiver

import (
	"context"
	"sync"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
)

// heavyBytes is a body whose reading takes milliseconds of a processor: 10 for 256 KiB, and as many again to compress it. A push
// of 300 files has 100 KiB.
const heavyBytes = 256 << 10

// processor is taken by one large body at a time. A small one has to wait for a processor at some ten points on its way, each time
// for all large ones that are being worked on: for thirty of them it waited a second in all.
var processor sync.Mutex //nolint:gochecknoglobals // processors are the process's, too

// worked calls work, which only calculates, when no other large body is worked on. A small body does not wait.
func worked(body []byte, work func()) {
	if len(body) > heavyBytes {
		processor.Lock()
		defer processor.Unlock()
	}
	work()
}

// decode reads a verified delivery.
func (d *delivery) decode() (spec *v1alpha1.GitEventSpec, err error) {
	worked(d.body, func() { spec, err = d.provider.Webhook.Decode(d.header, d.body) })
	return spec, err
}

// beyondRate refuses a body that its namespace's rate would refuse in the end, before it is decoded. So many bytes have little to do
// with the many deliveries of an App that nobody acts on: they may cost the look-up of a Repository.
func (h *Handler) beyondRate(ctx context.Context, d *delivery, canonical string) *answer {
	if len(d.body) <= surelyLarge || canonical == "" {
		return nil
	}
	repository, err := h.Lookup.Find(ctx, canonical)
	if err != nil {
		return nil // it is looked up again, and answered, if somebody acts on such events
	}
	if err := h.Recorder.Affords(repository.Namespace, d.origin.Push, len(d.body)); err != nil {
		a := unrecorded(err)
		return &a
	}
	return nil
}
