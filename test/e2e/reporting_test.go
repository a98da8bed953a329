// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"net/http"
	"testing"

	"github.com/plumbline-ci/plumbline/test/cluster"
	"github.com/plumbline-ci/plumbline/test/forge"
)

// D6: while no check can be created at the forge the run goes on to its end. The check appears
// once that works again, with the state of that moment.
func TestRunGoesOnWithoutCheck(t *testing.T) {
	forEachService(t, setup{receivers: 1, controllers: 1}, noCheckCanBeCreated)
}

func noCheckCanBeCreated(t *testing.T, env *environment) {
	tooMany := forge.Answer(http.StatusTooManyRequests, http.Header{"Retry-After": {"1"}}, `{"message":"slow down"}`)
	for _, test := range []struct {
		name, conclusion, ends string
		do                     forge.Action
	}{
		{"bad-gateway", "success", "", forge.ServerError502HTML()},
		{"dropped", "failure", fails, forge.Drop()},
		{"too-many", "success", "", tooMany},
		{"slow-down", "failure", fails, env.git.says(slowDown)},
	} {
		t.Run(test.name, func(t *testing.T) {
			env := env.forSubtest(t)
			fault := env.git.inject(createCheck, forge.Fault{Do: test.do})
			notes := []string{}
			if test.ends != "" {
				notes = append(notes, test.ends)
			}
			sha := env.pushAccepted(map[string]string{".tekton/run.yaml": pipeline(test.name, "push", notes...)})
			run := env.awaitRunsCreated(sha).Status.Runs[0]
			ended := env.awaitRunEnd(run)
			if want := map[string]string{"success": "True", "failure": "False"}[test.conclusion]; ended.Status != want {
				t.Errorf("the run ended as %v, want Succeeded=%s: the forge's trouble must not touch it", ended, want)
			}
			env.awaitHits(fault, 2) // it was retried
			if checks := env.git.checks(sha); len(checks) != 0 {
				t.Fatalf("there are checks %v although none can be created: the rest shows nothing", checks)
			}
			fault.Remove()
			env.awaitCheck(sha, checkName(test.name), test.conclusion, afterFault)
			env.awaitSettled(sha, afterFault)
			env.requireOneCheck(sha, checkName(test.name))
			// A reconcile that started before the run ended may say in_progress first. What had no
			// answer may have been stored, so the check may be confirmed once more before the end.
			concluded := false
			for i, write := range env.acceptedWrites(sha, checkName(test.name)) {
				if (i == 0) != write.Creates {
					t.Errorf("write %d makes another check or changes one that is not there", write.N)
				}
				if says := write.Conclusion; says != test.conclusion && (says != "" || concluded) {
					t.Errorf("write %d says %q, want %q and nothing after it", write.N, says, test.conclusion)
				}
				concluded = concluded || write.Conclusion != ""
			}
		})
	}
}

// E6: a write of in_progress that is still in flight when the run ends never overwrites completed.
// The next write waits for it, and after completed nothing reopens the check. The delayed write is
// once the POST, once a PATCH.
func TestDelayedWriteDoesNotReopenCheck(t *testing.T) {
	forEachService(t, setup{receivers: 1, controllers: 2, proxied: true}, delayedWriteReopensNothing)
}

func delayedWriteReopensNothing(t *testing.T, env *environment) {
	for name, at := range map[string]operation{"post": createCheck, "patch": updateCheck} {
		t.Run(name, func(t *testing.T) {
			env := env.forSubtest(t)
			if at == updateCheck {
				defer env.delayCreation()()
			}
			release := make(chan struct{})
			late := env.git.inject(at, forge.Fault{Count: 1, Do: forge.Hold(release)})
			sha := env.pushAccepted(map[string]string{".tekton/run.yaml": pipeline("late-"+name, "push")})
			env.awaitHits(late, 1)
			run := env.awaitPlanned(sha).Status.Runs[0]
			env.awaitRunEnd(run)
			if n := len(env.acceptedWrites(sha, "")); at == createCheck && n != 0 {
				t.Errorf("%d writes were taken while the first one is under way", n)
			}
			close(release)
			env.awaitCheck(sha, checkName("late-"+name), "success", afterFault)
			env.awaitSettled(sha, afterFault)
			env.requireOneCheck(sha, checkName("late-"+name))
			writes := env.acceptedWrites(sha, checkName("late-"+name))
			if n := len(writes); n < 2 || writes[n-2].Status != "in_progress" || writes[n-1].Status != "completed" {
				t.Errorf("writes %+v, want the delayed in_progress, then completed, then nothing", writes)
			}
		})
	}
}

// E8: the POST of a check run is stored although the answer is a 502 or lost. The check run is
// found by its external_id and adopted, so there is one.
func TestStoredCheckIsAdopted(t *testing.T) {
	forBothServices(t, setup{receivers: 1, controllers: 1}, storedCheckIsAdopted)
}

func storedCheckIsAdopted(t *testing.T, env *environment) {
	for name, do := range map[string]forge.Action{"answered-502": forge.ApplyThenAnswer(http.StatusBadGateway),
		"dropped": forge.ApplyThenDrop()} {
		t.Run(name, func(t *testing.T) {
			env := env.forSubtest(t)
			lost := env.git.inject(createCheck, forge.Fault{Count: 1, Do: do})
			sha := env.pushAccepted(map[string]string{".tekton/run.yaml": pipeline(name, "push", held)})
			event := env.awaitRunsCreated(sha)
			env.awaitHits(lost, 1)
			env.awaitCheck(sha, checkName(name), "in_progress", soon)
			env.releaseRuns(event)
			check := env.awaitCheck(sha, checkName(name), "success", afterFault)
			env.awaitSettled(sha, afterFault)
			env.requireOneCheck(sha, checkName(name))
			env.requireNoFailure(sha)
			if check.ExternalID != event.Status.Runs[0].Name {
				t.Errorf("external_id %q, want the run's name %q", check.ExternalID, event.Status.Runs[0].Name)
			}
			env.requirePostedOnce(sha)
			env.requirePatched(event.Status.Runs[0].Name, check)
		})
	}
}

// delayCreation makes the API server unable to create PipelineRuns for a moment, so that the check
// is first queued and its in_progress is a PATCH.
func (env *environment) delayCreation() (end func()) {
	var armed []*cluster.Armed
	for _, p := range env.controllers {
		armed = append(armed, p.Proxy.Add(cluster.Rule{Match: isCreate, Count: 1, Do: cluster.Fault(cluster.Unavailable())}))
	}
	return func() {
		for _, rule := range armed {
			rule.Remove()
		}
	}
}
