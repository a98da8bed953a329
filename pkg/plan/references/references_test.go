// SPDX-License-Identifier: Apache-2.0

package references_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/plumbline-ci/plumbline/pkg/config"
	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/pkg/git"
	"github.com/plumbline-ci/plumbline/pkg/pipeline/resolve"
	"github.com/plumbline-ci/plumbline/pkg/plan/references"
	"github.com/plumbline-ci/plumbline/pkg/provider/egress"
	"github.com/plumbline-ci/plumbline/pkg/provider/web"
)

// env is a repository, its Git service and the web. It records what was read.
type env struct {
	read       []string
	at, public error // of addresses, read with credentials and as everybody does
	policies   []egress.Policy
	large      int // bytes that each answer has more
}

func (w *env) answer(what string, err error) ([]byte, error) {
	w.read = append(w.read, what)
	return []byte(what + strings.Repeat(" ", w.large)), err
}

func (w *env) File(_ context.Context, sha, path string) ([]byte, error) {
	return w.answer("file "+sha+" "+path, nil)
}

func (w *env) FileAt(_ context.Context, address string) ([]byte, error) {
	return w.answer("service "+address, w.at)
}

func (w *env) Get(_ context.Context, address string, policy egress.Policy, limit int64) ([]byte, error) {
	w.policies = append(w.policies, policy)
	return w.answer(fmt.Sprint("web ", address, " ", limit), w.public)
}

func (w *env) Package(_ context.Context, hub web.Hub, address string, policy egress.Policy) ([]byte, error) {
	w.policies = append(w.policies, policy)
	return w.answer("hub "+hub.URL+" "+address, w.public)
}

// options are those of a Git service at git.example and two hubs.
func (w *env) options() references.Options {
	return references.Options{
		Files: w, Addresses: w, Web: w, SHA: "c0ffee", Service: "https://git.example",
		Remote: config.Remote{Fetch: true, Hub: web.Hub{URL: "https://hub.example"},
			Catalogs: map[string]web.Hub{"own": {URL: "https://own.example", Catalog: "ours"}}},
	}
}

func TestReadLocatesEachForm(t *testing.T) {
	t.Parallel()
	other := fault.Ignoredf(fault.ReasonOtherAddress, "another host")
	for reference, c := range map[string]struct {
		kind  resolve.Kind
		reads []string
		path  string
	}{
		"tasks/lint.yaml":  {resolve.KindTask, []string{"file c0ffee tasks/lint.yaml"}, "tasks/lint.yaml"},
		"/tasks/../a.yaml": {resolve.KindTask, []string{"file c0ffee a.yaml"}, "a.yaml"},
		".tekton/own.yaml": {resolve.KindTask, nil, ".tekton/own.yaml"},
		"lint": {resolve.KindTask, []string{
			"hub https://hub.example https://hub.example/api/v1/packages/tekton-task/tekton-catalog-tasks/lint",
		}, "lint (https://hub.example/api/v1/packages/tekton-task/tekton-catalog-tasks/lint)"},
		"build:0.2": {resolve.KindPipeline, []string{
			"hub https://hub.example https://hub.example/api/v1/packages/tekton-pipeline/tekton-catalog-pipelines/build/0.2",
		}, "build:0.2 (https://hub.example/api/v1/packages/tekton-pipeline/tekton-catalog-pipelines/build/0.2)"},
		"own://lint": {resolve.KindTask, []string{
			"hub https://own.example https://own.example/api/v1/packages/tekton-task/ours/lint",
		}, "own://lint (https://own.example/api/v1/packages/tekton-task/ours/lint)"},
		"https://x.io/a?b=": {
			resolve.KindTask, []string{"service https://x.io/a?b=", "web https://x.io/a?b= 1048576"}, "https://x.io/a?…",
		},
	} {
		t.Run(reference, func(t *testing.T) {
			t.Parallel()
			w := &env{at: other}
			o := w.options()
			o.Known = []git.File{{Path: ".tekton/own.yaml", Data: []byte("own")}}
			file, err := references.New(o).Read(t.Context(), c.kind, reference)
			if diff := cmp.Diff(c.reads, w.read); diff != "" || err != nil || file.Path != c.path || len(file.Data) == 0 {
				t.Errorf("%s: %v, %s", file.Path, err, diff)
			}
		})
	}
}

func TestReadReadsEachReferenceOnce(t *testing.T) {
	t.Parallel()
	w := &env{at: fault.Transientf("GitUnavailable", "502")}
	r := references.New(w.options())
	for range 20 {
		if file, err := r.Read(t.Context(), resolve.KindTask, "/tasks/own.yaml"); err != nil ||
			file.Path != "tasks/own.yaml" {
			t.Fatal(file, err)
		}
		if _, err := r.Read(t.Context(), resolve.KindTask, "https://me:s3cret@git.example/a?token=s3cret"); !fault.Is(err,
			fault.Transient) || err.Error() != "https://git.example/a?…: 502" {
			t.Fatal(err)
		}
	}
	if len(w.read) != 2 {
		t.Errorf("read %v", w.read)
	}
	var err error
	for i := range 500 {
		_, err = r.Read(t.Context(), resolve.KindTask, fmt.Sprintf("tasks/%d.yaml", i))
	}
	if f := fault.Of(err); f == nil || f.Reason != "TooManyReferences" || len(w.read) != 500 {
		t.Errorf("%v after %d reads", err, len(w.read))
	}
}

