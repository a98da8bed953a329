// SPDX-License-Identifier: Apache-2.0

// Package incomingwebhook reads a request to POST /incoming, finds the rule of spec.incoming that
// is for it, and makes the event. It is pure: no client, no clock, no logger.
package incomingwebhook

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/api/validation"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/git"
)

// Path is the path of the requests.
const Path = "/incoming"

const (
	// MaxBodyBytes is the largest body. Its params are stored in the GitEvent for days, so they are
	// for versions and names and not for data.
	MaxBodyBytes = 32 << 10
	// maxSecretBytes is more than the longest secret that is copied to the receivers.
	maxSecretBytes = 4 << 10
	// maxIdempotencyKey is enough for a UUID or a hash with a prefix.
	maxIdempotencyKey = 255
)

// Request is what a request says. Nothing of it is proved.
type Request struct {
	// Repository and Namespace name the Repository. Namespace may be empty.
	Repository, Namespace string
	// Branch has no prefix.
	Branch string
	// Pipeline is the name or generateName of a PipelineRun.
	Pipeline string
	Params   map[string]string
	// Secret is the secret of the body or of the header Authorization.
	Secret string
	// IdempotencyKey is empty if the request has none.
	IdempotencyKey string
}

// Refusal is why a request cannot be read. Its message says what to do, and repeats no value.
type Refusal struct {
	Status  int
	Message string
}

func refuse(status int, format string, args ...any) *Refusal {
	return &Refusal{status, fmt.Sprintf(format, args...)}
}

// the fields of the body, as in Pipelines-as-Code.
const (
	fieldRepository = "repository"
	fieldNamespace  = "namespace"
	fieldBranch     = "branch"
	fieldPipeline   = "pipelinerun"
	fieldSecret     = "secret"
	fieldParams     = "params"
)

// payload is the body, as in Pipelines-as-Code.
type payload struct {
	Repository string         `json:"repository"`
	Namespace  string         `json:"namespace"`
	Branch     string         `json:"branch"`
	Pipeline   string         `json:"pipelinerun"`
	Secret     string         `json:"secret"`
	Params     map[string]any `json:"params"`
}

const usage = `{"repository": "…", "namespace": "…", "branch": "…", "pipelinerun": "…", "params": {…}}`

// CheckHead returns why a request cannot be accepted, whatever its body is.
func CheckHead(r *http.Request) *Refusal {
	if r.Method != http.MethodPost {
		return refuse(http.StatusMethodNotAllowed, "send the request with POST and a JSON body: %s", usage)
	}
	for _, name := range []string{fieldRepository, fieldBranch, fieldPipeline, fieldSecret, fieldNamespace} {
		if r.URL.Query().Has(name) {
			return refuse(http.StatusBadRequest, "query parameters are not read, because URLs are logged: "+
				"send POST %s with Content-Type: application/json, the header Authorization: Bearer <secret> and the body %s. "+
				"Replace the secret if it was in a URL", Path, usage)
		}
	}
	if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || kind != "application/json" {
		return refuse(http.StatusUnsupportedMediaType, "set Content-Type: application/json and send the body %s", usage)
	}
	if r.ContentLength > MaxBodyBytes {
		return TooLarge()
	}
	return nil
}

// TooLarge refuses a body over MaxBodyBytes.
func TooLarge() *Refusal {
	return refuse(http.StatusRequestEntityTooLarge,
		"the body is larger than %d KiB: send names and versions in params, and the address of data", MaxBodyBytes>>10)
}

// Read reads a request.
func Read(header http.Header, body []byte) (*Request, *Refusal) {
	if len(body) > MaxBodyBytes {
		return nil, TooLarge()
	}
	fields, refused := decode(body)
	if refused != nil {
		return nil, refused
	}
	out := &Request{
		Repository: fields.Repository, Namespace: fields.Namespace, Branch: fields.Branch, Pipeline: fields.Pipeline,
		Secret: fields.Secret, IdempotencyKey: header.Get("Idempotency-Key"),
	}
	if out.Params, refused = params(fields.Params); refused != nil {
		return nil, refused
	}
	out.authenticate(header)
	if refused := out.check(); refused != nil {
		return nil, refused
	}
	return out, nil
}

