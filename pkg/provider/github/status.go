// SPDX-License-Identifier: Apache-2.0

package github

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"math"
	"net/http"
	"slices"
	"strings"

	gh "github.com/google/go-github/v60/github"

	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/pkg/git"
	"github.com/plumbline-ci/plumbline/pkg/provider"
	"github.com/plumbline-ci/plumbline/pkg/status"
	"github.com/plumbline-ci/plumbline/pkg/status/text"
)

const (
	// maxDescription is the maximum number of characters of a status' description, according to
	// GitHub's error for a longer one.
	maxDescription = 140
	// maxMark is the maximum number of characters of a run's name at the end of a description; a
	// longer one is replaced by a digest. Kubernetes' names of pods have as many.
	maxMark = 63
)

// Put shows the check as a commit status. Its id is that of the run's first status: GitHub changes
// no status, and shows the newest of a context.
//
// So the newest run wins, and later reports of a replaced run are dropped (I-8). A status belongs
// to a run if its description ends with the run's name, because GitHub stores nothing else that
// identifies it. A finished status is never reopened (I-7). The statuses of the commit are looked
// up each time: another event may have posted one of this context.
func (w *withToken) Put(ctx context.Context, head git.Head, _ string, check status.Check, _ bool) (string, error) {
	want := makeStatus(check, check.ExternalID)
	if err := provider.ValidateCheck(want.GetContext(), check); err != nil {
		return "", err
	}
	if err := provider.CheckSHA(head.SHA); err != nil {
		return "", err
	}
	known, err := w.statuses(ctx, head.SHA, want.GetContext())
	if err != nil {
		return "", err
	}
	mine := slices.DeleteFunc(slices.Clone(known), func(s *gh.RepoStatus) bool {
		return !hasMark(s, check.ExternalID) && !hasMark(s, check.FormerExternalID)
	})
	if len(mine) > 0 {
		return w.putNext(ctx, head.SHA, check, known, mine)
	}
	if check.Adopted && leftOpen(known) {
		return w.post(ctx, head.SHA, want)
	}
	if check.OnlyOpen || check.Yields && len(known) > 0 {
		return "", nil
	}
	return w.post(ctx, head.SHA, want)
}

// leftOpen reports whether the status that GitHub shows is one that Pipelines-as-Code has left
// pending.
func leftOpen(known []*gh.RepoStatus) bool {
	return len(known) > 0 && known[0].GetState() == statePending && !ofRun(known[0])
}

// putNext posts a status of a run that has some, mine, among the known ones of the context, newest
// first. It returns the id of the run's oldest.
func (w *withToken) putNext(
	ctx context.Context, sha string, check status.Check, known, mine []*gh.RepoStatus,
) (string, error) {
	want := makeStatus(check, check.ExternalID)
	id, newest := format(mine[len(mine)-1].GetID()), mine[0]
	if !hasMark(newest, check.ExternalID) {
		want = makeStatus(check, check.FormerExternalID)
	}
	replaced := slices.ContainsFunc(known[:slices.Index(known, newest)], ofRun)
	ended := newest.GetState() != statePending
	late := ended && (check.State != status.Completed || check.OnlyOpen)
	if replaced || late || shows(newest, want) {
		return id, nil
	}
	if _, err := w.post(ctx, sha, want); err != nil {
		return "", err
	}
	return id, nil
}

// statuses lists the statuses of a commit with this context, newest first. GitHub ignores the case
// of contexts (https://docs.github.com/rest/commits/statuses#create-a-commit-status).
func (w *withToken) statuses(ctx context.Context, sha, named string) (all []*gh.RepoStatus, err error) {
	const what = "looking the status up"
	opts := &gh.ListOptions{PerPage: perPage}
	ctx = provider.Pages(ctx)
	for range maxPages {
		part, resp, err := w.client.Repositories.ListStatuses(ctx, w.owner, w.name, sha, opts)
		if err != nil {
			return nil, w.unavailable(ctx, what, sha, err)
		}
		if part == nil {
			return nil, noAnswer(what)
		}
		for _, one := range part {
			switch {
			case one.GetID() <= 0 || one.GetState() == "":
				return nil, noAnswer(what) // if it were ours, a second one would be posted
			case strings.EqualFold(one.GetContext(), named):
				all = append(all, one)
			}
		}
		if opts.Page = resp.NextPage; opts.Page == 0 {
			slices.SortFunc(all, func(a, b *gh.RepoStatus) int { return cmp.Compare(b.GetID(), a.GetID()) })
			return all, nil
		}
	}
	return nil, fault.Operatorf(reasonTooMany, "%s: GitHub lists more than %d of the commit", what, maxPages*perPage)
}

