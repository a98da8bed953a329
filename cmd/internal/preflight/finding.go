// SPDX-License-Identifier: Apache-2.0

package preflight

import (
	"context"
	"fmt"
	"io"
)

// Finding is one problem of an installation.
type Finding struct {
	// Object has the problem, for example "Secret plumbline/plumbline-github-app".
	Object string
	// Problem completes the sentence that begins with Object. It never contains a Secret's value.
	Problem string
	// Remedy says what to do, with a command if there is one.
	Remedy string
	// Fatal means that Plumbline must not run until it is fixed.
	Fatal bool
	// Awaited means that Plumbline cannot work before it is fixed, and waits.
	Awaited bool
	// Err is why the object could not be checked; nil if it was.
	Err error
}

// String returns the finding in one line.
func (f Finding) String() string {
	return fmt.Sprintf("%s %s. To fix it: %s", f.Object, f.Problem, f.Remedy)
}

// Report prints one line for each problem of the installation, or that there is none. The exit code
// is 0 if there is none.
func (c *Checker) Report(ctx context.Context, w io.Writer) (exitCode int) {
	findings := c.Run(ctx)
	for _, f := range findings {
		_, _ = fmt.Fprintln(w, f) // the exit code says enough if this fails
	}
	if len(findings) != 0 {
		return 1
	}
	beside := ""
	if c.onPurpose != "" {
		beside = " Pipelines-as-Code may run next to it on purpose: " + c.onPurpose + "."
	}
	if _, err := fmt.Fprintf(
		w, "Nothing is wrong with the installation in namespace %s.%s\n", c.Namespace, beside,
	); err != nil {
		return 1
	}
	return 0
}

const tryAgain = "try again when the API server answers; kubectl version shows whether it does"

// unknown returns a finding about what could not be checked, and why. The remedy is for a call that
// the API server refused.
func unknown(object string, err error, remedy string) Finding {
	if !refused(err) {
		remedy = tryAgain
	}
	return Finding{Object: object, Problem: fmt.Sprintf("could not be checked: %v", err), Remedy: remedy, Err: err}
}

// unreviewed returns a finding about a right that could not be checked.
func unreviewed(object string, err error) Finding {
	return unknown(object, err, "let this account create selfsubjectaccessreviews.authorization.k8s.io, "+
		"as ClusterRole system:basic-user does for every account")
}
