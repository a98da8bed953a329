// SPDX-License-Identifier: Apache-2.0

package gitlab

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"

	gl "github.com/xanzy/go-gitlab"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/pkg/provider"
	"github.com/plumbline-ci/plumbline/pkg/provider/text"
	"github.com/plumbline-ci/plumbline/pkg/status"
)

const (
	notePrefix = "note/"
	// maxNote is the characters of a note (https://docs.gitlab.com/api/notes/).
	maxNote    = 1_000_000
	noteCutOff = "\n\n… (cut: longer than GitLab allows)"
)

// marks are what the first line of a note says of itself, unseen by people: of which check it is, of which run, and
// whether that one has ended.
type marks struct {
	check, run string
	ended      bool
}

func marksOf(c status.Check) marks {
	return marks{check: digest(c.Name), run: digest(c.ExternalID), ended: c.State == status.Completed}
}

// digest holds nothing that could end an HTML comment.
func digest(s string) string {
	sum := sha256.Sum256([]byte(s))
	return hex.EncodeToString(sum[:16])
}

func (m marks) String() string {
	return "<!-- plumbline check:" + m.check + " run:" + m.run + " ended:" + strconv.FormatBool(m.ended) + " -->"
}

var markPattern = regexp.MustCompile(`^<!-- plumbline check:([0-9a-f]{32}) run:([0-9a-f]{32}) ended:(true|false) -->`)

func readMarks(body string) (marks, bool) {
	found := markPattern.FindStringSubmatch(body)
	if found == nil {
		return marks{}, false
	}
	return marks{check: found[1], run: found[2], ended: found[3] == "true"}, true
}

// putNote tells the verdict in the merge request, where the fork takes no status: in one note a check, which is found by
// its marks and changed in place, whichever run it is of. The rules are those of statuses: what is late changes nothing,
// and a run whose note a newer one has taken leaves it alone.
func (r *repository) putNote(ctx context.Context, pr *v1alpha1.PullRequest, id string, check status.Check) (string, error) {
	want := marksOf(check)
	note, have, err := r.findNote(ctx, int(pr.Number), want)
	if err != nil {
		return "", err
	}
	body := noteBody(want, check)
	if note == nil {
		return r.createNote(ctx, int(pr.Number), body)
	}
	shown := notePrefix + strconv.Itoa(note.ID)
	switch {
	case have.run == want.run && have.ended && !want.ended:
		return shown, nil
	case have.run != want.run && strings.HasPrefix(id, notePrefix):
		return shown, nil
	case strings.TrimSpace(note.Body) == strings.TrimSpace(body):
		return shown, nil
	}
	const what = "updating the note"
	_, _, err = r.client.Notes.UpdateMergeRequestNote(r.path, int(pr.Number), note.ID,
		&gl.UpdateMergeRequestNoteOptions{Body: &body}, gl.WithContext(ctx))
	if provider.StatusCode(err) == http.StatusNotFound {
		return "", fault.Transientf("NoteGone", "%s: it was deleted meanwhile", what)
	}
	if err != nil {
		return "", provider.Failed(what, err)
	}
	return shown, nil
}

// findNote returns the oldest note of the check that the token's own user wrote: marks can be copied by anybody.
func (r *repository) findNote(ctx context.Context, number int, want marks) (*gl.Note, marks, error) {
	const what = "looking the note up"
	me, _, err := r.client.Users.CurrentUser(gl.WithContext(ctx))
	if err != nil {
		return nil, marks{}, provider.Failed(what, err)
	}
	notes, err := list(ctx, what, func(page ...gl.RequestOptionFunc) ([]*gl.Note, *gl.Response, error) {
		return r.client.Notes.ListMergeRequestNotes(r.path, number, nil, page...)
	})
	if err != nil {
		return nil, marks{}, provider.Failed(what, err)
	}
	slices.SortFunc(notes, func(a, b *gl.Note) int { return cmp.Compare(a.ID, b.ID) })
	for _, note := range notes {
		have, found := readMarks(note.Body)
		if found && have.check == want.check && note.Author.ID == me.ID && me.ID > 0 {
			return note, have, nil
		}
	}
	return nil, marks{}, nil
}

func (r *repository) createNote(ctx context.Context, number int, body string) (string, error) {
	const what = "writing the note"
	note, _, err := r.client.Notes.CreateMergeRequestNote(r.path, number,
		&gl.CreateMergeRequestNoteOptions{Body: &body}, gl.WithContext(ctx))
	if err != nil {
		return "", provider.Failed(what, err)
	}
	if note.ID == 0 {
		f := fault.Transientf("BadAnswer", "%s: the answer holds no id", what)
		f.Unknown = true
		return "", f
	}
	return notePrefix + strconv.Itoa(note.ID), nil
}

// noteBody words a note as Pipelines-as-Code does (spec/compatibility.md 1.2).
func noteBody(m marks, c status.Check) string {
	body := m.String() + "\n**" + inert(text.OneLine(c.Name, maxField, text.Runes)) + "** has " + text.OneLine(c.Title, maxField, text.Runes)
	if c.Text != "" {
		body += "\n\n" + c.Text
	}
	link := ""
	if url := provider.DetailsURL(c.DetailsURL, maxNote); url != "" {
		link = "\n\n<small>Full log available [here](" + strings.NewReplacer("(", "%28", ")", "%29", " ", "%20").Replace(url) + ")</small>"
	}
	room := maxNote - len([]rune(link))
	return text.Markdown(commandPattern.ReplaceAllString(body, "$1\u200b/"), room, noteCutOff, text.Runes) + link
}

// commandPattern finds what GitLab would carry out: a line of a note that starts with a slash is a quick action
// (https://docs.gitlab.com/user/project/quick_actions/), and parts of a report are an author's words.
var commandPattern = regexp.MustCompile(`(?m)^([\s>]*)/`)

// inert keeps a pipeline's name from being markup or a mention of somebody.
func inert(words string) string {
	return strings.NewReplacer("@", "@\u200b", "<", "&lt;", "*", `\*`, "`", "\\`", "[", `\[`).Replace(words)
}
