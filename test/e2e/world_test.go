// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"cmp"
	"context"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	pacv1alpha1 "github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/test/cluster"
	"github.com/plumbline-ci/plumbline/test/forge"
	"github.com/plumbline-ci/plumbline/test/forge/gitlab"
	"github.com/plumbline-ci/plumbline/test/installation"
)

// application is the default application-name: the first part of every check's name.
const application = "Pipelines as Code CI"

// world is one installation with one repository: its own namespaces, Git service and processes.
type world struct {
	*installation.Installation
	t     *testing.T
	ctx   context.Context
	git   service
	forge *forge.GitHub // git of a world on GitHub, for what there is only there
	repo  forge.Repo    // there
	ci    string        // the Repository's namespace
	// inherited is the Secret of the global Repository that has the webhook's secret, "" if the
	// Repository names its own.
	inherited string

	receivers, controllers []*installation.Process
	readable               *readable

	pooled *pooled // nil if the installation is not plain
	kept   bool    // it goes back to the pool
}

// setup says how many processes a world starts with, and which of them go through a proxy of their
// own.
type setup struct {
	service                kind
	receivers, controllers int
	standby                bool // the test starts a second controller next to the first: as with two of them, leases are short
	proxied                bool
	config                 [][3]string
	forge                  forge.Options
	gitlab                 gitlab.Options
	private                bool
	flags                  []string // of the controllers
	system                 string   // what the name of Plumbline's namespace begins with; "plumbline" when empty
	limited                bool     // each process runs below the memory limit of its container in config/
	recorded               bool     // the namespaces have the names that are in recorded objects
}

// newWorld is a world with what s asks for, from the pool if that has one. Everything ends with the
// test.
func newWorld(t *testing.T, s setup) *world {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Hour) // its parallel subtests may wait for the other scenarios'
	t.Cleanup(cancel)
	w := &world{t: t, ctx: ctx, readable: &readable{texts: map[string]string{}}}
	t.Cleanup(w.giveBack)
	hub := w.host(s)
	if s.isPlain() && w.reuse(hub) {
		return w
	}
	w.ci = s.namespace(t, "ci")
	t.Cleanup(w.tellsNoSecret)
	w.install(s, hub)
	t.Cleanup(w.showLogs)
	return w
}

// install makes an installation that serves the world's namespaces and starts its processes.
func (w *world) install(s setup, hub *onGitHub) {
	w.t.Helper()
	system := s.namespace(w.t, cmp.Or(s.system, "plumbline"))
	config := append(s.leases(), [3]string{"plumbline", "serve-namespaces", w.ci + ", " + w.ci + "-*"})
	config = append(config, s.config...)
	var err error
	w.Installation, err = installation.New(w.ctx, installation.Options{
		Cluster: shared.cluster, Forge: hub.GitHub, App: hub.app, Programs: shared.programs, Namespace: system, Config: config, Limited: s.limited,
	})
	w.must(err)
	w.createRepository(w.ci, "app")
	for range s.receivers {
		w.startReceiver(s.proxied)
	}
	for range s.controllers {
		w.startController(s.proxied, s.flags...)
	}
	if s.isPlain() {
		w.borrow(&pooled{Installation: w.Installation, ci: w.ci, receiver: w.receivers[0], controller: w.controller()})
	}
}

// namespace creates one whose name begins so.
func (s setup) namespace(t *testing.T, prefix string) string {
	t.Helper()
	if s.recorded {
		shared.cluster.NamespaceNamed(t, prefix+"-recorded")
		return prefix + "-recorded"
	}
	return shared.cluster.Namespace(t, prefix)
}

// further creates one more namespace that the world's installation serves.
func (w *world) further(prefix string) string {
	w.t.Helper()
	return shared.cluster.Namespace(w.t, w.ci+"-"+prefix)
}

// host starts the world's Git service. An installation that serves a GitLab has no GitHub App.
func (w *world) host(s setup) *onGitHub {
	w.t.Helper()
	s.gitlab.DeliveryTimeout, s.forge.DeliveryTimeout = soon, soon // no test is about how long a service waits for its answer
	if s.service == gitLab {
		g := &onGitLab{GitLab: gitlab.New(s.gitlab), forks: map[string]gitlab.Project{}, heads: map[int64]string{}}
		w.must(g.begin())
		w.t.Cleanup(func() { _ = g.Close() })
		w.git = g
		return &onGitHub{}
	}
	s.forge.RefuseEarlyConclusion = true // a client that contradicts itself is found
	g := &onGitHub{GitHub: forge.New(s.forge)}
	w.must(g.Start())
	w.t.Cleanup(func() { _ = g.Close() })
	g.app = g.CreateApp(7, "plumbline", shared.key, "webhook-secret-of-the-test")
	g.repo = g.CreateRepo("acme", "app", forge.RepoOptions{Private: s.private})
	g.installation = g.Install(g.app.ID, "acme", repoName)
	g.SetCollaborator(repoName, somebody, "write")
	w.git, w.forge, w.repo = g, g.GitHub, g.repo
	return g
}

