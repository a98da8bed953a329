// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
)

// inUse is etcd's own name for the bytes of its database that hold something.
const inUse = "etcd_mvcc_db_total_size_in_use_in_bytes "

// Storage returns how many bytes of etcd's database are in use, old revisions that are not
// compacted yet included.
func (c *Cluster) Storage(ctx context.Context) (int64, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+loopback(c.port[Etcd])+"/metrics", nil)
	if err != nil {
		return 0, err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return 0, fmt.Errorf("asking etcd for its size: %w", err)
	}
	defer func() { _ = response.Body.Close() }()
	page, err := io.ReadAll(response.Body)
	if err != nil {
		return 0, fmt.Errorf("asking etcd for its size: %w", err)
	}
	_, value, found := strings.Cut(string(page), "\n"+inUse)
	value, _, _ = strings.Cut(value, "\n")
	bytes, err := strconv.ParseFloat(value, 64)
	if !found || err != nil {
		return 0, fmt.Errorf("etcd says no %s", inUse)
	}
	return int64(bytes), nil
}
