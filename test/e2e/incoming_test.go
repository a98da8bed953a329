// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	pacv1alpha1 "github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/credentials/webhooksecret"
	"github.com/plumbline-ci/plumbline/test/forge"
)

const incomingSecret = "secret-of-the-incoming-rule"

// acceptIncoming gives the Repository a rule for requests to /incoming for main, and waits until
// the receivers have its secret.
func (env *environment) acceptIncoming() {
	env.t.Helper()
	env.createTeamSecret("calls", "secret", incomingSecret)
	env.patchSpec(
		`{"incoming":[{"type":"webhook-url","secret":{"name":"calls"},"targets":["main","release/*"],"params":["version"]}]}`,
	)
	id := webhooksecret.ID(pacv1alpha1.SecretKey{Namespace: env.ci, Name: "calls", Key: "secret"})
	env.eventually(ruleLimit(), "a receiver knows the secret", func() error {
		if a := env.callIncoming(
			"",
			`{"repository":"app","namespace":"`+env.ci+`","branch":"none","pipelinerun":"none"}`,
		); a.status != http.StatusForbidden {
			return fmt.Errorf("answered %v; its copy is %s", a, id)
		}
		return nil
	})
}

// callIncoming sends a request to /incoming, with an Idempotency-Key unless that is empty.
func (env *environment) callIncoming(key, body string) response {
	env.t.Helper()
	request, err := http.NewRequestWithContext(
		env.ctx,
		http.MethodPost,
		env.receivers[0].URL+"/incoming",
		strings.NewReader(body),
	)
	env.must(err)
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Authorization", "Bearer "+incomingSecret)
	if key != "" {
		request.Header.Set("Idempotency-Key", key)
	}
	a, err := exchange(request)
	env.must(err)
	env.readable.add("the answer to a request to /incoming", a.body)
	return a
}

// asks is the body of a request for a pipeline.
func (env *environment) asks(pipeline, branch, params string) string {
	return fmt.Sprintf(
		`{"repository":"app","namespace":%q,"branch":%q,"pipelinerun":%q,"params":{%s}}`,
		env.ci,
		branch,
		pipeline,
		params,
	)
}

// incomingAnswer is the body of an answer.
type incomingAnswer struct {
	Message, Event string
	PipelineRuns   []struct{ Namespace, Name string }
}

func (env *environment) parseIncoming(a response) (out incomingAnswer) {
	env.t.Helper()
	if err := json.Unmarshal([]byte(a.body), &out); err != nil {
		env.t.Fatalf("answered %v", a)
	}
	return out
}

// A request to /incoming starts the pipeline that it names, at the head of the branch, and is
// reported there. No event of the Git service was received before.
func TestIncomingStartsAPipeline(t *testing.T) {
	forEachService(t, setup{receivers: 1, controllers: 1}, func(t *testing.T, env *environment) {
		sha := env.git.commit("main", forge.Change{Author: "member", Message: "a change [skip ci]", Files: map[string]string{
			".tekton/nightly.yaml": strings.Replace(pipeline("nightly", "incoming"), "  params:\n",
				"  params:\n    - {name: version, value: \"{{ version }} {{ event_type }}\"}\n", 1),
			".tekton/other.yaml": pipeline("other", "push"),
		}})
		env.acceptIncoming()
		a := env.callIncoming("night-1", env.asks("nightly", "main", `"version":"1.2"`))
		first := env.parseIncoming(a)
		if a.status != http.StatusAccepted || first.Message != "accepted" || len(first.PipelineRuns) != 1 {
			t.Fatalf("answered %v", a)
		}
		env.awaitCheck(sha, checkName("nightly"), "success", soon)
		run := env.getRun(first.PipelineRuns[0].Name) // it is named before it is created
		equal(t, "the namespace", first.PipelineRuns[0].Namespace, run.Namespace)
		events := env.awaitAllSettled(soon)
		equal(t, "the number of events", len(events), 1)
		equal(t, "the runs", env.describeRuns(events[0]), "nightly incoming 1.2 incoming")
		requirePlan(t, "the event", events[0], v1alpha1.Plan{Reason: "Selected", HeadSHA: sha})

		again := env.parseIncoming(env.callIncoming("night-1", env.asks("nightly", "main", `"version":"1.2"`)))
		equal(t, "the answer to the same key", fmt.Sprint(again), fmt.Sprint(first))
		if a := env.callIncoming("", env.asks("nihgtly", "main", "")); a.status != http.StatusUnprocessableEntity ||
			!strings.Contains(a.body, "no pipeline is called nihgtly") || !strings.Contains(a.body, "(All: nightly, other)") {
			t.Errorf("an unknown pipeline is answered %v", a)
		}
		if a := env.callIncoming("", env.asks("nightly", "release/gone", "")); a.status != http.StatusUnprocessableEntity ||
			!strings.Contains(a.body, "has no branch release/gone") {
			t.Errorf("a branch that is not there is answered %v", a)
		}
		env.awaitAllSettled(soon)
		env.requireOnlyStarted("nightly")
		env.requireTextNotLeaked(incomingSecret)
	})
}