// processes are the receivers and the controllers.
func (w *world) processes() []*installation.Process { return slices.Concat(w.receivers, w.controllers) }

func (w *world) createRepository(namespace, name string) {
	w.t.Helper()
	_, err := w.Plumbline.PipelinesascodeV1alpha1().Repositories(namespace).Create(w.ctx, &pacv1alpha1.Repository{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Spec: w.git.connect(w),
	}, metav1.CreateOptions{})
	w.must(err)
}

func (w *world) startReceiver(proxied bool, flags ...string) *installation.Process {
	w.t.Helper()
	p, err := w.Receiver(w.ctx, proxied, append([]string{"-api-wait=" + apiWait.String()}, flags...)...)
	w.must(err)
	w.start(p)
	w.receivers = append(w.receivers, p)
	return p
}

func (w *world) startController(proxied bool, flags ...string) *installation.Process {
	w.t.Helper()
	p, err := w.Controller(w.ctx, proxied, append([]string{"-late-reports=" + lateReports.String(), "-close-window=" + closeWindow.String()}, flags...)...)
	w.must(err)
	w.start(p)
	w.controllers = append(w.controllers, p)
	return p
}

func (w *world) start(p *installation.Process) {
	w.t.Helper()
	w.must(p.Start(w.ctx))
	w.t.Cleanup(func() { w.finish(p) })
}

// finish ends a process, unless it goes back to the pool.
func (w *world) finish(p *installation.Process) {
	w.readMetrics(p)
	if w.kept {
		return
	}
	_ = p.Kill()
	if p.Proxy != nil {
		p.Proxy.Close()
	}
}

func (w *world) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

// claimed waits until the Repository owns its URL and its webhook's secret is copied: before that,
// receivers answer 503.
func (w *world) claimed() {
	w.t.Helper()
	url, err := v1alpha1.CanonicalURL(w.git.page())
	w.must(err)
	w.eventually(soon, "the Repository owns its URL", func() error {
		_, err := w.Plumbline.PlumblineV1alpha1().RepositoryClaims(w.Namespace).Get(w.ctx, v1alpha1.ClaimName(url), metav1.GetOptions{})
		if err == nil && w.copied().Current == nil {
			err = errMissing
		}
		return err
	})
}

// push commits .tekton files to main and returns the commit and its delivery.
func (w *world) push(files map[string]string) (string, delivery) {
	sha := w.git.commit("main", forge.Change{Files: files, Message: "change " + w.t.Name()})
	return sha, w.again()
}

// deliver posts to the first receiver and requires the status.
func (w *world) deliver(d delivery, want int) {
	w.t.Helper()
	if got, body := w.post(w.receivers[0], d); got != want {
		w.t.Fatalf("delivery answered %d %s, want %d", got, body, want)
	}
}

func (w *world) post(p *installation.Process, d delivery) (int, string) {
	w.t.Helper()
	status, body, err := w.git.deliver(w.ctx, p.URL, d)
	if err != nil {
		w.t.Fatalf("delivering: %v", err)
	}
	w.readable.add("the answer to a delivery", string(body))
	return status, string(body)
}

// eventually polls until f returns nil.
func (w *world) eventually(limit time.Duration, what string, f func() error) {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.ctx, limit)
	defer cancel()
	if err := cluster.Poll(ctx, pollEvery, f); err != nil {
		w.t.Fatalf("not within %v: %s: %v", limit, what, err)
	}
}

// log is what a process has printed in the world's time.
func (w *world) log(p *installation.Process) string {
	w.t.Helper()
	data, err := os.ReadFile(p.Log())
	w.must(err)
	if w.pooled != nil {
		data = data[w.pooled.logs[p]:]
	}
	return string(data)
}

// page is a process's Prometheus page.
func (w *world) page(p *installation.Process) string {
	w.t.Helper()
	text, err := installation.Fetch(w.ctx, p.Metrics)
	w.must(err)
	return string(text)
}

// showLogs prints the ends of the processes' logs when the test failed.
func (w *world) showLogs() {
	if !w.t.Failed() {
		return
	}
	for _, p := range w.processes() {
		data, err := os.ReadFile(p.Log())
		if err != nil {
			continue
		}
		lines := strings.Split(string(bytes.TrimSpace(data)), "\n")
		w.t.Logf("the end of %s:\n%s", p.Log(), strings.Join(lines[max(0, len(lines)-25):], "\n"))
	}
}
