// SPDX-License-Identifier: Apache-2.0

package hostile

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-ci/plumbline/test/forge"
)

// pipeline is one for pushes to any branch, with a further annotation.
func pipeline(name, annotation string) string {
	if annotation == "" {
		annotation = `pipelinesascode.tekton.dev/on-target-branch: "[*]"
    pipelinesascode.tekton.dev/on-event: "[push, pull_request]"`
	}
	return `apiVersion: tekton.dev/v1
kind: PipelineRun
metadata:
  name: ` + name + `
  annotations:
    ` + annotation + `
spec:
  pipelineSpec:
    tasks:
      - name: build
        taskSpec:
          steps: [{name: step, image: busybox, script: exit 0}]
`
}

const (
	mebibyte = 1 << 20
	// bombEvery is the pace of the pushes of hostile definitions.
	bombEvery = time.Second
	// atOnce is how many of the largest plans are asked for at once, before that.
	atOnce = 4
)

// mappings is a mebibyte of YAML, most of it empty mappings.
func mappings(head string) string {
	const one = "{a: },"
	return head + "[" + strings.Repeat(one, (mebibyte-len(head)-2)/len(one)) + "]"
}

// bombs are the branches of the attacker's repository, and what is in them.
func bombs() map[string]map[string]string {
	files, references := map[string]string{}, map[string]string{}
	for n := range 16 {
		files[fmt.Sprintf(".tekton/%d.yaml", n)] = mappings("x: ")
	}
	var tasks []string
	for n := range 100 {
		path := fmt.Sprintf("tasks/%d.yaml", n)
		references[path], tasks = mappings(fmt.Sprintf("apiVersion: tekton.dev/v1\nkind: Task\nmetadata: {name: t%d}\nspec: ",
			n)), append(tasks, path)
	}
	references[".tekton/push.yaml"] = strings.Replace(pipeline("references", ""), "annotations:",
		"annotations:\n    pipelinesascode.tekton.dev/task: \"["+strings.Join(tasks, ", ")+"]\"", 1)
	return map[string]map[string]string{"files": files, "references": references, "copies": copies(200, 990)}
}

// copies are so many PipelineRuns with the same Task, which has so many steps.
func copies(runs, steps int) map[string]string {
	task := "apiVersion: tekton.dev/v1\nkind: Task\nmetadata: {name: large}\nspec: {steps: [" +
		strings.Repeat("{image: busybox, script: "+strings.Repeat("x", 80)+"},", steps) + "]}\n"
	var all []string
	for n := range runs {
		all = append(all, strings.Replace(pipeline(fmt.Sprint("copy-", n), ""),
			"taskSpec:\n          steps: [{name: step, image: busybox, script: exit 0}]", "taskRef: {name: large}", 1))
	}
	return map[string]string{".tekton/task.yaml": task, ".tekton/runs.yaml": strings.Join(all, "---\n")}
}

// yamlBombs commits the definitions. The attacker's namespace may have no PipelineRuns: what is
// planned stays.
func yamlBombs(ctx context.Context, s *stage) error {
	for branch, files := range bombs() {
		s.forge.Commit(evil, branch, forge.Change{Files: files})
	}
	_, err := s.installation.Kube.CoreV1().ResourceQuotas(s.attacker).Create(ctx, &corev1.ResourceQuota{
		ObjectMeta: metav1.ObjectMeta{Name: "none"},
		Spec: corev1.ResourceQuotaSpec{
			Hard: corev1.ResourceList{"count/pipelineruns.tekton.dev": resource.MustParse("0")},
		},
	}, metav1.CreateOptions{})
	return err
}

// pushBombs begins with the largest plans at once, and goes on with each branch in turn.
func pushBombs(ctx context.Context, s *stage, sent *tally) {
	var first sync.WaitGroup
	for range atOnce {
		first.Go(func() { s.bomb(ctx, "copies", sent) })
	}
	first.Wait()
	branches := []string{"files", "references", "copies"}
	every(ctx, bombEvery, func(n int) { s.bomb(ctx, branches[n%len(branches)], sent) })
}

// bomb pushes the same definitions once more.
func (s *stage) bomb(ctx context.Context, branch string, sent *tally) {
	sha := s.forge.Commit(evil, branch, forge.Change{Message: "again"})
	status, err := post(ctx, s.receiver.URL,
		s.forge.PushDelivery(forge.PushEvent{Repo: evil, Ref: "refs/heads/" + branch, After: sha}))
	sent.answered("pushes", status, err)
}

const (
	// requests are an untrusted user's open pull requests, pushed to all at once, and again after
	// pullsEvery.
	requests   = 80
	pullsEvery = 10 * time.Second
	stranger   = "stranger"
	fork       = stranger + "/open"
)

// pulls opens pull requests from an untrusted user's fork.
func pulls(_ context.Context, s *stage) error {
	s.forge.Commit(shown, "main", forge.Change{Files: map[string]string{".tekton/pr.yaml": pipeline("pr", "")}})
	s.forge.AddUser(stranger)
	s.forge.CreateRepo(stranger, "open", forge.RepoOptions{ForkOf: shown})
	for n := range requests {
		branch := fmt.Sprint("branch-", n)
		s.forge.Commit(fork, branch, forge.Change{Message: "change", Author: stranger})
		s.forge.OpenPullRequest(forge.NewPull{Base: shown, Head: fork, HeadBranch: branch, Author: stranger})
	}
	return nil
}

// pushToPulls pushes to all of them at once.
func pushToPulls(ctx context.Context, s *stage, sent *tally) {
	every(ctx, pullsEvery, func(int) {
		for n := range requests {
			s.forge.Commit(fork, fmt.Sprint("branch-", n), forge.Change{Message: "again", Author: stranger})
		}
		var all sync.WaitGroup
		for n := range requests {
			all.Go(func() {
				status, err := post(ctx, s.receiver.URL,
					s.forge.PullRequestDelivery(forge.PullEvent{Repo: shown, Number: n + 1, Action: "synchronize"}))
				sent.answered("pushes to pull requests", status, err)
			})
		}
		all.Wait()
	})
}
