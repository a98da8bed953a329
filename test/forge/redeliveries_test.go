// SPDX-License-Identifier: Apache-2.0

package forge

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/plumbline-ci/plumbline/test/forge/internal/asking"
)

// GitHub's log of an App's deliveries: newest first, paged by cursor, for three days. A redelivery
// is requested by the id of an attempt, answered at once, sent to the App's current webhook, and
// logged under the same GUID.
func TestDeliveryLog(t *testing.T) {
	now := time.Now().Add(time.Minute - deliveryLogAge)
	w := newFixture(t, Options{Now: func() time.Time { return now }})
	rc := asking.NewReceiver(t)
	old := w.PingDelivery(testApp)
	if _, _, err := w.Deliver(t.Context(), rc.URL, old); err != nil {
		t.Fatal(err)
	}
	now = time.Now()
	d := w.PushDelivery(PushEvent{Repo: "org/app", Ref: "refs/heads/main"})
	if _, _, err := w.Deliver(t.Context(), "http://127.0.0.1:1", d); err == nil {
		t.Fatal("delivered to nobody")
	}
	page := func(query string) (ids []float64, described []string, link string) {
		answer := w.do("GET", "/app/hook/deliveries?per_page=1"+query, w.jwt(), nil)
		for _, x := range answer.List(t) {
			ids = append(ids, x["id"].(float64))
			described = append(described, fmt.Sprintf("%t %v %v %v %t", x["guid"] == d.GUID, x["event"], x["status_code"],
				x["redelivery"], x["repository_id"] != nil))
		}
		return ids, described, answer.Header.Get("Link")
	}
	ids, first, link := page("")
	if diff := cmp.Diff([]string{"true push 0 false true"}, first); diff != "" {
		t.Errorf("first page (-want +got):\n%s", diff)
	}
	_, cursor, _ := strings.Cut(link, "cursor=")
	cursor, _, _ = strings.Cut(cursor, "&")
	if _, second, link := page("&cursor=" + cursor); link != "" ||
		cmp.Diff([]string{"false ping 202 false false"}, second) != "" {
		t.Errorf("second page: %v, link %q", second, link)
	}
	if got := w.do("GET", "/app/hook/deliveries?cursor=none", w.jwt(), nil).Status; got != http.StatusUnprocessableEntity {
		t.Errorf("an unknown cursor is answered %d", got)
	}
	now = now.Add(time.Minute)
	if _, _, link := page(""); link != "" {
		t.Error("after three days a delivery is still in the log")
	}
	w.SetWebhookURL(testApp, rc.URL)
	again := fmt.Sprintf("/app/hook/deliveries/%.0f/attempts", ids[0])
	if got := w.do("POST", again, "", nil).Status; got != http.StatusUnauthorized {
		t.Errorf("without a JWT a redelivery is answered %d", got)
	}
	if got := w.do("POST", again, w.jwt(), nil).Status; got != http.StatusAccepted {
		t.Errorf("a redelivery is answered %d", got)
	}
	<-rc.Got // the ping
	if r := <-rc.Got; r.Header.Get("X-GitHub-Delivery") != d.GUID {
		t.Error("the redelivery has another GUID")
	}
	must(t, w.WaitFor(t.Context(), func(*State) bool { return len(w.deliveries) == 3 }))
	if _, newest, _ := page(""); cmp.Diff([]string{"true push 202 true true"}, newest) != "" {
		t.Errorf("the log has %v", newest)
	}
	if got := w.do("POST", "/app/hook/deliveries/1/attempts", w.jwt(), nil).Status; got != http.StatusNotFound {
		t.Errorf("a redelivery of what never was is answered %d", got)
	}
}
