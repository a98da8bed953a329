// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"
)

// Call is one request to the API server, in the terms of its authorizer.
type Call struct {
	N    int    // 1 for the first call through the proxy since its start or Reset
	Verb string // get, list, watch, create, update, patch, delete, deletecollection
	// Group is empty for the core group; Resource is empty for a path that
	// names none, such as /version and discovery.
	Group, Resource, Subresource string
	Namespace, Name              string
	UserAgent                    string
	Time                         time.Time // when it arrived
	Status                       int       // the answer's code; 0 while there is none and when it was dropped
}

// Is reports whether the call is this verb on this resource itself, not on a subresource of it.
func (c Call) Is(verb, resource string) bool {
	return c.Verb == verb && c.Resource == resource && c.Subresource == ""
}

// parseCall reads a request as the API server does: /api/v1/... and /apis/GROUP/VERSION/..., then
// namespaces/NAMESPACE/ when the request is inside of one, then RESOURCE[/NAME[/SUBRESOURCE]].
func parseCall(r *http.Request) Call {
	call := Call{UserAgent: r.UserAgent(), Time: time.Now()}
	segments := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	switch {
	case len(segments) >= 2 && segments[0] == "api":
		segments = segments[2:]
	case len(segments) >= 3 && segments[0] == "apis":
		call.Group, segments = segments[1], segments[3:]
	default:
		segments = nil
	}
	if len(segments) > 1 && segments[0] == "namespaces" {
		call.Namespace = segments[1]
		// A namespace's own subresources look like resources in it.
		if len(segments) > 2 && !slices.Contains([]string{"status", "finalize"}, segments[2]) {
			segments = segments[2:]
		}
	}
	for i, field := range []*string{&call.Resource, &call.Name, &call.Subresource} {
		if i < len(segments) {
			*field = segments[i]
		}
	}
	call.Verb = verb(r.Method, r.URL.Query(), &call)
	return call
}

func verb(method string, query url.Values, call *Call) string {
	switch method {
	case http.MethodPost:
		return "create"
	case http.MethodPut:
		return "update"
	case http.MethodPatch:
		return "patch"
	case http.MethodDelete:
		if call.Name == "" && call.Resource != "" {
			return "deletecollection"
		}
		return "delete"
	}
	if call.Resource == "" || call.Name != "" {
		return "get"
	}
	call.Name = selectedName(query.Get("fieldSelector"))
	if slices.Contains([]string{"true", "1"}, query.Get("watch")) {
		return "watch"
	}
	return "list"
}

// selectedName is the name when a watch or list is of one object only.
func selectedName(fieldSelector string) string {
	name, ok := strings.CutPrefix(fieldSelector, "metadata.name=")
	if !ok || strings.ContainsAny(name, ",=!") {
		return ""
	}
	return name
}

// nameInBody is the metadata.name of a JSON object, or empty.
func nameInBody(body []byte) string {
	var object struct {
		Metadata struct {
			Name string `json:"name"`
		} `json:"metadata"`
	}
	if json.Unmarshal(body, &object) != nil {
		return ""
	}
	return object.Metadata.Name
}
