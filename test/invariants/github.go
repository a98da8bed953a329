// SPDX-License-Identifier: Apache-2.0

package invariants

import (
	"slices"
	"strconv"

	"github.com/plumbline-ci/plumbline/test/forge"
)

// GitHub is a Service.
type GitHub struct{ *forge.GitHub }

// Deliveries implements Service.
func (g GitHub) Deliveries() (all []Delivery) {
	for _, d := range g.GitHub.Deliveries() {
		all = append(all, Delivery{Key: d.GUID, Code: d.StatusCode, At: d.At, Took: d.Duration})
	}
	return all
}

// Checks implements Service: in all repositories where something was written about the commit.
func (g GitHub) Checks(sha string) (all []Check) {
	var repos []string
	for _, w := range g.GitHub.Writes() {
		if w.HeadSHA == sha && !slices.Contains(repos, w.Repo) {
			repos = append(repos, w.Repo)
		}
	}
	for _, repo := range repos {
		all = append(all, GitHubChecks(g.ChecksFor(repo, sha))...)
	}
	return all
}

// GitHubChecks converts check runs to Checks.
func GitHubChecks(runs []forge.CheckRun) (all []Check) {
	for _, run := range runs {
		all = append(all, Check{
			ID: strconv.FormatInt(run.ID, 10), Number: run.ID, Name: run.Name, ExternalID: run.ExternalID,
			Status: run.Status, Conclusion: run.Conclusion, Title: run.Title, Summary: run.Summary, Text: run.Text,
			DetailsURL: run.DetailsURL, Replaced: run.Conclusion == "cancelled" && run.Title == "Superseded",
		})
	}
	return all
}

// Writes implements Service.
func (g GitHub) Writes() (all []Write) {
	for _, w := range g.GitHub.Writes() {
		said := Write{
			N: w.N, At: w.Time, SHA: w.HeadSHA, Name: w.Name, Repository: w.Repo, ExternalID: w.ExternalID,
			Status:     w.CheckStatus,
			Conclusion: w.Conclusion, Title: w.Title, Body: w.Body, Applied: w.Applied,
			Creates: w.Route == forge.RouteCheckCreate,
		}
		if w.CheckRunID != 0 {
			said.Check = strconv.FormatInt(w.CheckRunID, 10)
		}
		all = append(all, said)
	}
	return all
}
