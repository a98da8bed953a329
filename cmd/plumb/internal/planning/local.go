// SPDX-License-Identifier: Apache-2.0

package planning

import (
	"cmp"
	"context"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-ci/plumbline/cmd/plumb/internal/worktree"
	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/pkg/git"
	"github.com/plumbline-ci/plumbline/pkg/pipeline/template"
	"github.com/plumbline-ci/plumbline/pkg/plan"
	"github.com/plumbline-ci/plumbline/pkg/provider"
	"github.com/plumbline-ci/plumbline/pkg/provider/gitlab"
	"github.com/plumbline-ci/plumbline/pkg/provider/payload"
	"github.com/plumbline-ci/plumbline/pkg/status/text"
	"github.com/plumbline-ci/plumbline/pkg/store/history"
)

// reasonUnknown is the reason of a question that plumb cannot answer. Decisions that depend on the
// answer stay open.
const reasonUnknown = "NotKnownHere"

// local answers the planner's questions from the working tree.
type local struct {
	Request
	files   map[string]git.File
	assumed []string
	// elsewhere is true once the definitions are taken from the default branch.
	elsewhere bool
}

func newLocal(r Request) *local { return &local{Request: r, files: map[string]git.File{}} }

func (l *local) sources() plan.Sources {
	s := plan.Sources{
		Source: l, History: l, Access: l, Remote: plan.Remote{
			Addresses: l, Web: notFetched{},
			Missing: func(string) time.Duration { return time.Hour }, // without credentials a 404 says nothing
		},
		Delivery: plan.Delivery{
			Payload: l.payload,
			Comment: func(context.Context) (string, error) { return l.Spec.Comment.Body, nil },
			Records: l.records,
		},
	}
	if l.Web != nil {
		s.Web = l.Web
	}
	return s
}

func (l *local) result(in plan.Input, made *plan.Plan) *Result {
	r := &Result{Event: in.Event.Name, Plan: made, Assumed: l.assumed, Reveal: map[string]string{}}
	for _, file := range l.files {
		r.Files = append(r.Files, file)
	}
	slices.SortFunc(r.Files, func(a, b git.File) int { return strings.Compare(a.Path, b.Path) })
	return r
}

// assume notes, once, an assumption about what plumb cannot look up.
func (l *local) assume(format string, args ...any) {
	sentence := fmt.Sprintf(format, args...)
	if !slices.Contains(l.assumed, sentence) {
		l.assumed = append(l.assumed, sentence)
	}
}

// unknown returns the error of a question that plumb cannot answer.
func unknown(format string, args ...any) error {
	return fault.Operatorf(reasonUnknown, format, args...)
}

// Head implements plan.Source.
func (l *local) Head(ctx context.Context, event *v1alpha1.GitEventSpec) (git.Head, error) {
	head := git.Head{SHA: event.SHA, Project: event.Project, Ref: event.HeadRef, PullRequest: event.PullRequest}
	if event.Commit != nil {
		head.Commit = *event.Commit
		return head, nil
	}
	head.Commit.URL = event.Project.URL + "/commit/" + event.SHA
	if event.Provider == gitlab.Name {
		head.Commit.URL = event.Project.URL + "/-/commit/" + event.SHA
	}
	if !l.Tree.Has(ctx, event.SHA) {
		l.assume("the commit's message, which is not known here, does not ask for no CI")
		return head, nil
	}
	commit, err := l.Tree.Commit(ctx, event.SHA)
	if err != nil {
		return git.Head{}, err
	}
	head.Commit.Title = text.FirstLine(commit.Message, payload.MaxTitle)
	head.Commit.SkipCI = provider.SkipsCI(commit.Message)
	return head, nil
}

// DefaultBranch implements plan.Source. For a push to that branch, its head is the pushed commit.
func (l *local) DefaultBranch(ctx context.Context) (string, error) {
	name := l.Spec.Project.DefaultBranch
	if l.Spec.Trigger == v1alpha1.TriggerPush && l.Spec.BaseRef == "refs/heads/"+name {
		return l.Spec.SHA, nil
	}
	sha, found := l.Tree.Tip(ctx, name)
	if !found {
		return "", fmt.Errorf(
			"the Repository takes the definitions from the default branch, and the clone has no branch %s: git fetch it", name,
		)
	}
	l.elsewhere = true
	l.assume("%s is read as the clone knows the default branch %s", plan.Definitions, name)
	return sha, nil
}

// at returns where to read the files of a commit.
func (l *local) at(sha string) string {
	if l.elsewhere {
		return sha
	}
	return l.At
}

// Files implements plan.Source. A missing directory is an error: plumb was likely run in the wrong
// place.
func (l *local) Files(ctx context.Context, sha, dir string) ([]git.File, error) {
	files, err := l.Tree.Files(ctx, l.at(sha), dir)
	if err != nil {
		return nil, err
	}
	if len(files) == 0 && l.at(sha) == worktree.OnDisk {
		return nil, l.nothingIn(ctx, dir)
	}
	for _, file := range files {
		l.files[file.Path] = file
	}
	return files, nil
}

// File implements plan.Source.
func (l *local) File(ctx context.Context, sha, name string) ([]byte, error) {
	data, err := l.Tree.File(ctx, l.at(sha), name)
	if err == nil {
		l.files[name] = git.File{Path: name, Data: data}
	}
	return data, err
}

// Changed implements plan.Source.
func (l *local) Changed(ctx context.Context, event *v1alpha1.GitEventSpec) (git.Changes, error) {
	changes, err := l.changed(ctx, event)
	if err != nil {
		return git.Changes{}, unknown("%w", err)
	}
	return changes, nil
}

