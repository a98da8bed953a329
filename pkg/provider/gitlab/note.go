// SPDX-License-Identifier: Apache-2.0

package gitlab

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"

	gl "github.com/xanzy/go-gitlab"

	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/pkg/git"
	"github.com/plumbline-ci/plumbline/pkg/provider"
	"github.com/plumbline-ci/plumbline/pkg/provider/gitlab/api"
	"github.com/plumbline-ci/plumbline/pkg/provider/gitlab/delivery"
	"github.com/plumbline-ci/plumbline/pkg/status"
	"github.com/plumbline-ci/plumbline/pkg/status/text"
)

const (
	notePrefix = "note/"
	// maxNote is the maximum number of characters of a note (https://docs.gitlab.com/api/notes/).
	maxNote    = 1_000_000
	noteCutOff = "\n\n… (cut: longer than GitLab allows)"
)

// marks is the invisible first line of a note: its check, its run and commit, and whether the run
// is finished.
type marks struct {
	check, run, commit string
	ended              bool
}

func marksOf(sha string, c status.Check) marks {
	return marks{check: digest(c.Name), run: digest(c.ExternalID), commit: sha, ended: c.State == status.Completed}
}

// digest returns text that cannot end an HTML comment.
func digest(s string) string {
	sum := sha256.Sum256([]byte(s))
	return hex.EncodeToString(sum[:16])
}

func (m marks) String() string {
	return fmt.Sprintf("%s%s run:%s commit:%s ended:%t -->", delivery.OwnNote, m.check, m.run, m.commit, m.ended)
}

var markPattern = regexp.MustCompile(
	`^` + delivery.OwnNote + `([0-9a-f]{32}) run:([0-9a-f]{32}) commit:([0-9a-f]*) ended:(true|false) -->`,
)

func readMarks(body string) (marks, bool) {
	found := markPattern.FindStringSubmatch(body)
	if found == nil {
		return marks{}, false
	}
	return marks{check: found[1], run: found[2], commit: found[3], ended: found[4] == "true"}, true
}

// putNote shows the verdict on the merge request where the fork accepts no status. It writes one
// note for each check, finds it by its marks, and edits it, whichever run it is of. The rules are
// those of statuses: a late report changes nothing, and a run whose note belongs to a newer run
// leaves it alone. If there are several notes, because another process wrote one after our look-up,
// the oldest is kept. The id comes with an error if only a duplicate could not be deleted.
func (r *repository) putNote(ctx context.Context, head git.Head, id string, check status.Check) (string, error) {
	number, want := int(head.PullRequest.Number), marksOf(head.SHA, check)
	ours, err := r.ownNotes(ctx, number, want.check)
	if err != nil {
		return "", err
	}
	adoptFormer(ours, check, want.run)
	body := noteBody(want, check)
	if check.OnlyOpen && (len(ours) == 0 || ours[0].run != want.run || ours[0].ended) {
		return id, nil
	}
	if len(ours) == 0 {
		return r.createNote(ctx, number, body)
	}
	kept := ours[0]
	leave, err := r.keepsNote(ctx, number, want, kept.marks, strings.HasPrefix(id, notePrefix))
	if err == nil && !leave && strings.TrimSpace(kept.Body) != strings.TrimSpace(body) {
		err = r.updateNote(ctx, number, kept.ID, body)
	}
	if err != nil {
		return "", err // an id would mean that the run already had the note
	}
	return notePrefix + strconv.Itoa(kept.ID), r.deleteNotes(ctx, number, ours[1:])
}

// adoptFormer treats notes that the previous version wrote for the run as the run's.
func adoptFormer(ours []ownNote, check status.Check, run string) {
	if check.FormerExternalID == "" {
		return
	}
	for i := range ours {
		if ours[i].run == digest(check.FormerExternalID) {
			ours[i].run = run
		}
	}
}

// keepsNote reports whether a note must stay as it is, because the new report is older. Of two runs
// on a commit, the newer is the one that had no note yet. Of two commits, the newer is the merge
// request's current head.
func (r *repository) keepsNote(ctx context.Context, number int, want, have marks, had bool) (bool, error) {
	switch {
	case have.run == want.run:
		return have.ended && !want.ended, nil
	case have.commit == want.commit:
		return had, nil
	}
	mr, err := r.mergeRequest(ctx, "reading the merge request's head", number)
	if err != nil {
		return false, err
	}
	if !provider.IsSHA(mr.SHA) {
		return had, nil
	}
	return mr.SHA != want.commit, nil
}

func (r *repository) updateNote(ctx context.Context, number, id int, body string) error {
	const what = "updating the note"
	_, _, err := r.Client.Notes.UpdateMergeRequestNote(int(r.ID), number, id,
		&gl.UpdateMergeRequestNoteOptions{Body: &body}, gl.WithContext(ctx))
	if provider.StatusCode(err) == http.StatusNotFound {
		return fault.Transientf(reasonNoteGone, "%s: it was deleted meanwhile", what)
	}
	return provider.Failed(what, err)
}

