// SPDX-License-Identifier: Apache-2.0

package installation

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"strconv"

	"github.com/plumbline-ci/plumbline/test/cluster"
)

// Process is one running receiver or controller.
type Process struct {
	*cluster.Part
	// Proxy is between the process and the API server; nil when it talks to it directly.
	Proxy *cluster.Proxy
	// URL is where a receiver listens or a controller serves its probes.
	URL string
	// Metrics is the address of its Prometheus page.
	Metrics string
	// Profiling is where it serves /debug/pprof once that is switched on: a controller by the key
	// runtime-profiling of plumbline-config-observability, a receiver by -profiling.
	Profiling string
	// Limit is nil unless the installation is Limited.
	Limit *Limit
}

// Receiver makes a receiver process, not started, with or without a proxy of its own.
func (i *Installation) Receiver(ctx context.Context, proxied bool, flags ...string) (*Process, error) {
	return i.process(ctx, "receiver", i.programs.Receiver, proxied, func(port string) []string {
		return append([]string{"-port=" + port, "-drain-wait=1s"}, flags...)
	})
}

// Controller makes a controller process, not started, with or without a proxy of its own.
func (i *Installation) Controller(ctx context.Context, proxied bool, flags ...string) (*Process, error) {
	return i.ControllerAt(ctx, i.programs.Controller, proxied, flags...)
}

// ControllerAt is Controller with another binary, built for a test.
func (i *Installation) ControllerAt(ctx context.Context, path string, proxied bool, flags ...string) (*Process, error) {
	return i.process(ctx, "controller", path, proxied, func(port string) []string {
		return append([]string{"-health-port=" + port}, flags...)
	})
}

func (i *Installation) process(ctx context.Context, component, path string, proxied bool,
	args func(port string) []string) (*Process, error) {
	name := i.name(component)
	token, err := i.Cluster.Token(ctx, i.Namespace, product+"-"+component)
	if err != nil {
		return nil, err
	}
	kubeconfig := filepath.Join(i.Cluster.Dir(), name+".kubeconfig")
	p := &Process{}
	write := i.Cluster.WriteKubeconfig
	if proxied {
		if p.Proxy, err = cluster.NewProxy(i.Cluster); err != nil {
			return nil, err
		}
		write = p.Proxy.Kubeconfig
	}
	if err := write(kubeconfig, token); err != nil {
		return nil, err
	}
	var ports [3]int
	for n := range ports {
		if ports[n], err = i.Cluster.FreePort(); err != nil {
			return nil, err
		}
	}
	p.URL = fmt.Sprintf("http://127.0.0.1:%d", ports[0])
	p.Metrics = fmt.Sprintf("http://127.0.0.1:%d/metrics", ports[1])
	p.Profiling = fmt.Sprintf("http://127.0.0.1:%d", ports[2])
	flags := append([]string{"-kubeconfig=" + kubeconfig}, args(strconv.Itoa(ports[0]))...)
	ready := p.URL + "/readiness"
	if component == "receiver" {
		ready = p.URL + "/ready"
		flags = append(flags, "-metrics-port="+strconv.Itoa(ports[1]))
	}
	environment := i.environment(name, ports[1], ports[2])
	if i.limited {
		bytes, err := ContainerMemory(component)
		if err != nil {
			return nil, err
		}
		p.Limit = NewLimit(name, bytes)
		environment = append(environment, "CONTAINER_MEMORY="+strconv.FormatInt(bytes, 10))
		path, flags = p.Limit.Wrap(path, flags)
	}
	p.Part = i.Cluster.Add(cluster.Process{
		Name: name, Path: path, Args: flags,
		Env:   environment,
		Ready: func(ctx context.Context) error { return Answers(ctx, ready) },
	})
	i.mu.Lock()
	defer i.mu.Unlock()
	i.made = append(i.made, p)
	return p, nil
}

// environment is what the Deployments in config/ set, plus ports of the process's own: all share
// one host here.
func (i *Installation) environment(name string, metrics, profiling int) []string {
	return []string{
		"SYSTEM_NAMESPACE=" + i.Namespace,
		"POD_NAME=" + name,
		"CONFIG_LOGGING_NAME=plumbline-config-logging",
		"CONFIG_OBSERVABILITY_NAME=plumbline-config-observability",
		"CONFIG_LEADERELECTION_NAME=plumbline-config-leader-election",
		"METRICS_PROMETHEUS_HOST=127.0.0.1",
		"METRICS_PROMETHEUS_PORT=" + strconv.Itoa(metrics),
		"PROFILING_PORT=" + strconv.Itoa(profiling),
	}
}

// name is unique in the cluster: logs and kubeconfigs are named after it.
func (i *Installation) name(component string) string {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.started[component]++
	return fmt.Sprintf("%s-%s-%d", i.Namespace, component, i.started[component])
}

// Answers returns nil when a process answers 200 at a URL.
func Answers(ctx context.Context, url string) error {
	_, err := Fetch(ctx, url)
	return err
}

// Fetch returns what a process serves at a URL, with a 200.
func Fetch(ctx context.Context, url string) ([]byte, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, err
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s answers %s", url, response.Status)
	}
	return io.ReadAll(response.Body)
}
