// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/test/cluster"
	"github.com/plumbline-ci/plumbline/test/installation"
)

// response is a receiver's answer to one delivery.
type response struct {
	status int
	header http.Header
	body   string
	took   time.Duration
}

func (a response) String() string { return fmt.Sprintf("%d %s", a.status, strings.TrimSpace(a.body)) }

// send posts a delivery and returns the whole answer. It is not in the forge's delivery log.
func (env *environment) send(p *installation.Process, d delivery) (response, error) {
	ctx, cancel := context.WithTimeout(env.ctx, soon)
	defer cancel()
	request, err := d.Request(ctx, p.URL)
	if err != nil {
		return response{}, err
	}
	return exchange(request)
}

func exchange(request *http.Request) (response, error) {
	// Each delivery has its own connection, like a service's.
	transport := &http.Transport{ExpectContinueTimeout: soon}
	defer transport.CloseIdleConnections()
	client := &http.Client{Transport: transport}
	start := time.Now()
	answer, err := client.Do(request)
	if err != nil {
		return response{}, err
	}
	defer func() { _ = answer.Body.Close() }()
	body, err := io.ReadAll(answer.Body)
	return response{answer.StatusCode, answer.Header, string(body), time.Since(start)}, err
}

// mustSend is send for a delivery that must get an answer.
func (env *environment) mustSend(p *installation.Process, d delivery) response {
	env.t.Helper()
	a, err := env.send(p, d)
	env.must(err)
	return a
}

// requireRetryLater requires the answer that makes a service deliver again: 503 and Retry-After.
func (env *environment) requireRetryLater(what string, a response) {
	env.t.Helper()
	if a.status != http.StatusServiceUnavailable {
		env.t.Errorf("%s: answered %v, want 503", what, a)
	}
	if seconds, err := strconv.Atoi(a.header.Get("Retry-After")); err != nil || seconds < 1 {
		env.t.Errorf("%s: Retry-After is %q, want a number of seconds", what, a.header.Get("Retry-After"))
	}
}

// countStored returns the number of GitEvents and of EventPayloads in the environment.
func (env *environment) countStored() (events, payloads int) {
	env.t.Helper()
	list, err := env.Plumbline.PlumblineV1alpha1().EventPayloads(env.Namespace).List(env.ctx, metav1.ListOptions{})
	env.must(err)
	return len(env.events()), len(list.Items)
}

// requireNothingStored requires that a refused or ignored delivery left no object.
func (env *environment) requireNothingStored(what string) {
	env.t.Helper()
	if events, payloads := env.countStored(); events != 0 || payloads != 0 {
		env.t.Errorf("%s: %d GitEvents and %d EventPayloads are stored, want none", what, events, payloads)
	}
}

// requireNoSideEffects requires no call to the forge, no PipelineRun and no secret.
func (env *environment) requireNoSideEffects(what string) {
	env.t.Helper()
	if calls := env.git.log().requests; len(calls) != 0 {
		env.t.Errorf("%s: the forge got %d calls, the first is %s %s", what, len(calls), calls[0].Method, calls[0].Path)
	}
	env.requireRunCount(0)
	if secrets := env.countSecrets(); secrets != 0 {
		env.t.Errorf("%s: %d secrets in the tenant's namespace, want none", what, secrets)
	}
}

// countSecrets returns the number of secrets in the Repository's namespace, without the one that
// the Repository names.
func (env *environment) countSecrets() int {
	env.t.Helper()
	list, err := env.Kube.CoreV1().Secrets(env.ci).List(env.ctx, metav1.ListOptions{})
	env.must(err)
	namespace, name, _ := env.git.secret(env)
	if own := func(s corev1.Secret) bool {
		return s.Namespace == namespace && s.Name == name
	}; slices.ContainsFunc(list.Items, own) {
		return len(list.Items) - 1
	}
	return len(list.Items)
}

// countDeliveries returns the receiver's number of deliveries with that outcome and reason.
func (env *environment) countDeliveries(p *installation.Process, outcome, reason string) int {
	env.t.Helper()
	return env.metric(p, "plumbline_receiver_deliveries_total{", `outcome="`+outcome+`"`, `reason="`+reason+`"`)
}

// newDelivery returns another delivery of the same push: another GUID, hence another event.
func (env *environment) newDelivery() delivery {
	return env.git.pushed("refs/heads/main")
}

// withLargePlan returns a pipeline whose plan does not fit into the status of its event, so that
// it has EventPayloads.
func withLargePlan(pipeline string) string {
	noise := make([]byte, 2*v1alpha1.MaxManifestBytes)
	_, _ = rand.Read(noise) // documented never to fail
	return strings.Replace(pipeline, "pipelineSpec:\n",
		"pipelineSpec:\n    description: "+base64.StdEncoding.EncodeToString(noise)+"\n", 1)
}

// largeDelivery returns a delivery whose body does not fit into its event, so that it has
// EventPayloads.
func (env *environment) largeDelivery(d delivery) delivery {
	return env.padBody(d, 2*v1alpha1.MaxPayloadBytes)
}

// padBody adds so many bytes, which cannot be compressed further, to the body of a delivery.
func (env *environment) padBody(d delivery, size int) delivery {
	env.t.Helper()
	noise := make([]byte, base64.StdEncoding.DecodedLen(size))
	_, _ = rand.Read(noise) // documented never to fail
	_, body := partsOf(d)
	padded := fmt.Sprintf(`%s,"padding":%q}`, bytes.TrimSuffix(bytes.TrimSpace(body), []byte("}")),
		base64.StdEncoding.EncodeToString(noise))
	return env.git.signed(d, []byte(padded), env.webhookSecret())
}

// webhookSecret returns the value that deliveries are signed with.
func (env *environment) webhookSecret() string {
	env.t.Helper()
	namespace, name, key := env.git.secret(env)
	secret, err := env.Kube.CoreV1().Secrets(namespace).Get(env.ctx, name, metav1.GetOptions{})
	env.must(err)
	return string(secret.Data[key])
}

// requireOneOfEach requires one record, one PipelineRun and one check, once every event is
// settled.
func (env *environment) requireOneOfEach(sha string) {
	env.t.Helper()
	env.awaitAllSettled(afterFault)
	if events := env.events(); len(events) != 1 {
		env.t.Errorf("%d GitEvents, want 1", len(events))
	}
	env.requireRunCount(1)
	if checks := env.git.checks(sha); len(checks) != 1 || checks[0].Conclusion != "success" {
		env.t.Errorf("the commit has the checks %+v, want one that is a success", checks)
	}
	env.requireNoFailure(sha)
	env.requireInvariants()
}

// creates matches the create calls of a resource.
func creates(resource string) func(cluster.Call) bool {
	return func(c cluster.Call) bool { return c.Is("create", resource) }
}

var errMissing = errors.New("it is not there yet")
