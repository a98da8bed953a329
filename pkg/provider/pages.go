// SPDX-License-Identifier: Apache-2.0

package provider

import (
	"context"
	"fmt"

	"github.com/plumbline-ci/plumbline/pkg/flowcontrol/memory"
)

// maxPages bounds the bytes of all pages of one list.
const maxPages = 32 << 20

type pagesKey struct{}

// unheld is what an answer, or all pages of a list, may take without asking for memory: most take a
// tenth.
const unheld = 1 << 20

// pages is what the answers to the calls of one list hold.
type pages struct {
	weight memory.Weight
	bytes  int
	held   int // that were asked for
}

// Pages returns a context whose calls share the budget of one list: each page may be small, and
// there may be many. The calls must not overlap.
func Pages(ctx context.Context) context.Context {
	return context.WithValue(ctx, pagesKey{}, &pages{})
}

// pagesOf returns the budget of a call: its list's, or its own.
func pagesOf(ctx context.Context) *pages {
	if shared, found := ctx.Value(pagesKey{}).(*pages); found {
		return shared
	}
	return &pages{}
}

// answer counts one answer among the pages of its list, and holds memory for it as it comes by:
// whoever sends it may do so slowly, in many calls at once.
type answer struct {
	*pages
	hold func(bytes int) error
}

func answerOf(ctx context.Context) answer { return answer{pagesOf(ctx), memory.ReserveOf(ctx)} }

// Write implements io.Writer. It refuses what there is no memory for.
func (a answer) Write(part []byte) (int, error) {
	n, err := a.pages.Write(part)
	takes := 2*a.bytes + a.weight.Bytes() // as it came, and decoded
	if err != nil || takes <= max(unheld, a.held) {
		return n, err
	}
	more := takes + unheld - a.held
	a.held += more
	return n, a.hold(more)
}

// Write implements io.Writer. It refuses what is more than is decoded, so that reading stops there.
func (p *pages) Write(part []byte) (int, error) {
	p.bytes += len(part)
	if _, _ = p.weight.Write(part); p.weight.Total() > memory.MaxAnswer || p.bytes > maxPages {
		return 0, fmt.Errorf(
			"%w than what is read of one list: more than %d bytes, or too many values",
			ErrTooLarge,
			maxPages,
		)
	}
	return len(part), nil
}
