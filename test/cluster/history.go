// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"
)

// Version is an object as etcd stores it from one resource version on.
type Version struct {
	// Resource is "<group>/<resource>", Namespace and Name are the object's.
	Resource, Namespace, Name string
	// Revision is the resource version. All objects share one row of them.
	Revision int64
	// At is when it was told of, a little later than it was stored.
	At time.Time
	// Object is the object as JSON, nil if it was deleted.
	Object []byte
}

// registry is the prefix of the API server's keys in etcd.
const registry = "/registry/"

// again is the pause after etcd has not answered.
const again = 200 * time.Millisecond

var (
	// errHistory says that versions are missing.
	errHistory = errors.New("versions are missing")
	// errNoAnswer is any message without a resource version.
	errNoAnswer = errors.New("etcd answers with an error")
)

// History reports every version of the objects of some custom resources ("<group>/<resource>")
// that is stored from now on, each once and in the order of their resource versions. It reads
// etcd, not the API server: a write at the moment of the API server's death is in no audit log,
// and a restarted watch of the API server may miss versions.
type History struct {
	etcd      string
	resources []string
	saw       func(Version)
	next      int64 // the first revision that was not told of, 0 before the first answer
}

// Follow returns a history from now on.
func (c *Cluster) Follow(ctx context.Context, resources []string, saw func(Version)) (*History, error) {
	return follow(ctx, c.EtcdURL(), resources, saw)
}

func follow(ctx context.Context, etcd string, resources []string, saw func(Version)) (*History, error) {
	h := &History{etcd: etcd, resources: resources, saw: saw}
	began := errors.New("it has begun")
	err := h.watch(ctx, func() error { return began })
	if errors.Is(err, began) {
		return h, nil
	}
	return nil, err
}

// Run reports versions until ctx ends, also after an outage of etcd. An error says that some are
// missing.
func (h *History) Run(ctx context.Context) error {
	for {
		err := h.watch(ctx, func() error { return nil })
		if errors.Is(err, errHistory) {
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(again):
		}
	}
}

// answer is a message of etcd's Watch through its JSON gateway: numbers are strings there, bytes
// base64.
type answer struct {
	Result struct {
		Header struct {
			Revision int64 `json:"revision,string"`
		} `json:"header"`
		Canceled bool   `json:"canceled"`
		Reason   string `json:"cancel_reason"`
		Events   []struct {
			Type string `json:"type"`
			KV   struct {
				Key      []byte `json:"key"`
				Value    []byte `json:"value"`
				Revision int64  `json:"mod_revision,string"`
			} `json:"kv"`
		} `json:"events"`
	} `json:"result"`
}

// watch reports versions until etcd ends the answer. It calls begun when etcd has said where it
// starts.
func (h *History) watch(ctx context.Context, begun func() error) error {
	first, last := slices.Min(h.resources), slices.Max(h.resources) // and what is in between, which tell leaves out
	body, err := json.Marshal(map[string]any{"create_request": map[string]any{
		// "0" comes after "/"
		"key": []byte(registry + first + "/"), "range_end": []byte(registry + last + "0"), "start_revision": h.next,
	}})
	if err != nil {
		return err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, h.etcd+"/v3/watch", bytes.NewReader(body))
	if err != nil {
		return err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return fmt.Errorf("following etcd: %w", err)
	}
	defer func() { _ = response.Body.Close() }()
	return h.read(response.Body, begun)
}

func (h *History) read(stream io.Reader, begun func() error) error {
	for decoder := json.NewDecoder(stream); ; {
		var all answer
		if err := decoder.Decode(&all); err != nil {
			return fmt.Errorf("following etcd: %w", err)
		}
		if all.Result.Header.Revision == 0 {
			return errNoAnswer
		}
		if all.Result.Canceled {
			return fmt.Errorf("%w from resource version %d on: %s", errHistory, h.next, all.Result.Reason)
		}
		if h.next == 0 {
			h.next = all.Result.Header.Revision + 1
		}
		for _, event := range all.Result.Events {
			if event.KV.Revision < h.next {
				continue // the first answer of a watch that begins again
			}
			h.next = event.KV.Revision + 1
			object := event.KV.Value
			if event.Type == "DELETE" {
				object = nil
			}
			h.emit(string(event.KV.Key), event.KV.Revision, object)
		}
		if err := begun(); err != nil {
			return err
		}
	}
}

// emit reports a version if it is of one of the resources: its key is
// "/registry/<group>/<resource>/<namespace>/<name>".
func (h *History) emit(key string, revision int64, object []byte) {
	for _, resource := range h.resources {
		rest, ours := strings.CutPrefix(key, registry+resource+"/")
		namespace, name, found := strings.Cut(rest, "/")
		if ours && found {
			h.saw(Version{
				Resource: resource, Namespace: namespace, Name: name, Revision: revision, At: time.Now(), Object: object,
			})
		}
	}
}
