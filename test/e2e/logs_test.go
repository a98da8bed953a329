// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"encoding/base64"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	tekton "github.com/tektoncd/pipeline/pkg/apis/pipeline"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/plumbline-ci/plumbline/test/cluster"
)

// written and answered are annotation lines: what a failing step writes, and what the kubelet
// answers.
func written(log string) string { return cluster.LogAnnotation + ": " + fmt.Sprintf("%q", log) }

func answered(answer string) string {
	return cluster.LogAnswerAnnotation + ": " + fmt.Sprintf("%q", answer)
}

// seesSecrets gives the step of a pipeline Secrets in each place from which it can read them.
func seesSecrets(file string) string {
	file = strings.Replace(onTekton(file), "              script: exit 0\n", `              script: exit 0
              env: [{name: A, valueFrom: {secretKeyRef: {name: of-env, key: value}}}]
              envFrom: [{secretRef: {name: of-env-from}}]
          sidecars:
            - {name: side, image: busybox, script: sleep 1, envFrom: [{secretRef: {name: of-sidecar}}]}
          volumes:
            - {name: v, secret: {secretName: of-volume}}
            - {name: p, projected: {sources: [{secret: {name: of-projected}}]}}
            - {name: o, secret: {secretName: that-never-was, optional: true}}
          workspaces: [{name: auth}, {name: shared}]
        workspaces: [{name: auth, workspace: auth}, {name: shared, workspace: shared}]
`, 1)
	file = strings.Replace(file, "  pipelineSpec:\n", `  workspaces:
    - {name: auth, secret: {secretName: "{{ git_auth_secret }}"}}
    - {name: shared, secret: {secretName: of-workspace}}
  pipelineSpec:
    workspaces: [{name: auth}, {name: shared}]
`, 1)
	return file
}

// The check of a failed run has the last lines of the step's log. Of each Secret that the run could
// see, none of 200 random places in the log reaches the Git service: requireNoSecretLeaked reads
// all that it has received.
func TestLogOnACheckHasNoSecret(t *testing.T) {
	s := setup{
		receivers:   1,
		controllers: 1,
		config:      [][3]string{{"plumbline", "error-log-snippet-number-of-lines", "200"}},
	}
	forBothServices(t, s, logHasNoSecret)
}

func logHasNoSecret(t *testing.T, env *environment) {
	references := []string{
		"secret {{ git_auth_secret }}/git-provider-token",
		"base64 {{ git_auth_secret }}/git-provider-token",
	}
	for _, name := range []string{"of-env", "of-env-from", "of-sidecar", "of-volume", "of-projected", "of-workspace"} {
		value := make([]byte, 18+rand.IntN(30))
		for i := range value {
			value[i] = byte(rand.UintN(256))
		}
		env.createTeamSecret(name, "value", base64.RawURLEncoding.EncodeToString(value)[:20+rand.IntN(4)]+"\n"+
			base64.RawStdEncoding.EncodeToString(value))
		references = append(references, "secret "+name+"/value", "base64 "+name+"/value")
	}
	var log strings.Builder
	for n := range 200 {
		before := strings.Repeat("x", rand.IntN(9))
		fmt.Fprintf(&log, "%s<%s>%s", before, references[n%len(references)], []string{" ", "\n", "\t", "~\n"}[rand.IntN(4)])
	}
	log.WriteString("\nFAIL: the last line of the log")
	sha := env.pushAccepted(map[string]string{
		".tekton/a.yaml": seesSecrets(pipeline("prints", "push", fails, written(log.String()))),
	})
	check := env.awaitCheck(sha, checkName("prints"), "failure", soon)
	env.eventually(soon, "the check has the last line", func() error { // on a busy machine it is added later
		if check = env.awaitCheck(sha, checkName("prints"), "failure", soon); !check.Tells("FAIL: the last line of the log") {
			return fmt.Errorf("it says %+v", check)
		}
		return nil
	})
	if !check.Line && strings.Count(check.Text, "*****") < 50 {
		t.Errorf("little is masked: %s", check.Text)
	}
	env.awaitSettled(sha, soon)
}

