// SPDX-License-Identifier: Apache-2.0

package campaign

import (
	"hash/fnv"
	"slices"
	"time"

	"github.com/plumbline-ci/plumbline/test/cluster"
	"github.com/plumbline-ci/plumbline/test/forge"
)

// apiAnswer is what happens to a call instead of its answer.
type apiAnswer struct {
	name string
	do   cluster.Action
}

// denial is what a policy says in the campaign.
const denial = "this object is not to the liking of the campaign"

// started is what Tekton's webhook says of a change to a run that has started (cluster.RunStarted).
const started = "Once the PipelineRun has started"

// slow is longer than a receiver waits for one answer of the API server.
const slow = 4 * time.Second

func apiAnswers() []apiAnswer {
	status := func(name string, code int) apiAnswer {
		return apiAnswer{name: name, do: cluster.Page(code, "<html>upstream</html>")}
	}
	once := []apiAnswer{
		{"webhook refuses connections", cluster.Fault(cluster.WebhookRefused())},
		{"webhook denies (400)", cluster.Fault(cluster.WebhookDenied(denial))},
		{"run has started (400)", cluster.Fault(cluster.RunStarted())},
		{"forbidden (403)", cluster.Fault(cluster.Forbidden("plumbline", "do", "ci"))},
		{"quota exceeded (403)", cluster.Fault(cluster.QuotaExceeded("it"))},
		{"not served (404)", cluster.NotServed()},
		{"conflict (409)", cluster.Fault(cluster.Conflict("it"))},
		{"unauthorized (401)", cluster.Fault(cluster.Unauthorized())},
		{"etcd times out (500)", cluster.Fault(cluster.EtcdTimeout())},
		{"unavailable (503)", cluster.Fault(cluster.Unavailable())},
		{"timeout (504)", cluster.Fault(cluster.RequestTimeout())},
		status("page of a proxy (502)", 502),
		{"connection dropped", cluster.Drop()},
	}
	// After these a process waits before it calls again, or calls no more: each has two turns of a round.
	twice := []apiAnswer{
		{"webhook times out", cluster.Fault(cluster.WebhookTimeout())},
		{"throttled (429)", cluster.Fault(cluster.TooManyRequests())},
		{"applied, connection dropped", cluster.ApplyThenDrop()},
		{"applied, timeout (504)", cluster.ApplyThenAnswer(504, cluster.RequestTimeout())},
		{"slow", cluster.Delay(slow)},
	}
	return slices.Concat(once, twice, twice)
}

// call is a kind of call to the API server; its zero value is every one.
type call struct{ verb, resource, subresource string }

func (c call) String() string {
	if c == (call{}) {
		return "any call"
	}
	if c.subresource != "" {
		return c.verb + " " + c.resource + "/" + c.subresource
	}
	return c.verb + " " + c.resource
}

func (c call) matches(other cluster.Call) bool {
	return c == (call{}) || c.verb == other.Verb && c.resource == other.Resource && c.subresource == other.Subresource
}

// callsOf are those of a receiver or a controller that an event needs; the creation of what runs is there more often.
func callsOf(target string) []call {
	if target == receiver0 || target == receiver1 {
		return []call{{}, {"create", "gitevents", ""}, {"create", "gitevents", ""}, {"get", "gitevents", ""}, {"get", "repositories", ""}, {"get", "secrets", ""}}
	}
	create := call{"create", "pipelineruns", ""}
	return []call{
		{}, create, create, create, {"get", "pipelineruns", ""}, {"patch", "pipelineruns", ""}, {"list", "taskruns", ""},
		{"update", "gitevents", "status"}, {"update", "gitevents", "status"}, {"patch", "gitevents", "status"}, {"get", "gitevents", ""},
		{"create", "secrets", ""}, {"get", "secrets", ""}, {"delete", "secrets", ""}, {"get", "repositories", ""}, {"update", "leases", ""},
	}
}

// gitAnswer is what a Git service does instead of answering; hang is released when the fault ends.
type gitAnswer struct {
	name string
	do   func(over <-chan struct{}) forge.Action
}

func gitAnswers(service string) []gitAnswer {
	plain := func(a forge.Action) func(<-chan struct{}) forge.Action {
		return func(<-chan struct{}) forge.Action { return a }
	}
	all := []gitAnswer{
		{"502", plain(forge.ServerError502HTML())},
		{"connection dropped", plain(forge.Drop())},
		{"applied, 502", plain(forge.ApplyThenAnswer(502))},
		{"applied, connection dropped", plain(forge.ApplyThenDrop())},
		{"slow", plain(forge.Delay(time.Second))},
		{"hangs", forge.Hang},
		{"applied, answer withheld", forge.ApplyThenHold},
	}
	if service == onGitHub {
		limit := gitAnswer{"secondary limit (429)", plain(forge.SecondaryRateLimit(time.Second))} // nothing is called for a while after it
		all = append(all, limit, gitAnswer{"unauthorized (401)", plain(forge.Unauthorized401())}, limit)
	}
	return all
}

// refused tells of which PipelineRuns every patch and update is refused as long as the campaign lasts, for I-10: a third.
func refused(name string) bool {
	sum := fnv.New32a()
	_, _ = sum.Write([]byte(name))
	return sum.Sum32()%3 == 0
}

// refusal refuses them.
func refusal() cluster.Rule {
	return cluster.Rule{
		Match: func(c cluster.Call) bool {
			return (c.Verb == "patch" || c.Verb == "update") && c.Resource == "pipelineruns" && refused(c.Name)
		},
		Do: cluster.Fault(cluster.RunStarted()),
	}
}
