// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"net/http"
	"slices"
	"testing"

	"golang.org/x/sync/errgroup"

	"github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode"
)

const (
	cancelsOlder = pipelinesascode.CancelInProgress + `: "true"`
)

// runningCommits returns the commits whose runs of a pipeline are neither finished nor cancelled.
func (env *environment) runningCommits(pipeline string) (commits []string) {
	for _, run := range env.runs() {
		if !run.IsDone() && run.Spec.Status == "" && run.Annotations[pipelinesascode.OriginalPRName] == pipeline {
			commits = append(commits, run.Labels[pipelinesascode.SHA])
		}
	}
	return commits
}

// B13: of two pushes the run of the newer commit stays, whether its delivery comes first, second,
// at the same time at another replica, or twice. The older run is cancelled or not created. The
// same holds with a limit of one run whose slot the older one has. A pipeline whose annotation is
// neither true nor false goes on.
func TestNewestRunStays(t *testing.T) {
	forEachService(t, setup{receivers: 2, controllers: 2}, func(t *testing.T, env *environment) {
		var newest string
		for round, post := range []func(first, second delivery){
			func(first, second delivery) { env.deliverAll(first, second) },
			func(first, second delivery) { env.deliverAll(second, first) },
			env.deliverTogether, env.deliverTogether,
			func(first, second delivery) { env.deliverAll(first, second) },
			func(first, second delivery) { env.deliverAll(second, first) },
		} {
			if round == 3 {
				env.setLimit(env.ci, "app", 1)
			}
			files := map[string]string{
				".tekton/a.yaml": pipeline("build", "push", held, cancelsOlder), "round": fmt.Sprint(round),
			}
			older, first := env.push(files)
			files["round"] += " again"
			var second delivery
			newest, second = env.push(files)
			post(first, second)
			env.deliverAll(second)
			within := afterFault
			if round >= 3 { // the rounds with a limit
				within = slotKept
			}
			env.eventually(within, fmt.Sprintf("round %d: the run of %s alone goes on", round, newest), func() error {
				if got := env.runningCommits("build"); !slices.Equal(got, []string{newest}) {
					return fmt.Errorf("those of %q, the older one is %s", got, older)
				}
				return nil
			})
			env.awaitCheck(newest, checkName("build"), "in_progress", soon)
			if check, found := env.currentCheck(older, checkName("build")); found && check.Conclusion != "" &&
				!check.Tells("superseded by") {
				t.Errorf("round %d: the check does not say what took its place: %s", round, check.Text)
			}
		}
		env.setLimit(env.ci, "app", 0)
		env.releaseRuns(env.awaitRunsCreated(newest))
		env.awaitCheck(newest, checkName("build"), "success", soon)
		env.awaitAllSettled(afterFault)
	})
}

// deliverAll delivers one after the other.
func (env *environment) deliverAll(deliveries ...delivery) {
	env.t.Helper()
	for _, d := range deliveries {
		if got, body := env.post(env.receivers[0], d); got/100 != 2 {
			env.t.Fatalf("delivery answered %d %s", got, body)
		}
	}
}

// deliverTogether delivers two at the same time to two replicas.
func (env *environment) deliverTogether(first, second delivery) {
	env.t.Helper()
	var both errgroup.Group
	for i, d := range []delivery{first, second} {
		both.Go(func() error {
			got, body, err := env.git.deliver(env.ctx, env.receivers[i].URL, d)
			if err == nil && got != http.StatusAccepted {
				err = fmt.Errorf("answered %d %s", got, body)
			}
			return err
		})
	}
	env.must(both.Wait())
}
