// SPDX-License-Identifier: Apache-2.0

package repository

import (
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/types"

	"github.com/plumbline-ci/plumbline/pkg/pipeline/match"
)

// priorities is what is wrong with the expressions of Repositories. To compile one may take as long
// as a hundred other reconciles, and a Repository is reconciled with each of its events: so each
// text is compiled once. The zero value knows none. Safe for concurrent use.
type priorities struct {
	mu    sync.Mutex
	known map[types.NamespacedName]judged
}

type judged struct {
	text   string
	params []string
	err    error
}

// check is match.CheckPriority of a Repository's expression.
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
