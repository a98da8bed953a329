// SPDX-License-Identifier: Apache-2.0

package orphans_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode"
	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	plumblineclient "github.com/plumbline-ci/plumbline/pkg/client/clientset/versioned/typed/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/pkg/git"
	"github.com/plumbline-ci/plumbline/pkg/provider"
)

// A failing Git service is called once an hour, whichever run it is for. Then the check is closed.
func TestFailureIsRetriedAnHourLater(t *testing.T) {
	t.Parallel()
	for name, refuse := range map[string]error{
		"the Git service is down":          fault.Transientf(fault.ReasonGitUnavailable, "down"),
		"the Git service hangs":            fault.Transientf(fault.ReasonTimeout, "no answer"),
		"the token is refused":             fault.Operatorf(fault.ReasonCredentialsRefused, "401"),
		"the installation is at its limit": fault.Throttledf(fault.ReasonRateLimited, time.Minute, "wait"),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newEnv(t)
			w.refuse = refuse
			w.start()
			if asked, err := w.close(); !asked || err == nil {
				t.Fatal(asked, err)
			}
			w.run.UID = "another"
			w.refuse = nil
			if asked, _ := w.close(); asked {
				t.Error("it is called again at once")
			}
			w.clock.SetTime(w.clock.Now().Add(time.Hour))
			if asked, err := w.close(); !asked || err != nil || len(w.patches) != 1 {
				t.Errorf("an hour later: %v, %v, %d patches", asked, err, len(w.patches))
			}
		})
	}
}

// A check can never be closed if its commit is deleted, or an invention of the annotations. It is
// not retried before all others, neither at once nor each hour.
func TestCheckThatCannotBeClosedDelaysNoOther(t *testing.T) {
	t.Parallel()
	for _, reason := range []string{fault.ReasonCommitUnknown, fault.ReasonGitUnavailable, fault.ReasonTimeout} {
		t.Run(reason, func(t *testing.T) {
			t.Parallel()
			w := newEnv(t)
			w.refuses = func(head git.Head) error {
				if head.SHA != sha {
					return fault.Transientf(reason, "not this one")
				}
				return nil
			}
			w.start()
			good := w.run
			bad := good.DeepCopy()
			bad.UID, bad.Annotations[pipelinesascode.SHA] = "bad", strings.Repeat("f", 40)
			for range 24 { // passes of the sweep
				for _, w.run = range []*metav1.PartialObjectMetadata{bad, good} {
					_, _ = w.close()
				}
				w.clock.SetTime(w.clock.Now().Add(10 * time.Minute))
			}
			if len(w.patches) == 0 {
				t.Errorf("%d reports, and the check is open", len(w.puts))
			}
		})
	}
}

// A namespace decides how its own Git service responds.
func TestUnresponsiveGitServiceDelaysNoOtherNamespace(t *testing.T) {
	t.Parallel()
	w := newEnv(t)
	w.refuse = fault.Transientf(fault.ReasonTimeout, "no answer")
	their, theirs := repository(), claim()
	their.Namespace, their.Spec.URL, theirs.Spec.URL = "other", url+"2", url+"2"
	theirs.Name, theirs.Spec.Repository.Namespace = v1alpha1.ClaimName(url+"2"), "other"
	w.objects = append(w.objects, their, theirs)
	w.secrets = append(w.secrets, "other")
	w.start()
	if asked, err := w.close(); !asked || err == nil {
		t.Fatal(asked, err)
	}
	w.refuse = nil
	w.run = w.run.DeepCopy()
	w.run.Namespace, w.run.UID, w.run.Annotations[pipelinesascode.RepoURL] = "other", "theirs", url+"2"
	if asked, err := w.close(); !asked || err != nil {
		t.Error(asked, err)
	}
}

// While a Git service is rate-limited, its reports get no worker. Afterwards they do not delay
// other reports, because they are not requeued.
func TestReportThatFoundNoWorkerDelaysNoOther(t *testing.T) {
	t.Parallel()
	w := newEnv(t)
	their, theirs := repository(), claim()
	their.Namespace, their.Spec.URL, theirs.Spec.URL = "other", url+"2", url+"2"
	theirs.Name, theirs.Spec.Repository.Namespace = v1alpha1.ClaimName(url+"2"), "other"
	w.objects = append(w.objects, their, theirs)
	w.secrets = append(w.secrets, "other")
	w.refuse = fault.Throttledf(provider.ReasonPaced, time.Minute, "not yet")
	w.during = func(plumblineclient.GitEventInterface) {
		w.observe(provider.CallResult{Began: w.clock.Now(), Closed: time.Minute})
	}
	w.start()
	for n := range 5 {
		w.run = w.run.DeepCopy()
		w.run.UID = types.UID(fmt.Sprint("run-", n))
		if asked, err := w.close(); asked || err == nil { // not even the first one, which made no call
			t.Fatal(n, asked, err)
		}
	}
	if len(w.puts) != 1 {
		t.Fatalf("%d reports, want one: then no call is allowed", len(w.puts))
	}
	w.refuse = nil
	w.clock.SetTime(w.clock.Now().Add(time.Minute + time.Second))
	alarms := w.alarms
	w.alarms = nil
	for _, tick := range alarms {
		tick()
	}
	mine := w.run
	w.run = w.run.DeepCopy()
	w.run.Namespace, w.run.UID, w.run.Annotations[pipelinesascode.RepoURL] = "other", "theirs", url+"2"
	if asked, err := w.close(); !asked || err != nil {
		t.Error(asked, err)
	}
	w.clock.SetTime(w.clock.Now().Add(10 * time.Minute))
	w.run = mine // nor do they back off for an hour: no call was made for them
	if asked, err := w.close(); !asked || err != nil {
		t.Error(asked, err)
	}
}
