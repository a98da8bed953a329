// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
)

// maxDeliveryAnswer is how much of a receiver's answer is kept.
const maxDeliveryAnswer = 1 << 20

// NewRequest builds a delivery's HTTP request.
func NewRequest(ctx context.Context, url string, header http.Header, body []byte) (*http.Request, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		return nil, fmt.Errorf("building a delivery: %w", err)
	}
	req.Header = header.Clone()
	return req, nil
}

// Post sends a delivery once and returns the receiver's answer. It follows no redirect.
func Post(ctx context.Context, url string, header http.Header, body []byte) (int, []byte, error) {
	req, err := NewRequest(ctx, url, header, body)
	if err != nil {
		return 0, nil, err
	}
	// A connection of its own: a receiver that was restarted must not fail the
	// next delivery through a connection kept from before.
	client := &http.Client{
		Transport:     &http.Transport{DisableKeepAlives: true},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	resp, err := client.Do(req)
	if err != nil {
		return 0, nil, fmt.Errorf("delivering: %w", err)
	}
	defer func() { _ = resp.Body.Close() }()
	got, err := io.ReadAll(io.LimitReader(resp.Body, maxDeliveryAnswer))
	if err != nil {
		return resp.StatusCode, got, fmt.Errorf("delivering: reading the answer: %w", err)
	}
	return resp.StatusCode, got, nil
}

// NewUUID is a random UUID of version 4.
func NewUUID() string {
	h := RandomHex(16)
	return h[:8] + "-" + h[8:12] + "-4" + h[13:16] + "-a" + h[17:20] + "-" + h[20:]
}

// RandomHex is n random bytes in hex.
func RandomHex(n int) string {
	b := make([]byte, n)
	_, _ = rand.Read(b) // never fails since Go 1.24
	return hex.EncodeToString(b)
}
