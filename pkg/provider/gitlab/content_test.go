// SPDX-License-Identifier: Apache-2.0

package gitlab

import (
	"context"
	"net/http"
	"strings"
	"testing"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/pkg/provider"
	"github.com/plumbline-ci/plumbline/test/forge"
	forgelab "github.com/plumbline-ci/plumbline/test/forge/gitlab"
)

// A wrong answer with status 200 is retried: it never means "no pipelines", "no such file" or "no
// member" (finding 18).
func TestWrongAnswersAreRetried(t *testing.T) {
	answers := map[string]forge.Action{
		"a log-in page": forge.Answer(http.StatusOK, http.Header{"Content-Type": {"text/html; charset=utf-8"}},
			"<html>Sign in</html>"),
		"a page that claims JSON": forge.Answer(http.StatusOK, http.Header{"Content-Type": {"application/json"}},
			"<html>Sign in</html>"),
		"raw text": forge.Answer(http.StatusOK, http.Header{"Content-Type": {"text/plain"}},
			"kind: PipelineRun"),
		"another object":         forge.Answer(http.StatusOK, nil, `{"status":"ok"}`),
		"a list of other things": forge.Answer(http.StatusOK, nil, `[{"status":"ok"}]`),
		"null":                   forge.Answer(http.StatusOK, nil, `null`),
		"nothing":                forge.Answer(http.StatusOK, nil, ""),
		"half of an answer":      forge.Answer(http.StatusOK, http.Header{"Content-Length": {"1000"}}, `[{"name":`),
		"half of a file": forge.Answer(http.StatusOK, nil,
			`{"file_name":"a.yaml","size":17,"encoding":"base64","content":"a2luZA==","content_sha256":"00"}`),
	}
	files := func(ctx context.Context, c provider.Client, sha string) error {
		_, err := c.Files(ctx, sha, ".tekton")
		return err
	}
	reads := map[string]func(context.Context, provider.Client, string) error{
		forgelab.RouteTree: files,
		forgelab.RouteFile: files,
		forgelab.RouteCommitDiff: func(ctx context.Context, c provider.Client, sha string) error {
			_, err := c.Changed(ctx, &v1alpha1.GitEventSpec{SHA: sha})
			return err
		},
		forgelab.RouteCommitMRs: func(ctx context.Context, c provider.Client, sha string) error {
			_, err := c.Pulls(ctx, sha)
			return err
		},
		forgelab.RouteProject: func(ctx context.Context, c provider.Client, _ string) error {
			_, err := c.DefaultBranch(ctx)
			return err
		},
		forgelab.RouteMembers: func(ctx context.Context, c provider.Client, _ string) error {
			_, err := c.CanWrite(ctx, "dev")
			return err
		},
	}
	for route, read := range reads {
		for sentence, do := range answers {
			t.Run(route+": "+sentence, func(t *testing.T) {
				b := newBench(t, forgelab.Options{})
				sha := b.Commit("main", map[string]string{".tekton/a.yaml": "kind: PipelineRun"})
				handle := b.Inject(forgelab.Fault{Route: route, Do: do})
				if err := read(t.Context(), b.client, sha); !fault.Is(err, fault.Transient) || fault.Of(err).Reason == "Error" {
					t.Errorf("%v, want a wait with a reason", err)
				}
				handle.Remove()
				if err := read(t.Context(), b.client, sha); err != nil {
					t.Errorf("once the service answers again: %v", err)
				}
			})
		}
	}
}

// A path that is not a directory of definitions is reported as what it is.
func TestFilesRefuseSubmoduleAndLink(t *testing.T) {
	b := newBench(t, forgelab.Options{})
	for entry, want := range map[string]string{
		`"mode":"160000","type":"commit"`: ".tekton is a submodule, and no submodule is followed",
		`"mode":"120000","type":"blob"`:   ".tekton is a symbolic link, and no link is followed",
		`"mode":"100644","type":"blob"`:   ".tekton has been found but is not a directory",
	} {
		b.Inject(forgelab.Fault{Route: forgelab.RouteTree, Count: 1, Do: forge.Answer(http.StatusOK, nil,
			`[{"id":"`+strings.Repeat("ab", 20)+`","name":".tekton","path":".tekton",`+entry+`}]`)})
		_, err := b.client.Files(t.Context(), b.head.SHA, ".tekton")
		if !fault.Is(err, fault.Invalid) || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s: %v, want %q", entry, err, want)
		}
	}
}
