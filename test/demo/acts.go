// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/test/cluster"
)

// refusals is how many refused patches act (a) waits for before it brings the webhook back.
const refusals = 3

// webhookDies kills the admission webhook between the create and the first patch.
func (s *stage) webhookDies(ctx context.Context) error {
	dead, lift := s.holdFirstPatch()
	defer lift()
	sha, event, err := s.send(ctx, ".tekton/a.yaml", s.pipeline("survives", "exit 0"))
	if err != nil {
		return err
	}
	run, err := s.created(ctx, event.Name)
	if err != nil {
		return err
	}
	if err := s.until(ctx, "the first patch is held by the proxy",
		func() (bool, error) { return s.patches(0) > 0, nil }); err != nil {
		return err
	}
	if err := s.cluster.Part(cluster.TektonWebhook).Kill(); err != nil {
		return err
	}
	s.say("Tekton's webhook killed (kill -9); the patch that was held goes on")
	close(dead)
	if err := s.refused(ctx, event.Name); err != nil {
		return err
	}
	if err := s.cluster.Part(cluster.TektonWebhook).Start(ctx); err != nil {
		return err
	}
	s.say("Tekton's webhook is back")
	if err := s.patched(ctx, run); err != nil {
		return err
	}
	ended, err := s.cluster.WaitRun(ctx, tenant, run)
	if err != nil {
		return err
	}
	s.say("PipelineRun ended: Succeeded=%s (%s)", ended.Status, ended.Reason)
	return s.ends(ctx, sha, "survives", "success", "")
}

// holdFirstPatch holds the first patch of a PipelineRun at each controller's proxy until the
// channel is closed.
func (s *stage) holdFirstPatch() (chan struct{}, func()) {
	dead := make(chan struct{})
	var lifts []func()
	for _, p := range s.controllers {
		p.Proxy.Reset()
		armed := p.Proxy.Add(cluster.Rule{Match: isPatch, Count: 1, Do: cluster.Hold(dead)})
		lifts = append(lifts, armed.Remove)
	}
	return dead, sync.OnceFunc(func() {
		for _, lift := range lifts {
			lift()
		}
	})
}

func isPatch(c cluster.Call) bool { return c.Is("patch", "pipelineruns") }

// patches counts the patches of PipelineRuns, those answered with a status or, for 0, all of them.
func (s *stage) patches(status int) int {
	n := 0
	for _, p := range s.controllers {
		for _, call := range p.Proxy.Calls() {
			if isPatch(call) && (status == 0 || call.Status == status) {
				n++
			}
		}
	}
	return n
}

// refused waits for refused patches and shows the API server's words as the event's condition holds
// them.
func (s *stage) refused(ctx context.Context, event string) error {
	shown := 0
	return s.until(ctx, fmt.Sprintf("the patch is refused %d times", refusals), func() (bool, error) {
		found, err := s.plumbline.Plumbline.PlumblineV1alpha1().GitEvents("plumbline").Get(ctx, event, metav1.GetOptions{})
		if err != nil {
			return false, err
		}
		condition := found.Status.GetCondition(v1alpha1.GitEventAnnotated)
		if condition == nil || !condition.IsFalse() {
			return false, errors.New("condition Annotated is not False yet")
		}
		for n := s.patches(http.StatusInternalServerError); shown < n && shown < refusals; shown++ {
			s.say("patch %d refused: %s", shown+1, condition.Message)
		}
		return shown >= refusals, nil
	})
}

func (s *stage) patched(ctx context.Context, run string) error {
	return s.until(ctx, "the patch is accepted", func() (bool, error) {
		found, err := s.plumbline.Tekton.TektonV1().PipelineRuns(tenant).Get(ctx, run, metav1.GetOptions{})
		if err != nil || found.Annotations[s.git.mark] == "" {
			return false, err
		}
		s.say("patched: %s=%s", s.git.mark, found.Annotations[s.git.mark])
		return true, nil
	})
}

// created waits until the event's first run exists and returns its name.
func (s *stage) created(ctx context.Context, event string) (string, error) {
	var name string
	err := s.until(ctx, "the PipelineRun is created", func() (bool, error) {
		found, err := s.plumbline.Plumbline.PlumblineV1alpha1().GitEvents("plumbline").Get(ctx, event, metav1.GetOptions{})
		if err != nil || len(found.Status.Runs) == 0 {
			return false, err
		}
		name = found.Status.Runs[0].Name
		return found.Status.Runs[0].UID != "", nil
	})
	if err == nil {
		s.say("PipelineRun %s created", name)
	}
	return name, err
}

