// SPDX-License-Identifier: Apache-2.0

package preflight

import (
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
}

// String returns the finding in one line.
func (f Finding) String() string {
	return fmt.Sprintf("%s %s. To fix it: %s", f.Object, f.Problem, f.Remedy)
}

// Print writes one line for each finding, or that there is none.
func Print(w io.Writer, namespace string, findings []Finding) error {
	if len(findings) == 0 {
		_, err := fmt.Fprintf(w, "Nothing is wrong with the installation in namespace %s.\n", namespace)
		return err
	}
	for _, f := range findings {
		if _, err := fmt.Fprintln(w, f); err != nil {
			return err
		}
	}
	return nil
}

// unknown returns a finding about what could not be checked, and why.
func unknown(object string, err error, remedy string) Finding {
	return Finding{Object: object, Problem: fmt.Sprintf("could not be checked: %v", err), Remedy: remedy}
}
