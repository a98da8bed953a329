// SPDX-License-Identifier: Apache-2.0

package repository

import (
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/types"

	"github.com/plumbline-ci/plumbline/pkg/pipeline/match"
)

// priorities caches the result of compiling the priority expressions of Repositories. Compiling one
// may take as long as a hundred reconciles, and each event causes a reconcile. The zero value is
// empty. Safe for concurrent use.
type priorities struct {
	mu    sync.Mutex
	known map[types.NamespacedName]judged
}

type judged struct {
	text   string
	params []string
	err    error
}

// check returns the result of match.CheckPriority for a Repository's expression.
func (p *priorities) check(owner types.NamespacedName, text string, params []string) error {
	p.mu.Lock()
	before, found := p.known[owner]
	p.mu.Unlock()
	if found && before.text == text && slices.Equal(before.params, params) {
		return before.err
	}
	err := match.CheckPriority(text, params)
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.known == nil {
		p.known = map[types.NamespacedName]judged{}
	}
	p.known[owner] = judged{text, params, err}
	return err
}

func (p *priorities) forget(owner types.NamespacedName) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.known, owner)
}
