// SPDX-License-Identifier: Apache-2.0

package github

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/pkg/git"
	"github.com/plumbline-ci/plumbline/pkg/provider"
	"github.com/plumbline-ci/plumbline/pkg/status"
	"github.com/plumbline-ci/plumbline/test/forge"
)

// wrong are answers that no read requests: a page, also from a router that has just started, JSON
// of another shape, nothing.
func wrong() map[string]forge.Action {
	page := http.Header{"Content-Type": {"text/html; charset=utf-8"}}
	return map[string]forge.Action{
		"a log-in page":   forge.Answer(http.StatusOK, page, "<html>Log in</html>"),
		"a router's page": forge.Answer(http.StatusNotFound, page, "<html>default backend - 404</html>"),
		"a page that claims JSON": forge.Answer(http.StatusOK, http.Header{"Content-Type": {"application/json"}},
			"<html>Log in</html>"),
		"another object":         forge.Answer(http.StatusOK, nil, `{"status":"ok","sha":"`+strings.Repeat("ab", 20)+`"}`),
		"an empty object":        forge.Answer(http.StatusOK, nil, `{}`),
		"a list of other things": forge.Answer(http.StatusOK, nil, `[{"id":1}]`),
		"null":                   forge.Answer(http.StatusOK, nil, `null`),
		"nothing":                forge.Answer(http.StatusOK, nil, ""),
		"half of an answer":      forge.Answer(http.StatusOK, http.Header{"Content-Length": {"1000"}}, `{"sha":`),
	}
}

// A wrong answer is retried: it never means "no pipelines", "no such file" or "no write access"
// (finding 18).
func TestWrongAnswersAreRetried(t *testing.T) {
	reads := map[string]func(context.Context, provider.Client, string) error{
		forge.RouteTree: func(ctx context.Context, c provider.Client, sha string) error {
			_, err := c.Files(ctx, sha, ".tekton")
			return err
		},
		forge.RouteBlob: func(ctx context.Context, c provider.Client, sha string) error {
			_, err := c.Files(ctx, sha, ".tekton")
			return err
		},
		forge.RouteContents: func(ctx context.Context, c provider.Client, sha string) error {
			_, err := c.File(ctx, sha, ".tekton/a.yaml")
			return err
		},
		forge.RouteCommit: func(ctx context.Context, c provider.Client, sha string) error {
			_, err := c.Changed(ctx, &v1alpha1.GitEventSpec{SHA: sha})
			return err
		},
		forge.RouteCommitPulls: func(ctx context.Context, c provider.Client, sha string) error {
			_, err := c.Pulls(ctx, sha)
			return err
		},
		forge.RouteRepo: func(ctx context.Context, c provider.Client, _ string) error {
			_, err := c.DefaultBranch(ctx)
			return err
		},
		forge.RouteRef: func(ctx context.Context, c provider.Client, _ string) error {
			_, err := c.DefaultBranch(ctx)
			return err
		},
		forge.RoutePermission: func(ctx context.Context, c provider.Client, _ string) error {
			_, err := c.CanWrite(ctx, "octocat")
			return err
		},
		forge.RouteCheckList: func(ctx context.Context, c provider.Client, sha string) error {
			_, err := c.Put(ctx, git.Head{SHA: sha}, "",
				status.Check{Name: "ci", ExternalID: "run", State: status.Queued, Title: "t", Summary: "s"}, false)
			return err
		},
	}
	for route, read := range reads {
		for sentence, do := range wrong() {
			t.Run(route+": "+sentence, func(t *testing.T) {
				b := newBench(t)
				sha := b.Commit("main", map[string]string{".tekton/a.yaml": "kind: PipelineRun"})
				handle := b.Inject(forge.Fault{Route: route, Do: do})
				err := read(t.Context(), b.client, sha)
				if !fault.Is(err, fault.Transient) || fault.Of(err).Reason == "Error" {
					t.Errorf("%v, want a wait with a reason", err)
				}
				handle.Remove()
				if err := read(t.Context(), b.client, sha); route != forge.RoutePermission && err != nil {
					t.Errorf("once the service answers again: %v", err)
				}
			})
		}
	}
}

