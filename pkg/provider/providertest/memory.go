// SPDX-License-Identifier: Apache-2.0

package providertest

import (
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/pkg/flowcontrol/memory"
)

// testMemory: large answers reserve memory, and a lack of memory is not the service's fault.
func testMemory(t *testing.T, open func(*testing.T) Env) {
	w := open(t)
	sha := w.Service.Commit("main", map[string]string{"large.txt": strings.Repeat("x", 900<<10)})
	var mu sync.Mutex
	asked, refuse := 0, error(fault.Throttledf(fault.ReasonBusy, time.Minute, "the memory is taken by others"))
	ctx := memory.WithReserve(t.Context(), func(bytes int) error {
		mu.Lock()
		defer mu.Unlock()
		asked += bytes
		return refuse
	})
	client := connect(t, w)
	_, err := client.File(ctx, sha, "large.txt")
	if f := fault.Of(err); f == nil || f.Class != fault.Throttled || f.Reason != fault.ReasonBusy {
		t.Errorf("a file for which there is no memory: %v, want that it is retried", err)
	}
	asked, refuse = 0, nil
	if data, err := client.File(ctx, sha, "large.txt"); err != nil || len(data) != 900<<10 {
		t.Errorf("the service may be called again as soon as there is memory: %d bytes, %v", len(data), err)
	}
	if asked < 2*900<<10 {
		t.Errorf("memory for %d bytes was asked for, want twice the file", asked)
	}
	asked = 0
	if _, err := client.Files(ctx, sha, ".tekton"); err != nil || asked != 0 {
		t.Errorf("a small answer asked for %d bytes, %v", asked, err)
	}
}
