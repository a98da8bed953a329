// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"regexp"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-ci/plumbline/test/forge"
)

// scenario is one row of the table. play returns what was seen.
type scenario struct {
	what  string
	play  func(*node, context.Context) (seen string, err error)
	first bool // the others need it
}

func scenarios() []scenario {
	return []scenario{
		{"the node starts", (*node).boot, true},
		{"Tekton runs as pods", (*node).installTekton, true},
		{"Plumbline runs as pods, and its Repository is Ready", (*node).installPlumbline, true},
		{"Pod Security restricted", (*node).podSecurity, false},
		ends("a step succeeds", pipeline{name: "succeeds", script: "echo the step ran in $HOSTNAME"},
			"success", "", "the step ran in "),
		ends("a step exits with 3", pipeline{name: "exits", script: "echo broken; exit 3"},
			"failure", "exited with code 3", "broken"),
		ends("an image cannot be pulled", pipeline{name: "no-image", image: registry + "/absent:1"},
			"failure", "ImagePull", ""),
		ends("a step takes too much memory", pipeline{name: "memory", script: "exec tail /dev/zero", memory: "32Mi"},
			"failure", "OOMKilled", ""),
		ends("the kubelet evicts a pod", pipeline{name: "fills", script: fill, volume: "8Mi"},
			"failure", "exceeds the limit", ""),
		{"receivers and controllers are replaced under deliveries", (*node).rollout, false},
	}
}

// registry is an address at which nothing listens.
const registry = nodeAddress + ":5000"

// fill writes more to the workspace than it may have.
const fill = "dd if=/dev/zero of=$(workspaces.scratch.path)/file bs=1M count=32; sleep 300"

// chosen are the scenarios that only selects, and those that they need.
func chosen(only *regexp.Regexp) (list []scenario) {
	for _, s := range scenarios() {
		if s.first || only.MatchString(s.what) {
			list = append(list, s)
		}
	}
	return list
}

// pipeline is a PipelineRun with one step, which may run in a restricted namespace.
type pipeline struct{ name, script, image, memory, volume string }

func (p pipeline) manifest() string {
	if p.image == "" {
		p.image = toolsImage
	}
	if p.memory == "" {
		p.memory = "64Mi"
	}
	if p.volume == "" {
		p.volume = "64Mi"
	}
	return fmt.Sprintf(`apiVersion: tekton.dev/v1
kind: PipelineRun
metadata:
  name: %s
  annotations:
    pipelinesascode.tekton.dev/on-event: "[push]"
    pipelinesascode.tekton.dev/on-target-branch: "[main]"
spec:
  taskRunTemplate:
    podTemplate:
      securityContext: {runAsNonRoot: true, runAsUser: 65532, fsGroup: 65532, seccompProfile: {type: RuntimeDefault}}
  workspaces:
    - name: scratch
      emptyDir: {sizeLimit: %s}
  pipelineSpec:
    workspaces: [{name: scratch}]
    tasks:
      - name: build
        workspaces: [{name: scratch, workspace: scratch}]
        taskSpec:
          workspaces: [{name: scratch}]
          steps:
            - name: step
              image: %s
              computeResources: {limits: {memory: %s}}
              securityContext: {allowPrivilegeEscalation: false, capabilities: {drop: [ALL]}}
              script: |
                #!/bin/sh
                %s
`, p.name, p.volume, p.image, p.memory, p.script)
}

// ends is a scenario: a push starts a pipeline, whose check ends with a conclusion and says words.
// log is what the step's log has.
func ends(what string, p pipeline, conclusion, words, log string) scenario {
	return scenario{what: what, play: func(n *node, ctx context.Context) (string, error) {
		begin := time.Now()
		sha, err := n.push(ctx, p)
		if err != nil {
			return "", err
		}
		accepted := time.Since(begin)
		check, err := n.awaitCheck(ctx, sha, p.name)
		if err != nil {
			return "", err
		}
		took, said := time.Since(begin), check.Title+"\n"+check.Summary+"\n"+check.Text
		if check.Conclusion != conclusion || !strings.Contains(strings.ToLower(said), strings.ToLower(words)) {
			return "", fmt.Errorf("the check is %s, want %s with %q:\n%s", check.Conclusion, conclusion, words, said)
		}
		seen := fmt.Sprintf("202 after %d ms, check %s after %.1f s", accepted.Milliseconds(), conclusion, took.Seconds())
		if words != "" {
			seen += ": " + line(said, words)
		}
		if log == "" {
			return seen, nil
		}
		text, err := n.stepLog(ctx, sha)
		if err == nil && !strings.Contains(text, log) {
			err = fmt.Errorf("the step's log is %q, want %q", text, log)
		}
		return seen + fmt.Sprintf("; its log: %q", strings.TrimSpace(text)), err
	}}
}

// line is the first line of a text that has the words, shortened.
func line(text, words string) string {
	for l := range strings.Lines(text) {
		if strings.Contains(strings.ToLower(l), strings.ToLower(words)) {
			return fmt.Sprintf("%.100s", strings.TrimSpace(l))
		}
	}
	return ""
}

// push commits a pipeline, alone, and delivers the push to the receivers' Service.
func (n *node) push(ctx context.Context, p pipeline) (sha string, err error) {
	change := forge.Change{Files: map[string]string{".tekton/run.yaml": p.manifest()}, Message: p.name}
	sha = n.Forge.Commit(busy, mainBranch, change)
	delivery := n.Forge.PushDelivery(forge.PushEvent{Repo: busy, Ref: "refs/heads/" + mainBranch})
	status, body, err := n.Forge.Deliver(ctx, n.receivers, delivery)
	if err != nil {
		return "", fmt.Errorf("delivering a push: %w", err)
	}
	if status != 202 {
		return "", fmt.Errorf("a push is answered %d %s", status, body)
	}
	return sha, nil
}

// awaitCheck waits for the end of a pipeline's check.
func (n *node) awaitCheck(ctx context.Context, sha, name string) (check forge.CheckRun, err error) {
	err = n.Forge.WaitFor(ctx, func(s *forge.State) bool {
		check, _ = s.Current(busy, sha, "Pipelines as Code CI / "+name)
		return check.Status == "completed"
	})
	if err != nil {
		err = fmt.Errorf("waiting for the check, which is %q %q: %w; %w",
			check.Status, check.Title, err, n.complaints(tenant))
	}
	return check, err
}

// stepLog reads the log of the step that a commit started, through the API server and the kubelet.
func (n *node) stepLog(ctx context.Context, sha string) (string, error) {
	pods := n.Kube.CoreV1().Pods(tenant)
	list, err := pods.List(ctx, metav1.ListOptions{LabelSelector: "pipelinesascode.tekton.dev/sha=" + sha})
	if err != nil {
		return "", err
	}
	if len(list.Items) != 1 {
		return "", fmt.Errorf("%d pods of the commit, want 1", len(list.Items))
	}
	log, err := pods.GetLogs(list.Items[0].Name, &corev1.PodLogOptions{Container: "step-step"}).DoRaw(ctx)
	return string(log), err
}
