// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"github.com/plumbline-ci/plumbline/pkg/fault"
)

// IgnoredError ends an event: it no longer matters, because the pull request of a comment was
// closed for example, or it may not be served.
type IgnoredError struct{ Why *fault.Error }

// Error returns the fault's message.
func (o *IgnoredError) Error() string { return o.Why.Error() }

// Unwrap returns the fault, whose class is Ignored.
func (o *IgnoredError) Unwrap() error { return o.Why }

// ignoredError converts an Ignored fault to an IgnoredError.
func ignoredError(err error) error {
	if fault.Is(err, fault.Ignored) {
		return &IgnoredError{Why: fault.Of(err)}
	}
	return err
}
