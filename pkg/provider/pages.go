// SPDX-License-Identifier: Apache-2.0

package provider

import (
	"context"
	"fmt"

	"github.com/plumbline-ci/plumbline/pkg/flowcontrol/memory"
)

// maxPages limits the bytes of all pages of one list.
const maxPages = 32 << 20

type pagesKey struct{}

// unreserved is how many bytes an answer, or all pages of a list, may use without reserving memory.
// Most use a tenth of it.
const unreserved = 1 << 20

// pages counts the memory of the answers to the calls of one list.
type pages struct {
	weight   memory.Weight
	bytes    int
	reserved int // bytes that are reserved
}

// Pages returns a context whose calls share the memory limit of one list. Each page may be small
// and there may be many. The calls must not overlap.
func Pages(ctx context.Context) context.Context {
	return context.WithValue(ctx, pagesKey{}, &pages{})
}

// pagesOf returns the memory limit of a call: its list's, or its own.
func pagesOf(ctx context.Context) *pages {
	if shared, found := ctx.Value(pagesKey{}).(*pages); found {
		return shared
	}
	return &pages{}
}

// answer counts one answer as part of its list. It reserves memory while it reads, because a slow
// server may send many answers at the same time.
type answer struct {
	*pages
	hold func(bytes int) error
}

func answerOf(ctx context.Context) answer { return answer{pagesOf(ctx), memory.ReserveOf(ctx)} }

// Write implements io.Writer. It fails if there is not enough memory.
func (a answer) Write(part []byte) (int, error) {
	n, err := a.pages.Write(part)
	takes := 2*a.bytes + a.weight.Bytes() // raw and decoded
	if err != nil || takes <= max(unreserved, a.reserved) {
		return n, err
	}
	more := takes + unreserved - a.reserved
	a.reserved += more
	return n, a.hold(more)
}

// Write implements io.Writer. It fails above the limit, so that reading stops there.
func (p *pages) Write(part []byte) (int, error) {
	p.bytes += len(part)
	if _, _ = p.weight.Write(part); p.weight.Total() > memory.MaxAnswer || p.bytes > maxPages {
		return 0, fmt.Errorf("%w than what is read of one list: more than %d bytes, or too many values",
			ErrTooLarge, maxPages)
	}
	return len(part), nil
}
