// SPDX-License-Identifier: Apache-2.0

package github

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/pkg/provider"
	"github.com/plumbline-ci/plumbline/pkg/provider/github/delivery"
	"github.com/plumbline-ci/plumbline/test/forge"
)

func openLog(t *testing.T) (*fake, provider.DeliveryLog) {
	t.Helper()
	f, w := openFake(t, forge.Options{})
	log, err := New(Options{}).Deliveries(w.BaseURL, w.Credentials)
	if err != nil {
		t.Fatal(err)
	}
	return f, log
}

// The whole log is read page by page, and a redelivery shows in it.
func TestDeliveryLog(t *testing.T) {
	f, log := openLog(t)
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusAccepted)
	}))
	defer srv.Close()
	f.GitHub.Commit(testRepo, "main", forge.Change{Message: "first"})
	first := f.PushDelivery(forge.PushEvent{Repo: testRepo, Ref: "refs/heads/main"})
	if _, _, err := f.Deliver(t.Context(), "http://127.0.0.1:1", first); err == nil {
		t.Fatal("delivered to nobody")
	}
	for range attemptsPerPage {
		if _, _, err := f.Deliver(t.Context(), srv.URL, f.PingDelivery(testApp)); err != nil {
			t.Fatal(err)
		}
	}
	page, next, err := log.Page(t.Context(), "")
	if err != nil || len(page) != attemptsPerPage || next == "" || page[0].Starts || page[0].Repository != 0 ||
		!page[0].Succeeded() {
		t.Fatalf("first page: %d attempts, next %q, %v; %+v", len(page), next, err, page[:1])
	}
	rest, next, err := log.Page(t.Context(), next)
	if err != nil || len(rest) != 1 || next != "" {
		t.Fatalf("second page: %+v, next %q, %v", rest, next, err)
	}
	missed := rest[0]
	if age := time.Since(missed.At); age < 0 || age > time.Minute {
		t.Errorf("delivered at %v", missed.At)
	}
	if missed.Succeeded() || missed.Again || !missed.Starts || missed.GUID != first.GUID || missed.Repository == 0 {
		t.Errorf("what nobody has got: %+v", missed)
	}
	f.SetWebhookURL(testApp, srv.URL)
	if err := log.Redeliver(t.Context(), missed.ID); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(10 * time.Second); ; {
		page, _, err := log.Page(t.Context(), "")
		if err != nil || time.Now().After(deadline) {
			t.Fatalf("the redelivery is not in the log: %v", err)
		}
		if newest := page[0]; newest.GUID == first.GUID {
			if !newest.Again || !newest.Succeeded() || newest.Repository != missed.Repository {
				t.Errorf("the redelivery: %+v", newest)
			}
			break
		}
	}
}

// Errors of GitHub have their class.
func TestDeliveryLogErrors(t *testing.T) {
	f, log := openLog(t)
	if f := fault.Of(log.Redeliver(t.Context(), 1)); f.Class != fault.Ignored {
		t.Errorf("a delivery that GitHub has forgotten: %v", f)
	}
	f.Inject(forge.Fault{Route: forge.RouteAppDeliveries, Count: 1, Do: forge.Answer(http.StatusUnauthorized,
		http.Header{"Content-Type": {"application/json"}}, `{"message":"A JSON web token could not be decoded"}`)})
	if _, _, err := log.Page(t.Context(), ""); fault.Of(err).Reason != fault.ReasonCredentialsRefused {
		t.Errorf("a key that GitHub does not know: %v", err)
	}
	f.Inject(forge.Fault{Route: forge.RouteAppDeliveries, Count: 1, Do: forge.SecondaryRateLimit(30)})
	if _, _, err := log.Page(t.Context(), ""); fault.Of(err).Class != fault.Throttled {
		t.Errorf("a limit: %v", err)
	}
	calls := f.Count("")
	if err := log.Redeliver(t.Context(), 1); fault.Of(err).Class != fault.Throttled || f.Count("") != calls {
		t.Errorf("while limited: %v, %d calls", err, f.Count("")-calls)
	}
	broken := provider.Credentials{AppID: testApp, PrivateKey: []byte("no key"), From: "secret plumbline/app"}
	if _, err := New(Options{}).Deliveries(f.URL(), broken); fault.Of(err).Reason != fault.ReasonCredentialsInvalid {
		t.Errorf("what is no key: %v", err)
	}
}

// Starts is true for the events that Decode accepts.
func TestStartsMatchesDecode(t *testing.T) {
	got := map[string]bool{}
	for _, event := range []string{"push", "pull_request", "issue_comment", "check_run", "check_suite", "ping", ""} {
		for _, action := range []string{"", "opened", "synchronize", "labeled", "closed", "created", "edited",
			"rerequested"} {
			if delivery.Starts(event, action) {
				got[fmt.Sprint(event, " ", action)] = true
			}
		}
	}
	want := map[string]bool{
		"push ": true, "push opened": true, "push synchronize": true, "push labeled": true, "push closed": true,
		"push created": true, "push edited": true, "push rerequested": true, "check_run rerequested": true,
		"check_suite rerequested": true,
		"pull_request opened":     true, "pull_request synchronize": true, "pull_request labeled": true,
		"pull_request closed": true, "issue_comment created": true,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
