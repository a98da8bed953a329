// SPDX-License-Identifier: Apache-2.0

package status

import (
	"html"
	"regexp"
	"strings"
	"testing"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
)

// logged returns the check of a failed run with a log.
func logged(log *v1alpha1.RunLog) Check {
	event := &v1alpha1.GitEvent{}
	event.Status.Disposition = v1alpha1.DispositionRuns
	run := v1alpha1.Run{Name: "build-abc", Namespace: "ci", Pipeline: "build", UID: "uid", Result: &v1alpha1.Result{
		Outcome: v1alpha1.OutcomeFailed, Reason: "Failed", Text: "<p>The report.</p>", Log: log,
	}}
	return Desired(Input{Application: "CI", Event: event, Runs: []RunState{{Run: run}}})[0]
}

func TestCheckShowsTheLog(t *testing.T) {
	t.Parallel()
	c := logged(&v1alpha1.RunLog{Steps: []v1alpha1.StepLog{
		{Task: "unit", Step: "test", Text: "--- FAIL: TestLogin (0.00s)\n    login_test.go:12: got 500\nFAIL"},
		{Task: "lint", Step: "run", Missing: &v1alpha1.MissingLog{Reason: v1alpha1.LogGone}},
	}})
	golden(t, "check-log", c.Text)
	if c.LogLine != "FAIL" || !strings.HasSuffix(c.Text, c.Log) || c.Log == "" {
		t.Errorf("last line %q, log %q", c.LogLine, c.Log)
	}
}

func TestCheckSaysWhyThereIsNoLog(t *testing.T) {
	t.Parallel()
	until := at(60)
	for name, log := range map[string]*v1alpha1.RunLog{
		"log-pending":     {Until: until},
		"log-forbidden":   {Missing: &v1alpha1.MissingLog{Reason: v1alpha1.LogForbidden, Object: "ci"}},
		"log-secret":      {Missing: &v1alpha1.MissingLog{Reason: v1alpha1.LogSecret, Object: "Secret registry"}},
		"log-secrets":     {Missing: &v1alpha1.MissingLog{Reason: v1alpha1.LogSecrets}},
		"log-unavailable": {Missing: &v1alpha1.MissingLog{Reason: v1alpha1.LogUnavailable}},
		"log-empty": {Steps: []v1alpha1.StepLog{
			{Task: "unit", Step: "test", Missing: &v1alpha1.MissingLog{Reason: v1alpha1.LogEmpty}},
		}},
	} {
		c := logged(log)
		golden(t, name, c.Log)
		if c.Conclusion != Failure {
			t.Errorf("%s: the conclusion is %q", name, c.Conclusion)
		}
	}
	without, nothing := logged(nil), logged(&v1alpha1.RunLog{})
	if without.Text != "<p>The report.</p>" || nothing.Text != without.Text || Digest(without) != Digest(nothing) {
		t.Errorf("%q, %q: a run without a log is reported in another way", without.Text, nothing.Text)
	}
}

// FuzzLogIsInert feeds logs to a check: they must not end the pre element that shows them, and no
// text must be one that GitHub or GitLab acts on, before or after Markdown.
func FuzzLogIsInert(f *testing.F) {
	for _, text := range []string{
		"</pre><script>alert(1)</script>", "```\n@all\n```", "~~~~\n/close\n~~~~", "  /merge\n\t/approve", "@octocat @a/b",
		"<!-- plumbline:comment -->", "<!-- pac-status-app -->", "&lt;b&gt; &#60;b> &amp;", "a\n\n\n# b\n", "\x1b[31mred\x1b[0m",
		"\xff\xfe", "[x](javascript:alert(1)) ![x](http://x)", "<pre>\n</PRE >\n", "| a | b |\n|---|---|", "$\\$`@all`",
	} {
		f.Add(text)
	}
	tag, mention := regexp.MustCompile(`[<>@`+"`"+`]|~~~`), regexp.MustCompile(`(?m)^\s*/`)
	f.Fuzz(func(t *testing.T, text string) {
		c := logged(&v1alpha1.RunLog{Steps: []v1alpha1.StepLog{{Task: text, Step: text, Text: text}}})
		if text == "" {
			return
		}
		_, shown, open := strings.Cut(c.Log, "<pre>\n")
		shown, after, closed := strings.Cut(shown, "\n</pre>")
		if strings.TrimSpace(text) == "" {
			return
		}
		if !open || !closed || after != "" {
			t.Fatalf("the pre element is not the last one: %q", c.Log)
		}
		if tag.MatchString(shown) || mention.MatchString(shown) || strings.Contains("\n"+shown+"\n", "\n\n") {
			t.Errorf("%q is shown as %q", text, shown)
		}
		want := strings.Join(strings.Fields(strings.ToValidUTF8(text, "\uFFFD")), " ")
		if got := strings.Join(strings.Fields(html.UnescapeString(shown)), " "); got != want {
			t.Errorf("people read %q, want %q", got, want)
		}
	})
}
