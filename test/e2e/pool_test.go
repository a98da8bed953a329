// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"errors"
	"fmt"
	"os"
	"reflect"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-ci/plumbline/test/installation"
)

// pool has the running installations that no test uses at the moment. A test that asks for one
// receiver, one controller, and nothing else takes one for itself, with its own Git service and
// namespace. Nothing is installed, and the processes live through many tests. An installation that
// a test has changed is not returned.
type pool struct {
	mu   sync.Mutex
	idle map[kind][]*pooled
}

// pooled is a running installation.
type pooled struct {
	*installation.Installation
	receiver, controller *installation.Process
	ci                   string // the namespace of its first Repository; it serves all namespaces with this prefix
	state                string // at the start of the test: its processes and its settings
	// logs and pages are what the processes had logged and counted before the test; empty if they
	// are new.
	logs  map[*installation.Process]int
	pages map[*installation.Process]string
}

// isPlain reports whether a environment's installation may come from the pool.
func (s setup) isPlain() bool {
	return reflect.DeepEqual(s, setup{service: s.service, receivers: 1, controllers: 1})
}

// take returns an installation, nil if there is none.
func (p *pool) take(on kind) *pooled {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.idle[on]) == 0 {
		return nil
	}
	first := p.idle[on][0]
	p.idle[on] = p.idle[on][1:]
	return first
}

func (p *pool) put(on kind, i *pooled) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.idle[on] = append(p.idle[on], i)
}

// takeFromPool gives the environment an installation of the pool and reports whether there was one.
// The settings name the environment's GitHub before the environment has a Repository.
func (env *environment) takeFromPool(hub *onGitHub) bool {
	env.t.Helper()
	p := shared.pool.take(env.git.kind())
	if p == nil {
		return false
	}
	env.ci = shared.cluster.Namespace(env.t, p.ci)
	env.Installation = p.Installation
	env.Forge, env.App = hub.GitHub, hub.app
	env.receivers, env.controllers = []*installation.Process{p.receiver}, []*installation.Process{p.controller}
	env.t.Cleanup(env.requireNoSecretLeaked)
	p.logs, p.pages = map[*installation.Process]int{}, map[*installation.Process]string{}
	for _, process := range []*installation.Process{p.receiver, p.controller} {
		env.t.Cleanup(func() { env.stopProcess(process) })
		log, err := os.ReadFile(process.Log())
		env.must(err)
		p.logs[process], p.pages[process] = len(log), env.metricsText(process)
	}
	if hub.GitHub != nil {
		env.setConfig("github-url", hub.URL())
	}
	env.t.Cleanup(env.showLogs)
	env.lend(p)
	env.createRepository(env.ci, "app")
	return true
}

// lend returns the installation to the pool at the test's end, unless the test changed it.
func (env *environment) lend(p *pooled) {
	env.t.Helper()
	var err error
	p.state, err = env.poolState()
	env.must(err)
	env.pooled = p
	env.t.Cleanup(func() { // before the processes are killed
		if now, err := env.poolState(); !env.t.Failed() && err == nil && now == p.state {
			env.returned = true
		}
	})
}

// returnToPool returns the installation to the pool. It runs last, when the test's Repositories are
// deleted and its evidence was checked.
func (env *environment) returnToPool() {
	if !env.returned {
		return
	}
	events := env.Plumbline.PlumblineV1alpha1().GitEvents(env.Namespace)
	err := events.DeleteCollection(env.ctx, metav1.DeleteOptions{}, metav1.ListOptions{})
	if err != nil || env.t.Failed() {
		env.returned = false
		env.stopProcess(env.pooled.receiver)
		env.stopProcess(env.pooled.controller)
		return
	}
	shared.pool.put(env.git.kind(), env.pooled)
}

// poolState returns what identifies the environment's processes and the version of its settings. It
// returns an error if an event is not settled.
func (env *environment) poolState() (string, error) {
	state := ""
	for _, p := range env.processes() {
		state += fmt.Sprintln(p.Name(), p.PID())
	}
	maps, err := env.Kube.CoreV1().ConfigMaps(env.Namespace).List(env.ctx, metav1.ListOptions{})
	if err != nil {
		return "", err
	}
	for i := range maps.Items {
		state += fmt.Sprintln(maps.Items[i].Name, maps.Items[i].ResourceVersion)
	}
	if namespace, name, _ := env.git.secret(env); namespace == env.Namespace {
		secret, err := env.Kube.CoreV1().Secrets(namespace).Get(env.ctx, name, metav1.GetOptions{})
		if err != nil {
			return "", err
		}
		state += fmt.Sprintln(name, secret.ResourceVersion)
	}
	global, err := env.Plumbline.PipelinesascodeV1alpha1().Repositories(env.Namespace).List(env.ctx, metav1.ListOptions{})
	if err != nil || len(global.Items) > 0 {
		return "", errors.Join(err, errMissing)
	}
	for _, event := range env.events() {
		if !event.Settled() {
			return "", fmt.Errorf("%s is not settled", event.Name)
		}
	}
	return state, nil
}
