// SPDX-License-Identifier: Apache-2.0

package providertest

import (
	"slices"
	"strconv"
	"testing"

	"github.com/plumbline-ci/plumbline/pkg/fault"
)

// Row is one row of spec/errors.md 4.2, in one of its shapes.
type Row struct {
	// Name is the row's, "G1".
	Name string
	// Op is what fails, so from now on: CreateCheck, ReadDirectory or MintToken.
	Op   Operation
	Fail func()
	// Class and Reason are the fault's.
	Class  fault.Class
	Reason string
	// Never says why the provider cannot meet the row; the other fields are empty then.
	Never string
}

// testRows: every row is either met, with its class and reason, or known never to be.
func testRows(t *testing.T, open func(*testing.T) World) {
	rows := open(t).Rows
	var names []string
	for i, row := range rows {
		names = append(names, row.Name)
		if row.Never != "" {
			continue
		}
		t.Run(strconv.Itoa(i)+" "+row.Name, func(t *testing.T) { testRow(t, open(t), i) })
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
}

func testRow(t *testing.T, w World, i int) {
	r, row := report(t, w), w.Rows[i]
	r.head.SHA = w.Service.Commit("main", map[string]string{"dir/a.yaml": "a"})
	row.Fail()
	var err error
	if row.Op == CreateCheck {
		_, err = r.client.Put(t.Context(), r.head, "", running(), false)
	} else {
		_, err = r.client.Files(t.Context(), r.head.SHA, "dir")
	}
	f := fault.Of(err)
	if f == nil || f.Class != row.Class || f.Reason != row.Reason {
		t.Fatalf("%+v, want %s %s", f, row.Class, row.Reason)
	}
	if f.Class == fault.Throttled && f.RetryAfter <= 0 {
		t.Errorf("throttled without a time: %+v", f)
	}
}
