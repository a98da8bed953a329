// SPDX-License-Identifier: Apache-2.0

package providertest

import (
	"context"
	"maps"
	"testing"

	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/pkg/status"
)

// faultCase is a call and the operation in it that fails.
type faultCase struct {
	op   Operation
	call func(context.Context, reporting) error
	// except are classes other than the usual ones.
	except map[Failure]fault.Class
}

// testFaults: each row of docs/errors.md has its class at every call, no fault is the author's, and
// the same call succeeds when the service works.
func testFaults(t *testing.T, open func(*testing.T) Env) {
	classes := map[Failure]fault.Class{
		Unavailable: fault.Transient, Disconnected: fault.Transient, Garbage: fault.Transient, Unauthorized: fault.Operator,
		Forbidden: fault.Operator, RateLimited: fault.Throttled, SlowDown: fault.Throttled, UnknownRevision: fault.Transient,
		Busy: fault.Transient,
	}
	reads := func(ctx context.Context, r reporting) error {
		_, err := r.client.Files(ctx, r.head.SHA, "dir")
		return err
	}
	reports := func(ctx context.Context, r reporting) error {
		_, err := r.client.Put(ctx, r.head, "", running(), false)
		return err
	}
	concludes := func(ctx context.Context, r reporting) error {
		_, err := r.client.Put(ctx, r.head, "", ended(status.Success), false)
		return err
	}
	cases := []faultCase{
		{ReadDirectory, reads, map[Failure]fault.Class{NotFound: fault.Transient}},
		{FindChecks, reports, map[Failure]fault.Class{NotFound: fault.Transient}},
		{UpdateCheck, concludes, map[Failure]fault.Class{Rejected: fault.Operator}},
		{CreateCheck, reports, map[Failure]fault.Class{NotFound: fault.Operator, Rejected: fault.Operator}},
	}
	if open(t).Mints {
		cases = append(cases,
			faultCase{MintToken, reads, map[Failure]fault.Class{NotFound: fault.Operator, UnknownRevision: fault.Operator}})
	}
	for _, c := range cases {
		expect := map[Failure]fault.Class{}
		maps.Copy(expect, classes)
		maps.Copy(expect, c.except)
		for how, want := range expect {
			t.Run(string(c.op)+": "+string(how), func(t *testing.T) { testFault(t, open(t), c, how, want) })
		}
	}
	testRecovery(t, open, reports)
}

func testRecovery(t *testing.T, open func(*testing.T) Env, reports func(context.Context, reporting) error) {
	t.Run("what failed works when the service does", func(t *testing.T) {
		r := report(t, open(t))
		r.Service.Fail(CreateCheck, Unavailable, 1)
		if err := reports(t.Context(), r); !fault.Is(err, fault.Transient) {
			t.Errorf("%v, want a Transient fault", err)
		}
		if err := reports(t.Context(), r); err != nil {
			t.Error(err)
		}
		r.only(t)
	})
	if !open(t).Mints {
		return
	}
	t.Run("a token that was revoked is minted again", func(t *testing.T) {
		r := report(t, open(t))
		r.Service.Fail(CreateCheck, Unauthorized, 1)
		if err := reports(t.Context(), r); err != nil {
			t.Error(err)
		}
		r.only(t)
	})
}

func testFault(t *testing.T, w Env, c faultCase, how Failure, want fault.Class) {
	r := report(t, w)
	r.head.SHA = w.Service.Commit("main", map[string]string{"dir/a.yaml": "a"})
	if c.op == UpdateCheck {
		r.put(t, "", running())
	}
	w.Service.Fail(c.op, how, 0)
	first := fault.Of(c.call(t.Context(), r))
	second := fault.Of(c.call(t.Context(), r))
	if first == nil || first.Class != want || first.Reason == "" || first.Reason == "Error" {
		t.Fatalf("got %+v, want class %s and a reason", first, want)
	}
	if want == fault.Throttled && first.RetryAfter <= 0 {
		t.Errorf("throttled without a time: %+v", first)
	}
	// During the limit the second call is not made, and says so.
	if second == nil || second.Class != want || (want != fault.Throttled && second.Message != first.Message) {
		t.Errorf("the text changes from one attempt to the next:\n%+v\n%+v", first, second)
	}
}
