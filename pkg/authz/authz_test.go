// SPDX-License-Identifier: Apache-2.0

package authz_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	pacv1alpha1 "github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/authz"
	"github.com/plumbline-ci/plumbline/pkg/config"
	"github.com/plumbline-ci/plumbline/pkg/git"
	"github.com/plumbline-ci/plumbline/pkg/pipeline/command"
	"github.com/plumbline-ci/plumbline/pkg/store/history"
)

const sha = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"

// service gives write access to "writer" only.
type service struct {
	authz.Access
	down error
}

func (s service) CanWrite(_ context.Context, user string) (bool, error) {
	return user == "writer", s.down
}

// Actor confirms the delivery.
func (s service) Actor(_ context.Context, _ *v1alpha1.GitEventSpec, told string) (string, error) {
	return told, s.down
}

func (s service) Owner(context.Context, string) (bool, error) { return false, nil }

// waiting is the record of a pull request's event that waits for approval of its commit.
func waiting() []history.Record {
	e := &v1alpha1.GitEvent{ObjectMeta: metav1.ObjectMeta{Name: "pull-1"}, Spec: *forked("stranger")}
	e.Status.Disposition, e.Status.Plan = v1alpha1.DispositionPending, &v1alpha1.Plan{HeadSHA: sha}
	return []history.Record{{Event: e}}
}

// forked is the event of a pull request from a fork.
func forked(author string) *v1alpha1.GitEventSpec {
	return &v1alpha1.GitEventSpec{
		Trigger: v1alpha1.TriggerPullRequest, EventType: "pull_request", Action: "opened", SHA: sha, BaseRef: "main",
		Actor:   author,
		Project: v1alpha1.Project{ID: 5}, PullRequest: &v1alpha1.PullRequest{Number: 3, Author: author, HeadProjectID: 99},
	}
}

// said is a comment on an untrusted user's pull request.
func said(sender string) *v1alpha1.GitEventSpec {
	spec := forked("stranger")
	spec.Action, spec.Actor, spec.Sender, spec.Comment = "created", "", sender, &v1alpha1.Comment{ID: 1}
	return spec
}

// An untrusted user's commit waits until a user with write access approves it by its id. The
// approval names that user.
func TestDecide(t *testing.T) {
	t.Parallel()
	approves := &command.Command{Kind: command.OkToTest, SHA: sha}
	for name, c := range map[string]struct {
		event          authz.Event
		allowed        bool
		by             string // who has approved
		ends, heeded   bool
		why            string
		commentRefused bool
	}{
		"a writer's": {authz.Event{Spec: forked("writer")}, true, "", false, true, "", false},
		"an untrusted user's": {
			authz.Event{Spec: forked("stranger")}, false, "", false, true, "no write access", false,
		},
		"approved": {
			authz.Event{Name: "comment-1", Spec: said("writer"), Command: approves}, true, "writer", true, true, "", false,
		},
		"names another commit": {authz.Event{
			Spec: said("writer"), Command: &command.Command{Kind: command.OkToTest, SHA: "bbbbbbbbbbbb"},
		}, false, "", false, true, "names commit", false},
		"an untrusted user approves": {
			authz.Event{Spec: said("eve"), Command: approves}, false, "", false, false, "no write access", true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			desk := authz.New(&pacv1alpha1.Repository{}, &config.Config{}, authz.Sources{
				Access: service{}, History: heads{},
				Recorded: func(context.Context) ([]history.Record, error) { return waiting(), nil },
			})
			if c.event.Command != nil {
				if refused, _, err := desk.RefusesCommenter(t.Context(), c.event); err != nil || refused != c.commentRefused {
					t.Errorf("who commented is refused: %t, %v", refused, err)
				}
			}
			got, err := desk.Decide(t.Context(), c.event)
			if err != nil {
				t.Fatal(err)
			}
			by := ""
			if got.Approval != nil {
				by = got.Approval.By
			}
			if got.Allowed != c.allowed || by != c.by || got.EndsPending != c.ends || got.MayCommand != c.heeded ||
				!strings.Contains(got.Why, c.why) {
				t.Errorf("%+v", got)
			}
			if !got.Allowed && got.PendingReason() != "PendingApproval" {
				t.Errorf("waits as %s", got.PendingReason())
			}
		})
	}
}

// heads returns no heads, like a service that signs its deliveries.
type heads struct{ authz.History }

func (heads) Versions(context.Context, *v1alpha1.GitEventSpec) ([]git.Version, error) {
	return nil, nil
}

// A failed read is not an answer.
func TestDecideReturnsErrors(t *testing.T) {
	t.Parallel()
	down := errors.New("down")
	desk := authz.New(&pacv1alpha1.Repository{}, &config.Config{}, authz.Sources{Access: service{down: down}})
	if got, err := desk.Decide(t.Context(), authz.Event{Spec: forked("writer")}); !errors.Is(err, down) || got.Allowed {
		t.Errorf("%+v, %v", got, err)
	}
}
