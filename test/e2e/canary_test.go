// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-ci/plumbline/test/installation"
)

// canaries are the credentials of a world: the webhook's secret, the App's key, every token that GitHub has issued, revoked
// ones included, or the token of the GitLab.
func (w *world) canaries() []string {
	if g, is := w.git.(*onGitLab); is {
		return []string{hookSecret, g.token.Value}
	}
	found := append(w.forge.Minted(), w.App.WebhookSecret)
	for line := range strings.Lines(w.App.PrivateKeyPEM) {
		if !strings.HasPrefix(line, "-----") {
			return append(found, strings.TrimSpace(line)) // one line of the key stands for all
		}
	}
	return found
}

// tellsNoSecret requires (S32) that no credential is told anywhere: not in a log, not in an object that is no Secret, and in
// nothing that the Git service was sent to show.
func (w *world) tellsNoSecret() {
	w.t.Helper()
	canaries := w.canaries()
	if len(canaries) < 2 {
		w.t.Fatalf("%d credentials: nothing is shown", len(canaries))
	}
	for place, text := range w.readable() {
		for _, canary := range canaries {
			if strings.Contains(text, canary) {
				w.t.Errorf("S32: %s tells a credential", place)
			}
		}
	}
}

// readable is all that people may read, by place.
func (w *world) readable() map[string]string {
	w.t.Helper()
	texts := map[string]string{}
	add := func(place string, list any, err error) {
		w.t.Helper()
		w.must(err)
		data, err := json.Marshal(list)
		w.must(err)
		texts[place] = string(data)
	}
	for i, process := range slices.Concat(w.receivers, w.controllers) {
		texts[fmt.Sprintf("the log of process %d", i)] = w.whole(process)
	}
	for _, namespace := range []string{w.ci, w.Namespace} {
		all := metav1.ListOptions{}
		events, err := w.Kube.CoreV1().Events(namespace).List(w.ctx, all)
		add("a Kubernetes Event in "+namespace, events, err)
		maps, err := w.Kube.CoreV1().ConfigMaps(namespace).List(w.ctx, all)
		add("a ConfigMap in "+namespace, maps, err)
		repositories, err := w.Plumbline.PipelinesascodeV1alpha1().Repositories(namespace).List(w.ctx, all)
		add("a Repository in "+namespace, repositories, err)
	}
	runs, err := w.Tekton.TektonV1().PipelineRuns(w.ci).List(w.ctx, metav1.ListOptions{})
	add("a PipelineRun", runs, err)
	add("a GitEvent", w.events(), nil)
	payloads, err := w.Plumbline.PlumblineV1alpha1().EventPayloads(w.Namespace).List(w.ctx, metav1.ListOptions{})
	add("an EventPayload", payloads, err)
	for i, write := range w.git.log().writes {
		add(fmt.Sprintf("write %d at the Git service", i), write, nil)
	}
	return texts
}

// whole is what a process has printed, "" if it never started.
func (w *world) whole(process *installation.Process) string {
	w.t.Helper()
	data, err := os.ReadFile(process.Log())
	if !os.IsNotExist(err) {
		w.must(err)
	}
	return string(data)
}
