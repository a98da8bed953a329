// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
	"time"

	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
)

// Options of Start. The zero value is usable.
type Options struct {
	// Dir keeps everything of the cluster: logs in Dir/logs, data, credentials. It is made when it
	// does not exist. Empty means a temporary folder that Stop removes.
	Dir string
	// Progress gets one line per binary that has to be built and one per step
	// of the start. Nil discards them.
	Progress io.Writer
	// Wired puts a Wire in front of etcd, of Tekton's webhook, and of the API server as Tekton's
	// processes see it.
	Wired bool
}

// Cluster is a running cluster. Its methods may be called from any goroutine.
type Cluster struct {
	layout
	progress  *progress
	temporary bool       // dir is ours to remove
	portsMu   sync.Mutex // guards ports after the start
	ports     *ports
	spawn     *spawner
	parts     map[string]*Part
	wires     map[string]*Wire
	node      *node
	config    *rest.Config
	dynamic   dynamic.Interface
	stopping  sync.Once
}

// Start builds what is missing, starts every part and waits until a
// PipelineRun can be created. Warm, that takes a few seconds. ctx bounds the
// start only; the cluster runs until Stop, or until this process dies.
func Start(ctx context.Context, options Options) (*Cluster, error) {
	if options.Progress == nil {
		options.Progress = io.Discard
	}
	bin, err := Build(ctx, options.Progress)
	if err != nil {
		return nil, err
	}
	c, err := prepare(options, bin)
	if err != nil {
		return nil, err
	}
	if err := c.boot(ctx); err != nil {
		c.Stop()
		return nil, err
	}
	c.progress.step("ready")
	return c, nil
}

// Stop kills every part and removes the temporary folder, if Start made one.
// It may be called more than once.
func (c *Cluster) Stop() {
	c.stopping.Do(func() {
		if c.node != nil {
			c.node.stop()
		}
		var all sync.WaitGroup
		for _, part := range c.parts {
			all.Go(func() { _ = part.Kill() })
		}
		all.Wait()
		c.spawn.stop()
		for _, wire := range c.wires {
			wire.close()
		}
		c.ports.close()
		if c.temporary {
			_ = os.RemoveAll(c.dir)
		}
	})
}

// Part is the process with one of the names Etcd, APIServer, ControllerManager, TektonWebhook and
// TektonController. Another name is a programming error and panics.
func (c *Cluster) Part(name string) *Part {
	part, ok := c.parts[name]
	if !ok {
		panic("cluster: there is no part " + name)
	}
	return part
}

// Wire returns the Wire to Etcd or TektonWebhook, or from Tekton's processes to APIServer. Without
// Options.Wired, or with another name, it panics: that is a programming error.
func (c *Cluster) Wire(name string) *Wire {
	wire, ok := c.wires[name]
	if !ok {
		panic("cluster: there is no wire to " + name)
	}
	return wire
}

// Dir is the folder of the cluster; its logs are in Dir()/logs.
func (c *Cluster) Dir() string { return c.dir }

// AuditLog is the path of the API server's audit log: one JSON object of audit.k8s.io/v1 a line for
// every call of a service account.
func (c *Cluster) AuditLog() string { return c.auditLog() }

// prepare decides everything that can be decided before a process runs.
func prepare(options Options, bin string) (*Cluster, error) {
	c := &Cluster{
		layout:   layout{dir: options.Dir, bin: bin, port: map[string]int{}, dialled: map[string]int{}},
		progress: &progress{to: options.Progress, begin: time.Now()},
		ports:    &ports{},
		spawn:    newSpawner(),
		wires:    map[string]*Wire{},
	}
	if err := c.prepareFiles(options.Wired); err != nil {
		c.Stop()
		return nil, fmt.Errorf("preparing the cluster: %w", err)
	}
	c.parts = map[string]*Part{}
	for _, part := range []*Part{
		c.etcd(), c.apiServer(), c.controllerManager(), c.tektonWebhook(), c.tektonController(),
	} {
		part.spawn = c.spawn
		c.parts[part.name] = part
	}
	return c, nil
}

func (c *Cluster) prepareFiles(wired bool) error {
	if err := c.prepareDir(); err != nil {
		return err
	}
	for _, name := range portNames() {
		port, err := c.ports.take()
		if err != nil {
			return err
		}
		c.port[name], c.dialled[name] = port, port
	}
	if wired {
		if err := c.wire(Etcd, TektonWebhook, APIServer); err != nil {
			return err
		}
	}
	if err := os.WriteFile(filepath.Join(c.dir, auditPolicyFile), []byte(auditPolicy), 0o600); err != nil {
		return err
	}
	creds, err := newCredentials(filepath.Join(c.dir, "credentials"))
	if err != nil {
		return err
	}
	c.creds = creds
	c.kubeconfig = filepath.Join(c.dir, "kubeconfig")
	c.tektonKubeconfig = filepath.Join(c.dir, "tekton-kubeconfig")
	err = errors.Join(
		WriteKubeconfig(c.kubeconfig, c.server(), creds.ca, creds.adminToken),
		WriteKubeconfig(c.tektonKubeconfig, "https://"+loopback(c.dialled[APIServer]), creds.ca, creds.adminToken))
	if err != nil {
		return err
	}
	c.config = &rest.Config{
		Host:            c.server(),
		BearerToken:     creds.adminToken,
		TLSClientConfig: rest.TLSClientConfig{CAData: creds.ca},
		QPS:             -1, // no limit: the server decides
		UserAgent:       "plumbline-test-cluster",
	}
	if c.dynamic, err = dynamic.NewForConfig(c.config); err != nil {
		return err
	}
	c.node, err = newNode(c.config)
	return err
}

// wire has other parts reach these through a Wire each.
func (c *Cluster) wire(names ...string) error {
	for _, name := range names {
		wire, err := newWire(loopback(c.port[name]))
		if err != nil {
			return err
		}
		c.wires[name], c.dialled[name] = wire, wire.port()
	}
	return nil
}

func (c *Cluster) prepareDir() error {
	if c.dir == "" {
		dir, err := os.MkdirTemp("", "plumbline-cluster-")
		if err != nil {
			return err
		}
		c.dir, c.temporary = dir, true
	}
	absolute, err := filepath.Abs(c.dir)
	if err != nil {
		return err
	}
	c.dir = absolute
	// A data folder left from another cluster has other credentials in it.
	if err := os.RemoveAll(filepath.Join(c.dir, "etcd")); err != nil {
		return err
	}
	return os.MkdirAll(filepath.Join(c.dir, "logs"), 0o755)
}

// boot starts the parts, each as early as what it needs is there.
func (c *Cluster) boot(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	manifests := c.loadTekton(ctx)
	if err := c.start(ctx, Etcd, APIServer); err != nil {
		return err
	}
	if err := c.node.start(ctx); err != nil {
		return errors.Join(err, ctx.Err())
	}
	tekton, err := manifests()
	if err == nil {
		err = c.installTekton(ctx, tekton)
	}
	return errors.Join(err, ctx.Err())
}

func (c *Cluster) start(ctx context.Context, names ...string) error {
	for _, name := range names {
		if err := c.parts[name].Start(ctx); err != nil {
			return err
		}
		c.progress.step(name)
	}
	return nil
}

// progress prints the steps of a start with the time since its begin.
type progress struct {
	mu    sync.Mutex
	to    io.Writer
	begin time.Time
}

func (p *progress) step(what string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	_, _ = fmt.Fprintf(p.to, "%5.1fs  %s\n", time.Since(p.begin).Seconds(), what)
}
