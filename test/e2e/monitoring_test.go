// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/plumbline-ci/plumbline/test/cluster"
	"github.com/plumbline-ci/plumbline/test/installation"
	"github.com/plumbline-ci/plumbline/test/testcache"
)

// query is the expression of an alert or a panel, as hack/tools/promrules prints it.
type query struct {
	Alert, Title, Expr string
	Selectors          []selector
}

type selector struct {
	Metric   string
	Matchers []struct{ Label, Op, Value string }
}

// monitoring reads config/monitoring with Prometheus' own parser.
func monitoring(t *testing.T) []query {
	t.Helper()
	root, err := cluster.Root()
	if err != nil {
		t.Fatal(err)
	}
	folder, promrules := filepath.Join(root, "config", "monitoring"), filepath.Join(root, "hack", "tools", "promrules")
	if err := testcache.Files(folder, promrules); err != nil {
		t.Fatal(err)
	}
	command := exec.CommandContext(t.Context(), "go", "-C", promrules, "run", ".",
		filepath.Join(folder, "prometheusrules.yaml"), filepath.Join(folder, "dashboard.json"))
	out, err := command.Output()
	if err != nil {
		t.Fatalf("%v: %v", command, err)
	}
	var queries []query
	if err := json.Unmarshal(out, &queries); err != nil {
		t.Fatal(err)
	}
	return queries
}

func queryOf(t *testing.T, queries []query, alert string) query {
	t.Helper()
	for _, q := range queries {
		if q.Alert == alert {
			return q
		}
	}
	t.Fatalf("config/monitoring has no alert %s", alert)
	return query{}
}

// page has the values of metrics by series, spelled as on the metrics page and preceded by the
// process.
type page map[string]series

type series struct {
	metric string
	labels map[string]string
	value  float64
}

var (
	seriesLine = regexp.MustCompile(`^([a-zA-Z_:][\w:]*)(?:\{(.*)\})? (\S+)$`)
	labelPair  = regexp.MustCompile(`(\w+)="((?:[^"\\]|\\.)*)"`)
)

func (p page) read(process, text string) {
	for _, line := range strings.Split(text, "\n") {
		parts := seriesLine.FindStringSubmatch(line)
		if parts == nil {
			continue
		}
		value, err := strconv.ParseFloat(parts[3], 64)
		if err != nil {
			continue
		}
		s := series{metric: parts[1], value: value, labels: map[string]string{}}
		for _, pair := range labelPair.FindAllStringSubmatch(parts[2], -1) {
			s.labels[pair[1]] = pair[2]
		}
		p[process+" "+parts[1]+parts[2]] = s
	}
}

// metricsPages reads the metrics of the environment's running processes, and those of the API
// server about the environment's own webhooks. The other environments share the rest.
func (env *environment) metricsPages() page {
	env.t.Helper()
	all := page{}
	for _, p := range env.processes() {
		text, _ := installation.Fetch(env.ctx, p.Metrics) // no text when the process has ended
		all.read(p.Log(), string(text))
	}
	server := page{}
	text, err := env.Kube.CoreV1().RESTClient().Get().AbsPath("/metrics").DoRaw(env.ctx)
	env.must(err)
	server.read("API server", string(text))
	for key, s := range server {
		if strings.HasPrefix(s.metric, "apiserver_admission_webhook_") &&
			strings.HasSuffix(s.labels["name"], env.policyName()) {
			all[key] = s
		}
	}
	return all
}

// awaitLeases waits until the environment's controllers hold every lease.
func (env *environment) awaitLeases() {
	env.t.Helper()
	env.eventually(soon, "every lease is held", func() error {
		now := env.metricsPages()
		wanted := 1.0 // one bucket; the panicking controller does not set the metric
		if len(now.all("plumbline_leases_held")) == 0 {
			return errors.New("nobody says so")
		}
		for _, held := range now.all("plumbline_leases_held") {
			if held.value != wanted {
				return fmt.Errorf("%v of %v are, %v", held.value, wanted, held.labels)
			}
		}
		return nil
	})
}

// all returns the series of a metric.
func (p page) all(metric string) []series {
	return p.match(selector{Metric: metric})
}

func (p page) match(s selector) (found []series) {
	for _, sample := range p {
		if sample.metric == s.Metric && s.matches(sample.labels) {
			found = append(found, sample)
		}
	}
	return found
}

// matches follows PromQL: expressions are anchored and a missing label is an empty one.
func (s selector) matches(labels map[string]string) bool {
	for _, m := range s.Matchers {
		equal := labels[m.Label] == m.Value
		if strings.HasSuffix(m.Op, "~") {
			equal = regexp.MustCompile(`^(?:` + m.Value + `)$`).MatchString(labels[m.Label])
		}
		if equal == strings.HasPrefix(m.Op, "!") {
			return false
		}
	}
	return true
}

func (p page) sum(s selector) (sum float64) {
	for _, sample := range p.match(s) {
		sum += sample.value
	}
	return sum
}

// movement checks whether an alert's metrics changed as its condition changes them; the error says
// what they show.
type movement func(q query, before, after page) error

// rises requires that each of the selected sums is higher than before.
func rises(q query, before, after page) error {
	for _, s := range q.Selectors {
		if was, is := before.sum(s), after.sum(s); is <= was {
			return fmt.Errorf("%v was %v and is %v", s, was, is)
		}
	}
	return nil
}

// risesAlone requires that the first sum is higher than before, and that the second, which
// excludes the alert, is not.
func risesAlone(q query, before, after page) error {
	first, excluding := q, q.Selectors[1]
	first.Selectors = q.Selectors[:1]
	if was, is := before.sum(excluding), after.sum(excluding); is != was {
		return fmt.Errorf("%v was %v and is %v", excluding, was, is)
	}
	return rises(first, before, after)
}

// slow requires more observations than before above the 4 s of the alert.
func slow(q query, before, after page) error {
	above := func(p page) float64 {
		n := 0.0
		for _, bucket := range p.match(q.Selectors[0]) {
			switch limit, err := strconv.ParseFloat(bucket.labels["le"], 64); {
			case err != nil:
			case math.IsInf(limit, 1):
				n += bucket.value
			case limit == 4:
				n -= bucket.value
			}
		}
		return n
	}
	if was, is := above(before), above(after); is <= was {
		return fmt.Errorf("%v observations were above 4 s and %v are", was, is)
	}
	return nil
}

// vanishes requires that a series is gone.
func vanishes(q query, before, after page) error {
	if n := len(before.match(q.Selectors[0])); n == 0 {
		return fmt.Errorf("there were no series before")
	}
	if n := len(after.match(q.Selectors[0])); n > 0 {
		return fmt.Errorf("there are %d series", n)
	}
	return nil
}

// leaderless requires that fewer leases are held than there are.
func leaderless(q query, _, after page) error {
	held, wanted := q.Selectors[0], q.Selectors[1]
	if n := len(after.match(held)); n == 0 {
		return fmt.Errorf("%v is not there", held)
	}
	if is, want := after.sum(held), after.sum(wanted); want == 0 || is >= want {
		return fmt.Errorf("%v are held of %v for each queue", is, want)
	}
	return nil
}
