// SPDX-License-Identifier: Apache-2.0

package github

import (
	"strings"
	"time"

	gh "github.com/google/go-github/v60/github"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-ci/plumbline/pkg/provider"
	"github.com/plumbline-ci/plumbline/pkg/status"
	"github.com/plumbline-ci/plumbline/pkg/status/text"
)

// The maximum sizes of a check run's texts
// (https://docs.github.com/rest/checks/runs#create-a-check-run: 65535 characters, which GitHub
// counts as bytes, https://github.com/github/docs/issues/35252). The others are not documented; 255
// bytes is what GitHub's database columns for names and titles hold.
const (
	maxBody  = 65535
	maxTitle = 255
	maxURL   = 2048
)

// cutMark shows that a text was cut.
const cutMark = "\n\n… (cut: longer than GitHub allows)"

// checkRun is the body of POST and PATCH check-runs. go-github's type has no started_at for an
// update.
type checkRun struct {
	Name        string       `json:"name,omitempty"`
	HeadSHA     string       `json:"head_sha,omitempty"`
	ExternalID  string       `json:"external_id,omitempty"`
	DetailsURL  string       `json:"details_url,omitempty"`
	Status      string       `json:"status,omitempty"`
	StartedAt   string       `json:"started_at,omitempty"`
	Conclusion  string       `json:"conclusion,omitempty"`
	CompletedAt string       `json:"completed_at,omitempty"`
	Output      *checkOutput `json:"output,omitempty"`
}

type checkOutput struct {
	Title   string `json:"title"`
	Summary string `json:"summary"`
	Text    string `json:"text"`
	// Annotations are added to those that the check run has.
	Annotations []*gh.CheckRunAnnotation `json:"annotations,omitempty"`
}

// makeCheckRun converts a check to GitHub's terms and limits.
func makeCheckRun(c status.Check) checkRun {
	return checkRun{
		Name:        checkName(c),
		ExternalID:  c.ExternalID,
		DetailsURL:  provider.DetailsURL(c.DetailsURL, maxURL),
		Status:      string(c.State),
		StartedAt:   timestamp(c.StartedAt),
		Conclusion:  string(c.Conclusion),
		CompletedAt: timestamp(c.CompletedAt),
		Output:      makeOutput(c),
	}
}

func makeOutput(c status.Check) *checkOutput {
	heading := text.OneLine(c.Title, maxTitle, text.Bytes)
	if heading == "" {
		heading = checkName(c)
	}
	summary := text.Markdown(c.Summary, maxBody, cutMark, text.Bytes)
	if strings.TrimSpace(summary) == "" {
		summary = heading
	}
	return &checkOutput{Title: heading, Summary: summary, Text: text.Markdown(c.Text, maxBody, cutMark, text.Bytes)}
}

// superseded returns what closes a duplicate (I-8).
func superseded() checkRun {
	return checkRun{
		Status: string(status.Completed), Conclusion: string(status.Cancelled),
		Output: &checkOutput{Title: "Superseded", Summary: "Another check of the same name reports on this commit."},
	}
}

// checkName returns the name as it is sent and looked up.
func checkName(c status.Check) string { return text.OneLine(c.Name, maxTitle, text.Bytes) }

func timestamp(t *metav1.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(time.RFC3339)
}
