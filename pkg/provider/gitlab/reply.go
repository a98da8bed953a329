// SPDX-License-Identifier: Apache-2.0

package gitlab

import (
	"context"
	"fmt"
	"net/http"
	"strings"

	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/pkg/provider"
	"github.com/plumbline-ci/plumbline/pkg/status/text"
)

// PutReply implements provider.Conversation.
func (r *repository) PutReply(ctx context.Context, number int64, c provider.Comment) error {
	body := text.Markdown(commandPattern.ReplaceAllString(c.Text, "$1\u200b/"), maxNote, noteCutOff, text.Runes)
	err := r.reply(ctx, int(number), c, body)
	if provider.StatusCode(err) == http.StatusForbidden && fault.Is(err, fault.Operator) {
		return fmt.Errorf(
			"%w (to write comments the token needs the scope api and a user that is a member of the project; where the discussion is locked, only members may write)",
			err,
		)
	}
	return err
}

func (r *repository) reply(ctx context.Context, number int, c provider.Comment, body string) error {
	notes, err := r.myNotes(ctx, number)
	if err != nil {
		return err
	}
	for _, note := range notes {
		switch {
		case !strings.HasPrefix(note.Body, c.Mark):
			continue
		case strings.TrimSpace(note.Body) == strings.TrimSpace(body):
			return nil
		}
		return r.updateNote(ctx, number, note.ID, body)
	}
	if c.OnlyEdit {
		return nil
	}
	_, err = r.createNote(ctx, number, body)
	return err
}
