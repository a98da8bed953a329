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
// receiver, one controller, and nothing else takes one for itself, with a Git service and a
// namespace of its own. Nothing is installed, and the processes live through many tests. An
// installation that a test has changed is not returned.
type pool struct {
	mu   sync.Mutex
	idle map[kind][]*pooled
}

// pooled is a running installation.
type pooled struct {
	*installation.Installation
	receiver, controller *installation.Process
	ci                   string // the namespace of its first Repository: it serves those whose names begin so
	state                string // what it was when the test began: its processes and its settings
	// logs and pages are what the processes had logged and counted by then, none if they are new.
	logs  map[*installation.Process]int
	pages map[*installation.Process]string
}

// isPlain reports whether a world's installation may come from the pool.
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

// reuse gives the world an installation of the pool and reports whether there was one. The
// settings name the world's GitHub before the world has a Repository.
func (w *world) reuse(hub *onGitHub) bool {
	w.t.Helper()
	p := shared.pool.take(w.git.kind())
	if p == nil {
		return false
	}
	w.ci = shared.cluster.Namespace(w.t, p.ci)
	w.Installation = p.Installation
	w.Forge, w.App = hub.GitHub, hub.app
	w.receivers, w.controllers = []*installation.Process{p.receiver}, []*installation.Process{p.controller}
	w.t.Cleanup(w.tellsNoSecret)
	p.logs, p.pages = map[*installation.Process]int{}, map[*installation.Process]string{}
	for _, process := range []*installation.Process{p.receiver, p.controller} {
		w.t.Cleanup(func() { w.finish(process) })
		log, err := os.ReadFile(process.Log())
		w.must(err)
		p.logs[process], p.pages[process] = len(log), w.page(process)
	}
	if hub.GitHub != nil {
		w.configure("github-url", hub.URL())
	}
	w.t.Cleanup(w.showLogs)
	w.borrow(p)
	w.createRepository(w.ci, "app")
	return true
}

// borrow returns the installation to the pool at the test's end, if it is as it was.
func (w *world) borrow(p *pooled) {
	w.t.Helper()
	var err error
	p.state, err = w.state()
	w.must(err)
	w.pooled = p
	w.t.Cleanup(func() { // before the processes are killed
		if now, err := w.state(); !w.t.Failed() && err == nil && now == p.state {
			w.kept = true
		}
	})
}

// giveBack returns the installation to the pool. It runs last, when the test's Repositories are
// deleted and its evidence was checked.
func (w *world) giveBack() {
	if !w.kept {
		return
	}
	events := w.Plumbline.PlumblineV1alpha1().GitEvents(w.Namespace)
	err := events.DeleteCollection(w.ctx, metav1.DeleteOptions{}, metav1.ListOptions{})
	if err != nil || w.t.Failed() {
		w.kept = false
		w.finish(w.pooled.receiver)
		w.finish(w.pooled.controller)
		return
	}
	shared.pool.put(w.git.kind(), w.pooled)
}

// state returns what identifies the world's processes and the version of its settings. It returns
// an error if an event is not settled.
func (w *world) state() (string, error) {
	state := ""
	for _, p := range w.processes() {
		state += fmt.Sprintln(p.Name(), p.PID())
	}
	maps, err := w.Kube.CoreV1().ConfigMaps(w.Namespace).List(w.ctx, metav1.ListOptions{})
	if err != nil {
		return "", err
	}
	for i := range maps.Items {
		state += fmt.Sprintln(maps.Items[i].Name, maps.Items[i].ResourceVersion)
	}
	if namespace, name, _ := w.git.secret(w); namespace == w.Namespace {
		secret, err := w.Kube.CoreV1().Secrets(namespace).Get(w.ctx, name, metav1.GetOptions{})
		if err != nil {
			return "", err
		}
		state += fmt.Sprintln(name, secret.ResourceVersion)
	}
	global, err := w.Plumbline.PipelinesascodeV1alpha1().Repositories(w.Namespace).List(w.ctx, metav1.ListOptions{})
	if err != nil || len(global.Items) > 0 {
		return "", errors.Join(err, errMissing)
	}
	for _, event := range w.events() {
		if !event.Settled() {
			return "", fmt.Errorf("%s is not settled", event.Name)
		}
	}
	return state, nil
}
