// SPDX-License-Identifier: Apache-2.0

package status

import (
	"strings"
	"testing"
)

func TestResultComment(t *testing.T) {
	t.Parallel()
	check := Check{
		Name: "CI / build <b>", Title: "Failed @octocat", Summary: "CI/build has <b>failed</b>.", Text: "<ul></ul>\n",
		DetailsURL: "https://console/run(1)",
	}
	got := Result(check, strings.Repeat("1a2b", 10))
	golden(t, "result", got)
	if !strings.HasPrefix(got, ResultMark(check)) || ResultMark(check) == ResultMark(Check{Name: "CI / other"}) {
		t.Errorf("the mark of %s", got)
	}
}
