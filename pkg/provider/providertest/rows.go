// SPDX-License-Identifier: Apache-2.0

package providertest

import (
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/pkg/git"
	"github.com/plumbline-ci/plumbline/pkg/provider"
)

// Row is one case of a row of docs/errors.md.
type Row struct {
	// Name is the row's, "G1".
	Name string
	// When is what happens, a sentence without a full stop.
	When string
	// Op is the operation that fails from now on: CreateCheck, ReadDirectory or MintToken. Where
	// the service cannot cause it, Reach changes how the provider reaches the service.
	Op    Operation
	Fail  func()
	Reach func(*Env)
	// Class and Reason are the fault's; Wait is its time to a retry, within rowSlack.
	Class  fault.Class
	Reason string
	Wait   time.Duration
	// Never says why the row cannot occur with the provider. The other fields except Name are empty
	// then.
	Never string
}

// Met is the fault of a row.
type Met struct {
	Row, When string
	Fault     *fault.Error
	// Varies is true if the message depends on when a connection broke.
	Varies bool
}

// rowSlack is the tolerance for times: headers have whole seconds, and the call takes time.
const rowSlack = 5 * time.Second

// testRows: every row either occurs, with its class and reason, or is known to be impossible.
func testRows(t *testing.T, open func(*testing.T) Env) {
	w := open(t)
	rows, seen := w.Rows, make([]*fault.Error, len(w.Rows))
	var names []string
	for i, row := range rows {
		names = append(names, row.Name)
		if row.Never != "" {
			continue
		}
		t.Run(row.Name+" "+row.When, func(t *testing.T) { seen[i] = testRow(t, open(t), i) })
	}
	if len(rows) == 0 {
		t.Fatal("no row is tried")
	}
	// L8 is about deliveries: receivers answer those.
	service, last := names[0][:1], map[string]int{"G": 13, "L": 7}
	for n := 1; n <= last[service]; n++ {
		if name := service + strconv.Itoa(n); !slices.Contains(names, name) {
			t.Errorf("row %s is not tried", name)
		}
	}
	var met []Met
	for i, row := range rows {
		if row.Never != "" {
			continue
		}
		if seen[i] == nil {
			return // it was not selected, or has failed
		}
		met = append(met, Met{row.Name, row.When, seen[i], seen[i].Reason == fault.ReasonGitUnreachable})
	}
	w.Page(t, met)
}

func testRow(t *testing.T, w Env, i int) *fault.Error {
	row, sha := w.Rows[i], w.Service.Commit("main", map[string]string{"dir/a.yaml": "a"})
	if row.Reach != nil {
		row.Reach(&w)
	} else {
		row.Fail()
	}
	client, head := connect(t, w), git.Head{SHA: sha, Project: w.Project}
	var err error
	if row.Op == CreateCheck {
		_, err = client.Put(t.Context(), head, "", running(), false)
	} else {
		_, err = client.Files(t.Context(), sha, "dir")
	}
	f := fault.Of(err)
	if f == nil || f.Class != row.Class || f.Reason != row.Reason {
		t.Fatalf("%+v, want %s %s", f, row.Class, row.Reason)
	}
	if (f.Class == fault.Throttled) != (row.Wait > 0) || (f.RetryAfter-row.Wait).Abs() > rowSlack {
		t.Errorf("tried again in %s, want %s: %v", f.RetryAfter, row.Wait, f)
	}
	return f
}

// Unreachable returns the cases of row X1, in which no answer arrives. with returns a provider with
// other limits.
func Unreachable(t *testing.T, with func(provider.Limits) provider.Provider) []Row {
	row := func(when, reason string, reach func(*Env)) Row {
		return Row{Name: "X1", When: when, Op: ReadDirectory, Reach: reach, Class: fault.Transient, Reason: reason}
	}
	return []Row{
		row("nothing listens", fault.ReasonGitUnreachable, func(w *Env) { w.moveTo("http://127.0.0.1:1") }),
		row("its certificate is of an unknown authority", fault.ReasonGitUnreachable, func(w *Env) {
			server := httptest.NewUnstartedServer(http.NotFoundHandler())
			server.Config.ErrorLog = log.New(io.Discard, "", 0)
			server.StartTLS()
			t.Cleanup(server.Close)
			w.moveTo(server.URL)
		}),
		row("it does not answer in time", fault.ReasonTimeout, func(w *Env) {
			silent := httptest.NewUnstartedServer(nil).Listener // connections are accepted but never read
			t.Cleanup(func() { _ = silent.Close() })
			w.moveTo("http://" + silent.Addr().String())
			w.Provider = with(provider.Limits{Headers: 200 * time.Millisecond})
		}),
	}
}

// moveTo moves the service to another address.
func (w *Env) moveTo(base string) {
	w.Project.URL = base + strings.TrimPrefix(w.Project.URL, w.BaseURL)
	w.BaseURL = base
}