// NameIn returns the Repository that a request names, in its body or as Pipelines-as-Code also
// reads it, in its query. The request may be one that Read refuses.
func NameIn(query url.Values, body []byte) (namespace, name string) {
	if name = query.Get(fieldRepository); name != "" {
		return query.Get(fieldNamespace), name
	}
	var fields payload
	_ = json.Unmarshal(body, &fields) // what cannot be read names none
	return fields.Namespace, fields.Repository
}

// decode returns the fields of the body. Unknown ones are ignored, as in Pipelines-as-Code.
func decode(body []byte) (fields payload, refused *Refusal) {
	err := json.Unmarshal(body, &fields)
	var wrong *json.UnmarshalTypeError
	switch {
	case errors.As(err, &wrong) && wrong.Field == fieldParams:
		return fields, refuse(http.StatusBadRequest, `params is not an object of strings: send {"name": "value"}`)
	case errors.As(err, &wrong) && wrong.Field != "":
		return fields, refuse(http.StatusBadRequest, "the field %s is not a string: write it in quotes", wrong.Field)
	case err != nil || !utf8.Valid(body):
		return fields, refuse(http.StatusBadRequest, "the body is not a JSON object: send %s", usage)
	}
	return fields, nil
}

// params returns the params, all of which must be strings.
func params(values map[string]any) (map[string]string, *Refusal) {
	if len(values) > v1alpha1.MaxIncomingParams {
		return nil, refuse(http.StatusBadRequest, "a request has at most %d params", v1alpha1.MaxIncomingParams)
	}
	var all map[string]string
	for _, name := range slices.Sorted(maps.Keys(values)) {
		value, isString := values[name].(string)
		if !isString {
			return nil, refuse(http.StatusBadRequest, "the param %s is not a string: write its value in quotes", shown(name))
		}
		if all == nil {
			all = map[string]string{}
		}
		all[name] = value
	}
	return all, nil
}

// authenticate takes the secret of the header Authorization. Without a Bearer token there, or with
// a secret in the body, the header is for a proxy in front of the receiver.
func (r *Request) authenticate(header http.Header) {
	scheme, token, _ := strings.Cut(strings.TrimSpace(header.Get("Authorization")), " ")
	if r.Secret == "" && strings.EqualFold(scheme, "Bearer") {
		r.Secret = strings.TrimSpace(token)
	}
}

func (r *Request) check() *Refusal {
	var missing []string
	for _, field := range []struct{ name, value string }{
		{fieldRepository, r.Repository}, {fieldBranch, r.Branch}, {fieldPipeline, r.Pipeline}, {fieldSecret, r.Secret},
	} {
		if field.value == "" {
			missing = append(missing, field.name)
		}
	}
	if len(missing) > 0 {
		return refuse(http.StatusBadRequest,
			"missing required fields: %s. Send %s, and the secret as Authorization: Bearer <secret>",
			strings.Join(missing, ", "), usage)
	}
	return r.checkValues()
}

func (r *Request) checkValues() *Refusal {
	switch {
	case len(validation.NameIsDNSSubdomain(r.Repository, false)) > 0:
		return refuse(http.StatusBadRequest,
			"repository is not the name of a Repository object: it is metadata.name, not the URL")
	case r.Namespace != "" && len(validation.ValidateNamespaceName(r.Namespace, false)) > 0:
		return refuse(http.StatusBadRequest, "namespace is not the name of a namespace")
	case strings.HasPrefix(r.Branch, "refs/"):
		return refuse(http.StatusBadRequest, "branch is the name of a branch without refs/heads/; tags are not supported")
	case !git.IsRefName(r.Branch):
		return refuse(http.StatusBadRequest, "branch is not the name of a branch")
	case len(validation.NameIsDNSSubdomain(r.Pipeline, true)) > 0:
		return refuse(http.StatusBadRequest,
			"pipelinerun is not the name of a PipelineRun: it is its metadata.name or generateName")
	case len(r.Secret) > maxSecretBytes:
		return refuse(http.StatusBadRequest, "the secret is longer than any that Plumbline accepts")
	case len(r.IdempotencyKey) > maxIdempotencyKey:
		return refuse(http.StatusBadRequest, "the header Idempotency-Key is longer than %d bytes", maxIdempotencyKey)
	}
	return nil
}

// shown bounds a name of the sender for an answer to it.
func shown(name string) string {
	const most = 64
	if len(name) > most {
		return strings.ToValidUTF8(name[:most], "") + "…"
	}
	return name
}
