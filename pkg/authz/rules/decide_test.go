// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	pacv1alpha1 "github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
)

// row is an event with the facts about it, and the expected decision.
type row struct {
	in Input
	// facts are the true facts, for example "author writer". All others are false.
	facts []string
	want  Verdict
	// asked are the expected questions, in order.
	asked  []string
	reason string
}

// ends answers questions until there is a verdict.
func (r row) ends(chain []rule) (Result, []string) {
	in, asked := r.in, []string(nil)
	in.Known = map[Question]bool{}
	for {
		d := decide(chain, in)
		if d.Verdict != Asks {
			return d, asked
		}
		q := string(d.Question.Who) + " " + string(d.Question.What)
		if slices.Contains(asked, q) || !strings.Contains(d.Why, "not known yet") {
			return Result{Why: fmt.Sprintf("%s is asked after %v because %q", q, asked, d.Why)}, asked
		}
		asked = append(asked, q)
		in.Known[d.Question] = slices.Contains(r.facts, q)
	}
}

// The events of the tables.
func push() Input { return Input{Trigger: v1alpha1.TriggerPush} }
func fork() Input { return Input{Trigger: v1alpha1.TriggerPullRequest} }
func here() Input { return Input{Trigger: v1alpha1.TriggerPullRequest, SameRepository: true} }

func (in Input) with(change func(*Input)) Input { change(&in); return in }
func (in Input) comment(command Command) Input {
	return in.with(func(in *Input) { in.Comment, in.Command = true, command })
}
func (in Input) own() Input      { return in.with(func(in *Input) { in.Own = true }) }
func (in Input) label() Input    { return in.with(func(in *Input) { in.Label = true }) }
func (in Input) approved() Input { return in.with(func(in *Input) { in.Approved = true }) }
func (in Input) app() Input      { return in.with(func(in *Input) { in.App = true }) }
func (in Input) members() Input  { return in.with(func(in *Input) { in.Members = true }) }
func (in Input) trusts() Input   { return in.with(func(in *Input) { in.Trusts = true }) }
func (in Input) policy(pull, ok string) Input {
	split := func(list string) []string {
		if list == "" {
			return nil
		}
		return strings.Split(list, ",")
	}
	return in.with(func(in *Input) { in.Policy = &pacv1alpha1.Policy{PullRequest: split(pull), OkToTest: split(ok)} })
}
func (in Input) restricted() Input { return in.with(func(in *Input) { in.Restricted = true }) }

func TestDecide(t *testing.T) {
	for name, r := range rows() {
		t.Run(name, func(t *testing.T) {
			got, asked := r.ends(rules())
			if got.Verdict != r.want || !strings.Contains(got.Why, r.reason) {
				t.Errorf("%v because %q, want %v because %q", got.Verdict, got.Why, r.want, r.reason)
			}
			if diff := cmp.Diff(r.asked, asked); diff != "" {
				t.Errorf("asked (-want +got):\n%s", diff)
			}
		})
	}
}

// Each rule is needed: without it at least one row has another result or reason.
func TestEveryRuleDecidesSomething(t *testing.T) {
	chain := rules()
	for i, left := range chain {
		name := reflect.TypeOf(left).Name()
		t.Run(name, func(t *testing.T) {
			without, rows := slices.Delete(slices.Clone(chain), i, i+1), rows()
			for _, r := range rows {
				with, asked := r.ends(chain)
				got, gotAsked := r.ends(without)
				if with != got || !slices.Equal(asked, gotAsked) {
					return
				}
			}
			t.Errorf("without the rule %s all %d rows are decided as with it", name, len(rows))
		})
	}
}

// Each fact is needed: if it grants nothing, at least one row has another result.
func TestEveryFactGrantsSomething(t *testing.T) {
	for _, fact := range []Fact{Trusted, Listed, Writer, Member, Owner, Confirmed} {
		if !slices.ContainsFunc(slices.Collect(maps.Values(rows())), func(r row) bool {
			with, _ := r.ends(rules())
			r.facts = slices.DeleteFunc(slices.Clone(r.facts),
				func(known string) bool { return strings.HasSuffix(known, " "+string(fact)) })
			got, _ := r.ends(rules())
			return with.Verdict == Allowed && got.Verdict != Allowed
		}) {
			t.Errorf("no row depends on %s", fact)
		}
	}
}

// For every event and all facts: without a right, no comment, label or pull request starts
// anything, except an App's pull request from a branch of the repository.
func TestDecideWithoutRightsAllowsOnlyPushesAndAppBranches(t *testing.T) {
	bools := []bool{false, true}
	for _, trigger := range []v1alpha1.Trigger{
		v1alpha1.TriggerPush, v1alpha1.TriggerMergeGroup, v1alpha1.TriggerPullRequest, "workflow_run", "",
	} {
		for _, command := range []Command{"", Test, Retest, OkToTest, Cancel, Why, "unknown"} {
			for i := range 1 << 8 {
				bit := func(n int) bool { return bools[i>>n&1] }
				in := Input{Trigger: trigger, Command: command, SameRepository: bit(0), Label: bit(1), Comment: bit(2) ||
					command != "", Own: bit(3),
					Members: bit(4), Trusts: bit(5), Restricted: bit(6), App: bit(7)}
				for _, in := range []Input{in, in.policy("a", "b"), in.policy("", "b"), in.policy("a", "")} {
					d, asked := row{in: in, facts: []string{"actor confirmed"}}.ends(rules())
					may := !in.Comment && (trigger == v1alpha1.TriggerPush || trigger == v1alpha1.TriggerMergeGroup ||
						trigger == v1alpha1.TriggerPullRequest && in.SameRepository && in.App && !in.Label && !in.Restricted &&
							in.Policy == nil)
					may = may || command == Cancel && in.Own && trigger == v1alpha1.TriggerPullRequest && !in.Restricted
					if (d.Verdict == Allowed) != may {
						t.Fatalf("%+v: %v because %q after %v, want allowed: %t", in, d.Verdict, d.Why, asked, may)
					}
				}
			}
		}
	}
}

func TestZeroDecisionDenies(t *testing.T) {
	if v := (Result{}).Verdict; v != Unapproved || v.String() != "Unapproved" {
		t.Errorf("the zero Result is %v, want Unapproved", v)
	}
}

func TestEveryReasonIsOneUniqueSentence(t *testing.T) {
	seen := map[string]bool{}
	for _, r := range rules() {
		text := strings.ReplaceAll(r.why(), "settings.policy", "the policy")
		if strings.Count(text, ".") != 1 || !strings.HasSuffix(text, ".") || seen[text] {
			t.Errorf("reason %q is not one sentence of its own", text)
		}
		seen[text] = true
	}
}
