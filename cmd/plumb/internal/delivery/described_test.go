// SPDX-License-Identifier: Apache-2.0

package delivery

import (
	"net/http"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/provider/github"
	"github.com/plumbline-ci/plumbline/pkg/provider/gitlab"
)

// sample reads a recorded delivery of a provider's own tests.
func sample(t *testing.T, service, event, file string) Delivery {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("../../../../pkg/provider", service, "testdata", file))
	if err != nil {
		t.Fatal(err)
	}
	header := http.Header{"Content-Type": {"application/json"}}
	if service == github.Name {
		header.Set("X-GitHub-Event", event)
		header.Set("X-GitHub-Delivery", Key)
		header.Set("X-GitHub-Hook-Installation-Target-Type", "integration")
	} else {
		header.Set("X-Gitlab-Event", event)
		header.Set("Idempotency-Key", Key)
	}
	return Delivery{Header: header, Body: data, Recorded: true}
}

// onlyTheServiceKnows are fields that a described event makes up, or lacks.
var onlyTheServiceKnows = cmp.Options{
	cmpopts.IgnoreFields(v1alpha1.GitEventSpec{}, "InstallationID", "Body", "HappenedAt"),
	cmpopts.IgnoreFields(v1alpha1.Project{}, "ID", "OwnerID"),
	cmpopts.IgnoreFields(v1alpha1.PullRequest{}, "HeadProjectID", "AuthorID"),
	cmpopts.IgnoreFields(v1alpha1.Comment{}, "ID"),
	// The samples' addresses are not those of their commits, and a pull request is not always
	// called as its commit.
	cmpopts.IgnoreFields(v1alpha1.Commit{}, "URL"),
}

// A described event equals the event that is decoded from a real delivery with the same facts.
func TestDescribedEventsAreThoseOfDeliveries(t *testing.T) {
	for _, test := range []struct {
		service, event, file string
		kind                 Kind
	}{
		{github.Name, "push", "push-branch.json", Pushed},
		{github.Name, "push", "push-new-branch.json", Pushed},
		{github.Name, "push", "push-tag-lightweight.json", Tagged},
		{github.Name, "pull_request", "pull-opened-fork.json", Opened},
		{github.Name, "pull_request", "pull-labeled.json", Labeled},
		{github.Name, "issue_comment", "comment-created.json", Commented},
		{gitlab.Name, "Push Hook", "push-branch.json", Pushed},
		{gitlab.Name, "Push Hook", "push-new-branch.json", Pushed},
		{gitlab.Name, "Tag Push Hook", "tag-lightweight.json", Tagged},
		{gitlab.Name, "Merge Request Hook", "mr-open-fork.json", Opened},
		{gitlab.Name, "Merge Request Hook", "mr-labels.json", Labeled},
		{gitlab.Name, "Note Hook", "note-merge-request.json", Commented},
	} {
		t.Run(test.service+" "+test.file, func(t *testing.T) {
			recorded, err := sample(t, test.service, test.event, test.file).Read()
			if err != nil {
				t.Fatal(err)
			}
			described := of(recorded.Spec, test.kind)
			sent, err := described.Delivery()
			if err != nil {
				t.Fatal(err)
			}
			got, err := sent.Read()
			if err != nil {
				t.Fatal(err)
			}
			if recorded.Foreign != got.Foreign || recorded.URL != got.URL || sent.Recorded {
				t.Errorf("got %+v, want %+v", got, recorded)
			}
			want := recorded.Spec
			if want.PullRequest != nil {
				want.PullRequest.Author = want.Sender // the sender of a described event is the author
				if want.Actor != "" {
					want.Actor = want.Sender
				}
			}
			if want.PullRequest != nil && want.Commit != nil {
				want.Commit.Title = want.PullRequest.Title
			}
			if want.Commit == nil && got.Spec.Commit != nil && test.kind != Opened {
				got.Spec.Commit = nil // what a delivery leaves out is read later, and is the same
			}
			if diff := cmp.Diff(want, got.Spec, onlyTheServiceKnows); diff != "" {
				t.Errorf("event (-recorded +described):\n%s", diff)
			}
			same := recorded.Spec.PullRequest == nil || recorded.Spec.PullRequest.HeadProjectID == recorded.Spec.Project.ID
			if got.Spec.PullRequest != nil && same != (got.Spec.PullRequest.HeadProjectID == got.Spec.Project.ID) &&
				test.kind != Commented {
				t.Errorf("the head project is %d of %d: it must tell whether it is a fork", got.Spec.PullRequest.HeadProjectID,
					got.Spec.Project.ID)
			}
		})
	}
}

// of describes an event.
func of(spec *v1alpha1.GitEventSpec, kind Kind) Described {
	e := Described{
		Kind: kind, Service: spec.Provider, URL: spec.Project.URL, HeadURL: spec.HeadURL, Base: spec.BaseRef,
		Head:          spec.HeadRef,
		DefaultBranch: spec.Project.DefaultBranch, SHA: spec.SHA, Before: spec.Before, Sender: spec.Sender,
		Key: spec.DeliveryKey,
	}
	if spec.Commit != nil {
		e.Message = spec.Commit.Title
	}
	switch kind {
	case Pushed:
		e.Base = e.Base[len("refs/heads/"):]
	case Tagged:
		e.Base = e.Base[len("refs/tags/"):]
	}
	if spec.PullRequest != nil {
		e.Number, e.Labels = spec.PullRequest.Number, spec.PullRequest.Labels
		e.Message = spec.PullRequest.Title
	}
	if spec.Comment != nil {
		e.Comment = spec.Comment.Body
	}
	return e
}
