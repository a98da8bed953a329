// SPDX-License-Identifier: Apache-2.0

package webhooksecret

import (
	"context"
	"sync"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/plumbline-ci/plumbline/pkg/runtime/panics"
)

// fetch reads Secrets concurrently, so that one whose read hangs delays no other. The next pass
// reads what exceeds the budgets, or has not begun within readsWithin.
func (p *pass) fetch(ctx context.Context, all []due) {
	ctx, cancel := context.WithTimeout(ctx, readsWithin)
	defer cancel()
	var group errgroup.Group
	group.SetLimit(readsAtOnce)
	var mu sync.Mutex
	var caught panics.Catcher
	begun := map[types.NamespacedName]bool{}
	for _, d := range all {
		name := p.wanted[d.id].secret()
		switch {
		case begun[name]:
			continue
		case len(validation.IsDNS1123Subdomain(name.Name)) > 0:
			// There is none, and a client cannot even request some of these names.
			begun[name] = true
			mu.Lock()
			p.sources[name] = source{}
			mu.Unlock()
			continue
		case !d.budget.TryAccept():
			continue
		}
		begun[name] = true
		group.Go(func() error {
			caught.Run(func() {
				if ctx.Err() != nil {
					return
				}
				secret, err := p.get(ctx, name.Namespace, name.Name)
				if err != nil {
					p.logger.Warnw("A webhook secret cannot be read: its copy stays as it is",
						"secret", name.String(), "error", err.Error())
				}
				mu.Lock()
				defer mu.Unlock()
				p.sources[name] = source{secret, err}
			})
			return nil
		})
	}
	_ = group.Wait() // each error is in its source
	caught.Again()
}
