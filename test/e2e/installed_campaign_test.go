// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
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

// livecampaign, with the rights of config/examples and no others, refuses patches of the canary's
// runs and deletes the copies of its webhook secret, finds nothing that was not as promised, and
// leaves nothing behind: neither at its end, nor when it is interrupted, nor, with --clean, when it
// was killed.
func TestACampaignAgainstAnInstallation(t *testing.T) {
	onlyInTestAll(t)
	t.Parallel()
	w := newWorld(t, setup{receivers: 1, controllers: 1})
	w.claimed()
	p := w.newLiveCampaigns()

	asked := p.start("no\n")
	p.ends(asked, 2, "policy: create the ValidatingAdmissionPolicy "+p.policy, "Type yes to start", "nothing was done")
	p.leaves(0, "without a yes")

	pushes := filepath.Join(t.TempDir(), "pushes")
	c := p.start("", "--yes", "--faults=policy,secrets", "--minutes=0.8", "--refuse-for=40s", "--pause=1s", "--push-command=echo one >> "+pushes, "--every=20s")
	p.refuses(c)
	sha, delivery := w.push(map[string]string{".tekton/push.yaml": pipeline("canary", "push", held)})
	w.deliver(delivery, http.StatusAccepted)
	event := w.created(sha)
	p.enforced(event.Status.Runs[0].Name)
	w.release(event)
	w.checkReaches(sha, checkName("canary"), "success", soon)
	p.ends(c, 0, "policy: patches are accepted again", "is back", "push: done", "done: policy ", ", secrets 1,", "patches refused of 1 events", "seen: 1 events, 1 PipelineRuns, of which 0 go on", "violations: 0")
	p.leaves(0, "at the end")
	w.settled(soon)
	if made, err := os.ReadFile(pushes); err != nil || !strings.HasPrefix(string(made), "one\n") {
		t.Errorf("the command of pushes has written %q, %v", made, err)
	}

	long := []string{"--yes", "--faults=policy", "--minutes=10", "--refuse-for=10m"}
	c = p.start("", long...)
	p.refuses(c)
	p.ends(p.start("", long...), 2, "another campaign is under way")
	w.must(c.Process.Signal(os.Interrupt))
	p.ends(c, 2, "interrupted")
	p.leaves(0, "after an interrupt")

	c = p.start("", long...)
	p.refuses(c)
	w.must(c.Process.Signal(syscall.SIGKILL))
	_ = c.Wait()
	p.leaves(2, "after kill -9")
	p.ends(p.start("", "--clean"), 0)
	p.leaves(0, "after --clean")
}

// liveCampaigns starts livecampaign against a world, as somebody who has the rights of
// config/examples/campaign-rights.yaml.
type liveCampaigns struct {
	*world
	path, kubeconfig, policy string
}

// played is one call of it.
type played struct {
	*exec.Cmd
	mu   sync.Mutex
	text bytes.Buffer
}

func (p *played) Write(data []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.text.Write(data)
}

func (p *played) said() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.text.String()
}

func (w *world) newLiveCampaigns() *liveCampaigns {
	w.t.Helper()
	root, err := cluster.Root()
	w.must(err)
	rights, err := os.ReadFile(filepath.Join(root, "config", "examples", "campaign-rights.yaml"))
	w.must(err)
	account := "livecampaign-" + w.Namespace
	w.must(w.Cluster.Apply(w.ctx, []byte(strings.NewReplacer(
		"namespace: plumbline", "namespace: "+w.Namespace, "namespace: canary", "namespace: "+w.ci, "name: livecampaign", "name: "+account,
	).Replace(string(rights)))))
	token, err := w.Cluster.Token(w.ctx, w.Namespace, account)
	w.must(err)
	dir := w.t.TempDir()
	p := &liveCampaigns{world: w, path: filepath.Join(dir, "livecampaign"), kubeconfig: filepath.Join(dir, "kubeconfig"), policy: w.ci + ".app.campaign.plumbline.dev"}
	w.must(w.Cluster.WriteKubeconfig(p.kubeconfig, token))
	w.must(installation.Compile(w.ctx, dir, "./test/livecampaign/cmd/livecampaign"))
	return p
}

func (p *liveCampaigns) start(in string, args ...string) *played {
	p.t.Helper()
	args = append([]string{"--kubeconfig=" + p.kubeconfig, "--namespace=" + p.ci, "--repository=app", "--system-namespace=" + p.Namespace}, args...)
	if in != "" { // there are no pods of Deployments in a test's cluster
		args = append(args, "--faults=policy,secrets")
	}
	c := &played{Cmd: exec.CommandContext(p.ctx, p.path, args...)}
	c.Stdin, c.Stdout, c.Stderr = strings.NewReader(in), c, c
	p.must(c.Start())
	return c
}

// ends waits for the end of a call and requires its exit code and words.
func (p *liveCampaigns) ends(c *played, code int, words ...string) {
	p.t.Helper()
	if err := c.Wait(); c.ProcessState == nil || c.ProcessState.ExitCode() != code || !containsAll(c.said(), words...) {
		p.t.Errorf("livecampaign ends with %v, want %d, and says\n%s\nwant in it %q", err, code, c.said(), words)
	}
}

// refuses waits until a campaign has begun to refuse patches.
func (p *liveCampaigns) refuses(c *played) {
	p.t.Helper()
	p.eventually(soon, "patches are refused", func() error {
		if !strings.Contains(c.said(), "patches of the canary's PipelineRuns are refused") {
			return errors.New(c.said())
		}
		return nil
	})
}

// enforced waits until the API server, which hears of the policy a moment later, refuses a patch by
// the controller, and requires that it refuses nobody else's.
func (p *liveCampaigns) enforced(run string) {
	p.t.Helper()
	controller, patch, dry := p.asController(), []byte(`{"metadata":{"annotations":{"probe":"1"}}}`), metav1.PatchOptions{DryRun: []string{metav1.DryRunAll}}
	p.eventually(soon, "the policy is enforced", func() error {
		_, err := controller.TektonV1().PipelineRuns(p.ci).Patch(p.ctx, run, types.MergePatchType, patch, dry)
		if err == nil || !strings.Contains(err.Error(), p.policy) {
			return fmt.Errorf("the patch is answered %w", err)
		}
		return nil
	})
	_, err := p.Tekton.TektonV1().PipelineRuns(p.ci).Patch(p.ctx, run, types.MergePatchType, patch, dry)
	p.must(err)
}

// leaves requires that so many policies and bindings of a campaign are there.
func (p *liveCampaigns) leaves(want int, when string) {
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