// What the kubelet answers changes no verdict, and the check says why it has no log. A log that
// comes late is added. GitLab shows the last line of a log, and not why there is none.
func TestCheckSaysWhyItHasNoLog(t *testing.T) {
	forBothServices(t, setup{receivers: 1, controllers: 1}, saysWhyItHasNoLog)
}

func saysWhyItHasNoLog(t *testing.T, env *environment) {
	sha := env.pushAccepted(map[string]string{
		".tekton/a.yaml": onTekton(pipeline("hangs", "push", fails, answered("hang"), written("it comes late"))),
		".tekton/b.yaml": onTekton(pipeline("fails", "push", fails, answered("500"), written("it works again"))),
		".tekton/c.yaml": onTekton(pipeline("missing", "push", fails, answered("404"))),
		".tekton/d.yaml": onTekton(pipeline("prints", "push", fails, written("</pre>```\n@all\n/close"))),
	})
	event := env.awaitRunsCreated(sha)
	says := func(name, words string) {
		if check := env.awaitCheck(sha, checkName(name), "failure", soon); !check.Line {
			env.awaitLog(sha, name, words)
		}
	}
	// These two come first: a minute after its run has ended, a log is given up.
	for _, name := range []string{"hangs", "fails"} {
		says(name, "not available yet")
		if found := env.eventAt(sha); found.Settled() {
			t.Errorf("the event is settled before the log of %s is read", name)
		}
		env.answerLogs(runName(event, name))
	}
	says("missing", "no longer exists")
	says("prints", "&lt;/pre&gt;")
	for name, words := range map[string]string{"hangs": "it comes late", "fails": "it works again"} {
		env.awaitLog(sha, name, words)
		if check := env.awaitCheck(sha, checkName(name), "failure", soon); !check.Line { // GitLab keeps replaced statuses
			env.requireOneCheck(sha, checkName(name))
		}
	}
	env.awaitSettled(sha, soon)
}

// Without the optional ClusterRole, checks conclude and say what is missing. The same is true of
// the right to read Secrets.
func TestLogsNeedTheirRights(t *testing.T) {
	env := newClaimedEnvironment(t, setup{receivers: 1, controllers: 1, system: rightsNamespace})
	env.createTeamSecret("of-team", "value", "a-value-of-the-team")
	reads := strings.Replace(onTekton(pipeline("reads", "push", fails)), "script: exit 0\n",
		"script: exit 0\n              envFrom: [{secretRef: {name: of-team}}]\n", 1)
	for _, test := range []struct{ role, resource, verb, words string }{
		{"plumbline-controller-logs", "pods", "list", "may not read logs in namespace " + env.ci},
		{"plumbline-controller-secrets", "secrets", "get", "cannot read all Secrets"},
		{"", "", "", "the log of container step-step"},
	} {
		restore := func() {}
		if test.role != "" {
			restore = env.revokeRightOf(test.role, "", test.resource, test.verb)
		}
		sha := env.pushAccepted(map[string]string{".tekton/a.yaml": reads})
		env.awaitLog(sha, "reads", test.words)
		env.awaitSettled(sha, soon)
		restore()
	}
}

// awaitLog waits until the check of a failed run shows the words. On a busy machine they are added
// after the conclusion.
func (env *environment) awaitLog(sha, name, words string) {
	env.t.Helper()
	env.eventually(soon, fmt.Sprintf("the check of %s shows %q", name, words), func() error {
		if check := env.awaitCheck(sha, checkName(name), "failure", soon); !strings.Contains(check.Title+check.Text, words) {
			return fmt.Errorf("it says %+v", check)
		}
		return nil
	})
}

// answerLogs lets the kubelet answer requests for the logs of a run.
func (env *environment) answerLogs(run string) {
	env.t.Helper()
	pods, err := env.Kube.CoreV1().Pods(env.ci).List(env.ctx,
		metav1.ListOptions{LabelSelector: tekton.PipelineRunLabelKey + "=" + run})
	env.must(err)
	patch := fmt.Sprintf(`{"metadata":{"annotations":{%q:null}}}`, cluster.LogAnswerAnnotation)
	for _, pod := range pods.Items {
		env.must(errOf(env.Kube.CoreV1().Pods(env.ci).Patch(env.ctx, pod.Name, types.MergePatchType, []byte(patch),
			metav1.PatchOptions{})))
	}
}
