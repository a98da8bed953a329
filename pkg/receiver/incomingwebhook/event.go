// SPDX-License-Identifier: Apache-2.0

package incomingwebhook

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/uuid"

	pacv1alpha1 "github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
)

// Target is the Repository of a request, and its project as far as the Repository's URL says.
type Target struct {
	Repository *pacv1alpha1.Repository
	// Provider is the name of the Git service, and Host its host.
	Provider, Host string
	Project        v1alpha1.Project
}

// Event returns the event of a request without Repository, Payload and ReceivedAt, and its body.
// The body is the request's without the secret, so that nothing stored has it.
//
// The event is named after the Repository and the Idempotency-Key. Without such a key each request
// is another event.
func (r *Request) Event(to Target, now time.Time) (*v1alpha1.GitEventSpec, []byte) {
	body, _ := json.Marshal(struct { // strings always marshal
		Repository string            `json:"repository"`
		Namespace  string            `json:"namespace"`
		Branch     string            `json:"branch"`
		Pipeline   string            `json:"pipelinerun"`
		Params     map[string]string `json:"params"`
	}{to.Repository.Name, to.Repository.Namespace, r.Branch, r.Pipeline, r.Params})
	key, at := r.key(to.Repository), metav1.Time{} // an earlier request may have had the key long ago
	if r.IdempotencyKey == "" {
		key, at = string(uuid.NewUUID()), metav1.NewTime(now)
	}
	ref := "refs/heads/" + r.Branch
	return &v1alpha1.GitEventSpec{
		Provider: to.Provider, Host: to.Host, DeliveryKey: key, Body: &v1alpha1.BodyIdentity{Key: key, At: at},
		Trigger: v1alpha1.TriggerPush, EventType: v1alpha1.EventIncoming, Project: to.Project,
		BaseRef: ref, HeadRef: ref, HeadURL: to.Project.URL, Sender: v1alpha1.EventIncoming,
		Incoming: &v1alpha1.Incoming{Pipeline: r.Pipeline, Params: r.Params},
	}, body
}

// key returns a digest of the Repository and the Idempotency-Key.
func (r *Request) key(repository *pacv1alpha1.Repository) string {
	sum := sha256.Sum256([]byte(repository.Namespace + "/" + repository.Name + "\x00" + r.IdempotencyKey))
	return "incoming-" + hex.EncodeToString(sum[:])
}
