// SPDX-License-Identifier: Apache-2.0

package delivery

import (
	"strings"
	"testing"

	"github.com/plumbline-ci/plumbline/pkg/fault"
)

// A push of 24 MiB costs only what is read of it, in addition to the body itself.
func TestDecodeOfLargePushIsCheap(t *testing.T) {
	const sha = "1111111111111111111111111111111111111111"
	head := `{"object_kind":"push","ref":"refs/heads/main","before":"` + sha + `","after":"` + sha + `","checkout_sha":"` +
		sha + `","user_username":"u","project_id":1,` +
		`"project":{"id":1,"path_with_namespace":"a/b","web_url":"https://gitlab.example/a/b","default_branch":"main"},"commits":[`
	commit := `{"id":"` + sha + `","message":"the title","url":"https://gitlab.example/c"}`
	for name, filler := range map[string]string{"objects": "{},", "ids": `{"id":"x"},`, "numbers": "0,", "lists": "[],"} {
		t.Run(name, func(t *testing.T) {
			body := []byte(head + strings.Repeat(filler, 24<<20/len(filler)) + commit + "]}")
			allocated := testing.Benchmark(func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					spec, err := decodePush(eventPush, body)
					if err != nil || spec.Commit == nil || spec.Commit.Title != "the title" {
						b.Fatal(spec, err)
					}
				}
			})
			if got := allocated.AllocedBytesPerOp(); got > 1<<20 && name != "ids" { // each id is read once, and forgotten
				t.Errorf("%d bytes are allocated", got)
			}
		})
	}
	if _, err := decodeMergeRequest([]byte(`{"labels":[` + strings.Repeat("{},", 100_000) + `{}]}`)); !fault.Is(err,
		fault.Invalid) {
		t.Errorf("a merge request with 100,000 labels: %v, want Invalid", err)
	}
}
