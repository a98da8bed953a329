// SPDX-License-Identifier: Apache-2.0

package provider

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// A panic while one file of a directory is read reaches the caller, which may recover. It does not
// end the process.
func TestReadFilesPanicReachesCaller(t *testing.T) {
	t.Parallel()
	defer func() {
		if text, ok := recover().(string); !ok || !strings.HasPrefix(text, "poison") {
			t.Errorf("recovered %v", text)
		}
	}()
	_, err := ReadFiles(t.Context(), ".tekton", []string{"a.yaml", "b.yaml"},
		func(context.Context, string) ([]byte, error) { panic("poison") })
	t.Errorf("returned %v", err)
}

// Of two files that cannot be read the error names the first by path, although its read ends later.
func TestReadFilesReturnsTheErrorOfTheFirstPath(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		_, err := ReadFiles(t.Context(), ".tekton", []string{"b.yaml", "a.yaml"},
			func(ctx context.Context, name string) ([]byte, error) {
				if name == "a.yaml" {
					select {
					case <-time.After(time.Second):
					case <-ctx.Done():
					}
				}
				return nil, errors.New(name + " is broken")
			})
		if err == nil || err.Error() != "reading .tekton: a.yaml is broken" {
			t.Errorf("got %v", err)
		}
	})
}
