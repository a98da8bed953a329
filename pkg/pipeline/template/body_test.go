// SPDX-License-Identifier: Apache-2.0

package template

import (
	"strings"
	"testing"

	"github.com/plumbline-ci/plumbline/pkg/fault"
)

func TestABodyThatWouldTakeTooMuchMemoryIsRefusedBeforeItIsDecoded(t *testing.T) {
	commit := `{"id":"x","author":{"name":"a","email":"b"},"committer":{"name":"a","email":"b"},"added":["a","b"],"removed":[],"modified":["c"],"message":"m","url":"u"},`
	ordinary := []byte(`{"commits":[` + strings.Repeat(commit, 2048) + `{}],"text":"` + strings.Repeat("{},", 1<<20) +
		`"}`)
	if body, err := Body(ordinary); err != nil || len(body) != 2 {
		t.Errorf("the most commits that a push of GitHub names: %v", err)
	}
	if _, err := Body([]byte(`{"a":[` + strings.Repeat("{},", 8<<20) + `{}]}`)); fault.Of(err) == nil ||
		fault.Of(err).Reason != "PayloadTooLarge" {
		t.Errorf("24 MiB of empty objects: %v, want PayloadTooLarge", err)
	}
}
