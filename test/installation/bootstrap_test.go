// SPDX-License-Identifier: Apache-2.0

package installation

import (
	"bufio"
	"context"
	"html"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-ci/plumbline/test/forge"
)

const bootstrapSecret = "bootstrapped" // #nosec G101 -- a name

var (
	opened = regexp.MustCompile(`Open (\S+) in a browser`)
	button = regexp.MustCompile(`action="([^"]+)".*name="manifest" value="([^"]+)"`)
)

// started is a running plumb bootstrap that waits for its user.
type started struct {
	cmd     *exec.Cmd
	out     *bufio.Reader
	errs    strings.Builder
	address string
}

// startBootstrap starts the command, and returns when it has printed the address of its page.
func startBootstrap(ctx context.Context, t *testing.T, plumb tool, namespace, url string) *started {
	t.Helper()
	s := &started{cmd: exec.CommandContext(ctx, plumb.path, "bootstrap", "github", "--organization=newcomers",
		"--webhook-url=https://hooks.example.com/", "--github-url="+shared.Forge.URL(), "--app-secret="+bootstrapSecret,
		"--url="+url, "--namespace="+namespace, "--kubeconfig="+plumb.kubeconfig)}
	s.cmd.Dir, s.cmd.Stderr = t.TempDir(), &s.errs
	out, err := s.cmd.StdoutPipe()
	must(t, err)
	must(t, s.cmd.Start())
	s.out = bufio.NewReader(out)
	line, err := s.out.ReadString('\n')
	found := opened.FindStringSubmatch(line)
	if found == nil {
		_ = s.cmd.Wait()
		t.Fatalf("the first line is %q, %v: %s", line, err, s.errs.String())
	}
	s.address = found[1]
	return s
}

// wait returns what the command has printed, and its error.
func (s *started) wait() (string, error) {
	out, _ := io.ReadAll(s.out)
	err := s.cmd.Wait()
	return string(out) + s.errs.String(), err
}

// confirm submits the form of the page, and follows GitHub's redirect.
func (s *started) confirm(t *testing.T) {
	t.Helper()
	resp, err := http.Get(s.address)
	must(t, err)
	page, err := io.ReadAll(resp.Body)
	must(t, err)
	must(t, resp.Body.Close())
	form := button.FindStringSubmatch(string(page))
	if form == nil {
		t.Fatalf("the page has no form: %s", page)
	}
	resp, err = http.PostForm(html.UnescapeString(form[1]), url.Values{"manifest": {html.UnescapeString(form[2])}})
	must(t, err)
	must(t, resp.Body.Close())
}

// Ctrl-C before the confirmation leaves nothing behind, the next call registers the App and creates
// the first Repository, and another one refuses to register a second App.
func bootstrapGitHub(t *testing.T, plumb tool) {
	ctx := within(t)
	namespace := shared.Cluster.Namespace(t, "first")
	web := shared.Forge.CreateRepo("newcomers", "first", forge.RepoOptions{}).HTMLURL
	secrets := shared.Kube.CoreV1().Secrets(shared.Namespace)
	t.Cleanup(func() {
		_ = secrets.Delete(context.WithoutCancel(ctx), bootstrapSecret, metav1.DeleteOptions{})
	})

	interrupted := startBootstrap(ctx, t, plumb, namespace, web)
	must(t, interrupted.cmd.Process.Signal(os.Interrupt))
	if shown, err := interrupted.wait(); err == nil || !strings.Contains(shown, "Run it again") {
		t.Fatalf("after Ctrl-C: %v: %s", err, shown)
	}
	if _, err := secrets.Get(ctx, bootstrapSecret, metav1.GetOptions{}); err == nil {
		t.Fatal("an interrupted call has left a Secret")
	}

	again := startBootstrap(ctx, t, plumb, namespace, web)
	again.confirm(t)
	shown, err := again.wait()
	if err != nil || !strings.Contains(shown, "/apps/plumbline-newcomers/installations/new") {
		t.Fatalf("the second call: %v: %s", err, shown)
	}
	stored, err := secrets.Get(ctx, bootstrapSecret, metav1.GetOptions{})
	must(t, err)
	id, err := strconv.ParseInt(string(stored.Data["github-application-id"]), 10, 64)
	must(t, err)
	app, known := shared.Forge.AppByID(id)
	if !known || app.PrivateKeyPEM != string(stored.Data["github-private-key"]) ||
		app.WebhookSecret != string(stored.Data["webhook.secret"]) {
		t.Error("the Secret has not the credentials of the registered App")
	}
	shared.Forge.Install(id, "newcomers")
	first, err := shared.Plumbline.PipelinesascodeV1alpha1().Repositories(namespace).Get(ctx, "first", metav1.GetOptions{})
	if err != nil || first.Spec.URL != web {
		t.Errorf("the first Repository: %v", err)
	}

	code, shown, err := plumb.run(ctx, "bootstrap", "github", "--organization=newcomers", "--app-secret="+bootstrapSecret,
		"--webhook-url=https://hooks.example.com/", "--github-url="+shared.Forge.URL())
	if code == 0 || err != nil || !strings.Contains(shown, "it exists already, so there is an App") {
		t.Errorf("a third call: exit %d, %v: %s", code, err, shown)
	}
}
