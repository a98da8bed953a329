// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"encoding/base64"
	"fmt"
	"os"

	"k8s.io/client-go/rest"
)

// RESTConfig is a copy of the administrator's configuration, without a request
// limit on the client's side.
func (c *Cluster) RESTConfig() *rest.Config { return rest.CopyConfig(c.config) }

// KubeconfigPath is the administrator's kubeconfig file.
func (c *Cluster) KubeconfigPath() string { return c.kubeconfig }

// WriteKubeconfig writes a kubeconfig that talks to the API server directly
// with a bearer token, as Token returns one.
func (c *Cluster) WriteKubeconfig(path, token string) error {
	return WriteKubeconfig(path, c.server(), c.creds.ca, token)
}

func (c *Cluster) server() string { return "https://" + loopback(c.port[APIServer]) }

// WriteKubeconfig writes a kubeconfig for a server, its authority and a token.
func WriteKubeconfig(path, server string, ca []byte, token string) error {
	text := fmt.Sprintf(`apiVersion: v1
kind: Config
clusters:
- name: test
  cluster: {server: %q, certificate-authority-data: %s}
users:
- name: test
  user: {token: %q}
contexts:
- name: test
  context: {cluster: test, user: test}
current-context: test
`, server, base64.StdEncoding.EncodeToString(ca), token)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		return fmt.Errorf("writing a kubeconfig: %w", err)
	}
	return nil
}
