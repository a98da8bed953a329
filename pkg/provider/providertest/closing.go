// SPDX-License-Identifier: Apache-2.0

package providertest

import (
	"testing"

	"github.com/plumbline-ci/plumbline/pkg/status"
)

// testOnlyOpen: an OnlyOpen report creates no check, keeps conclusions and closes pending checks.
func testOnlyOpen(t *testing.T, w Env) {
	r := report(t, w)
	closing := ended(status.Cancelled)
	closing.OnlyOpen = true
	put := func(id string) {
		t.Helper()
		if _, err := r.client.Put(t.Context(), r.head, id, closing, false); err != nil {
			t.Fatal(err)
		}
	}
	put("")
	if got := r.Service.Checks(r.head.SHA); len(got) != 0 {
		t.Fatalf("made %+v", got)
	}
	r.put(t, "", running())
	closing.ExternalID = "another run's"
	put("")
	if got := r.only(t); got.State != "in_progress" {
		t.Errorf("closed for another run: %+v", got)
	}
	closing.ExternalID = running().ExternalID
	put("")
	if got := r.only(t); got.Conclusion != w.shows(status.Cancelled) {
		t.Errorf("not closed: %+v", got)
	}
	r.put(t, "", ended(status.Success)) // as for a verdict that the closing has overwritten
	checks := r.Service.Checks(r.head.SHA)
	if got := checks[len(checks)-1]; got.Conclusion != "success" {
		t.Errorf("the verdict is not put back: %+v", checks)
	}
	r = report(t, w)
	id := r.put(t, "", ended(status.Success))
	put(id)
	if got := r.only(t); got.Conclusion != "success" {
		t.Errorf("the verdict was taken back: %+v", got)
	}
}

// testFormer: a check of the previous version is neither posted again nor left pending.
func testFormer(t *testing.T, w Env) {
	r := report(t, w)
	before := running()
	before.ExternalID, before.State = "before", status.Queued
	id := r.put(t, "", before)
	again := running()
	again.Shared, again.FormerExternalID = true, "before"
	if got := r.put(t, "", again); got != id || len(r.Service.Checks(r.head.SHA)) != 1 {
		t.Errorf("posted again as %s: %+v", got, r.Service.Checks(r.head.SHA))
	}
	r = report(t, w)
	r.put(t, "", before)
	closing := ended(status.Skipped)
	closing.OnlyOpen, closing.FormerExternalID = true, "before"
	if _, err := r.client.Put(t.Context(), r.head, "", closing, false); err != nil {
		t.Fatal(err)
	}
	if got := r.only(t); got.Conclusion != w.shows(status.Skipped) {
		t.Errorf("not closed: %+v", got)
	}
}
