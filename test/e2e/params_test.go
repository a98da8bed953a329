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

// A branch with a hostile name, the payload, a param with a filter and one from a Secret that is
// created late. The Secret's value reaches the PipelineRun and nothing else: no check, no
// GitEvent, no stored plan, no log.
func TestParamsAndVariables(t *testing.T) {
	t.Parallel()
	env := newEnvironment(t, setup{receivers: 1})
	env.startController(false, "-operator-retry="+operatorRetry.String())
	env.awaitClaimed()
	env.setParams(`[
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
	env.push(map[string]string{".tekton/a.yaml": text})
	sha := env.git.commit(branch, forge.Change{Files: map[string]string{"a.go": "package a"}, Message: "a change"})
	number := env.forge.OpenPullRequest(forge.NewPull{Base: repoName, HeadBranch: branch, Title: "A change"})
	env.forge.LabelPull(repoName, number, "one")
	env.deliver(env.git.pulled(number, "opened"), http.StatusAccepted)
	check := env.awaitCheck(sha, checkName("hello"), "queued", soon)
	if !strings.Contains(check.Text, "secret "+env.ci+"/passwords, which does not exist: create it with the key one") {
		t.Errorf("the check says %q, want which secret is missing", check.Text)
	}
	env.createTeamSecret("passwords", "one", secretWord)
	env.awaitCheck(sha, checkName("hello"), "success", soon)
	env.awaitAllSettled(soon)
	want := map[string]string{
		"list": "[one]", "number": fmt.Sprintf("#%d", number), "branch": branch, "stage": "prod",
		"login": "user:" + secretWord, "files": `["a.go"]`, "revision": sha,
	}
	runs := env.runs()
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
	env.requireTextNotLeaked("word of the team")
}

// A task fails with the secret in its message, and another PipelineRun is refused for its secret.
// The checks say what failed without the secret. What is stored meanwhile has a marker instead of
// it.
func TestFailedRunsLeakNoSecret(t *testing.T) {
	t.Parallel()
	env := newClaimedEnvironment(t, setup{receivers: 1, controllers: 1})
	env.createTeamSecret("passwords", "one", secretWord)
	env.setParams(`[{"name":"password","secret_ref":{"name":"passwords","key":"one"}}]`)
	secretParam := "  params:\n    - {name: password, value: '{{ password }}'}\n"
	sha := env.pushAccepted(map[string]string{
		".tekton/a.yaml": strings.Replace(onTekton(pipeline("held", "push", held)), "  params:\n", secretParam, 1),
		".tekton/b.yaml": strings.Replace(onTekton(pipeline("refused", "push")), "  params:\n",
			"  timeouts: {pipeline: '{{ password }}'}\n  params:\n", 1),
		".tekton/c.yaml": strings.Replace(onTekton(pipeline("denied", "push")), "    - name: revision\n",
			"    - name: '{{ password }}'\n      value: x\n    - name: '{{ password }}'\n", 1),
	})
	env.awaitCheck(sha, checkName("held"), "in_progress", soon)
	event := &env.events()[0]
	for _, name := range []string{"refused", "denied"} {
		check := env.awaitCheck(sha, checkName(name), "failure", soon)
		t.Logf("%s: %s", name, check.Text)
	}
	data, err := blob.Expand(event.Status.Plan.Manifests)
	if err != nil || strings.Contains(string(data), "word of the team") ||
		!strings.Contains(string(data), "plumbline-secret-") {
		t.Errorf("%v, the stored plan: %s", err, data)
	}
	env.setSpecStatus(runName(event, "held"), pipelinev1.PipelineRunSpecStatusCancelled)
	env.awaitCheck(sha, checkName("held"), "cancelled", soon)
	env.awaitAllSettled(soon)
	env.requireTextNotLeaked("word of the team")
	secrets, err := env.Kube.CoreV1().Secrets(env.Namespace).List(env.ctx, metav1.ListOptions{})
	env.must(err)
	for _, secret := range secrets.Items {
		if strings.HasSuffix(secret.Name, "-plan") {
			t.Errorf("secret %s is left", secret.Name)
		}
	}
}

// createTeamSecret creates a Secret next to the Repository.
func (env *environment) createTeamSecret(name, key, value string) {
	env.t.Helper()
	env.must(errOf(env.Kube.CoreV1().Secrets(env.ci).Create(env.ctx, &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: name}, StringData: map[string]string{key: value},
	}, metav1.CreateOptions{})))
}

// requireTextNotLeaked requires that a text is in no write to the Git service, no GitEvent, no
// Kubernetes Event, and no log.
func (env *environment) requireTextNotLeaked(text string) {
	env.t.Helper()
	kubernetes, err := env.Kube.CoreV1().Events(env.ci).List(env.ctx, metav1.ListOptions{})
	env.must(err)
	for what, said := range map[string]any{"a GitEvent": env.events(), "a write to the Git service": env.git.log().writes,
		"a Kubernetes Event": kubernetes.Items} {
		data, err := json.Marshal(said)
		env.must(err)
		if strings.Contains(string(data), text) {
			env.t.Errorf("%s tells of it: %s", what, data)
		}
	}
	for _, p := range append(env.receivers, env.controllers...) {
		if strings.Contains(env.processLog(p), text) {
			env.t.Errorf("%s tells of it", p.Log())
		}
	}
}
