// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/plumbline-ci/plumbline/test/cluster"
	"github.com/plumbline-ci/plumbline/test/installation"
)

// The live campaign runs with the rights of config/examples alone, refuses patches of the canary's
// runs and deletes the copies of its webhook secret. It finds no broken promise and leaves nothing
// behind: neither at its end, nor when it is interrupted, nor, with --clean, when it was killed.
func TestCampaignAgainstInstallation(t *testing.T) {
	onlyInTestAll(t)
	t.Parallel()
	env := newClaimedEnvironment(t, setup{receivers: 1, controllers: 1})
	p := env.newLiveCampaigns()

	asked := p.start("no\n")
	p.requireExit(asked, 2, "policy: create the ValidatingAdmissionPolicy "+p.policy, "Type yes to start",
		"nothing was done")
	p.requirePolicies(0, "without a yes")

	pushes := filepath.Join(t.TempDir(), "pushes")
	c := p.start("", "--yes", "--faults=policy,secrets", "--minutes=0.8", "--refuse-for=40s", "--pause=1s",
		"--push-command=echo one >> "+pushes, "--every=20s")
	p.awaitRefusals(c)
	sha := env.pushAccepted(map[string]string{".tekton/push.yaml": pipeline("canary", "push", held)})
	event := env.awaitRunsCreated(sha)
	p.awaitEnforced(event.Status.Runs[0].Name)
	env.releaseRuns(event)
	env.awaitCheck(sha, checkName("canary"), "success", soon)
	p.requireExit(c, 0, "policy: patches are accepted again", "is back", "push: done", "done: policy ", ", secrets 1,",
		"patches refused of 1 events", "seen: 1 events, 1 PipelineRuns, of which 0 go on", "violations: 0")
	p.requirePolicies(0, "at the end")
	env.awaitAllSettled(soon)
	if made, err := os.ReadFile(pushes); err != nil || !strings.HasPrefix(string(made), "one\n") {
		t.Errorf("the command of pushes has written %q, %v", made, err)
	}

	long := []string{"--yes", "--faults=policy", "--minutes=10", "--refuse-for=10m"}
	c = p.start("", long...)
	p.awaitRefusals(c)
	p.requireExit(p.start("", long...), 2, "another campaign is under way")
	env.must(c.Process.Signal(os.Interrupt))
	p.requireExit(c, 2, "interrupted")
	p.requirePolicies(0, "after an interrupt")

	c = p.start("", long...)
	p.awaitRefusals(c)
	env.must(c.Process.Signal(syscall.SIGKILL))
	_ = c.Wait()
	p.requirePolicies(2, "after kill -9")
	p.requireExit(p.start("", "--clean"), 0)
	p.requirePolicies(0, "after --clean")
}

// liveCampaigns starts livecampaign against an environment, as somebody who has the rights of
// config/examples/campaign-rights.yaml.
type liveCampaigns struct {
	*environment
	path, kubeconfig, policy string
}

// campaignRun is one call of livecampaign.
type campaignRun struct {
	*exec.Cmd
	mu   sync.Mutex
	text bytes.Buffer
}

func (p *campaignRun) Write(data []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.text.Write(data)
}

func (p *campaignRun) output() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.text.String()
}

func (env *environment) newLiveCampaigns() *liveCampaigns {
	env.t.Helper()
	root, err := cluster.Root()
	env.must(err)
	rights, err := os.ReadFile(filepath.Join(root, "config", "examples", "campaign-rights.yaml"))
	env.must(err)
	account := "livecampaign-" + env.Namespace
	env.must(env.Cluster.Apply(env.ctx, []byte(strings.NewReplacer(
		"namespace: plumbline", "namespace: "+env.Namespace, "namespace: canary", "namespace: "+env.ci, "name: livecampaign",
		"name: "+account,
	).Replace(string(rights)))))
	token, err := env.Cluster.Token(env.ctx, env.Namespace, account)
	env.must(err)
	dir := env.t.TempDir()
	p := &liveCampaigns{environment: env, path: filepath.Join(dir, "livecampaign"),
		kubeconfig: filepath.Join(dir, "kubeconfig"), policy: env.ci + ".app.campaign.plumbline.dev"}
	env.must(env.Cluster.WriteKubeconfig(p.kubeconfig, token))
	env.must(installation.Compile(env.ctx, dir, "./test/livecampaign/cmd/livecampaign"))
	return p
}

func (p *liveCampaigns) start(in string, args ...string) *campaignRun {
	p.t.Helper()
	args = append([]string{
		"--kubeconfig=" + p.kubeconfig, "--namespace=" + p.ci, "--repository=app", "--system-namespace=" + p.Namespace,
	}, args...)
	if in != "" { // there are no pods of Deployments in a test's cluster
		args = append(args, "--faults=policy,secrets")
	}
	c := &campaignRun{Cmd: exec.CommandContext(p.ctx, p.path, args...)}
	c.Stdin, c.Stdout, c.Stderr = strings.NewReader(in), c, c
	p.must(c.Start())
	return c
}

// requireExit waits for the end of a call and requires its exit code and words.
func (p *liveCampaigns) requireExit(c *campaignRun, code int, words ...string) {
	p.t.Helper()
	if err := c.Wait(); c.ProcessState == nil || c.ProcessState.ExitCode() != code || !containsAll(c.output(), words...) {
		p.t.Errorf("livecampaign ends with %v, want %d, and says\n%s\nwant in it %q", err, code, c.output(), words)
	}
}

// awaitRefusals waits until a campaign has begun to refuse patches.
func (p *liveCampaigns) awaitRefusals(c *campaignRun) {
	p.t.Helper()
	p.eventually(soon, "patches are refused", func() error {
		if !strings.Contains(c.output(), "patches of the canary's PipelineRuns are refused") {
			return errors.New(c.output())
		}
		return nil
	})
}

// awaitEnforced waits until the API server refuses the controller's patch, and requires that it
// refuses no other account's. The API server sees the policy a moment after its creation.
func (p *liveCampaigns) awaitEnforced(run string) {
	p.t.Helper()
	controller, patch, dry := p.asController(), []byte(`{"metadata":{"annotations":{"probe":"1"}}}`),
		metav1.PatchOptions{DryRun: []string{metav1.DryRunAll}}
	p.eventually(soon, "the policy is enforced", func() error {
		_, err := controller.TektonV1().PipelineRuns(p.ci).Patch(p.ctx, run, types.MergePatchType, patch, dry)
		if err == nil || !strings.Contains(err.Error(), p.policy) {
			return fmt.Errorf("the patch is answered %w", err)
		}
		return nil
	})
	p.must(errOf(p.Tekton.TektonV1().PipelineRuns(p.ci).Patch(p.ctx, run, types.MergePatchType, patch, dry)))
}

// requirePolicies requires that there are so many policies and bindings of a campaign.
func (p *liveCampaigns) requirePolicies(want int, when string) {
	p.t.Helper()
	named := metav1.ListOptions{FieldSelector: "metadata.name=" + p.policy}
	policies, err := p.Kube.AdmissionregistrationV1().ValidatingAdmissionPolicies().List(p.ctx, named)
	p.must(err)
	bindings, err := p.Kube.AdmissionregistrationV1().ValidatingAdmissionPolicyBindings().List(p.ctx, named)
	p.must(err)
	if left := len(policies.Items) + len(bindings.Items); left != want {
		p.t.Errorf("%s there are %d policies and bindings, want %d", when, left, want)
	}
}
