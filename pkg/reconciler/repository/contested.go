// SPDX-License-Identifier: Apache-2.0

package repository

import (
	"fmt"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	pacv1alpha1 "github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode/v1alpha1"
)

const (
	// maxOverwritten is how often the same status is written again at once because somebody has replaced it. People do that once; another
	// installation, which sees all Repositories too and has another view of them, does it each time.
	maxOverwritten = 3
	// contestPause is between two writes from then on.
	contestPause = 10 * time.Minute
	// contestOver is how long nobody must have replaced a status for it not to be contested any more.
	contestOver = time.Hour

	reasonContested  = "StatusContested"
	messageContested = "Something else replaces the status of this Repository again and again, another installation of Plumbline for example, so its conditions may be " +
		"the other's. They are written every ten minutes only. Let one installation serve each cluster."
)

// contested is what this process has written to Repositories last, and how often it had to repeat that. The zero value knows nothing.
type contested struct {
	mu      sync.Mutex
	written map[types.NamespacedName]written
}

type written struct {
	words       string
	at          time.Time
	overwritten int // in a row
}

// wait returns how long not to write a status again that somebody has replaced.
func (c *contested) wait(owner types.NamespacedName, wanted *pacv1alpha1.RepositoryStatus, now time.Time) time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	last, found := c.written[owner]
	if !found || last.overwritten < maxOverwritten || last.words != wordsOf(wanted) {
		return 0
	}
	return max(0, last.at.Add(contestPause).Sub(now))
}

// note takes down what was written, and tells whether that is contested from now on.
func (c *contested) note(owner types.NamespacedName, status *pacv1alpha1.RepositoryStatus, now time.Time) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.written == nil {
		c.written = map[types.NamespacedName]written{}
	}
	last, next := c.written[owner], written{words: wordsOf(status), at: now}
	if last.words == next.words && now.Sub(last.at) < contestOver {
		next.overwritten = last.overwritten + 1
	}
	c.written[owner] = next
	return next.overwritten == maxOverwritten
}

func (c *contested) forget(owner types.NamespacedName) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.written, owner)
}

// wordsOf is what a status says, without its times: writing it twice in a row means that somebody has replaced it meanwhile.
func wordsOf(status *pacv1alpha1.RepositoryStatus) string {
	var words strings.Builder
	fmt.Fprintln(&words, status.ObservedGeneration)
	for _, condition := range status.Conditions {
		fmt.Fprintln(&words, condition.Type, condition.Status, condition.Reason, condition.Message)
	}
	return words.String()
}