func (l *local) changed(ctx context.Context, event *v1alpha1.GitEventSpec) (git.Changes, error) {
	switch {
	case l.Request.Changed != nil:
		return *l.Request.Changed, nil
	case l.At == worktree.OnDisk && l.Delivery.Recorded && event.Comment == nil:
		return git.Changes{}, fmt.Errorf("the clone has no commit %s: git fetch it, or say with --changed which files differ",
			event.SHA)
	case event.PullRequest != nil:
		return l.Tree.SinceBase(ctx, event.BaseRef, l.At)
	case event.Before == "":
		return l.Tree.OfCommit(ctx, l.At)
	case !l.Tree.Has(ctx, event.Before):
		return git.Changes{}, fmt.Errorf(
			"the clone has no commit %s, which was there before the push: git fetch it, or say with --changed which files differ",
			event.Before,
		)
	}
	if event.Provider == gitlab.Name || l.At == worktree.OnDisk { // GitLab compares trees, and tells renames
		return l.Tree.Between(ctx, event.Before, l.At)
	}
	return l.Tree.Pushed(ctx, event.Before, l.At)
}

// count returns the number of changed files, nil if it is not known, or the event has none.
func (l *local) count(ctx context.Context, event *v1alpha1.GitEventSpec) *Files {
	if event.Closes() {
		return nil
	}
	changes, err := l.changed(ctx, event)
	if err != nil {
		return nil
	}
	files := Files{Count: size(changes)}
	if l.Request.Changed == nil && l.At == worktree.OnDisk {
		if changes, err = l.Tree.Between(ctx, l.Tree.Head.SHA, worktree.OnDisk); err == nil {
			files.Uncommitted = size(changes)
		}
	}
	return &files
}

func size(c git.Changes) int { return len(c.Added) + len(c.Modified) + len(c.Deleted) + len(c.Renamed) }

// Pulls implements plan.History.
func (l *local) Pulls(context.Context, string) ([]git.Pull, error) {
	l.assume("the branch has no open pull request")
	if l.Number == 0 {
		return nil, nil
	}
	return []git.Pull{{Number: l.Number, Merged: true, BaseRef: strings.TrimPrefix(l.Spec.BaseRef, "refs/heads/")}}, nil
}

// Complete implements plan.History. If the delivery of a comment lacks data of its pull request,
// the data comes from the branch.
func (l *local) Complete(_ context.Context, event *v1alpha1.GitEventSpec) (*v1alpha1.GitEventSpec, error) {
	if author := l.Given.Author; author != "" && event.PullRequest != nil { // GitLab sends only the id of the author
		event = event.DeepCopy()
		event.PullRequest.Author = author
	}
	if event.Comment == nil {
		return event, nil
	}
	if event.PullRequest == nil {
		return l.pointed(event), nil
	}
	out := event.DeepCopy()
	out.SHA, out.BaseRef, out.HeadRef = l.Tree.Head.SHA, cmp.Or(event.BaseRef, l.To), cmp.Or(event.HeadRef, l.From)
	if out.HeadURL == "" {
		out.HeadURL, out.PullRequest.HeadProjectID = event.Project.URL, event.Project.ID
	}
	if !l.Delivery.Recorded && out.HappenedAt == nil { // after the head, which has no time here
		out.HappenedAt = &metav1.Time{Time: time.Unix(1, 0)}
	}
	if l.Delivery.Recorded {
		l.assume("the comment's pull request has the commit that is checked out, from %s to %s", out.HeadRef, out.BaseRef)
	}
	return out, nil
}

// Versions implements plan.History. The user of plumb decides what is approved, and the head is the
// only version.
func (l *local) Versions(_ context.Context, event *v1alpha1.GitEventSpec) ([]git.Version, error) {
	return []git.Version{{SHA: event.SHA}}, nil
}

// records returns none: plumb does not know what has run, which /retest depends on.
func (l *local) records(context.Context) ([]history.Record, error) {
	if l.Spec.Comment != nil {
		l.assume("nothing has run on the commit yet")
	}
	return nil, nil
}

// Differ implements plan.History. There is no record of an earlier approval to compare with.
func (l *local) Differ(context.Context, string, string, ...string) ([]string, error) {
	return nil, nil
}

// pointed completes a comment on a commit. plumb assumes that the commit is the head of the branch
// or tag that the comment names.
func (l *local) pointed(event *v1alpha1.GitEventSpec) *v1alpha1.GitEventSpec {
	out := event.DeepCopy()
	out.BaseRef = cmp.Or(event.BaseRef, "refs/heads/"+cmp.Or(event.Project.DefaultBranch, "main"))
	out.HeadRef = out.BaseRef
	l.assume("%s is at the commit that the comment is on", out.BaseRef)
	return out
}

// FileAt implements plan.Addresses. plumb has no credentials of the service, so it reads an address
// of the service as an anonymous user. A 404 then does not mean that the file is missing.
func (l *local) FileAt(_ context.Context, address string) ([]byte, error) {
	if u, err := url.Parse(address); err == nil && provider.Host(u) == l.Spec.Host {
		return nil, fault.Ignoredf(fault.ReasonNotFound, "plumb has none")
	}
	return nil, fault.Ignoredf(fault.ReasonOtherAddress, "this is no address of the Git service")
}

func (l *local) payload(context.Context) ([]byte, error) {
	if !l.Delivery.Recorded {
		return nil, unknown("only a real delivery has one: give it with --payload and --headers")
	}
	return l.Delivery.Body, nil
}

func secretNotRead(namespace string, ref template.SecretRef) error {
	return unknown("it depends on secret %s/%s, which is not read (--from-cluster reads it, --param sets the param)",
		namespace, ref.Name)
}