// The references of one event share a limit with its definitions. A reference above the limit is
// refused, and the others can still be read.
func TestReadLimitsBytesWithDefinitions(t *testing.T) {
	t.Parallel()
	w := &env{large: 1<<20 - 100}
	o := w.options()
	o.Known = []git.File{{Path: ".tekton/own.yaml", Data: make([]byte, 5<<20)}}
	r := references.New(o)
	read := func(name string) error {
		file, err := r.Read(t.Context(), resolve.KindTask, name)
		if (err == nil) != (len(file.Data) > 0) {
			t.Errorf("%s: %d bytes and %v", name, len(file.Data), err)
		}
		return err
	}
	for i := range 3 {
		if err := read(fmt.Sprintf("tasks/%d.yaml", i)); err != nil {
			t.Fatal(err)
		}
	}
	for range 2 { // however often it is asked for
		err := read("tasks/3.yaml")
		if f := fault.Of(err); f == nil || f.Reason != "TooManyReferences" ||
			!strings.HasPrefix(err.Error(), "tasks/3.yaml: ") {
			t.Errorf("%v, want the file to be named", err)
		}
	}
	w.large = 0
	if err := read("tasks/small.yaml"); err != nil || read("tasks/0.yaml") != nil {
		t.Errorf("%v: what was refused takes room", err)
	}
}

func TestReadOfMissingReferenceIsInvalid(t *testing.T) {
	t.Parallel()
	for reference, says := range map[string]string{
		"nobody://lint":              `nobody://lint: no hub is called "nobody"`,
		"nobody://me:s3cret@x/lint?": `nobody://x/lint: no hub is called "nobody"`,
		"a name":                     `"a name": this is not a name on a hub`,
	} {
		_, err := references.New((&env{}).options()).Read(t.Context(), resolve.KindTask, reference)
		if !fault.Is(err, fault.Invalid) || !strings.HasPrefix(err.Error(), says) {
			t.Errorf("%s: %v, want %s", reference, err, says)
		}
	}
}

// After an outage of the Git service nothing is fetched without credentials, which would miss
// private files. It is only when the service shows nothing there.
func TestReadFetchesWithoutCredentialsOnlyMissingFiles(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		err   error
		plain bool
	}{
		"it is there":            {nil, false},
		"an outage":              {fault.Transientf("GitServiceUnavailable", "502"), false},
		"a limit":                {fault.Throttledf("RateLimited", 60, "later"), false},
		"credentials are broken": {fault.Operatorf("CredentialsRefused", "401"), false},
		"too large":              {fault.Invalidf("FileTooLarge", "too large"), false},
		"not there":              {fault.Ignoredf("NotFound", "GitHub shows no such file"), true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := &env{at: test.err, public: fault.Invalidf("AddressRefused", "git.example is not fetched from")}
			_, err := references.New(w.options()).Read(t.Context(), resolve.KindTask,
				"https://git.example/acme/other/blob/main/own.yaml")
			if plain := len(w.read) == 2; plain != test.plain || (err == nil) != (test.err == nil) {
				t.Fatalf("%v, read %v, want it read as everybody does: %t", err, w.read, test.plain)
			}
			if test.err != nil && !strings.Contains(err.Error(), fault.Of(test.err).Message) {
				t.Errorf("%v, want the words of the Git service", err)
			}
			if test.plain && (!strings.Contains(err.Error(), "git.example is not fetched from") ||
				w.policies[0].Trusted != "git.example:443") {
				t.Errorf("%v, policy %+v", err, w.policies)
			}
		})
	}
}

// A stale replica shows nothing where something was just pushed.
func TestReadRetriesMissingAddressOfGitService(t *testing.T) {
	t.Parallel()
	const address = "https://git.example/a"
	for name, c := range map[string]struct {
		at, public error
		missing    func(string) time.Duration
		class      fault.Class
	}{
		"until it is believed": {fault.Ignoredf(fault.ReasonNotFound, "nothing"),
			fault.Invalidf("NotFound", "404"), func(string) time.Duration { return time.Second }, fault.Throttled},
		"then its author is told": {fault.Ignoredf(fault.ReasonNotFound, "nothing"),
			fault.Invalidf("NotFound", "404"), func(string) time.Duration { return 0 }, fault.Invalid},
		"nobody cares": {
			fault.Ignoredf(fault.ReasonNotFound, "nothing"), fault.Invalidf("NotFound", "404"), nil, fault.Invalid,
		},
		"another address is not asked of": {fault.Ignoredf(fault.ReasonOtherAddress, "another"),
			fault.Invalidf("NotFound", "404"), func(string) time.Duration { return time.Second }, fault.Invalid},
		"nor is one that cannot be read": {fault.Ignoredf(fault.ReasonNotFound, "nothing"), fault.Transientf("Down", "503"),
			func(string) time.Duration { return time.Second }, fault.Transient},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := &env{at: c.at, public: c.public}
			o := w.options()
			o.Missing = c.missing
			if _, err := references.New(o).Read(t.Context(), resolve.KindTask, address); fault.Of(err).Class != c.class {
				t.Errorf("%v of class %s, want %s", err, fault.Of(err).Class, c.class)
			}
		})
	}
}
