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

// answered is a receiver's answer to one delivery.
type answered struct {
	status int
	header http.Header
	body   string
	took   time.Duration
}

func (a answered) String() string { return fmt.Sprintf("%d %s", a.status, strings.TrimSpace(a.body)) }

// send posts a delivery and keeps the whole answer; the forge's delivery log does not hear of it.
func (w *world) send(p *installation.Process, d delivery) (answered, error) {
	ctx, cancel := context.WithTimeout(w.ctx, soon)
	defer cancel()
	request, err := d.Request(ctx, p.URL)
	if err != nil {
		return answered{}, err
	}
	return exchange(request)
}

func exchange(request *http.Request) (answered, error) {
	// A connection of its own, as a service's deliveries have.
	transport := &http.Transport{ExpectContinueTimeout: soon}
	defer transport.CloseIdleConnections()
	client := &http.Client{Transport: transport}
	start := time.Now()
	response, err := client.Do(request)
	if err != nil {
		return answered{}, err
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(response.Body)
	return answered{response.StatusCode, response.Header, string(body), time.Since(start)}, err
}

// sent is send for one that must get an answer.
func (w *world) sent(p *installation.Process, d delivery) answered {
	w.t.Helper()
	a, err := w.send(p, d)
	w.must(err)
	return a
}

// sendAgain requires the answer that makes a service deliver again: 503 and Retry-After.
func (w *world) sendAgain(what string, a answered) {
	w.t.Helper()
	if a.status != http.StatusServiceUnavailable {
		w.t.Errorf("%s: answered %v, want 503", what, a)
	}
	if seconds, err := strconv.Atoi(a.header.Get("Retry-After")); err != nil || seconds < 1 {
		w.t.Errorf("%s: Retry-After is %q, want a number of seconds", what, a.header.Get("Retry-After"))
	}
}

// stored is the number of GitEvents and of EventPayloads in the world.
func (w *world) stored() (events, payloads int) {
	w.t.Helper()
	list, err := w.Plumbline.PlumblineV1alpha1().EventPayloads(w.Namespace).List(w.ctx, metav1.ListOptions{})
	w.must(err)
	return len(w.events()), len(list.Items)
}

// nothingStored requires that no object was left by what was refused or ignored.
func (w *world) nothingStored(what string) {
	w.t.Helper()
	if events, payloads := w.stored(); events != 0 || payloads != 0 {
		w.t.Errorf("%s: %d GitEvents and %d EventPayloads are stored, want none", what, events, payloads)
	}
}

// untouched requires that nothing was done for anything: no call to the forge, no PipelineRun, no
// secret.
func (w *world) untouched(what string) {
	w.t.Helper()
	if calls := w.git.log().requests; len(calls) != 0 {
		w.t.Errorf("%s: the forge got %d calls, the first is %s %s", what, len(calls), calls[0].Method, calls[0].Path)
	}
	if runs := w.runs(); len(runs) != 0 {
		w.t.Errorf("%s: %d PipelineRuns, want none", what, len(runs))
	}
	if secrets := w.secrets(); secrets != 0 {
		w.t.Errorf("%s: %d secrets in the tenant's namespace, want none", what, secrets)
	}
}

// secrets is the number of secrets in the Repository's namespace, without the one that the
// Repository names.
func (w *world) secrets() int {
	w.t.Helper()
	list, err := w.Kube.CoreV1().Secrets(w.ci).List(w.ctx, metav1.ListOptions{})
	w.must(err)
	namespace, name, _ := w.git.secret(w)
	if own := func(s corev1.Secret) bool { return s.Namespace == namespace && s.Name == name }; slices.ContainsFunc(list.Items, own) {
		return len(list.Items) - 1
	}
	return len(list.Items)
}

// counted is the receiver's number of deliveries with that outcome and reason.
func (w *world) counted(p *installation.Process, outcome, reason string) int {
	w.t.Helper()
	return w.number(p, "plumbline_receiver_deliveries_total{", `outcome="`+outcome+`"`, `reason="`+reason+`"`)
}

// again makes another delivery of the same push: another GUID, hence another event.
func (w *world) again() delivery {
	return w.git.pushed("refs/heads/main")
}

// bulky is a pipeline whose plan does not fit into the status of its event, so that it has
// EventPayloads.
func bulky(pipeline string) string {
	noise := make([]byte, 2*v1alpha1.MaxManifestBytes)
	_, _ = rand.Read(noise) // documented never to fail
	return strings.Replace(pipeline, "pipelineSpec:\n", "pipelineSpec:\n    description: "+base64.StdEncoding.EncodeToString(noise)+"\n", 1)
}

// apart is a delivery whose body does not fit into its event, so that it has EventPayloads.
func (w *world) apart(d delivery) delivery { return w.padded(d, 2*v1alpha1.MaxPayloadBytes) }

// padded adds so many bytes, which cannot be compressed further, to the body of a delivery.
func (w *world) padded(d delivery, size int) delivery {
	w.t.Helper()
	noise := make([]byte, base64.StdEncoding.DecodedLen(size))
	_, _ = rand.Read(noise) // documented never to fail
	_, body := partsOf(d)
	padded := fmt.Sprintf(`%s,"padding":%q}`, bytes.TrimSuffix(bytes.TrimSpace(body), []byte("}")), base64.StdEncoding.EncodeToString(noise))
	return w.git.signed(d, []byte(padded), w.webhookSecret())
}

// webhookSecret is the value that deliveries are signed with.
func (w *world) webhookSecret() string {
	w.t.Helper()
	namespace, name, key := w.git.secret(w)
	secret, err := w.Kube.CoreV1().Secrets(namespace).Get(w.ctx, name, metav1.GetOptions{})
	w.must(err)
	return string(secret.Data[key])
}

// onlyOne requires one record, one PipelineRun and one check, once every event is settled.
func (w *world) onlyOne(sha string) {
	w.t.Helper()
	w.settled(afterFault)
	if events := w.events(); len(events) != 1 {
		w.t.Errorf("%d GitEvents, want 1", len(events))
	}
	if runs := w.runs(); len(runs) != 1 {
		w.t.Errorf("%d PipelineRuns, want 1", len(runs))
	}
	if checks := w.git.checks(sha); len(checks) != 1 || checks[0].Conclusion != "success" {
		w.t.Errorf("the commit has the checks %+v, want one that is a success", checks)
	}
	w.neverFailed(sha)
	w.invariants()
}

// creates matches the create calls of a resource.
func creates(resource string) func(cluster.Call) bool {
	return func(c cluster.Call) bool { return c.Is("create", resource) }
}

var errMissing = errors.New("it is not there yet")
