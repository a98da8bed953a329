// SPDX-License-Identifier: Apache-2.0

package provider

import (
	"context"
	"strings"
	"testing"
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
