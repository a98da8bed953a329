// SPDX-License-Identifier: Apache-2.0

package gitlab

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"

	gl "github.com/xanzy/go-gitlab"

	"github.com/plumbline-ci/plumbline/pkg/provider"
	"github.com/plumbline-ci/plumbline/pkg/provider/text"
	"github.com/plumbline-ci/plumbline/pkg/status"
)

// maxField is the characters that a status' name, description, target_url and ref may have
// (https://docs.gitlab.com/api/commits/#set-the-pipeline-status-of-a-commit).
const maxField = 255

// maxExternalID is the characters of a run's name that a description ends with; longer ones are
// replaced by a digest.
const maxExternalID = 128

// wanted is a check in GitLab's terms and limits.
type wanted struct {
	name, description, url string
	state                  gl.BuildStateValue
	// mark ends the description of the run's statuses.
	mark string
	// former is the mark that the version before gave it, which may be the same.
	former string
	// onlyOpen is the check's.
	onlyOpen bool
}

func makeStatus(c status.Check) wanted {
	w := wanted{
		name:     text.OneLine(c.Name, maxField, text.Runes),
		state:    stateOf(c),
		mark:     markOf(c.ExternalID),
		onlyOpen: c.OnlyOpen,
	}
	if w.former = w.mark; c.Former != "" {
		w.former = markOf(c.Former)
	}
	w.url = provider.DetailsURL(c.DetailsURL, maxField)
	title := c.Title
	if c.Words != "" && w.url == "" {
		title += ": " + c.Words // nothing else shows what went wrong
	}
	title = text.OneLine(title, maxField-len([]rune(w.mark)), text.Runes)
	if title == "" {
		title = text.OneLine(c.Name, maxField-len([]rune(w.mark)), text.Runes)
	}
	w.description = title + w.mark
	return w
}

// markOf is how a description tells whose status it is, for people as well.
func markOf(externalID string) string {
	id := text.OneLine(externalID, maxField, text.Runes)
	if len(id) > maxExternalID || id != externalID {
		sum := sha256.Sum256([]byte(externalID))
		id = hex.EncodeToString(sum[:16])
	}
	return " (" + id + ")"
}

// stateOf names the states as GitLab does: queued is pending, cancelled has one l, and a failure
// has failed.
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

// among returns the run's own status, the newest of several.
func (w wanted) among(known []*gl.CommitStatus) *gl.CommitStatus {
	at := slices.IndexFunc(known, func(s *gl.CommitStatus) bool {
		return strings.HasSuffix(s.Description, w.mark) || strings.HasSuffix(s.Description, w.former)
	})
	if at < 0 {
		return nil
	}
	return known[at]
}

// late reports whether a report was overtaken by what is shown already (E6).
func (w wanted) late(shown *gl.CommitStatus) bool {
	switch w.state {
	case gl.Pending:
		return shown.Status != string(gl.Pending) && shown.Status != "created"
	case gl.Running:
		return !open(shown)
	}
	return w.onlyOpen && !open(shown)
}

// shown reports whether nothing is left to do.
func (w wanted) shown(s *gl.CommitStatus) bool {
	same := s.Status == string(w.state) || (w.state == gl.Skipped && s.Status == string(gl.Canceled))
	return same && s.Description == w.description && (w.url == "" || s.TargetURL == w.url)
}

// open reports whether a status has not ended.
func open(s *gl.CommitStatus) bool {
	return slices.Contains([]string{"created", "pending", "running"}, s.Status)
}
