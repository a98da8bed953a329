// SPDX-License-Identifier: Apache-2.0

package installation

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-ci/plumbline/pkg/credentials/webhooksecret"
)

// probed returns the status and the text of a probe's answer.
func probed(ctx context.Context, url string) (status int, text string, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return 0, "", err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return 0, "", err
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(response.Body)
	return response.StatusCode, string(body), err
}

// waits polls until a probe is answered 503 with the words and without those that are not wanted.
func waits(ctx context.Context, t *testing.T, url string, words, not []string) {
	t.Helper()
	eventually(ctx, t, url+" says "+strings.Join(words, ", "), func() error {
		status, text, err := probed(ctx, url)
		if err != nil || status != http.StatusServiceUnavailable {
			return fmt.Errorf("it answers %d, %w", status, err)
		}
		for _, word := range words {
			if !strings.Contains(text, word) {
				return fmt.Errorf("it does not say %q: %s", word, text)
			}
		}
		for _, word := range not {
			if strings.Contains(text, word) {
				return fmt.Errorf("it says %q: %s", word, text)
			}
		}
		return nil
	})
}

// Processes that start before Tekton or a definition is installed, or before an older definition is
// replaced, say so to probes and once in their log. They start without a restart when it is there.
func TestProcessesSayWhatTheyWaitFor(t *testing.T) {
	ctx := within(t)
	t.Cleanup(func() { shared.repair(context.WithoutCancel(ctx), t) })
	receiver, err := shared.Receiver(ctx, false)
	must(t, err)
	controller, err := shared.Controller(ctx, false)
	must(t, err)
	deleteDefinition(ctx, t, "repositoryclaims.plumbline.dev")
	patchDefinition(ctx, t, "gitevents.plumbline.dev", `[{"op":"remove","path":"/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/installationID"}]`)
	must(t, shared.Kube.CoreV1().Secrets(product).Delete(ctx, webhooksecret.ShardName(3), metav1.DeleteOptions{}))
	pipelineRuns := takeDefinition(ctx, t, "pipelineruns.tekton.dev")
	installTekton := sync.OnceFunc(func() { putDefinition(context.WithoutCancel(ctx), t, pipelineRuns) })
	t.Cleanup(installTekton)
	started := make(chan error, 2)
	for _, p := range []*Process{receiver, controller} {
		go func() { started <- p.Start(ctx) }()
		t.Cleanup(func() { _ = p.Kill() })
	}
	const (
		missing = "CustomResourceDefinition repositoryclaims.plumbline.dev is missing"
		older   = "CustomResourceDefinition gitevents.plumbline.dev is of another version than this binary: v1alpha1 lacks .spec.installationID"
		copies  = "copies of webhook secrets: the controllers have not made all of them"
		tekton  = "Tekton Pipelines is missing"
	)
	waits(ctx, t, receiver.URL+"/ready", []string{missing, older, copies, "kubectl apply -f config/300-crd-gitevents.yaml"}, []string{tekton})
	waits(ctx, t, controller.URL+"/readiness", []string{missing, older, tekton}, nil)
	if status, _, err := probed(ctx, controller.URL+"/health"); status != http.StatusOK || err != nil {
		t.Errorf("/health of a controller that waits answers %d, %v; want 200, so that it is not restarted", status, err)
	}

	shared.repair(ctx, t)
	waits(ctx, t, controller.URL+"/readiness", []string{tekton}, []string{missing, older})
	installTekton()
	must(t, errors.Join(<-started, <-started))

	for _, p := range []*Process{receiver, controller} {
		data, err := os.ReadFile(p.Log())
		must(t, err)
		for _, line := range []string{missing, older} {
			if n := strings.Count(string(data), line); n != 1 {
				t.Errorf("the log of %s says %d times %q, want once", p.Name(), n, line)
			}
		}
		for _, secret := range []string{shared.App.WebhookSecret, "PRIVATE KEY"} {
			if strings.Contains(string(data), secret) {
				t.Errorf("the log of %s has a secret", p.Name())
			}
		}
	}

	// A receiver that was ready stays ready.
	patchDefinition(ctx, t, "gitevents.plumbline.dev", `[{"op":"remove","path":"/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/installationID"}]`)
	if status, text, err := probed(ctx, receiver.URL+"/ready"); status != http.StatusOK || err != nil {
		t.Errorf("a receiver that was ready answers %d %s, %v", status, text, err)
	}
}