func (w *withToken) post(ctx context.Context, sha string, want *gh.RepoStatus) (string, error) {
	const what = "setting the status"
	made, _, err := w.client.Repositories.CreateStatus(ctx, w.owner, w.name, sha, want)
	if err != nil {
		return "", w.refusedStatus(ctx, what, err)
	}
	if made.GetID() == 0 {
		// It was accepted, but its id is unknown: the next attempt looks it up.
		f := fault.Transientf(provider.ReasonBadAnswer, "%s: the answer holds no id", what)
		f.Unknown = true
		return "", f
	}
	return format(made.GetID()), nil
}

// refusedStatus returns the fault of a refused status. GitHub answers 404 if the token may read the
// repository and not set a status.
func (w *withToken) refusedStatus(ctx context.Context, what string, err error) error {
	switch provider.StatusCode(err) {
	case http.StatusNotFound:
		if err := w.readable(ctx); err != nil {
			return wrapf(what, err)
		}
		return fault.Operatorf(fault.ReasonPermissionMissing, "%s: GitHub does not let the token set a commit status: "+
			"it needs the permission Commit statuses: write (or the scope repo:status), and its user write access", what)
	case http.StatusUnprocessableEntity:
		if f := fault.Of(err); strings.Contains(f.Message, "maximum number of statuses") {
			return fault.Operatorf(fault.ReasonGitRejected,
				"%s: GitHub takes no more than 1,000 statuses of one context on a commit: push another commit", what)
		}
	}
	return refusedCheck(what, err)
}

// The states of a status. GitHub has no others.
const (
	statePending = "pending"
	stateSuccess = "success"
	stateFailure = "failure"
	stateError   = "error"
)

// stateOf returns GitHub's name of a state. A skipped check counts as passed for GitHub's required
// checks, so a skipped status is a success, and its description says that it was skipped. A
// cancelled run has neither passed nor failed.
func stateOf(c status.Check) string {
	switch {
	case c.State != status.Completed:
		return statePending
	case c.Conclusion == status.Success, c.Conclusion == status.Skipped:
		return stateSuccess
	case c.Conclusion == status.Failure:
		return stateFailure
	}
	return stateError
}

// makeStatus converts a check to a status of a run in GitHub's limits.
func makeStatus(c status.Check, externalID string) *gh.RepoStatus {
	mark := markOf(externalID)
	name, title := checkName(c), c.Title
	url := provider.DetailsURL(c.DetailsURL, maxURL)
	if c.Words != "" && url == "" {
		title += ": " + c.Words // no other field shows what went wrong
	}
	if c.LogLine != "" {
		title += " – " + c.LogLine
	}
	title = cmp.Or(shorten(title, mark), shorten(name, mark))
	want := &gh.RepoStatus{State: gh.String(stateOf(c)), Context: &name, Description: gh.String(title + mark)}
	if url != "" {
		want.TargetURL = &url
	}
	return want
}

// shorten returns a title that fits before the mark. It has no characters above U+FFFF, such as
// emoji: GitHub refuses a description with one.
func shorten(title, mark string) string {
	title = strings.Map(func(r rune) rune {
		if r > math.MaxUint16 {
			return -1
		}
		return r
	}, title)
	return text.OneLine(title, maxDescription-len([]rune(mark)), text.Runes)
}

// markOf returns the end of a description, which shows people and programs the run of a status.
func markOf(externalID string) string {
	id := text.OneLine(externalID, maxMark, text.Runes)
	if id != externalID {
		sum := sha256.Sum256([]byte(externalID))
		id = hex.EncodeToString(sum[:16])
	}
	return fmt.Sprintf(" (%s)", id)
}

// hasMark reports whether a status is of the run with this external id.
func hasMark(s *gh.RepoStatus, externalID string) bool {
	return externalID != "" && strings.HasSuffix(s.GetDescription(), markOf(externalID))
}

// ofRun reports whether a status is of any run: other products end no description with a bracket.
func ofRun(s *gh.RepoStatus) bool { return strings.HasSuffix(s.GetDescription(), ")") }

// shows reports whether a status is already what is wanted.
func shows(s, want *gh.RepoStatus) bool {
	return s.GetState() == want.GetState() && s.GetDescription() == want.GetDescription() &&
		s.GetTargetURL() == want.GetTargetURL()
}
