// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"fmt"
	"slices"

	"k8s.io/client-go/rest"
)

// RestartWith is Restart with additional flags after the usual ones: of a flag that is given twice
// the last one counts. The next Restart is without them.
func (p *Part) RestartWith(ctx context.Context, flags ...string) error {
	p.mu.Lock()
	usual := p.args
	p.args = slices.Concat(usual, flags)
	p.mu.Unlock()
	defer func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.args = usual
	}()
	return p.Restart(ctx)
}

// EtcdURL is the address of etcd, of which its JSON gateway is a part.
func (c *Cluster) EtcdURL() string { return "http://" + loopback(c.port[Etcd]) }

// OtherAPIServer returns another API server of the same cluster on its own port, with additional
// flags. It is not started yet. It counts as ready when it is live, and its certificate is not
// checked, because the flags may replace it.
func (c *Cluster) OtherAPIServer(name string, flags ...string) (*Part, *rest.Config, error) {
	port, err := c.FreePort()
	if err != nil {
		return nil, nil, fmt.Errorf("another API server: %w", err)
	}
	own := []string{fmt.Sprintf("--secure-port=%d", port), "--audit-policy-file=", "--audit-log-path="}
	config := c.RESTConfig()
	config.Host = "https://" + loopback(port)
	config.TLSClientConfig = rest.TLSClientConfig{Insecure: true}
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, nil, fmt.Errorf("another API server: %w", err)
	}
	client.Timeout = probeTimeout
	part := c.Add(Process{
		Name: name, Path: c.Part(APIServer).path, Args: slices.Concat(c.Part(APIServer).args, own, flags),
		Ready: func(ctx context.Context) error { return probe(ctx, client, config.Host+"/livez/ping", "") },
	})
	return part, config, nil
}
