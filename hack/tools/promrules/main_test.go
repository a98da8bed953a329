// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

const (
	rules     = "../../../config/monitoring/prometheusrules.yaml"
	dashboard = "../../../config/monitoring/dashboard.json"
	runbooks  = "../../../docs/alerts.md"
	inventory = "../../../docs/metrics.md"
	address   = "https://github.com/plumbline-ci/plumbline/blob/main/docs/alerts.md#"
)

// What config/monitoring holds is what Prometheus accepts; each alert has its runbook, each runbook
// its alert, and the page of metrics names every metric of ours that is used.
func TestConfigMonitoring(t *testing.T) {
	queries, err := check(rules, dashboard)
	if err != nil {
		t.Fatal(err)
	}
	sections := map[string]bool{}
	for _, heading := range regexp.MustCompile(`(?m)^#{2,3} (Plumbline\w+)$`).FindAllStringSubmatch(content(t, runbooks),
		-1) {
		sections[heading[1]] = true
	}
	metrics := content(t, inventory)
	for _, q := range queries {
		for _, s := range q.Selectors {
			name := regexp.MustCompile(`_seconds_(bucket|count|sum)$`).ReplaceAllString(s.Metric, "_seconds")
			if !strings.Contains(metrics, "`"+name+"`") {
				t.Errorf("%s reads %s, which docs/metrics.md does not name", q.Title, name)
			}
		}
		if q.Alert == "" {
			continue
		}
		if want := address + strings.ToLower(q.Alert); q.Runbook != want {
			t.Errorf("%s: runbook_url is %q, want %q", q.Alert, q.Runbook, want)
		}
		if !sections[q.Alert] {
			t.Errorf("docs/alerts.md has no section %s", q.Alert)
		}
		delete(sections, q.Alert)
	}
	for section := range sections {
		t.Errorf("docs/alerts.md explains %s, which is no alert", section)
	}
}

// Mistakes that a YAML parser does not see are found.
func TestCheckRefuses(t *testing.T) {
	good := content(t, rules)
	for sentence, change := range map[string][2]string{
		"an expression that does not parse": {"absent(plumbline_gitevent_open)", "absent(plumbline_gitevent_open"},
		"a field that does not exist":       {"          for: 5m", "          fore: 5m"},
		"a template that does not parse":    {"{{ $labels.instance }}", "{{ $labels.instance"},
		"a duration that is none":           {"          for: 5m", "          for: 5 minutes"},
		"another kind":                      {"kind: PrometheusRule", "kind: ConfigMap"},
	} {
		t.Run(sentence, func(t *testing.T) {
			bad := strings.Replace(good, change[0], change[1], 1)
			if bad == good {
				t.Fatalf("the rules do not contain %q", change[0])
			}
			if _, err := checkRules([]byte(bad)); err == nil {
				t.Error("it was accepted")
			}
		})
	}
	if _, err := checkDashboard([]byte(`{"panels":[{"title":"x","targets":[{"expr":"sum("}]}]}`)); err == nil {
		t.Error("a panel's expression that does not parse was accepted")
	}
}

func content(t *testing.T, file string) string {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}