// A blob is checked against its id: JSON in place of raw text is valid YAML too, and part of a file
// may be.
func TestBlobMatchesDirectory(t *testing.T) {
	const text = "kind: PipelineRun\n---\nkind: Task\n"
	for _, body := range []string{`{"content":"a2luZA==","encoding":"base64"}`, text[:18], text + "# more", " ",
		`"` + text + `"`} {
		b := newBench(t)
		sha := b.Commit("main", map[string]string{".tekton/a.yaml": text})
		b.Inject(forge.Fault{Route: forge.RouteBlob, Do: forge.Answer(http.StatusOK, nil, body)})
		got, err := b.client.Files(t.Context(), sha, ".tekton")
		if f := fault.Of(err); f == nil || f.Class != fault.Transient || f.Reason != provider.ReasonBadAnswer ||
			!strings.Contains(f.Message, ".tekton/a.yaml") {
			t.Errorf("%q: %v, %v, want a wait that names the file", body, got, err)
		}
	}
}

// Contents of another length than the answer names, and directories that list nothing, are not
// answers.
func TestContentsAreComplete(t *testing.T) {
	for _, body := range []string{
		`{"type":"file","size":9,"encoding":"base64","content":"a2luZA=="}`, `{"type":"file","size":0,"encoding":"base64"}`,
		`{"type":"file","encoding":"base64","content":"a2luZA=="}`, `{"type":"file","size":4,"encoding":"none","content":""}`,
		`{"type":"dir"}`, `[]`, `[{"type":"file"}]`,
	} {
		b := newBench(t)
		b.Inject(forge.Fault{Route: forge.RouteContents, Do: forge.Answer(http.StatusOK, nil, body)})
		_, err := b.client.File(t.Context(), b.head.SHA, "x")
		_, atErr := b.client.FileAt(t.Context(), b.URL()+"/"+testRepo+"/blob/main/x")
		if !fault.Is(err, fault.Transient) || !fault.Is(atErr, fault.Transient) {
			t.Errorf("%s: %v and %v, want waits", body, err, atErr)
		}
	}
	b := newBench(t)
	b.Inject(forge.Fault{Route: forge.RouteContents, Do: forge.Answer(http.StatusOK, nil,
		// GitHub has followed a link: the id is the link's.
		`{"type":"file","size":4,"sha":"`+strings.Repeat("ab", 20)+`","encoding":"base64","content":"a2lu\nZA==\n"}`)})
	if got, err := b.client.File(t.Context(), b.head.SHA, "x"); err != nil || string(got) != "kind" {
		t.Errorf("%q, %v", got, err)
	}
}

// Links and submodules below the directory of definitions are not definitions, whatever they are
// called.
func TestFilesSkipLinksAndSubmodules(t *testing.T) {
	b := newBench(t)
	sha := b.Commit("main", map[string]string{".tekton/a.yaml": "a"})
	dir := strings.Repeat("cd", 20)
	entry := func(path, mode, kind string) string {
		return fmt.Sprintf(`{"path":%q,"mode":%q,"type":%q,"sha":%q}`, path, mode, kind, strings.Repeat("ef", 20))
	}
	b.Inject(forge.Fault{Route: forge.RouteTree, Count: 1, Do: forge.Answer(http.StatusOK, nil,
		`{"sha":"`+strings.Repeat("ab", 20)+`","tree":[{"path":".tekton","mode":"040000","type":"tree","sha":"`+dir+`"}]}`)})
	b.Inject(forge.Fault{Route: forge.RouteTree, Count: 1, Do: forge.Answer(http.StatusOK, nil,
		`{"sha":"`+dir+`","tree":[`+entry("link.yaml", "120000", "blob")+`,`+entry("module.yaml", "160000", "commit")+`]}`)})
	if got, err := b.client.Files(t.Context(), sha, ".tekton"); err != nil || len(got) != 0 {
		t.Errorf("%v, %v, want nothing and no call for a link", got, err)
	}
	if got := b.Count(forge.RouteBlob); got != 0 {
		t.Errorf("%d blobs were read", got)
	}
}

// A path that is not a directory of definitions is reported as what it is.
func TestFilesRefuseSubmoduleAndLink(t *testing.T) {
	b := newBench(t)
	for entry, want := range map[string]string{
		`"mode":"160000","type":"commit"`: ".tekton is a submodule, and no submodule is followed",
		`"mode":"120000","type":"blob"`:   ".tekton is a symbolic link, and no link is followed",
		`"mode":"100644","type":"blob"`:   ".tekton has been found but is not a directory",
	} {
		id := strings.Repeat("ab", 20)
		b.Inject(forge.Fault{Route: forge.RouteTree, Count: 1, Do: forge.Answer(http.StatusOK, nil,
			`{"sha":"`+id+`","tree":[{"path":".tekton",`+entry+`,"sha":"`+id+`"}]}`)})
		_, err := b.client.Files(t.Context(), b.head.SHA, ".tekton")
		if !fault.Is(err, fault.Invalid) || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s: %v, want %q", entry, err, want)
		}
	}
}
