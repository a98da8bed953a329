// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"cmp"
	"context"
	"net/http"
	"slices"
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

// environment is one installation with one repository: its own namespaces, Git service and
// processes.
type environment struct {
	*installation.Installation
	t     *testing.T
	ctx   context.Context
	git   service
	forge *forge.GitHub // the Git service on GitHub, for what only GitHub has
	repo  forge.Repo    // there
	ci    string        // the Repository's namespace
	// inherited is the Secret of the global Repository that has the webhook's secret, "" if the
	// Repository names its own.
	inherited string

	receivers, controllers []*installation.Process
	readable               *readable

	pooled   *pooled // nil if the installation is not plain
	returned bool    // the installation goes back to the pool
}

// setup says how many processes an environment starts with, and which of them have their own
// proxy.
type setup struct {
	service                kind
	receivers, controllers int
	standby                bool // the test starts a second controller later: as with two of them, leases are short
	proxied                bool
	config                 [][3]string
	forge                  forge.Options
	gitlab                 gitlab.Options
	private                bool
	flags                  []string // of the controllers
	system                 string   // what the name of Plumbline's namespace begins with; "plumbline" when empty
	limited                bool     // each process runs below the memory limit of its container in config/
	recorded               bool     // the namespaces have the names of the recorded objects
}

// newEnvironment returns an environment with what s asks for, from the pool if there is one.
// Everything ends with the test.
func newEnvironment(t *testing.T, s setup) *environment {
	t.Helper()
	// parallel subtests may wait for those of other tests
	ctx, cancel := context.WithTimeout(context.Background(), time.Hour)
	t.Cleanup(cancel)
	env := &environment{t: t, ctx: ctx, readable: &readable{texts: map[string]string{}}}
	t.Cleanup(env.returnToPool)
	hub := env.startGitService(s)
	if s.isPlain() && env.takeFromPool(hub) {
		return env
	}
	env.ci = s.namespace(t, "ci")
	t.Cleanup(env.requireNoSecretLeaked)
	env.install(s, hub)
	t.Cleanup(env.showLogs)
	return env
}

// install makes an installation that serves the environment's namespaces and starts its processes.
func (env *environment) install(s setup, hub *onGitHub) {
	env.t.Helper()
	system := s.namespace(env.t, cmp.Or(s.system, "plumbline"))
	config := append(s.leases(), [3]string{"plumbline", "serve-namespaces", env.ci + ", " + env.ci + "-*"})
	config = append(config, s.config...)
	var err error
	env.Installation, err = installation.New(env.ctx, installation.Options{
		Cluster: shared.cluster, Forge: hub.GitHub, App: hub.app, Programs: shared.programs, Namespace: system,
		Config: config, Limited: s.limited,
	})
	env.must(err)
	env.createRepository(env.ci, "app")
	for range s.receivers {
		env.startReceiver(s.proxied)
	}
	for range s.controllers {
		env.startController(s.proxied, s.flags...)
	}
	if s.isPlain() {
		env.lend(&pooled{
			Installation: env.Installation, ci: env.ci, receiver: env.receivers[0], controller: env.controller(),
		})
	}
}

// namespace creates a namespace with the prefix.
func (s setup) namespace(t *testing.T, prefix string) string {
	t.Helper()
	if s.recorded {
		shared.cluster.NamespaceNamed(t, prefix+"-recorded")
		return prefix + "-recorded"
	}
	return shared.cluster.Namespace(t, prefix)
}

// addNamespace creates one more namespace that the environment's installation serves.
func (env *environment) addNamespace(prefix string) string {
	env.t.Helper()
	return shared.cluster.Namespace(env.t, env.ci+"-"+prefix)
}

// startGitService starts the environment's Git service. An installation that serves a GitLab has
// no GitHub App.
func (env *environment) startGitService(s setup) *onGitHub {
	env.t.Helper()
	s.gitlab.DeliveryTimeout, s.forge.DeliveryTimeout = soon, soon // no test is about the service's own timeout
	if s.service == gitLab {
		g := &onGitLab{GitLab: gitlab.New(s.gitlab), forks: map[string]gitlab.Project{}, heads: map[int64]string{}}
		env.must(g.setUp())
		env.t.Cleanup(func() { _ = g.Close() })
		env.git = g
		return &onGitHub{}
	}
	s.forge.RefuseEarlyConclusion = true // detects a client that contradicts itself
	g := &onGitHub{GitHub: forge.New(s.forge)}
	env.must(g.Start())
	env.t.Cleanup(func() { _ = g.Close() })
	g.app = g.CreateApp(7, "plumbline", shared.key, "webhook-secret-of-the-test")
	g.repo = g.CreateRepo("acme", "app", forge.RepoOptions{Private: s.private})
	g.installation = g.Install(g.app.ID, "acme", repoName)
	g.SetCollaborator(repoName, somebody, "write")
	env.git, env.forge, env.repo = g, g.GitHub, g.repo
	return g
}

