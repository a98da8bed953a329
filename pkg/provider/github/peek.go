// SPDX-License-Identifier: Apache-2.0

package github

import (
	"bytes"
	"encoding/json"
	"errors"
	"net/http"
	"strings"

	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/pkg/jsonmember"
	"github.com/plumbline-ci/plumbline/pkg/provider"
)

// Peek reads repository.html_url and whether there is an installation, and copies nothing else: a push may be 25 MB.
func (webhook) Peek(h http.Header, body []byte) (provider.Origin, error) {
	if err := readsJSON(h); err != nil {
		return provider.Origin{}, err
	}
	key, err := deliveryKey(h)
	if err != nil {
		return provider.Origin{}, err
	}
	var p peeker
	if err := p.body(body); err != nil {
		return provider.Origin{}, err
	}
	return provider.Origin{
		URL: p.url, App: p.installation || h.Get(headerTarget) == "integration",
		DeliveryKey: key, Event: boundary(clean(h.Get(headerEvent)), maxHeader),
	}, nil
}

// peeker walks the top of a body. A key that occurs twice is refused, in whatever case: Decode would read the one
// that was not looked at here, after the signature was checked with the secret of another repository.
type peeker struct {
	url          string
	installation bool
}

// readers take the values of known keys.
type readers map[string]func(value []byte) error

func (p *peeker) body(body []byte) error {
	if !json.Valid(body) { // which also refuses values that nest deeper than 10000 levels
		return badPayload("the delivery's body is not JSON")
	}
	return object("the delivery's body", body, readers{"repository": p.repository, "installation": p.installed})
}

func (p *peeker) repository(value []byte) error {
	if isNull(value) {
		return nil
	}
	return object("repository", value, readers{"html_url": func(value []byte) error {
		var url *string
		if err := json.Unmarshal(value, &url); err != nil || url == nil {
			return badPayload("repository.html_url is not a string")
		}
		p.url = *url
		return nil
	}})
}

func (p *peeker) installed(value []byte) error {
	if isNull(value) {
		return nil
	}
	return object("installation", value, readers{"id": func(value []byte) error {
		var id *float64
		if err := json.Unmarshal(value, &id); err != nil || id == nil {
			return badPayload("installation.id is not a number")
		}
		p.installation = true
		return nil
	}})
}

func isNull(value []byte) bool { return bytes.Equal(value, []byte("null")) }

// object gives the values of known keys to their functions. The value is valid JSON.
func object(what string, value []byte, known readers) error {
	seen := map[string]bool{}
	err := jsonmember.Each(value, func(name string, value []byte) error {
		key, read := lookup(known, name)
		if read == nil {
			return nil
		}
		if seen[key] {
			return badPayload(what + " names " + key + " twice")
		}
		seen[key] = true
		return read(value)
	})
	if errors.Is(err, jsonmember.ErrNotObject) {
		return badPayload(what + " is not a JSON object")
	}
	return err
}

func lookup(known readers, name string) (string, func([]byte) error) {
	for key, read := range known {
		if strings.EqualFold(key, name) {
			return key, read
		}
	}
	return "", nil
}

func badPayload(message string) error {
	return fault.Invalidf("BadPayload", "%s", message)
}
