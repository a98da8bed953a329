// SPDX-License-Identifier: Apache-2.0

package providertest

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/pkg/provider"
)

// Comment is a comment on a pull request.
type Comment struct {
	// Ours is true for a comment by the Env's credentials.
	Ours  bool
	Body  string
	Edits int
}

const (
	replyMark = "<!-- plumbline reply -->"
	firstTold = replyMark + "\n**ann**: `/test`\n\nStarts `build`."
	nextTold  = replyMark + "\n**ann**: `/test`\n\nStarts `build`, `docs`."
)

// replying is a client and an open pull request.
type replying struct {
	Env
	client provider.Client
	pull   *v1alpha1.GitEventSpec
}

func reply(t *testing.T, w Env) replying {
	t.Helper()
	w.Service.Commit("main", map[string]string{"x": "y"})
	w.Service.Commit("topic", map[string]string{"x": "z"})
	return replying{w, connect(t, w), w.Service.PullRequest("topic", "dev")}
}

func (r replying) put(t *testing.T, text string) error {
	t.Helper()
	return r.client.PutReply(t.Context(), r.pull.PullRequest.Number, provider.Comment{Mark: replyMark, Text: text})
}

// wants requires the bodies of our comments, each with how often it was edited.
func (r replying) wants(t *testing.T, want ...string) {
	t.Helper()
	var got []string
	for _, c := range r.Service.Comments(r.pull) {
		if c.Ours {
			got = append(got, fmt.Sprint(c.Edits, " ", c.Body))
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("our comments are %q, want %q", got, want)
	}
}

func testReply(t *testing.T, open func(*testing.T) Env) {
	t.Run("it is written once and edited in place", func(t *testing.T) {
		r := reply(t, open(t))
		for _, text := range []string{firstTold, firstTold, nextTold, nextTold} {
			if err := r.put(t, text); err != nil {
				t.Fatal(err)
			}
		}
		r.wants(t, "1 "+nextTold)
	})
	t.Run("nobody else's is taken for ours", func(t *testing.T) {
		r := reply(t, open(t))
		r.Service.Imitate(r.pull, "stranger", firstTold)
		if err := r.put(t, nextTold); err != nil {
			t.Fatal(err)
		}
		r.wants(t, "0 "+nextTold)
		if theirs := r.Service.Comments(r.pull)[0]; theirs.Ours || theirs.Body != firstTold {
			t.Errorf("the untrusted user's is %+v", theirs)
		}
	})
	t.Run("it is found among more than a thousand", func(t *testing.T) {
		r := reply(t, open(t))
		for i := range 1050 {
			if i == 1020 {
				if err := r.put(t, firstTold); err != nil {
					t.Fatal(err)
				}
			}
			r.Service.Imitate(r.pull, "dev", fmt.Sprint("comment ", i))
		}
		if err := r.put(t, nextTold); err != nil {
			t.Fatal(err)
		}
		r.wants(t, "1 "+nextTold)
	})
	t.Run("one that was deleted is written again", func(t *testing.T) {
		r := reply(t, open(t))
		for range 2 {
			if err := r.put(t, firstTold); err != nil {
				t.Fatal(err)
			}
			r.wants(t, "0 "+firstTold)
			r.Service.DeleteComments(r.pull)
		}
	})
	t.Run("one that may only be edited is not created", func(t *testing.T) {
		r := reply(t, open(t))
		edit := func(text string) {
			comment := provider.Comment{Mark: replyMark, Text: text, OnlyEdit: true}
			if err := r.client.PutReply(t.Context(), r.pull.PullRequest.Number, comment); err != nil {
				t.Fatal(err)
			}
		}
		r.Service.Imitate(r.pull, "stranger", firstTold)
		edit(firstTold)
		r.wants(t)
		if err := r.put(t, firstTold); err != nil {
			t.Fatal(err)
		}
		edit(nextTold)
		r.wants(t, "1 "+nextTold)
	})
	t.Run("it is cut to what the service takes", func(t *testing.T) {
		r := reply(t, open(t))
		if err := r.put(t, firstTold+"\n"+strings.Repeat("é", 1_100_000)); err != nil {
			t.Fatal(err)
		}
		got := r.Service.Comments(r.pull)
		if len(got) != 1 || !strings.HasPrefix(got[0].Body, firstTold) || utf8.RuneCountInString(got[0].Body) < 60_000 {
			t.Errorf("%.200v", got)
		}
	})
	testReplyFaults(t, open)
}

func testReplyFaults(t *testing.T, open func(*testing.T) Env) {
	for _, how := range []Failure{StoredThen502, StoredThenGone} {
		t.Run("one that was "+string(how)+" is found again", func(t *testing.T) {
			r := reply(t, open(t))
			r.Service.Fail(WriteComment, how, 1)
			if f := fault.Of(r.put(t, firstTold)); f == nil || f.Class != fault.Transient || !f.Unknown {
				t.Fatalf("%+v, want a Transient fault whose outcome is unknown", f)
			}
			for range 2 {
				if err := r.put(t, firstTold); err != nil {
					t.Fatal(err)
				}
			}
			r.wants(t, "0 "+firstTold)
		})
	}
	classes := map[Failure]fault.Class{
		Unavailable:  fault.Transient,
		Disconnected: fault.Transient,
		Garbage:      fault.Transient,
		Unauthorized: fault.Operator,
		Forbidden:    fault.Operator,
		NotFound:     fault.Operator,
		RateLimited:  fault.Throttled,
		SlowDown:     fault.Throttled,
		Busy:         fault.Transient,
	}
	for _, op := range []Operation{ListComments, WriteComment, EditComment} {
		for how, want := range classes {
			if op == EditComment && how == NotFound {
				want = fault.Transient // it was deleted in the meantime
			}
			t.Run(string(op)+": "+string(how), func(t *testing.T) {
				r := reply(t, open(t))
				text := firstTold
				if op == EditComment {
					if err := r.put(t, firstTold); err != nil {
						t.Fatal(err)
					}
					text = nextTold
				}
				r.Service.Fail(op, how, 0)
				f := fault.Of(r.put(t, text))
				if f == nil || f.Class != want || f.Reason == "" || f.Reason == "Error" {
					t.Errorf("%+v, want class %s and a reason", f, want)
				}
			})
		}
	}
	t.Run("where it may not write, it says what is needed", func(t *testing.T) {
		r := reply(t, open(t))
		r.Service.Lock(r.pull)
		f := fault.Of(r.put(t, firstTold))
		if f == nil || f.Class != fault.Operator || !strings.Contains(f.Message, "to write comments") ||
			!strings.Contains(f.Message, "locked") {
			t.Errorf("%+v", f)
		}
		r.wants(t)
	})
}