// processes returns the receivers and the controllers.
func (env *environment) processes() []*installation.Process {
	return slices.Concat(env.receivers, env.controllers)
}

func (env *environment) createRepository(namespace, name string) {
	env.t.Helper()
	env.createRepositoryOf(namespace, name, env.git.connect(env))
}

// createRepositoryWithURL creates a Repository that names no credential.
func (env *environment) createRepositoryWithURL(namespace, name, url string) {
	env.t.Helper()
	env.createRepositoryOf(namespace, name, pacv1alpha1.RepositorySpec{URL: url})
}

func (env *environment) createRepositoryOf(namespace, name string, spec pacv1alpha1.RepositorySpec) {
	env.t.Helper()
	env.must(errOf(env.Plumbline.PipelinesascodeV1alpha1().Repositories(namespace).Create(env.ctx, &pacv1alpha1.Repository{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Spec: spec,
	}, metav1.CreateOptions{})))
}

func (env *environment) startReceiver(proxied bool, flags ...string) *installation.Process {
	env.t.Helper()
	p, err := env.Receiver(env.ctx, proxied, append([]string{"-api-wait=" + apiWait.String()}, flags...)...)
	env.must(err)
	env.startProcess(p)
	env.receivers = append(env.receivers, p)
	return p
}

func (env *environment) startController(proxied bool, flags ...string) *installation.Process {
	env.t.Helper()
	p, err := env.Controller(env.ctx, proxied,
		append([]string{"-late-reports=" + lateReports.String(), "-close-window=" + closeWindow.String()}, flags...)...)
	env.must(err)
	env.startProcess(p)
	env.controllers = append(env.controllers, p)
	return p
}

func (env *environment) startProcess(p *installation.Process) {
	env.t.Helper()
	env.must(p.Start(env.ctx))
	env.t.Cleanup(func() { env.stopProcess(p) })
}

// stopProcess ends a process, unless it is returned to the pool.
func (env *environment) stopProcess(p *installation.Process) {
	env.readMetrics(p)
	if env.returned {
		return
	}
	_ = p.Kill()
	if p.Proxy != nil {
		p.Proxy.Close()
	}
}

func (env *environment) must(err error) {
	env.t.Helper()
	if err != nil {
		env.t.Fatal(err)
	}
}

// awaitClaimed waits until the Repository owns its URL and its webhook's secret is copied: before
// that, receivers answer 503.
func (env *environment) awaitClaimed() {
	env.t.Helper()
	url, err := v1alpha1.CanonicalURL(env.git.page())
	env.must(err)
	env.eventually(soon, "the Repository owns its URL", func() error {
		_, err := env.Plumbline.PlumblineV1alpha1().RepositoryClaims(env.Namespace).Get(env.ctx, v1alpha1.ClaimName(url),
			metav1.GetOptions{})
		if err == nil && env.copiedSecret().Current == nil {
			err = errMissing
		}
		return err
	})
}

// push commits .tekton files to main and returns the commit and its delivery.
func (env *environment) push(files map[string]string) (string, delivery) {
	sha := env.git.commit("main", forge.Change{Files: files, Message: "change " + env.t.Name()})
	return sha, env.newDelivery()
}

// pushAccepted commits .tekton files to main, delivers the push, and returns the commit.
func (env *environment) pushAccepted(files map[string]string) string {
	env.t.Helper()
	sha, delivery := env.push(files)
	env.deliver(delivery, http.StatusAccepted)
	return sha
}

// deliver posts to the first receiver and requires the status.
func (env *environment) deliver(d delivery, want int) {
	env.t.Helper()
	if got, body := env.post(env.receivers[0], d); got != want {
		env.t.Fatalf("delivery answered %d %s, want %d", got, body, want)
	}
}

func (env *environment) post(p *installation.Process, d delivery) (int, string) {
	env.t.Helper()
	status, body, err := env.git.deliver(env.ctx, p.URL, d)
	if err != nil {
		env.t.Fatalf("delivering: %v", err)
	}
	env.readable.add("the answer to a delivery", string(body))
	return status, string(body)
}

// eventually polls until f returns nil.
func (env *environment) eventually(limit time.Duration, what string, f func() error) {
	env.t.Helper()
	ctx, cancel := context.WithTimeout(env.ctx, limit)
	defer cancel()
	if err := cluster.Poll(ctx, pollEvery, f); err != nil {
		env.t.Fatalf("not within %v: %s: %v", limit, what, err)
	}
}
