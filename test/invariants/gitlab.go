// SPDX-License-Identifier: Apache-2.0

package invariants

import (
	"cmp"
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/plumbline-ci/plumbline/test/forge/gitlab"
)

// GitLab is a Service: the state of a GitLab in GitHub's words.
type GitLab struct {
	*gitlab.GitLab
	// Project is the full path of the project, Bot the user whose token Plumbline has.
	Project, Bot string
	// Heads are the commits of merge requests, as they were opened.
	Heads map[int64]string
}

// Deliveries implements Service.
func (g GitLab) Deliveries() (all []Delivery) {
	for _, d := range g.GitLab.Deliveries() {
		all = append(all, Delivery{Key: d.Key, Code: d.StatusCode, At: d.At, Took: d.Duration})
	}
	return all
}

// Checks implements Service.
func (g GitLab) Checks(sha string) (all []Check) {
	_ = g.WaitFor(context.Background(), func(s *gitlab.State) bool { // read at one moment; it never waits
		all = g.Shown(s, sha)
		return true
	})
	return all
}

// Shown returns the statuses of a commit in the project and in all forks that have it, and the
// notes about it.
func (g GitLab) Shown(s *gitlab.State, sha string) (all []Check) {
	projects := []string{g.Project}
	for _, w := range s.Writes() {
		if w.SHA == sha && w.Project != "" && !slices.Contains(projects, w.Project) {
			projects = append(projects, w.Project)
		}
	}
	for _, project := range projects {
		for _, status := range s.StatusesFor(project, sha) {
			all = append(all, gitlabCheck(status))
		}
	}
	for iid, head := range g.Heads {
		if head != sha {
			continue
		}
		for _, note := range s.Notes(g.Project, iid, false) {
			if told, isCheck := checkOfNote(note.Body); isCheck && note.Author == g.Bot {
				told.ID, told.Number = fmt.Sprintf("note/%d", note.ID), note.ID
				all = append(all, told)
			}
		}
	}
	slices.SortFunc(all, func(a, b Check) int { return cmp.Compare(a.Number, b.Number) })
	return all
}

// noteOfCheck are a note's marks, the check's name and its title.
var noteOfCheck = regexp.MustCompile(
	`^<!-- plumbline check:\w+ run:(\w+) commit:\w+ ended:(\w+) -->\n\*\*(.*)\*\* has (.*)`)

// checkOfNote reads a note by its title, as a user does. The note has only a digest of the run.
func checkOfNote(body string) (Check, bool) {
	found := noteOfCheck.FindStringSubmatch(body)
	if found == nil {
		return Check{}, false
	}
	c := Check{
		ExternalID: digested + found[1], Name: found[3], Title: found[4], Summary: body, Text: body, Status: "in_progress",
	}
	switch {
	case found[2] == "true":
		c.Status = "completed"
		head, _, _ := strings.Cut(c.Title, ":")
		c.Conclusion = map[string]string{
			"Success": "success", "Failed": "failure", "Cluster problem": "failure", "Not started": "failure",
			"CI Skipped": "skipped", "Decided": "skipped",
		}[head]
		c.Conclusion = cmp.Or(c.Conclusion, "cancelled")
	case c.Title != "CI has Started":
		c.Status = "queued"
	}
	return c, true
}

func gitlabCheck(s gitlab.CommitStatus) Check {
	state, conclusion := inGitHubsWords(s.State)
	return Check{
		ID: fmt.Sprintf("%d/%d", s.PipelineID, s.ID), Number: s.ID, Name: s.Name, ExternalID: markOf(s.Description),
		Status: state, Conclusion: conclusion, Title: s.Description, Summary: s.Description, Text: s.Description,
		DetailsURL: s.TargetURL, Replaced: s.Retried, Line: true,
	}
}

func inGitHubsWords(state string) (status, conclusion string) {
	switch state {
	case "pending":
		return "queued", ""
	case "running":
		return "in_progress", ""
	case "failed":
		return "completed", "failure"
	case "canceled":
		return "completed", "cancelled"
	}
	return "completed", state
}

// markOf returns the owner of a status: the text in brackets at its end.
func markOf(description string) string {
	at := strings.LastIndex(description, " (")
	if at < 0 || !strings.HasSuffix(description, ")") {
		return ""
	}
	return description[at+2 : len(description)-1]
}

// Writes implements Service.
func (g GitLab) Writes() (all []Write) {
	open := map[string]int64{} // the status of a name that has not ended
	of := map[int64]string{}   // whose a status is
	for _, w := range g.GitLab.Writes() {
		said := Write{
			N: w.N, At: w.Time, SHA: w.SHA, Name: w.Name, Repository: w.Project, Title: cmp.Or(w.Description, w.Note),
			Body: w.Body, Applied: w.Applied,
		}
		if w.Route == gitlab.RouteStatusCreate {
			name := w.Project + " " + w.SHA + " " + w.Name
			said.Status, said.Conclusion = inGitHubsWords(w.State)
			said.Creates = open[name] == 0
			said.ExternalID = cmp.Or(markOf(w.Description), of[w.StatusID])
			if w.Applied {
				of[w.StatusID] = said.ExternalID
				// A late report would not change a status that has ended but make another one:
				// people see it opened again.
				said.Check = name + " " + said.ExternalID
				open[name] = w.StatusID
				if said.Conclusion != "" {
					open[name] = 0
				}
			}
		}
		if told, isCheck := checkOfNote(w.Note); isCheck {
			said.SHA, said.Name, said.ExternalID = g.Heads[w.MergeRequest], told.Name, told.ExternalID
			said.Status, said.Conclusion, said.Creates = told.Status, told.Conclusion, w.Route == gitlab.RouteNoteCreate
			said.Check = fmt.Sprintf("note/%d %s", w.NoteID, told.ExternalID) // one note is for all runs
		}
		all = append(all, said)
	}
	return all
}
