// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	pipelinev1 "github.com/tektoncd/pipeline/pkg/apis/pipeline/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-ci/plumbline/pkg/store/blob"
	"github.com/plumbline-ci/plumbline/test/forge"
)

const secretWord = `pass"word of the team`

// 3.12: a branch with a hostile name, the payload, a param with a filter and one from a Secret that
// is made late. The value reaches the PipelineRun and nothing else: no check, no GitEvent, no
// stored plan, no log.
func TestParamsAndVariables(t *testing.T) {
	t.Parallel()
	w := newWorld(t, setup{receivers: 1})
	w.startController(false, "-operator-retry="+operatorRetry.String())
	w.claimed()
	w.parameter(`[
		{"name":"stage","value":"prod","filter":"pac.target_branch == 'main'"}, {"name":"stage","value":"test","filter":"pac.target_branch != 'main'"},
		{"name":"password","secret_ref":{"name":"passwords","key":"one"}}]`)
	const branch = `it's-"{{revision}}",a:b`
	text := strings.Replace(pipeline("hello", "pull_request"), "  params:\n", `  params:
    - {name: list, value: {{ cel: body.pull_request.labels.map(l, l.name) }}}
    - {name: number, value: "#{{ body.number }}"}
    - {name: branch, value: "{{ source_branch }}"}
    - {name: stage, value: {{ stage }}}
    - {name: login, value: "user:{{ password }}"}
    - {name: files, value: "{{ files.all }}"}
`, 1)
	w.push(map[string]string{".tekton/a.yaml": text})
	sha := w.git.commit(branch, forge.Change{Files: map[string]string{"a.go": "package a"}, Message: "a change"})
	number := w.forge.OpenPullRequest(forge.NewPull{Base: repoName, HeadBranch: branch, Title: "A change"})
	w.forge.LabelPull(repoName, number, "one")
	w.deliver(w.git.pulled(number, "opened"), http.StatusAccepted)
	check := w.checkReaches(sha, checkName("hello"), "queued", soon)
	if !strings.Contains(check.Text, "secret "+w.ci+"/passwords, which does not exist: create it with the key one") {
		t.Errorf("the check says %q, want which secret is missing", check.Text)
	}
	w.keeps("passwords", "one", secretWord)
	w.checkReaches(sha, checkName("hello"), "success", soon)
	w.settled(soon)
	want := map[string]string{
		"list": "[one]", "number": fmt.Sprintf("#%d", number), "branch": branch, "stage": "prod", "login": "user:" + secretWord, "files": `["a.go"]`, "revision": sha,
	}
	runs := w.runs()
	if len(runs) != 1 {
		t.Fatalf("%d runs", len(runs))
	}
	for _, p := range runs[0].Spec.Params {
		got := p.Value.StringVal
		if p.Value.Type == pipelinev1.ParamTypeArray {
			got = fmt.Sprint(p.Value.ArrayVal)
		}
		if got != want[p.Name] {
			t.Errorf("param %s is %q, want %q", p.Name, got, want[p.Name])
		}
	}
	w.toldNothingOf("word of the team")
}

// A task that fails with the secret in its message: the check tells what failed without it; a
// PipelineRun that is refused for it, too. What is stored meanwhile holds a marker.
func TestSecretsOfRunsThatFail(t *testing.T) {
	t.Parallel()
	w := newWorld(t, setup{receivers: 1, controllers: 1})
	w.claimed()
	w.keeps("passwords", "one", secretWord)
	w.parameter(`[{"name":"password","secret_ref":{"name":"passwords","key":"one"}}]`)
	secretParam := "  params:\n    - {name: password, value: '{{ password }}'}\n"
	sha, delivery := w.push(map[string]string{
		".tekton/a.yaml": strings.Replace(onTekton(pipeline("held", "push", held)), "  params:\n", secretParam, 1),
		".tekton/b.yaml": strings.Replace(onTekton(pipeline("refused", "push")), "  params:\n", "  timeouts: {pipeline: '{{ password }}'}\n  params:\n", 1),
		".tekton/c.yaml": strings.Replace(onTekton(pipeline("denied", "push")), "    - name: revision\n", "    - name: '{{ password }}'\n      value: x\n    - name: '{{ password }}'\n", 1),
	})
	w.deliver(delivery, http.StatusAccepted)
	w.checkReaches(sha, checkName("held"), "in_progress", soon)
	event := &w.events()[0]
	for _, name := range []string{"refused", "denied"} {
		check := w.checkReaches(sha, checkName(name), "failure", soon)
		t.Logf("%s: %s", name, check.Text)
	}
	data, err := blob.Expand(event.Status.Plan.Manifests)
	if err != nil || strings.Contains(string(data), "word of the team") || !strings.Contains(string(data), "plumbline-secret-") {
		t.Errorf("%v, the stored plan: %s", err, data)
	}
	w.ask(runOf(event, "held"), pipelinev1.PipelineRunSpecStatusCancelled)
	w.checkReaches(sha, checkName("held"), "cancelled", soon)
	w.settled(soon)
	w.toldNothingOf("word of the team")
	secrets, err := w.Kube.CoreV1().Secrets(w.Namespace).List(w.ctx, metav1.ListOptions{})
	w.must(err)
	for _, secret := range secrets.Items {
		if strings.HasSuffix(secret.Name, "-plan") {
			t.Errorf("secret %s is left", secret.Name)
		}
	}
}

// keeps creates a Secret beside the Repository.
func (w *world) keeps(name, key, value string) {
	w.t.Helper()
	_, err := w.Kube.CoreV1().Secrets(w.ci).Create(w.ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: name}, StringData: map[string]string{key: value}}, metav1.CreateOptions{})
	w.must(err)
}

// toldNothingOf requires that a text is in no write to the Git service, no GitEvent, no Kubernetes
// Event, and no log.
func (w *world) toldNothingOf(text string) {
	w.t.Helper()
	kubernetes, err := w.Kube.CoreV1().Events(w.ci).List(w.ctx, metav1.ListOptions{})
	w.must(err)
	for what, said := range map[string]any{"a GitEvent": w.events(), "a write to the Git service": w.git.log().writes, "a Kubernetes Event": kubernetes.Items} {
		data, err := json.Marshal(said)
		w.must(err)
		if strings.Contains(string(data), text) {
			w.t.Errorf("%s tells of it: %s", what, data)
		}
	}
	for _, p := range append(w.receivers, w.controllers...) {
		if strings.Contains(w.log(p), text) {
			w.t.Errorf("%s tells of it", p.Log())
		}
	}
}
