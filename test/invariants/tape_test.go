// SPDX-License-Identifier: Apache-2.0

package invariants

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"knative.dev/pkg/apis"

	pipelinev1 "github.com/tektoncd/pipeline/pkg/apis/pipeline/v1"

	"github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode"
	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline"
	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/test/cluster"
)

// tape plays versions to a history, a second after each other.
type tape struct {
	History
	t        *testing.T
	revision int64
	at       time.Time
	events   map[string]*v1alpha1.GitEvent
}

func newTape(t *testing.T) *tape {
	t.Helper()
	return &tape{
		t: t, at: time.Unix(1000, 0).UTC(), events: map[string]*v1alpha1.GitEvent{},
		History: History{Installation: "ns", Patience: time.Minute},
	}
}

// verbs are the first words of the sentences of a script; the other words follow.
type verbs map[string]func(words ...string)

// play plays a script: "limit 1; runs a". The verb of a sentence without one is "".
func (v verbs) play(t *testing.T, script string) {
	t.Helper()
	for sentence := range strings.SplitSeq(script, ";") {
		words := strings.Fields(sentence)
		if do := v[words[0]]; do != nil {
			do(words[1:]...)
		} else if do := v[""]; do != nil {
			do(words...)
		} else {
			t.Fatalf("nobody can play %q", sentence)
		}
	}
}

func number(t *testing.T, word string) int64 {
	t.Helper()
	n, err := strconv.ParseInt(word, 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// judged compares the findings with a part of the only expected violation, "" for none.
func judged(t *testing.T, what, want string, found []Violation) {
	t.Helper()
	if len(found) > 0 && want == "" || len(found) > 1 || !strings.Contains(fmt.Sprint(found), want) {
		t.Errorf("%s: found %v, want %q", what, found, want)
	}
}

func (p *tape) tell(resource, name string, object any) {
	p.t.Helper()
	v := cluster.Version{Resource: resource, Namespace: "ns", Name: name} // in which Plumbline is, too
	if object != nil {
		var err error
		if v.Object, err = json.Marshal(object); err != nil {
			p.t.Fatal(err)
		}
	}
	p.revision++
	p.at = p.at.Add(time.Second)
	v.Revision, v.At = p.revision, p.at
	p.Saw(v)
}

func (p *tape) made(name string, state corev1.ConditionStatus) pipelinev1.PipelineRun {
	run := pipelinev1.PipelineRun{ObjectMeta: metav1.ObjectMeta{
		Namespace: "ns", Name: name, UID: types.UID("uid-of-" + name),
		Labels: map[string]string{plumbline.InstallationLabel: "ns"},
		Annotations: map[string]string{
			pipelinesascode.Repository: "app", pipelinesascode.OriginalPRName: "p", pipelinesascode.MaxKeepRuns: "1",
		},
	}}
	run.Status.SetCondition(&apis.Condition{Type: apis.ConditionSucceeded, Status: state})
	if state != corev1.ConditionUnknown {
		run.Status.CompletionTime = &metav1.Time{Time: p.at}
	}
	return run
}

func (p *tape) runs(names ...string) {
	for _, name := range names {
		p.tell(theRuns, name, p.made(name, corev1.ConditionUnknown))
	}
}

func (p *tape) ends(names ...string) {
	for _, name := range names {
		p.tell(theRuns, name, p.made(name, corev1.ConditionTrue))
	}
}

func (p *tape) deletes(names ...string) { p.tell(theRuns, names[0], nil) }
