// SPDX-License-Identifier: Apache-2.0

package github

import (
	"net/url"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/pkg/status"
)

// The sizes of a check run's texts (https://docs.github.com/rest/checks/runs#create-a-check-run: 65535 characters,
// which GitHub counts as bytes, https://github.com/github/docs/issues/35252). No size is documented for the others;
// 255 bytes is what its database columns for names and titles hold.
const (
	maxBody  = 65535
	maxTitle = 255
	maxURL   = 2048
)

// cutMark shows that a text was cut.
const cutMark = "\n\n… (cut: longer than GitHub allows)"

// checkRun is the body of POST and PATCH check-runs. go-github's own has no started_at for an update.
type checkRun struct {
	Name        string       `json:"name,omitempty"`
	HeadSHA     string       `json:"head_sha,omitempty"`
	ExternalID  string       `json:"external_id,omitempty"`
	DetailsURL  string       `json:"details_url,omitempty"`
	Status      string       `json:"status"`
	StartedAt   string       `json:"started_at,omitempty"`
	Conclusion  string       `json:"conclusion,omitempty"`
	CompletedAt string       `json:"completed_at,omitempty"`
	Output      *checkOutput `json:"output,omitempty"`
}

type checkOutput struct {
	Title   string `json:"title"`
	Summary string `json:"summary"`
	Text    string `json:"text"`
}

// makeCheckRun puts a check into GitHub's terms and limits.
func makeCheckRun(c status.Check) checkRun {
	return checkRun{
		Name:        checkName(c),
		ExternalID:  c.ExternalID,
		DetailsURL:  detailsURL(c.DetailsURL),
		Status:      string(c.State),
		StartedAt:   timestamp(c.StartedAt),
		Conclusion:  string(c.Conclusion),
		CompletedAt: timestamp(c.CompletedAt),
		Output:      makeOutput(c),
	}
}

func makeOutput(c status.Check) *checkOutput {
	heading := oneLine(c.Title)
	if heading == "" {
		heading = checkName(c)
	}
	summary := cutMarkdown(c.Summary)
	if strings.TrimSpace(summary) == "" {
		summary = heading
	}
	return &checkOutput{Title: heading, Summary: summary, Text: cutMarkdown(c.Text)}
}

// superseded closes a duplicate (I-8).
func superseded() checkRun {
	return checkRun{
		Status: string(status.Completed), Conclusion: string(status.Cancelled),
		Output: &checkOutput{Title: "Superseded", Summary: "Another check of the same name reports on this commit."},
	}
}

// checkName is the name as it is sent and looked up.
func checkName(c status.Check) string { return oneLine(c.Name) }

// checkCheck refuses what would make GitHub conclude something else than what was meant.
func checkCheck(c status.Check) error {
	concluded := []status.Conclusion{status.Success, status.Failure, status.Cancelled, status.Skipped}
	switch {
	case checkName(c) == "" || c.ExternalID == "":
		return fault.Operatorf("BadCheck", "a check without name or external id is a defect of Plumbline")
	case c.State == status.Completed && !slices.Contains(concluded, c.Conclusion):
		return fault.Operatorf("BadCheck", "a completed check with conclusion %q is a defect of Plumbline", c.Conclusion)
	case c.State != status.Completed && c.Conclusion != "":
		return fault.Operatorf("BadCheck", "a check that is %q with a conclusion is a defect of Plumbline", c.State)
	}
	return nil
}

func timestamp(t *metav1.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(time.RFC3339)
}

// detailsURL drops what GitHub would refuse, and with it the whole check.
func detailsURL(raw string) string {
	u, err := url.Parse(raw)
	if err != nil || (u.Scheme != "https" && u.Scheme != "http") || u.Host == "" || len(raw) > maxURL {
		return ""
	}
	return raw
}

// oneLine makes one line of at most maxTitle bytes.
func oneLine(s string) string {
	const mark = "…"
	s = strings.Join(strings.Fields(clean(s)), " ")
	if len(s) <= maxTitle {
		return s
	}
	return boundary(s, maxTitle-len(mark)) + mark
}

// clean makes valid UTF-8 without NUL, which neither JSON decoders nor databases are sure to keep.
func clean(s string) string {
	return strings.ReplaceAll(strings.ToValidUTF8(s, "\uFFFD"), "\x00", "\uFFFD")
}

// cutMarkdown shortens s to at most maxBody bytes and says so. A code fence that it cuts open is closed, so that the
// mark is seen as text.
func cutMarkdown(s string) string {
	const fence = "\n```"
	s = clean(s)
	if len(s) <= maxBody {
		return s
	}
	s = boundary(s, maxBody-len(cutMark)-len(fence))
	if strings.Count("\n"+s, fence)%2 == 1 {
		s += fence
	}
	return s + cutMark
}

// boundary is the longest start of s that has at most limit bytes and ends with a whole character.
func boundary(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	for limit > 0 && !utf8.RuneStart(s[limit]) {
		limit--
	}
	return s[:limit]
}
