// SPDX-License-Identifier: Apache-2.0

package preflight

import (
	"fmt"
	"io"
)

// Finding is one thing that is wrong with an installation.
type Finding struct {
	// Object is what it is about, for example "Secret plumbline/plumbline-github-app".
	Object string
	// Problem completes the sentence that begins with Object. It never holds a Secret's value.
	Problem string
	// Remedy is what to do, a command where there is one.
	Remedy string
	// Fatal: Plumbline must not run until it is mended.
	Fatal bool
}

// String is the finding in one line.
func (f Finding) String() string {
	return fmt.Sprintf("%s %s. To mend it: %s", f.Object, f.Problem, f.Remedy)
}

// Print writes one finding a line, or that there is none.
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

// unknown is what could not be looked at, and why.
func unknown(object string, err error, remedy string) Finding {
	return Finding{Object: object, Problem: fmt.Sprintf("could not be checked: %v", err), Remedy: remedy}
}
