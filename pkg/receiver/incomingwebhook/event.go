// SPDX-License-Identifier: Apache-2.0

package incomingwebhook

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/url"
	"path"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/uuid"

	pacv1alpha1 "github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/provider"
)

// Target is the Repository of a request and the Git service that it is at.
type Target struct {
	Repository *pacv1alpha1.Repository
	// Provider is the name of the Git service.
	Provider string
	// BaseURL is the configured web URL of the Git service; it may have a path.
	BaseURL string
	// App reports whether the GitHub App serves the Repository.
	App bool
}

// Event returns the event of a request without Repository, Payload and ReceivedAt, and its body.
// The body is the request's without the secret, so that nothing stored has it.
//
// The event is named after the Repository and the Idempotency-Key. Without such a key each request
// is another event.
func (r *Request) Event(to Target, now time.Time) (*v1alpha1.GitEventSpec, []byte, error) {
	project, host, err := to.project()
	if err != nil {
		return nil, nil, err
	}
	body, err := json.Marshal(map[string]any{
		fieldRepository: to.Repository.Name, fieldNamespace: to.Repository.Namespace, fieldBranch: r.Branch,
		fieldPipeline: r.Pipeline, fieldParams: r.Params,
	})
	if err != nil {
		return nil, nil, fmt.Errorf("encoding the request: %w", err)
	}
	key, at := r.key(to.Repository), metav1.Time{} // an earlier request may have had the key long ago
	if r.IdempotencyKey == "" {
		key, at = string(uuid.NewUUID()), metav1.NewTime(now)
	}
	ref := "refs/heads/" + r.Branch
	return &v1alpha1.GitEventSpec{
		Provider: to.Provider, Host: host, DeliveryKey: key, Body: &v1alpha1.BodyIdentity{Key: key, At: at},
		Trigger: v1alpha1.TriggerPush, EventType: v1alpha1.EventIncoming, Project: project,
		BaseRef: ref, HeadRef: ref, HeadURL: project.URL, Sender: v1alpha1.EventIncoming,
		Incoming: &v1alpha1.Incoming{Pipeline: r.Pipeline, Params: r.Params, App: to.App},
	}, body, nil
}

// key returns a digest of the Repository and the Idempotency-Key.
func (r *Request) key(repository *pacv1alpha1.Repository) string {
	sum := sha256.Sum256([]byte(repository.Namespace + "/" + repository.Name + "\x00" + r.IdempotencyKey))
	return "incoming-" + hex.EncodeToString(sum[:])
}

// project returns what the Repository's URL says about its project.
func (t Target) project() (v1alpha1.Project, string, error) {
	u, err := url.Parse(strings.TrimSuffix(strings.TrimRight(t.Repository.Spec.URL, "/"), ".git"))
	if err != nil || u.Host == "" {
		return v1alpha1.Project{}, "", fmt.Errorf(
			"the URL of Repository %s/%s is not a web URL",
			t.Repository.Namespace,
			t.Repository.Name,
		)
	}
	at := u.Path
	if base, err := url.Parse(t.BaseURL); err == nil {
		at = strings.TrimPrefix(at, strings.TrimRight(base.Path, "/"))
	}
	owner, name := path.Split(strings.Trim(at, "/"))
	u.User, u.RawQuery, u.Fragment = nil, "", ""
	return v1alpha1.Project{Owner: strings.Trim(owner, "/"), Name: name, URL: u.String()}, provider.Host(u), nil
}
