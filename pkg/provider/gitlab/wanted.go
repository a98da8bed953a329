// SPDX-License-Identifier: Apache-2.0

package gitlab

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"

	gl "github.com/xanzy/go-gitlab"

	"github.com/plumbline-ci/plumbline/pkg/provider"
	"github.com/plumbline-ci/plumbline/pkg/status"
	"github.com/plumbline-ci/plumbline/pkg/status/text"
)

// maxField is the maximum number of characters of a status' name, description, target_url and ref
// (https://docs.gitlab.com/api/commits/#set-the-pipeline-status-of-a-commit).
const maxField = 255

// maxExternalID is the maximum number of characters of a run's name at the end of a description; a
// longer one is replaced by a digest.
const maxExternalID = 128

// wanted is a check in GitLab's terms and limits.
type wanted struct {
	name, description, url string
	state                  gl.BuildStateValue
	// mark is the end of the description of the run's statuses.
	mark string
	// former is the mark that the previous version used, which may be the same.
	former string
	// onlyOpen, adopted and yields are the check's OnlyOpen, Adopted and Yields.
	onlyOpen, adopted, yields bool
}

func makeStatus(c status.Check) wanted {
	w := wanted{
		name:     text.OneLine(c.Name, maxField, text.Runes),
		state:    stateOf(c),
		mark:     markOf(c.ExternalID),
		onlyOpen: c.OnlyOpen,
		adopted:  c.Adopted,
		yields:   c.Yields,
	}
	if w.former = w.mark; c.FormerExternalID != "" {
		w.former = markOf(c.FormerExternalID)
	}
	w.url = provider.DetailsURL(c.DetailsURL, maxField)
	title := c.Title
	if c.Words != "" && w.url == "" {
		title += ": " + c.Words // no other field shows what went wrong
	}
	if c.LogLine != "" {
		title += " – " + c.LogLine
	}
	title = text.OneLine(title, maxField-len([]rune(w.mark)), text.Runes)
	if title == "" {
		title = text.OneLine(c.Name, maxField-len([]rune(w.mark)), text.Runes)
	}
	w.description = title + w.mark
	return w
}

// markOf returns the end of a description, which shows people and programs the run of a status.
func markOf(externalID string) string {
	id := text.OneLine(externalID, maxField, text.Runes)
	if len(id) > maxExternalID || id != externalID {
		sum := sha256.Sum256([]byte(externalID))
		id = hex.EncodeToString(sum[:16])
	}
	return " (" + id + ")"
}

// stateOf returns GitLab's name of a state: queued is pending, cancelled has one l, and failure is
// failed.
func stateOf(c status.Check) gl.BuildStateValue {
	switch {
	case c.State == status.Queued:
		return gl.Pending
	case c.State == status.InProgress:
		return gl.Running
	case c.Conclusion == status.Success:
		return gl.Success
	case c.Conclusion == status.Failure:
		return gl.Failed
	case c.Conclusion == status.Skipped:
		return gl.Skipped
	}
	return gl.Canceled
}

// among returns the run's own status, the newest if there are several.
func (w wanted) among(known []*gl.CommitStatus) *gl.CommitStatus {
	at := slices.IndexFunc(known, func(s *gl.CommitStatus) bool {
		return strings.HasSuffix(s.Description, w.mark) || strings.HasSuffix(s.Description, w.former)
	})
	if at < 0 {
		return nil
	}
	return known[at]
}

// late reports whether this report is older than what is shown (E6).
func (w wanted) late(shown *gl.CommitStatus) bool {
	switch w.state {
	case gl.Pending:
		return shown.Status != string(gl.Pending) && shown.Status != "created"
	case gl.Running:
		return !open(shown)
	}
	return w.onlyOpen && !open(shown)
}

// shown reports whether the status is already shown.
func (w wanted) shown(s *gl.CommitStatus) bool {
	same := s.Status == string(w.state) || (w.state == gl.Skipped && s.Status == string(gl.Canceled))
	return same && s.Description == w.description && (w.url == "" || s.TargetURL == w.url)
}

// open reports whether a status is pending.
func open(s *gl.CommitStatus) bool {
	return slices.Contains([]string{"created", "pending", "running"}, s.Status)
}
