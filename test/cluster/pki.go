// SPDX-License-Identifier: Apache-2.0

package cluster

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
	"time"
)

// credentials are the secrets of one cluster. They are made at start, live in
// its folder and are good for nothing else.
type credentials struct {
	certFile, keyFile     string // serving certificate of every component
	accountKey, accountPK string // keys of service account tokens
	tokenFile             string
	ca                    []byte // PEM
	keyPEM                []byte // of the serving certificate
	adminToken            string
}

func newCredentials(dir string) (*credentials, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("making credentials: %w", err)
	}
	c := &credentials{
		certFile:   filepath.Join(dir, "serving.crt"),
		keyFile:    filepath.Join(dir, "serving.key"),
		accountKey: filepath.Join(dir, "service-account.key"),
		accountPK:  filepath.Join(dir, "service-account.pub"),
		tokenFile:  filepath.Join(dir, "tokens.csv"),
	}
	random := make([]byte, 24)
	_, _ = rand.Read(random) // never fails: it ends the program instead
	c.adminToken = hex.EncodeToString(random)

	var err error
	if c.ca, c.keyPEM, err = SelfSigned("plumbline-test-cluster", time.Now().AddDate(1, 0, 0)); err != nil {
		return nil, err
	}
	account, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("making the service account key: %w", err)
	}
	files := map[string][]byte{
		c.tokenFile: []byte(c.adminToken + `,admin,admin,"system:masters"` + "\n"),
		c.certFile:  c.ca,
		c.keyFile:   c.keyPEM,
	}
	if files[c.accountKey], err = privatePEM(account); err != nil {
		return nil, err
	}
	if files[c.accountPK], err = publicPEM(account); err != nil {
		return nil, err
	}
	for path, data := range files {
		if err := os.WriteFile(path, data, 0o600); err != nil {
			return nil, fmt.Errorf("writing credentials: %w", err)
		}
	}
	return c, nil
}

// SelfSigned makes a serving certificate that is its own authority, and its key, in PEM. It is good
// for the year before its end.
func SelfSigned(name string, end time.Time) (certificate, keyPEM []byte, err error) {
	return SignItself(&x509.Certificate{
		Subject:     pkix.Name{CommonName: name},
		NotBefore:   end.AddDate(-1, 0, 0).Add(-time.Hour),
		NotAfter:    end,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		DNSNames: []string{"localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc",
			webhookService + "." + tektonNamespace + ".svc"},
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
	})
}

// SignItself makes a key, and the certificate of a template that is its own authority, in PEM.
func SignItself(template *x509.Certificate) (certificate, keyPEM []byte, err error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, fmt.Errorf("making the serving key: %w", err)
	}
	template.SerialNumber = big.NewInt(1)
	template.KeyUsage = x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign
	template.BasicConstraintsValid, template.IsCA = true, true
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		return nil, nil, fmt.Errorf("making the serving certificate: %w", err)
	}
	keyPEM, err = privatePEM(key)
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), keyPEM, err
}

func privatePEM(key *ecdsa.PrivateKey) ([]byte, error) {
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return nil, fmt.Errorf("encoding a key: %w", err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der}), nil
}

func publicPEM(key *ecdsa.PrivateKey) ([]byte, error) {
	der, err := x509.MarshalPKIXPublicKey(&key.PublicKey)
	if err != nil {
		return nil, fmt.Errorf("encoding a public key: %w", err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der}), nil
}
