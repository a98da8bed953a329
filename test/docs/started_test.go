// SPDX-License-Identifier: Apache-2.0

// Package docs follows docs/getting-started.md word by word. The shell and kubectl are real, and so
// are the API server, Tekton, the receiver and the controller. Stand-ins are programs of the page
// that need a network or a container: kind, docker, make images, git's clone and push, cloudflared.
package docs

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-ci/plumbline/test/cluster"
	"github.com/plumbline-ci/plumbline/test/forge"
)

const (
	limit      = 10 * time.Minute
	repository = "acme/app"
	appID      = 42
	check      = "Pipelines as Code CI / hello"
)

// reader is the person at the keyboard, with what they have besides it.
type reader struct {
	t        *testing.T
	ctx      context.Context
	cluster  *cluster.Cluster
	git      *forge.GitHub
	node     *node
	dir      string
	blocks   []string
	pushed   string // the commit
	sawCheck bool

	kind, tunnel string      // the name of kind's cluster, and the local port of the tunnel
	forwarded    chan string // the arguments of kubectl port-forward, which runs in the background
}

func TestReaderFollowsGettingStarted(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	r := &reader{
		t: t, ctx: ctx, cluster: shared.cluster, git: shared.git, dir: t.TempDir(), forwarded: make(chan string, 1),
	}
	r.git.CreateRepo("acme", "app", forge.RepoOptions{})
	r.node = startNode(ctx, t, shared)
	calls := httptest.NewServer(r.handler())
	t.Cleanup(calls.Close)

	page, err := os.ReadFile("../../docs/getting-started.md")
	must(t, err)
	script := r.script(string(page))
	shell := exec.CommandContext(ctx, "bash", "-euo", "pipefail", "-c", script)
	shell.Dir = r.dir
	shell.Stdin = strings.NewReader(fmt.Sprintf("%d\n%s\n", appID, repository))
	shell.Env = append(os.Environ(), r.environment(t, calls.URL)...)
	out, err := shell.CombinedOutput()
	t.Logf("the reader sees:\n%s", out)
	if err != nil {
		t.Fatalf("a command of the page failed: %v", err)
	}
	if !r.sawCheck {
		t.Error("the reader saw no check")
	}
	for _, want := range []string{`(?m)^hello-\S+ +True +\w+`, `(?m)^app +http\S+ +True`} { // kubectl's tables of step 6
		if !regexp.MustCompile(want).Match(out) {
			t.Errorf("kubectl shows nothing like %s", want)
		}
	}
}

// script is every block of the page that a shell runs, in order. After each, the reader does what
// the text between the blocks says.
func (r *reader) script(page string) string {
	var script strings.Builder
	blocks := regexp.MustCompile("(?ms)^```sh\n(.*?)^```$").FindAllStringSubmatch(page, -1)
	if len(blocks) < 8 {
		r.t.Fatalf("the page has %d blocks", len(blocks))
	}
	for _, block := range blocks {
		text := strings.ReplaceAll(block[1], "https://github.com/$REPO", r.git.URL()+"/$REPO")
		fmt.Fprintf(&script, "%s\nafter %d\n", text, len(r.blocks))
		r.blocks = append(r.blocks, block[1])
	}
	return script.String()
}

// environment puts the stand-ins in front of the PATH: this program under other names.
func (r *reader) environment(t *testing.T, calls string) []string {
	t.Helper()
	bin, home := filepath.Join(r.dir, "bin"), filepath.Join(r.dir, "home")
	must(t, os.MkdirAll(bin, 0o755))
	must(t, os.MkdirAll(filepath.Join(home, "Downloads"), 0o755))
	self, err := os.Executable()
	must(t, err)
	for name := range standIns {
		must(t, os.Symlink(self, filepath.Join(bin, name)))
	}
	root, err := cluster.Root()
	must(t, err)
	git, err := exec.LookPath("git")
	must(t, err)
	return []string{
		"PATH=" + bin + string(os.PathListSeparator) + os.Getenv("PATH"),
		"HOME=" + home,
		"KUBECONFIG=" + filepath.Join(home, "kubeconfig"),
		"GIT_AUTHOR_NAME=Ann",
		"GIT_AUTHOR_EMAIL=ann@example.com",
		"GIT_COMMITTER_NAME=Ann",
		"GIT_COMMITTER_EMAIL=ann@example.com",
		envCalls + "=" + calls,
		envRoot + "=" + root,
		envGit + "=" + git,
		envKubectl + "=" + shared.kubectl,
		envCluster + "=" + shared.cluster.KubeconfigPath(),
	}
}