// tektonRefuses pushes a PipelineRun that Tekton's webhook denies.
func (s *stage) tektonRefuses(ctx context.Context) error {
	broken := strings.Replace(s.pipeline("refused", "exit 0"), "      - name: build\n",
		"      - name: build\n        runAfter: [nothing-of-that-name]\n", 1)
	sha, _, err := s.send(ctx, ".tekton/b.yaml", broken)
	if err != nil {
		return err
	}
	return s.ends(ctx, sha, "refused", s.git.failed, "nothing-of-that-name")
}

// lastLine is the last line of the log of the step that fails.
const lastLine = "add_test.go:9: Add(1, 1) = 3, want 2"

// taskFails pushes a PipelineRun whose step exits 1, and one that starts only for changes in docs/.
// The author then asks what became of them.
func (s *stage) taskFails(ctx context.Context) error {
	fails := s.pipeline("fails", "exit 1", cluster.ExitCodeAnnotation+`: "1"`,
		fmt.Sprintf("%s: %q", cluster.LogAnnotation, "=== RUN   TestAdd\n    "+lastLine))
	docs := s.pipeline("docs", "exit 0", `pipelinesascode.tekton.dev/on-path-change: "[docs/**]"`)
	sha, event, err := s.send(ctx, ".tekton/c.yaml", fails, docs)
	if err != nil {
		return err
	}
	if _, err := s.created(ctx, event.Name); err != nil {
		return err
	}
	if err := s.ends(ctx, sha, "fails", s.git.failed, lastLine); err != nil {
		return err
	}
	return s.why(ctx, "fails", "docs")
}

// why asks what became of the pipelines, and shows the answer, which must name them all.
func (s *stage) why(ctx context.Context, pipelines ...string) error {
	status, body, err := s.git.comment(ctx, s.receivers[0].URL, "/why")
	if err := accepted("comment", status, body, err); err != nil {
		return err
	}
	s.say("%s comments /why on the %s", author, s.git.event)
	var lines []string
	err = s.until(ctx, "/why is answered", func() (bool, error) {
		lines = s.git.reply()
		return len(lines) > 0, nil
	})
	if err != nil {
		return err
	}
	s.say("the answer:")
	for _, line := range lines {
		s.say("    %s", line)
	}
	for _, name := range pipelines {
		if !strings.Contains(strings.Join(lines, "\n"), "* `"+name+"` ") {
			return fmt.Errorf("the answer says nothing about %s", name)
		}
	}
	return nil
}

// ends waits for the check's end, shows it and the service's log of every write of it, and verifies
// both.
func (s *stage) ends(ctx context.Context, sha, pipeline, state, words string) error {
	name := "Pipelines as Code CI / " + pipeline
	var shown verdict
	err := s.until(ctx, "the "+s.git.check+" is completed", func() (bool, error) {
		shown = s.git.current(sha, name)
		return shown.ended, nil
	})
	if err != nil {
		return err
	}
	s.say("%s %q: %s (%s)", s.git.check, name, shown.state, shown.title)
	for _, line := range quoted(shown.text, words) {
		s.say("    %s", line)
	}
	s.say("every write of this %s at the forge:", s.git.check)
	for _, w := range s.git.writes(sha, name) {
		s.say("    %-5s %-60s %s", w.method, w.path, w.says)
		if state != s.git.failed && w.state == s.git.failed {
			return fmt.Errorf("%s %q was reported as failed", s.git.check, name)
		}
	}
	if shown.state != state || !strings.Contains(shown.title+shown.text, words) {
		return fmt.Errorf("%s %q ended as %+v, want %s with %q", s.git.check, name, shown, state, words)
	}
	return nil
}

// quoted returns the lines of a text that hold the words.
func quoted(text, words string) []string {
	var lines []string
	for _, line := range strings.Split(text, "\n") {
		if words != "" && strings.Contains(line, words) {
			lines = append(lines, strings.TrimSpace(line))
		}
	}
	return lines
}

// pipeline is a PipelineRun with one task. What its pod does is played, as annotations tell.
func (s *stage) pipeline(name, script string, annotations ...string) string {
	return fmt.Sprintf(`apiVersion: tekton.dev/v1
kind: PipelineRun
metadata:
  name: %s
  annotations:
    %s
spec:
  pipelineSpec:
    tasks:
      - name: build
        taskSpec:
          steps:
            - name: test
              image: busybox
              script: %s
`, name, strings.Join(append(annotations,
		`pipelinesascode.tekton.dev/on-event: "[pull_request]"`,
		`pipelinesascode.tekton.dev/on-target-branch: "[main]"`), "\n    "), script)
}
