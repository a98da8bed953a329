// SPDX-License-Identifier: Apache-2.0

package providertest

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/pkg/provider"
)

// testRootFiles: files of the default branch cost few calls, because untrusted users cause them
// (S17).
func testRootFiles(t *testing.T, open func(*testing.T) Env) {
	w := open(t)
	client := connect(t, w)
	read := func(calls int, want ...string) {
		t.Helper()
		before := w.Service.Calls()
		files, err := client.RootFiles(t.Context(), "OWNERS", "OWNERS_ALIASES")
		if got := w.Service.Calls() - before; err != nil || got != calls {
			t.Errorf("%v after %d calls, want %d", err, got, calls)
		}
		var got []string
		for _, name := range slices.Sorted(maps.Keys(files)) {
			got = append(got, name+"="+string(files[name]))
		}
		if !slices.Equal(got, want) {
			t.Errorf("read %q, want %q", got, want)
		}
	}
	w.Service.Commit("main", map[string]string{"README": "x", "docs/OWNERS": "not in the root", "OWNERS_ALIASES": "alone"})
	w.Service.Commit("topic", map[string]string{"OWNERS": "not of the default branch"})
	w.Service.Grant("stranger", "none")
	w.Service.Grant("another", "none")
	if may, err := client.CanWrite(t.Context(), "stranger"); may || err != nil { // and a token is minted, for an hour
		t.Fatal(may, err)
	}
	before := w.Service.Calls()
	if may, err := client.CanWrite(t.Context(), "another"); may || err != nil || w.Service.Calls()-before > 1 {
		t.Errorf("a stranger's right costs %d calls: %t, %v", w.Service.Calls()-before, may, err)
	}
	read(1)
	w.Service.Commit("main", map[string]string{"OWNERS": "one"})
	read(3, "OWNERS=one", "OWNERS_ALIASES=alone")
	read(1, "OWNERS=one", "OWNERS_ALIASES=alone")
	w.Service.Commit("main", map[string]string{"OWNERS": "two"})
	read(2, "OWNERS=two", "OWNERS_ALIASES=alone")
	many := map[string]string{}
	for i := range 150 {
		many[fmt.Sprint("a", i)] = "x"
	}
	w.Service.Commit("main", many)
	if files, err := client.RootFiles(t.Context(), "OWNERS"); err != nil || string(files["OWNERS"]) != "two" {
		t.Errorf("among many: %q, %v", files, err)
	}
	w.Service.Commit("main", map[string]string{"OWNERS": string(make([]byte, provider.MaxFile+1))})
	if _, err := client.RootFiles(t.Context(), "OWNERS"); !fault.Is(err, fault.Invalid) {
		t.Errorf("one that is too large: %v, want an Invalid fault", err)
	}
	failing(t, ReadDirectory, open, func(t *testing.T, w Env) (bool, error) {
		w.Service.Commit("main", map[string]string{"OWNERS": "one"})
		files, err := connect(t, w).RootFiles(t.Context(), "OWNERS")
		return files != nil, err
	})
	t.Run("an empty repository is waited for", func(t *testing.T) {
		w := open(t)
		w.Service.Fail(ReadDirectory, NotFound, 0)
		if files, err := connect(t, w).RootFiles(t.Context(), "OWNERS"); files != nil || !fault.Is(err, fault.Transient) {
			t.Errorf("%v, %v, want a Transient fault", files, err)
		}
	})
}