// handler receives the calls of the stand-ins.
func (r *reader) handler() http.Handler {
	mux := http.NewServeMux()
	handle := func(pattern string, do func(request *http.Request) error) {
		mux.HandleFunc(pattern, func(w http.ResponseWriter, request *http.Request) {
			if err := do(request); err != nil {
				http.Error(w, err.Error(), http.StatusInternalServerError)
			}
		})
	}
	handle("/after", func(request *http.Request) error {
		block, err := strconv.Atoi(request.FormValue("block"))
		return errors.Join(err, r.after(r.blocks[block]))
	})
	handle("/kind", func(request *http.Request) (err error) {
		r.kind, err = match(request, `^create cluster --name (\S+)$`)
		return err
	})
	handle("/docker", func(request *http.Request) error {
		image, err := match(request, `^exec -i `+r.kind+`-control-plane ctr -n k8s\.io images import --index-name (\S+) -$`)
		if err == nil {
			r.node.load(image)
		}
		return err
	})
	handle("/cloudflared", func(request *http.Request) (err error) {
		r.tunnel, err = match(request, `^tunnel --url http://localhost:(\d+)$`)
		return err
	})
	handle("/port-forward", func(request *http.Request) error {
		r.forwarded <- request.FormValue("arguments")
		return nil
	})
	handle("/push", func(request *http.Request) error { return r.push(request.FormValue("clone")) })
	return mux
}

// after does what the page says below a block.
func (r *reader) after(block string) error {
	switch {
	case strings.Contains(block, "webhook-secret\n"):
		return r.createApp()
	case strings.Contains(block, "app push\n"):
		return r.readCheck()
	default:
		return nil
	}
}

// createApp is step 4 in the browser.
func (r *reader) createApp() error {
	secret, err := os.ReadFile(filepath.Join(r.dir, "plumbline", "webhook-secret"))
	if err != nil {
		return err
	}
	app := r.git.CreateApp(appID, "plumbline", "", strings.TrimSpace(string(secret)))
	r.git.Install(app.ID, "acme", repository)
	key := filepath.Join(r.dir, "home", "Downloads", "plumbline.private-key.pem")
	return os.WriteFile(key, []byte(app.PrivateKeyPEM), 0o600)
}

// match returns the first group of what a stand-in was called with.
func match(request *http.Request, pattern string) (string, error) {
	arguments := request.FormValue("arguments")
	found := regexp.MustCompile(pattern).FindStringSubmatch(arguments)
	if found == nil {
		return "", fmt.Errorf("%q does not match %s", arguments, pattern)
	}
	return found[1], nil
}

// reachesReceiver requires that the tunnel leads to a port that the receivers' Service has.
func (r *reader) reachesReceiver() error {
	var arguments string
	select {
	case arguments = <-r.forwarded:
	case <-r.ctx.Done():
		return errors.New("kubectl port-forward was not called")
	}
	found := regexp.MustCompile(` service/(\S+) (\d+):(\d+)$`).FindStringSubmatch(arguments)
	if found == nil || found[2] != r.tunnel {
		return fmt.Errorf("the tunnel leads to the port %s, and kubectl is called with %s", r.tunnel, arguments)
	}
	service, err := r.node.installation.Kube.CoreV1().Services(namespace).Get(r.ctx, found[1], metav1.GetOptions{})
	if err != nil {
		return err
	}
	for _, port := range service.Spec.Ports {
		if strconv.Itoa(int(port.Port)) == found[3] && port.Name == "http" {
			return nil
		}
	}
	return fmt.Errorf("the Service %s has the ports %v, not %s", found[1], service.Spec.Ports, found[3])
}

// push is what GitHub does with a commit that it receives.
func (r *reader) push(clone string) error {
	if err := r.reachesReceiver(); err != nil {
		return err
	}
	files := map[string]string{}
	found, err := filepath.Glob(filepath.Join(clone, ".tekton", "*.yaml"))
	if err != nil || len(found) == 0 {
		return fmt.Errorf("the commit has no pipelines: %w", err)
	}
	for _, path := range found {
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		files[".tekton/"+filepath.Base(path)] = string(data)
	}
	r.pushed = r.git.Commit(repository, "main", forge.Change{Files: files, Message: "Say hello"})
	delivery := r.git.PushDelivery(forge.PushEvent{Repo: repository, Ref: "refs/heads/main"})
	status, body, err := r.git.Deliver(r.ctx, r.node.receiver(), delivery)
	if err == nil && status != http.StatusAccepted {
		err = fmt.Errorf("the delivery was answered %d %s", status, body)
	}
	return err
}

// readCheck waits for the check that the page promises. The PipelineRun must have finished by then.
func (r *reader) readCheck() error {
	err := cluster.Poll(r.ctx, 100*time.Millisecond, func() error {
		if shown, _ := r.git.Current(repository, r.pushed, check); shown.Conclusion != "success" {
			return fmt.Errorf("the check %q is %q %q: %s", check, shown.Status, shown.Conclusion, shown.Title)
		}
		return nil
	})
	if err != nil {
		return err
	}
	runs, err := r.node.installation.Tekton.TektonV1().PipelineRuns("demo").List(r.ctx, metav1.ListOptions{})
	if err != nil || len(runs.Items) != 1 || !runs.Items[0].IsSuccessful() {
		return fmt.Errorf("the check is green, and there are the PipelineRuns %v: %w", runs.Items, err)
	}
	r.sawCheck = true
	return nil
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
