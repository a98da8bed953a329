// SPDX-License-Identifier: Apache-2.0

package gitlab

import (
	"fmt"
	"testing"
	"time"

	"github.com/plumbline-ci/plumbline/test/forge"
)

func TestFaultActions(t *testing.T) {
	at0 := time.Unix(1_800_000_000, 0)
	for name, tc := range map[string]struct {
		do      Action
		want    string // "0 " is no answer
		applied bool
		header  map[string]string
	}{
		"the limit": {
			RateLimited(at0, at0.Add(7*time.Second)), "429 ", false, map[string]string{"Retry-After": "7"},
		},
		"401":                    {Unauthorized401(), "401 401 Unauthorized", false, nil},
		"401 of a revoked token": {Revoked401(), "401 invalid_token", false, nil},
		"403":                    {Forbidden403(), "403 403 Forbidden", false, nil},
		"403 of a scope":         {InsufficientScope403(), "403 insufficient_scope", false, nil},
		"404":                    {NotFound404(), "404 404 Project Not Found", false, nil},
		"409":                    {Conflict409(), "409 Another update to this commit status is in progress", false, nil},
		"500":                    {InternalError500(), "500 500 Internal Server Error", false, nil},
		"503": {
			ReadOnly503(), "503 You cannot perform write operations on a read-only instance", false, nil,
		},
		"a refused transition": {CannotTransition400("run", "running"),
			`400 Cannot transition status via :run from :running (Reason(s): Status cannot transition via "run")`, false, nil},
		"the edge's page": {
			forge.ServerError502HTML(), "502 ", false, map[string]string{"Content-Type": "text/html; charset=utf-8"},
		},
		"an answer of one's own":    {forge.Answer(418, nil, `{"message":"tea"}`), "418 tea", false, nil},
		"a dropped connection":      {forge.Drop(), "0 ", false, nil},
		"applied, then 502":         {forge.ApplyThenAnswer(502), "502 ", true, nil},
		"applied, then dropped":     {forge.ApplyThenDrop(), "0 ", true, nil},
		"held, then served at once": {forge.Hold(closed()), "201 ", true, nil},
	} {
		t.Run(name, func(t *testing.T) {
			w := newFixture(t, Options{})
			f := w.Inject(Fault{Route: RouteStatusCreate, Count: 1, Do: tc.do})
			r := w.post(map[string]any{"state": "running", "name": "ci"})
			if got := fmt.Sprint(r.Status, " ", r.said()); got != tc.want {
				t.Errorf("got %s, want %s", got, tc.want)
			}
			for k, v := range tc.header {
				if r.Header.Get(k) != v {
					t.Errorf("%s is %q, want %q", k, r.Header.Get(k), v)
				}
			}
			log := w.WritesForStatus(app, w.sha, "ci")
			if len(log) != 1 || log[0].Applied != tc.applied || log[0].Status != r.Status || log[0].State != "running" {
				t.Errorf("write log: %+v", log)
			}
			if got := len(w.StatusesFor(app, w.sha)) == 1; got != tc.applied {
				t.Errorf("a status exists: %v, want %v", got, tc.applied)
			}
			if f.Hits() != 1 || !w.Requests()[0].Fault {
				t.Errorf("hits %d; requests %+v", f.Hits(), w.Requests())
			}
		})
	}
}

func closed() <-chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}
