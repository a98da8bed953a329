// SPDX-License-Identifier: Apache-2.0

package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/hex"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"

	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/client-go/util/keyutil"
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
		config := api.Config{
			Clusters:       map[string]*api.Cluster{"node": {Server: apiServer, CertificateAuthorityData: certificate}},
			AuthInfos:      map[string]*api.AuthInfo{file: {Token: token}},
			Contexts:       map[string]*api.Context{"node": {Cluster: "node", AuthInfo: file}},
			CurrentContext: "node",
		}
		if err := clientcmd.WriteToFile(config, filepath.Join(dir, file+".kubeconfig")); err != nil {
			return fmt.Errorf("writing a kubeconfig: %w", err)
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
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	template := &x509.Certificate{
		SerialNumber:          big.NewInt(1),
		Subject:               pkix.Name{CommonName: nodeName, Organization: []string{"system:masters"}},
		NotBefore:             time.Now().Add(-time.Hour),
		NotAfter:              time.Now().AddDate(0, 0, 7),
		KeyUsage:              x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		ExtKeyUsage:           []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
		BasicConstraintsValid: true,
		IsCA:                  true,
		DNSNames:              []string{nodeName, "kubernetes", "kubernetes.default", "kubernetes.default.svc"},
		IPAddresses:           []net.IP{net.ParseIP(nodeAddress), net.ParseIP(firstService), net.ParseIP(forgeHost)},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		return nil, nil, err
	}
	keyPEM, err = keyutil.MarshalPrivateKeyToPEM(key)
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), keyPEM, err
}
