// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"
)

// certificate is one for 127.0.0.1 that is its own authority.
type certificate struct{ certificate, key []byte } // PEM

// newCertificate makes one that was valid for the year before its end.
func newCertificate(end time.Time) (certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return certificate{}, err
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "127.0.0.1"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		NotBefore: end.AddDate(-1, 0, 0), NotAfter: end, BasicConstraintsValid: true, IsCA: true,
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		return certificate{}, err
	}
	private, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return certificate{}, err
	}
	return certificate{
		certificate: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
		key:         pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: private}),
	}, nil
}

func (c certificate) pair() (tls.Certificate, error) { return tls.X509KeyPair(c.certificate, c.key) }

// write returns the paths of two files in a directory.
func (c certificate) write(dir string) (certificatePath, keyPath string, err error) {
	certificatePath, keyPath = filepath.Join(dir, "expired.crt"), filepath.Join(dir, "expired.key")
	return certificatePath, keyPath, errors.Join(
		os.WriteFile(certificatePath, c.certificate, 0o600), os.WriteFile(keyPath, c.key, 0o600))
}
