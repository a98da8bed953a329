// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"
	"testing"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/flowcontrol/recent"
)

// Once the Git service says that it is called too often, reports about untrusted users wait a
// minute; a failed write is retried at its time.
func TestRateLimitedInstallationPauses(t *testing.T) {
	t.Parallel()
	d := newLimiterEnv(t)
	first, second := report("event-1", "commit-1", "pull-1"), report("event-2", "commit-2", "pull-2")
	if answer, _ := d.Decide(first, d.now); answer != Write {
		t.Fatal("the first report waits")
	}
	d.Limited(first, d.now)
	if answer, wait := d.Decide(second, d.now); answer != Wait || wait != pause {
		t.Errorf("the next one: %v after %v, want a wait of %v", answer, wait, pause)
	}
	if answer, _ := d.Decide(first, d.now); answer != Write {
		t.Error("a report that was begun does not go on")
	}
}

// Without an App each namespace has its own limits; a pull request is the same, whatever its
// pushes.
func TestLimitsArePerInstallation(t *testing.T) {
	t.Parallel()
	event := func(namespace string, installation int64, sha string) *v1alpha1.GitEvent {
		e := &v1alpha1.GitEvent{Spec: v1alpha1.GitEventSpec{
			Host: "git.example", InstallationID: installation, SHA: sha, PullRequest: &v1alpha1.PullRequest{Number: 7},
		}}
		e.Spec.Repository.Namespace, e.Spec.Project.URL = namespace, "https://git.example/acme/app"
		return e
	}
	if a, b := PendingReportOf(event("a", 0, "1")), PendingReportOf(event("b", 0, "1")); a.installation == b.installation {
		t.Error("two namespaces share their limits")
	}
	if a, b := PendingReportOf(event("a", 42, "1")),
		PendingReportOf(event("b", 42, "2")); a.installation != b.installation || a.pull != b.pull {
		t.Errorf("one installation and pull request are two: %+v, %+v", a, b)
	}
}

// The limiter has a bound, for pull requests and for the events of one of them.
func TestLimiterIsBounded(t *testing.T) {
	t.Parallel()
	d := newLimiterEnv(t)
	for n := range recent.DefaultMax + 10 {
		d.Decide(report(fmt.Sprint("event-", n), "c", fmt.Sprint("pull-", n)), d.now)
	}
	if n := d.waiting(); n != recent.DefaultMax {
		t.Errorf("%d pull requests are remembered, want %d", n, recent.DefaultMax)
	}
	d = newLimiterEnv(t)
	for n := range maxEvents + 10 {
		d.Decide(report(fmt.Sprint("event-", n), fmt.Sprint("c-", n), "pull"), d.now)
	}
	if n := d.waiting(); n > maxEvents {
		t.Errorf("%d events of a pull request are remembered", n)
	}
}

// More pull requests of one installation may wait than the limiter remembers, if an administrator
// raises open-events-cap. Each keeps its slot: otherwise no report would ever be sent again.
func TestForgottenPullRequestsKeepTheirSlots(t *testing.T) {
	t.Parallel()
	d := newLimiterEnv(t)
	var all []PendingReport
	for n := range recent.DefaultMax + 2*Burst {
		all = append(all, report(fmt.Sprint("event-", n), "c", fmt.Sprint("pull-", n)))
		d.ask(all[n])
	}
	d.until(10*Interval, all...)
	if want := Burst + 9; len(d.wrote) != want {
		t.Errorf("%d of %d are written after ten intervals, want %d", len(d.wrote), len(all), want)
	}
}
