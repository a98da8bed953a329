// SPDX-License-Identifier: Apache-2.0

package main

import (
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/hex"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"

	"k8s.io/client-go/util/keyutil"

	"github.com/plumbline-ci/plumbline/test/cluster"
)

const apiServer = "https://" + nodeAddress + ":6443"

// accounts are the API server's clients, with the groups that Kubernetes' own roles expect.
func accounts() map[string][2]string {
	return map[string][2]string{
		"admin":                   {"admin", "system:masters"},
		"kubelet":                 {"system:node:" + nodeName, "system:nodes"},
		"kube-proxy":              {"system:kube-proxy", ""},
		"kube-scheduler":          {"system:kube-scheduler", ""},
		"kube-controller-manager": {"system:kube-controller-manager", ""},
	}
}

// writeCredentials writes node.crt and node.key, accounts.key, tokens.csv, and a kubeconfig for
// each account. They are good for this node only.
func writeCredentials(dir string) error {
	certificate, key, err := certify()
	if err != nil {
		return fmt.Errorf("making a certificate: %w", err)
	}
	accountKey, err := keyutil.MakeEllipticPrivateKeyPEM()
	if err != nil {
		return fmt.Errorf("making the key of service accounts: %w", err)
	}
	var tokens strings.Builder
	for file, user := range accounts() {
		random := make([]byte, 24)
		_, _ = rand.Read(random) // never fails: it ends the program instead
		token := hex.EncodeToString(random)
		fmt.Fprintf(&tokens, "%s,%s,%s,%q\n", token, user[0], user[0], user[1])
		path := filepath.Join(dir, file+".kubeconfig")
		if err := cluster.WriteKubeconfig(path, apiServer, certificate, token); err != nil {
			return err
		}
	}
	for name, data := range map[string][]byte{
		"node.crt": certificate, "node.key": key, "accounts.key": accountKey, "tokens.csv": []byte(tokens.String()),
	} {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
			return fmt.Errorf("writing credentials: %w", err)
		}
	}
	return nil
}

// certify makes the one certificate of the node, which is its own authority. API server, kubelet
// and Git service serve with it. The API server calls the kubelet with it, so it names an
// administrator.
func certify() (certificate, keyPEM []byte, err error) {
	return cluster.SignItself(&x509.Certificate{
		Subject:     pkix.Name{CommonName: nodeName, Organization: []string{"system:masters"}},
		NotBefore:   time.Now().Add(-time.Hour),
		NotAfter:    time.Now().AddDate(0, 0, 7),
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
		DNSNames:    []string{nodeName, "kubernetes", "kubernetes.default", "kubernetes.default.svc"},
		IPAddresses: []net.IP{net.ParseIP(nodeAddress), net.ParseIP(firstService), net.ParseIP(forgeHost)},
	})
}
