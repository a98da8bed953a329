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
	// often: it is met at calls that are made all the time only.
	often bool
}

// denial is the message of the campaign's policy.
const denial = "this object is not to the liking of the campaign"

// started begins the message of Tekton's webhook about a change to a started run
// (clients.RunStarted).
const started = "Once the PipelineRun has started"

// slow is longer than a receiver waits for one answer of the API server.
const slow = 4 * time.Second

func apiAnswers() []apiAnswer {
	status := func(name string, code int) apiAnswer {
		return apiAnswer{name: name, do: cluster.Page(code, "<html>upstream</html>")}
	}
	once := []apiAnswer{
		{name: "webhook refuses connections", do: cluster.Fault(cluster.WebhookRefused())},
		{name: "webhook denies (400)", do: cluster.Fault(cluster.WebhookDenied(denial))},
		{name: "run has started (400)", do: cluster.Fault(cluster.RunStarted())},
		{name: "forbidden (403)", do: cluster.Fault(cluster.Forbidden("plumbline", "do", "ci"))},
		{name: "quota exceeded (403)", do: cluster.Fault(cluster.QuotaExceeded("it"))},
		{name: "not served (404)", do: cluster.NotServed()},
		{name: "conflict (409)", do: cluster.Fault(cluster.Conflict("it"))},
		{name: "unauthorized (401)", do: cluster.Fault(cluster.Unauthorized())},
		{name: "etcd times out (500)", do: cluster.Fault(cluster.EtcdTimeout())},
		{name: "unavailable (503)", do: cluster.Fault(cluster.Unavailable())},
		{name: "timeout (504)", do: cluster.Fault(cluster.RequestTimeout())},
		status("page of a proxy (502)", 502),
		{name: "connection dropped", do: cluster.Drop()},
	}
	// After these a process waits before it calls again, or calls no more: each has two turns of a
	// round, one of them where they are met often.
	twice := []apiAnswer{
		{name: "webhook times out", do: cluster.Fault(cluster.WebhookTimeout())},
		{name: "throttled (429)", do: cluster.Fault(cluster.TooManyRequests())},
		{name: "applied, connection dropped", do: cluster.ApplyThenDrop()},
		{name: "applied, timeout (504)", do: cluster.ApplyThenAnswer(504, cluster.RequestTimeout())},
		{name: "slow", do: cluster.Delay(slow)},
	}
	all := slices.Concat(once, twice, twice)
	for i := range twice {
		all[len(once)+i].often = true
	}
	return all
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

// callsOf are the calls of a receiver or a controller that an event needs; the creation of what
// runs is there more often.
func callsOf(target string) []call {
	if target == receiver0 || target == receiver1 {
		return []call{{}, {"create", "gitevents", ""}, {"create", "gitevents", ""}, {"get", "gitevents", ""},
			{"get", "tombstonepages", ""}, {"patch", "configmaps", ""}}
	}
	create := call{"create", "pipelineruns", ""}
	return []call{
		{}, create, create, create, {"get", "pipelineruns", ""}, {"patch", "pipelineruns", ""}, {"list", "taskruns", ""},
		{"update", "gitevents", "status"}, {"update", "gitevents", "status"}, {"patch", "gitevents", ""},
		{"list", "gitevents", ""}, {"get", "gitevents", ""},
		{"create", "secrets", ""}, {"get", "secrets", ""}, {"delete", "secrets", ""}, {"get", "repositories", ""},
		{"update", "leases", ""},
	}
}

// oftenOf are the calls that a receiver or a leading controller makes for every event.
func oftenOf(target string) []call {
	if target == receiver0 || target == receiver1 {
		return []call{{}, {"create", "gitevents", ""}}
	}
	return []call{{}, {"create", "pipelineruns", ""}, {"update", "gitevents", "status"}}
}

// gitAnswer is what a Git service does instead of answering; hang is released when the fault ends.
type gitAnswer struct {
	name string
	do   func(over <-chan struct{}) forge.Action
	// often: it is the answer to whatever is asked.
	often bool
}

func gitAnswers(service string) []gitAnswer {
	plain := func(a forge.Action) func(<-chan struct{}) forge.Action {
		return func(<-chan struct{}) forge.Action { return a }
	}
	all := []gitAnswer{
		{name: "502", do: plain(forge.ServerError502HTML())},
		{name: "connection dropped", do: plain(forge.Drop())},
		{name: "applied, 502", do: plain(forge.ApplyThenAnswer(502))},
		{name: "applied, connection dropped", do: plain(forge.ApplyThenDrop())},
		{name: "slow", do: plain(forge.Delay(time.Second))},
		{name: "hangs", do: forge.Hang},
		{name: "applied, answer withheld", do: forge.ApplyThenHold},
	}
	if service == onGitHub {
		// Nothing is called for a while after it: it has two turns of a round, one of them where it
		// is met often.
		limit := gitAnswer{name: "secondary limit (429)", do: plain(forge.SecondaryRateLimit(time.Second))}
		all = append(all, limit, gitAnswer{name: "unauthorized (401)", do: plain(forge.Unauthorized401())}, limit)
		all[len(all)-1].often = true
	}
	return all
}

// refused reports whether every patch and update of a PipelineRun is refused as long as the
// campaign lasts, for I-10: that of a third.
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
