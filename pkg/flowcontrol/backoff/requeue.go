// SPDX-License-Identifier: Apache-2.0

package backoff

import (
	"errors"
	"slices"
	"strings"
	"time"

	"knative.dev/pkg/controller"

	"github.com/plumbline-ci/plumbline/pkg/fault"
)

// Requeue turns the errors of a reconcile's steps into one for knative. It is the only caller of
// knative's requeue constructors.
//
//   - It returns the Transient and Conflict errors, so that they are logged and the workqueue's
//     backoff applies. They are joined with a text that does not depend on their order.
//   - Without such errors, it returns the earliest time of the Throttled and Operator errors, which
//     neither counts nor resets failures. With such errors, KnownWait returns that time.
//   - A Throttled error without a known wait counts as Transient.
//   - Invalid and Ignored errors should have become an answer to the author or an end of the event.
//     One that gets here is a defect: it counts as Transient, so that it is logged and retried.
//   - Nil counts as nothing. Each part of a joined error counts on its own.
func Requeue(errs ...error) error { return RequeueAfter(fault.OperatorRetry, errs...) }

// RequeueAfter is Requeue with another wait for Operator errors.
func RequeueAfter(operatorRetry time.Duration, errs ...error) error {
	var failed []failure
	var earliest time.Duration
	for _, err := range errs {
		n := needs{operatorRetry: operatorRetry}
		n.add(err)
		if n.retry {
			failed = append(failed, failure{err: err, conflict: n.conflictOnly})
		}
		if n.after > 0 && (earliest == 0 || n.after < earliest) {
			earliest = n.after
		}
	}
	switch {
	case len(failed) > 0 && earliest > 0:
		return retryWithTimer{join(failed), earliest}
	case len(failed) > 0:
		return join(failed)
	case earliest > 0:
		return controller.NewRequeueAfter(earliest)
	}
	return nil
}

// retryWithTimer is an error for the workqueue's backoff, with the known wait of another error.
type retryWithTimer struct {
	error
	after time.Duration
}

// Unwrap returns the error.
func (r retryWithTimer) Unwrap() error { return r.error }

// KnownWait returns the earliest known wait in an error of Requeue, false if it has none. If there
// are other errors as well, knative ignores that wait: the caller has to enqueue the key itself.
func KnownWait(err error) (after time.Duration, known bool) {
	var both retryWithTimer
	if errors.As(err, &both) {
		return both.after, true
	}
	known, after = controller.IsRequeueKey(err)
	return after, known
}

// Retried reports whether the workqueue's backoff decides when to retry after err.
func Retried(err error) bool {
	if timer, _ := controller.IsRequeueKey(err); timer || controller.IsSkipKey(err) {
		return false
	}
	n := needs{}
	n.add(err)
	return n.retry
}

// needs is what one error requires.
type needs struct {
	operatorRetry       time.Duration
	retry, conflictOnly bool
	after               time.Duration
}

func (n *needs) add(err error) {
	if err == nil {
		return
	}
	if several := branches(err); several != nil {
		for _, e := range several {
			n.add(e)
		}
		return
	}
	f := fault.Of(err)
	switch {
	case f.Class == fault.Operator:
		n.timer(n.operatorRetry)
	case f.Class == fault.Throttled && f.RetryAfter > 0:
		n.timer(f.RetryAfter)
	default:
		n.conflictOnly = f.Class == fault.Conflict && (n.conflictOnly || !n.retry)
		n.retry = true
	}
}

func (n *needs) timer(after time.Duration) {
	if n.after == 0 || after < n.after {
		n.after = after
	}
}

// branches returns the errors that are joined in err's chain, unless a fault above them classifies
// all of them together.
func branches(err error) []error {
	for err != nil {
		if _, classified := err.(*fault.Error); classified { //nolint:errorlint // the walk itself looks at each link
			return nil
		}
		if several, ok := err.(interface{ Unwrap() []error }); ok {
			return several.Unwrap()
		}
		err = errors.Unwrap(err)
	}
	return nil
}

type failure struct {
	err      error
	conflict bool
}

// join puts conflicts last and hides them from errors.As, because knative does not log an error
// with a conflict in its chain.
func join(failed []failure) error {
	slices.SortStableFunc(failed, func(a, b failure) int {
		if a.conflict != b.conflict {
			if a.conflict {
				return 1
			}
			return -1
		}
		return strings.Compare(a.err.Error(), b.err.Error())
	})
	if len(failed) == 1 {
		return failed[0].err
	}
	return newJoined(failed)
}

// joined is several errors with one line of text.
type joined struct {
	text   string
	errors []error
}

func newJoined(failed []failure) joined {
	texts := make([]string, 0, len(failed))
	var j joined
	for _, f := range failed {
		texts = append(texts, f.err.Error())
		if !f.conflict || failed[0].conflict {
			j.errors = append(j.errors, f.err)
		}
	}
	j.text = strings.Join(slices.Compact(texts), "; ")
	return j
}

// Error lists the distinct texts.
func (j joined) Error() string { return j.text }

// Unwrap returns the errors, without the conflicts if there are others.
func (j joined) Unwrap() []error { return j.errors }
