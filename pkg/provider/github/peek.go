// SPDX-License-Identifier: Apache-2.0

package github

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"

	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/pkg/provider"
)

// Peek reads repository.html_url and whether there is an installation, and nothing else into memory.
func (webhook) Peek(h http.Header, body []byte) (provider.Origin, error) {
	if err := readsJSON(h); err != nil {
		return provider.Origin{}, err
	}
	key, err := deliveryKey(h)
	if err != nil {
		return provider.Origin{}, err
	}
	p := &peeker{dec: json.NewDecoder(bytes.NewReader(body))}
	if err := p.body(); err != nil {
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
	dec          *json.Decoder
	url          string
	installation bool
}

func (p *peeker) body() error {
	err := p.object("the delivery's body", map[string]func(json.Token) error{
		"repository":   p.repository,
		"installation": p.installed,
	}, nil)
	if err != nil {
		return err
	}
	if _, err := p.dec.Token(); !errors.Is(err, io.EOF) {
		return badPayload("the delivery's body goes on after its JSON object")
	}
	return nil
}

func (p *peeker) repository(first json.Token) error {
	if first == nil {
		return nil
	}
	return p.object("repository", map[string]func(json.Token) error{"html_url": func(value json.Token) error {
		url, isText := value.(string)
		if !isText {
			return badPayload("repository.html_url is not a string")
		}
		p.url = url
		return nil
	}}, first)
}

func (p *peeker) installed(first json.Token) error {
	if first == nil {
		return nil
	}
	return p.object("installation", map[string]func(json.Token) error{"id": func(value json.Token) error {
		if _, isNumber := value.(float64); !isNumber {
			return badPayload("installation.id is not a number")
		}
		p.installation = true
		return nil
	}}, first)
}

// object reads an object whose first token may have been read already, gives the first token of the values of known
// keys to their functions, which read the rest, and skips the others.
func (p *peeker) object(what string, known map[string]func(json.Token) error, first json.Token) error {
	if first == nil {
		token, err := p.next()
		if err != nil {
			return err
		}
		first = token
	}
	if first != json.Delim('{') {
		return badPayload(what + " is not a JSON object")
	}
	seen := map[string]bool{}
	for p.dec.More() {
		name, err := p.next()
		if err != nil {
			return err
		}
		key, read := lookup(known, name)
		if read == nil {
			if err := p.skip(); err != nil {
				return err
			}
			continue
		}
		value, err := p.next()
		if err != nil {
			return err
		}
		if seen[key] {
			return badPayload(what + " names " + key + " twice")
		}
		seen[key] = true
		if err := read(value); err != nil {
			return err
		}
	}
	_, err := p.next()
	return err
}

func lookup(known map[string]func(json.Token) error, name json.Token) (string, func(json.Token) error) {
	text, _ := name.(string)
	for key, read := range known {
		if strings.EqualFold(key, text) {
			return key, read
		}
	}
	return "", nil
}

// skip reads a value without looking at it or keeping its parts (a push may be 25 MB). encoding/json refuses values
// that nest deeper than 10000 levels.
func (p *peeker) skip() error {
	if err := p.dec.Decode(&ignored{}); err != nil {
		return notJSON()
	}
	return nil
}

// ignored takes any JSON value and keeps nothing.
type ignored struct{}

// UnmarshalJSON implements json.Unmarshaler.
func (*ignored) UnmarshalJSON([]byte) error { return nil }

func (p *peeker) next() (json.Token, error) {
	token, err := p.dec.Token()
	if err != nil {
		return nil, notJSON()
	}
	return token, nil
}

func notJSON() error { return badPayload("the delivery's body is not JSON") }

func badPayload(message string) error {
	return fault.Invalidf("BadPayload", "%s", message)
}
