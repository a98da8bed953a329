// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net/http"
	"time"
)

// readiness returns nil when a process can do its work.
type readiness = func(ctx context.Context) error

// probeTimeout bounds one try; a paused process accepts and never answers.
const probeTimeout = 2 * time.Second

// get is ready when the address answers 200.
func get(url string) readiness {
	client := &http.Client{Timeout: probeTimeout}
	return func(ctx context.Context) error { return probe(ctx, client, url, "") }
}

// secureGet is get over TLS, as the administrator.
func (l *layout) secureGet(name, path string) readiness {
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(l.creds.ca)
	client := &http.Client{
		Timeout: probeTimeout,
		Transport: &http.Transport{
			TLSClientConfig: &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}, DisableKeepAlives: true,
		},
	}
	url := "https://" + loopback(l.port[name]) + path
	return func(ctx context.Context) error { return probe(ctx, client, url, l.creds.adminToken) }
}

func probe(ctx context.Context, client *http.Client, url, token string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return fmt.Errorf("probing: %w", err)
	}
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	response, err := client.Do(request)
	if err != nil {
		return fmt.Errorf("probing: %w", err)
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode == http.StatusOK {
		return nil
	}
	body, _ := io.ReadAll(io.LimitReader(response.Body, 1000))
	return fmt.Errorf("probing %s: %s: %s", url, response.Status, body)
}

// handshake is ready when a TLS server that has its certificate listens. The certificate is not
// checked: Tekton makes its own, and only the API server has the authority.
func handshake(address string) readiness {
	dialer := &tls.Dialer{Config: &tls.Config{InsecureSkipVerify: true}}
	return func(ctx context.Context) error {
		ctx, cancel := context.WithTimeout(ctx, probeTimeout)
		defer cancel()
		conn, err := dialer.DialContext(ctx, "tcp", address)
		if err != nil {
			return fmt.Errorf("probing: %w", err)
		}
		return conn.Close()
	}
}
