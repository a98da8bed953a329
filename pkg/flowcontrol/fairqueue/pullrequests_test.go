// SPDX-License-Identifier: Apache-2.0

package fairqueue

import (
	"fmt"
	"testing"
	"time"
)

// The result of a push's run does not wait for the results of 80 pull requests of untrusted users,
// when all of them wait for the same Git service, e.g. because it is rate-limited for a minute.
func TestBegunPushesAndPullRequestsAlternate(t *testing.T) {
	t.Parallel()
	w := newEnv(t, 16)
	visits := map[string]Request{}
	arrive := func(pullsOf string) (release func()) {
		v := w.visit("team", "git.example", 0)
		v.PullsOf = pullsOf
		visits[v.Event] = v
		release, _ = w.AcquireService(v)
		return release
	}
	first := []func(){arrive("app"), arrive("app"), arrive("app")}
	for range 80 {
		arrive("app")
	}
	if arrive("") != nil {
		t.Fatal("the Git service has room")
	}
	first[0]()
	first[1]()
	for _, event := range w.woken {
		if visits[event].PullsOf == "" {
			return
		}
	}
	t.Errorf("%v are called before it", w.woken)
}

// Pull requests have a queue for each Repository, and the pushes of a namespace have one together.
// The queues of forty Repositories are not all served before the next push.
func TestPushesAlternateWithPullRequestsOfManyRepositories(t *testing.T) {
	t.Parallel()
	w := newEnv(t, 16)
	visits := map[string]Request{}
	var begun []func()
	arrive := func(pullsOf string) {
		v := w.visit("team", "git.example", 0)
		v.PullsOf = pullsOf
		visits[v.Event] = v
		if release := w.begin(v); release != nil {
			begun = append(begun, release)
		}
	}
	for n := range 200 {
		arrive(fmt.Sprint("app-", n%40))
		if n%10 == 0 {
			arrive("")
		}
	}
	pushes := 0
	for range 40 {
		begun[0]()
		begun = begun[1:]
		for _, event := range w.woken {
			begun = append(begun, w.begin(visits[event]))
			if visits[event].PullsOf == "" {
				pushes++
			}
		}
		w.woken = nil
	}
	if pushes < 15 {
		t.Errorf("of 40 slots %d are of 20 pushes", pushes)
	}
}

// A Git service that hangs delays one started pull request of a Repository for nearly a minute each
// time. The results of the others' runs are stored in that time, because these runs may be pruned.
func TestHangingServiceDoesNotDelayBegunPullRequests(t *testing.T) {
	t.Parallel()
	for _, workers := range []int{4, 16, 64} {
		w := newEnv(t, workers)
		hangs := w.visit("team", "git.example", 0)
		hangs.PullsOf = "app"
		if _, err := w.AcquireWorker(hangs, false); err != nil {
			t.Fatal(err)
		}
		if _, err := w.AcquireService(hangs); err != nil {
			t.Fatal(err)
		}
		for range 10 { // it does not answer, so it gets one event at a time
			w.now = w.now.Add(time.Second)
			w.Observe(hangs, Answer{Began: w.now, Strained: true})
		}
		for n := range 80 {
			v := hangs
			v.Event = fmt.Sprint("ended-", n)
			release, err := w.AcquireWorker(v, false)
			if err != nil {
				t.Fatalf("%d workers: %d of 80 were looked at, and the next waits: %v", workers, n, err)
			}
			if _, err := w.AcquireService(v); err == nil {
				t.Fatal("two visit a Git service that hangs")
			}
			release()
		}
	}
}