// deleteNotes deletes duplicates. The author of a note may delete it
// (https://docs.gitlab.com/api/notes/).
func (r *repository) deleteNotes(ctx context.Context, number int, duplicates []ownNote) error {
	const what = "deleting a duplicate of the note"
	for _, note := range duplicates {
		_, err := r.Client.Notes.DeleteMergeRequestNote(int(r.ID), number, note.ID, gl.WithContext(ctx))
		if err != nil && provider.StatusCode(err) != http.StatusNotFound { // another process has deleted it
			return provider.Failed(what, err)
		}
	}
	return nil
}

// ownNote is a note by the token's own user, with its marks.
type ownNote struct {
	*gl.Note
	marks
}

// ownNotes returns the notes of a check, oldest first. Only notes by the token's own user count,
// because every user can copy the marks.
func (r *repository) ownNotes(ctx context.Context, number int, check string) (ours []ownNote, err error) {
	notes, err := r.myNotes(ctx, number)
	if err != nil {
		return nil, err
	}
	for _, note := range notes {
		if have, found := readMarks(note.Body); found && have.check == check {
			ours = append(ours, ownNote{note, have})
		}
	}
	return ours, nil
}

// myNotes returns all notes on a merge request by the token's own user, oldest first.
func (r *repository) myNotes(ctx context.Context, number int) ([]*gl.Note, error) {
	const what = "looking the note up"
	me, _, err := r.Client.Users.CurrentUser(gl.WithContext(ctx))
	if err != nil {
		return nil, provider.Failed(what, err)
	}
	notes, err := api.List(ctx, what, func(page ...gl.RequestOptionFunc) ([]*gl.Note, *gl.Response, error) {
		return r.Client.Notes.ListMergeRequestNotes(int(r.ID), number, nil, page...)
	})
	if err != nil {
		return nil, provider.Failed(what, err)
	}
	if me.ID <= 0 || slices.ContainsFunc(notes, undecidedNote) {
		return nil, api.NoAnswer(what)
	}
	notes = slices.DeleteFunc(notes, func(note *gl.Note) bool { return note.System || note.Author.ID != me.ID })
	slices.SortFunc(notes, func(a, b *gl.Note) int { return cmp.Compare(a.ID, b.ID) })
	return notes, nil
}

// undecidedNote reports whether a list does not say if a note is ours. Our notes begin with an HTML
// comment.
func undecidedNote(note *gl.Note) bool {
	return note == nil || (note.ID <= 0 || note.Author.ID <= 0) && strings.HasPrefix(note.Body, "<!-- plumbline ")
}

func (r *repository) createNote(ctx context.Context, number int, body string) (string, error) {
	const what = "writing the note"
	note, _, err := r.Client.Notes.CreateMergeRequestNote(int(r.ID), number,
		&gl.CreateMergeRequestNoteOptions{Body: &body}, gl.WithContext(ctx))
	if err != nil {
		return "", provider.Failed(what, err)
	}
	if note.ID == 0 {
		f := fault.Transientf(provider.ReasonBadAnswer, "%s: the answer holds no id", what)
		f.Unknown = true
		return "", f
	}
	return notePrefix + strconv.Itoa(note.ID), nil
}

// noteBody returns the text of a note.
func noteBody(m marks, c status.Check) string {
	name, title := text.OneLine(c.Name, maxField, text.Runes), text.OneLine(c.Title, maxField, text.Runes)
	body := m.String() + "\n**" + escapeName(name) + "**: " + escapeTitle(title)
	if c.Text != "" {
		body += "\n\n" + c.Text
	}
	link := ""
	if url := provider.DetailsURL(c.DetailsURL, maxNote); url != "" {
		url = strings.NewReplacer("(", "%28", ")", "%29", " ", "%20").Replace(url)
		link = "\n\n<small>Full log available [here](" + url + ")</small>"
	}
	room := maxNote - len([]rune(link))
	return text.Markdown(commandPattern.ReplaceAllString(body, "$1\u200b/"), room, noteCutOff, text.Runes) + link
}

// commandPattern matches quick actions, which GitLab would carry out: lines of a note that start
// with a slash (https://docs.gitlab.com/user/project/quick_actions/). Parts of a report are an
// author's words.
var commandPattern = regexp.MustCompile(`(?m)^([\s>]*)/`)

// escapeTitle escapes a title, so that it is neither HTML nor a mention of a user. Its own Markdown
// stays.
func escapeTitle(title string) string {
	return strings.NewReplacer("@", "@\u200b", "<", "&lt;").Replace(title)
}

// escapeName escapes a pipeline's name, so that it is neither markup nor a mention of a user.
func escapeName(words string) string {
	return strings.NewReplacer("@", "@\u200b", "<", "&lt;", "*", `\*`, "`", "\\`", "[", `\[`).Replace(words)
}
