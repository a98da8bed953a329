// SPDX-License-Identifier: Apache-2.0

package delivery

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/textproto"
	"slices"
	"strings"
)

// Recorded returns a delivery that a Git service has sent. The headers are lines "Name: value", as
// the service's page of recent deliveries shows them, or a JSON object. The key,
// if not empty, replaces the delivery's id (X-GitHub-Delivery, Idempotency-Key).
func Recorded(payload, headers []byte, key string) (Delivery, error) {
	if len(bytes.TrimSpace(payload)) == 0 {
		return Delivery{}, errors.New("the payload is empty: copy it from the page of the delivery")
	}
	header, err := readHeaders(headers)
	if err != nil {
		return Delivery{}, err
	}
	d := Delivery{Header: header, Body: payload, Recorded: true}
	if key != "" {
		header.Set(d.keyHeader(), key)
	}
	return d, nil
}

const githubKey = "X-GitHub-Delivery"

// keyHeader is where the delivery's service writes its key.
func (d Delivery) keyHeader() string {
	if d.Header.Get("X-Gitlab-Event") != "" {
		return "Idempotency-Key"
	}
	return githubKey
}

func readHeaders(data []byte) (http.Header, error) {
	data = bytes.TrimSpace(bytes.TrimPrefix(data, []byte("\ufeff")))
	switch {
	case len(data) == 0:
		return nil, errors.New("the headers are empty: copy them from the page of the delivery")
	case data[0] == '{':
		return objectHeaders(data)
	}
	return lineHeaders(string(data))
}

// lineHeaders reads lines. GitHub's page shows the address and method of the request above the
// headers, with a colon too. A line without a colon is refused: it may be the end of a header that
// was cut, which would then be missing.
func lineHeaders(lines string) (http.Header, error) {
	header := http.Header{}
	number := 0
	for line := range strings.Lines(lines) {
		number++
		line = strings.TrimSpace(line)
		name, value, found := strings.Cut(line, ":")
		switch {
		case line == "" || found && strings.HasPrefix(name, "Request "):
			continue
		case !found || !validName(name):
			return nil, fmt.Errorf(
				"line %d of the headers is not like \"X-GitHub-Event: push\": copy the request headers of the delivery, one on each line",
				number,
			)
		}
		header.Add(name, strings.TrimSpace(value))
	}
	return header, nil
}

func validName(name string) bool {
	return name != "" && strings.Trim(name, "-") != "" && !strings.ContainsAny(name, " \t\"{}()<>@,;\\/[]?=")
}

// objectHeaders reads a JSON object of texts, or of lists of texts.
func objectHeaders(data []byte) (http.Header, error) {
	var all map[string]json.RawMessage
	if err := json.Unmarshal(data, &all); err != nil {
		return nil, fmt.Errorf("the headers start with { but are not a JSON object: copy all of them (%w)", err)
	}
	header := http.Header{}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		raw := all[name]
		var one string
		var many []string
		if json.Unmarshal(raw, &one) == nil {
			many = []string{one}
		} else if err := json.Unmarshal(raw, &many); err != nil {
			return nil, fmt.Errorf("the header %s is neither a text nor a list of texts", name)
		}
		header[textproto.CanonicalMIMEHeaderKey(name)] = many
	}
	return header, nil
}
