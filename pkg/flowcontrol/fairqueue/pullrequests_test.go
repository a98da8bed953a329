// SPDX-License-Identifier: Apache-2.0

package fairqueue

import (
	"fmt"
	"testing"
	"time"
)

// The end of a push's run is not told after that of 80 pull requests, which strangers may cause,
// when all of them wait for the same Git service, e.g. because its limits have closed it for a
// minute.
func TestBegunPushesAndPullRequestsAlternate(t *testing.T) {
	t.Parallel()
	w := newEnv(t, 16)
	visits := map[string]Request{}
	come := func(pullsOf string) (release func()) {
		v := w.visit("team", "git.example", 0)
		v.PullsOf = pullsOf
		visits[v.Event] = v
		release, _ = w.AcquireService(v)
		return release
	}
	first := []func(){come("app"), come("app"), come("app")}
	for range 80 {
		come("app")
	}
	if come("") != nil {
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

// Each Repository's pull requests stand in a line of their own. Those of forty do not have forty
// turns before the next push of their namespace, which all stand in one.
func TestPushesAlternateWithPullRequestsOfManyRepositories(t *testing.T) {
	t.Parallel()
	w := newEnv(t, 16)
	visits := map[string]Request{}
	var begun []func()
	come := func(pullsOf string) {
		v := w.visit("team", "git.example", 0)
		v.PullsOf = pullsOf
		visits[v.Event] = v
		if release := w.begin(v); release != nil {
			begun = append(begun, release)
		}
	}
	for n := range 200 {
		come(fmt.Sprint("app-", n%40))
		if n%10 == 0 {
			come("")
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
		t.Errorf("of 40 turns %d are of 20 pushes", pushes)
	}
}

// A Git service that hangs holds one pull request of a Repository that has begun, for nearly a
// minute each time. The ends of the others' runs are stored meanwhile: a pruner may take the runs.
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
		for range 10 { // it has not answered before, so one visits it at a time
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
