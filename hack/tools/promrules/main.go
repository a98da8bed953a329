// SPDX-License-Identifier: Apache-2.0

// Command promrules checks a PrometheusRule and a Grafana dashboard with Prometheus' own library,
// as promtool does, and prints what they select as JSON, for tests that compare it with what
// processes serve. It has a module of its own because Prometheus brings more dependencies than the
// product has.
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/promql/parser"
	"go.yaml.in/yaml/v3"
)

// Query is one alert's or one dashboard panel's expression.
type Query struct {
	// Alert is empty for a panel; Title is the panel's or the alert's name.
	Alert string `json:"alert,omitempty"`
	Title string `json:"title"`
	Expr  string `json:"expr"`
	// Runbook is the address of the alert's runbook.
	Runbook string `json:"runbook,omitempty"`
	// Selectors are the series the expression reads, in its order.
	Selectors []Selector `json:"selectors"`
}

// Selector is a metric's name and what its labels must be.
type Selector struct {
	Metric   string    `json:"metric"`
	Matchers []Matcher `json:"matchers,omitempty"`
}

// Matcher is one condition on a label; Op is =, !=, =~ or !~.
type Matcher struct {
	Label string `json:"label"`
	Op    string `json:"op"`
	Value string `json:"value"`
}

func main() {
	if len(os.Args) != 3 {
		fail(errors.New("usage: promrules <PrometheusRule.yaml> <dashboard.json>"))
	}
	queries, err := check(os.Args[1], os.Args[2])
	if err != nil {
		fail(err)
	}
	if err := json.NewEncoder(os.Stdout).Encode(queries); err != nil {
		fail(err)
	}
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, "promrules:", err)
	os.Exit(1)
}

func check(rules, dashboard string) ([]Query, error) {
	var queries []Query
	for _, one := range []struct {
		file string
		read func([]byte) ([]Query, error)
	}{{rules, checkRules}, {dashboard, checkDashboard}} {
		data, err := os.ReadFile(one.file)
		if err != nil {
			return nil, err
		}
		found, err := one.read(data)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", one.file, err)
		}
		queries = append(queries, found...)
	}
	return queries, nil
}

// checkRules reads the groups of a PrometheusRule as Prometheus reads a rule file.
func checkRules(data []byte) ([]Query, error) {
	var object struct {
		Kind string
		Spec yaml.Node
	}
	if err := yaml.Unmarshal(data, &object); err != nil {
		return nil, err
	}
	if object.Kind != "PrometheusRule" {
		return nil, fmt.Errorf("kind is %q, want PrometheusRule", object.Kind)
	}
	groups, err := yaml.Marshal(&object.Spec)
	if err != nil {
		return nil, err
	}
	p := parser.NewParser(parser.Options{})
	parsed, errs := rulefmt.Parse(groups, false, model.LegacyValidation, p, slog.New(slog.DiscardHandler))
	if len(errs) > 0 {
		return nil, errors.Join(errs...)
	}
	var queries []Query
	for _, group := range parsed.Groups {
		for _, rule := range group.Rules {
			selectors, err := read(p, rule.Expr)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", rule.Alert, err)
			}
			queries = append(queries, Query{Alert: rule.Alert, Title: rule.Alert, Expr: rule.Expr,
				Runbook: rule.Annotations["runbook_url"], Selectors: selectors})
		}
	}
	return queries, nil
}

func checkDashboard(data []byte) ([]Query, error) {
	var dashboard struct {
		Panels []struct {
			Title   string
			Targets []struct{ Expr string }
		}
	}
	if err := json.Unmarshal(data, &dashboard); err != nil {
		return nil, err
	}
	p := parser.NewParser(parser.Options{})
	var queries []Query
	for _, panel := range dashboard.Panels {
		for _, target := range panel.Targets {
			expr := strings.ReplaceAll(target.Expr, "$__rate_interval", "5m") // Grafana's
			selectors, err := read(p, expr)
			if err != nil {
				return nil, fmt.Errorf("panel %q: %w", panel.Title, err)
			}
			queries = append(queries, Query{Title: panel.Title, Expr: expr, Selectors: selectors})
		}
	}
	return queries, nil
}

// read returns what an expression selects.
func read(p parser.Parser, expr string) ([]Selector, error) {
	parsed, err := p.ParseExpr(expr)
	if err != nil {
		return nil, err
	}
	var found []Selector
	parser.Inspect(parsed, func(node parser.Node, _ []parser.Node) error {
		if vector, ok := node.(*parser.VectorSelector); ok {
			found = append(found, selector(vector))
		}
		return nil
	})
	return found, nil
}

func selector(vector *parser.VectorSelector) Selector {
	s := Selector{Metric: vector.Name}
	for _, m := range vector.LabelMatchers {
		if m.Name != labels.MetricName {
			s.Matchers = append(s.Matchers, Matcher{Label: m.Name, Op: m.Type.String(), Value: m.Value})
		}
	}
	return s
}
