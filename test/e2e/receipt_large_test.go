// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-ci/plumbline/test/installation"
)

// A10: pushes just below GitHub's limit, more at once than are held in memory, are all recorded in the end, each is
// processed, and the receiver never needs the memory that config/ gives it.
func TestA10LargePushesFitTheMemory(t *testing.T) {
	onlyInTestAll(t)
	t.Parallel()
	forEachService(t, setup{receivers: 1, controllers: 1}, takesLargePushes)
}

func takesLargePushes(t *testing.T, w *world) {
	const pushes = 4
	sha, _ := w.push(map[string]string{".tekton/push.yaml": pipeline("large", "push")})
	refused := make(chan delivery, pushes)
	var sent sync.WaitGroup
	for range pushes {
		delivery := w.large()
		sent.Go(func() {
			if status, _, err := w.git.deliver(w.ctx, w.receivers[0].URL, delivery); err != nil || status/100 != 2 {
				refused <- delivery
			}
		})
	}
	sent.Wait()
	close(refused)
	for delivery := range refused {
		w.sendSeldom(delivery)
	}
	used, allowed := w.memory(w.receivers[0])
	t.Logf("%d pushes of %d bytes at once: the receiver used at most %d MiB of %d", pushes, largeBody, used>>20, allowed>>20)
	if used >= allowed {
		t.Errorf("the receiver used %d bytes, and config/ allows %d", used, allowed)
	}
	w.checkReaches(sha, checkName("large"), "success", afterFault)
	w.settled(afterFault)
	if runs := w.runs(); len(runs) != pushes {
		t.Errorf("%d PipelineRuns of %d pushes", len(runs), pushes)
	}
}

// sendSeldom sends what the rate of large deliveries refused until it is accepted, as seldom as a person would: GitLab pauses a webhook
// after four failures in a row.
func (w *world) sendSeldom(d delivery) {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.ctx, afterFault)
	defer cancel()
	for again := time.NewTicker(10 * time.Second); ; {
		select {
		case <-ctx.Done():
			w.t.Fatalf("delivery %s was refused for %v", d.ID(), afterFault)
		case <-again.C:
		}
		if status, _, err := w.git.deliver(ctx, w.receivers[0].URL, d); err == nil && status/100 == 2 {
			return
		}
	}
}

// large is another delivery of the last push, with as many commits as make largeBody: GitLab names 20 at most, and all
// files of each.
func (w *world) large() delivery {
	w.t.Helper()
	d := w.again()
	_, whole := partsOf(d)
	var body map[string]any
	w.must(json.Unmarshal(whole, &body))
	paths := []string{"README.md"}
	if w.git.kind() == gitLab {
		for len(paths)*len("0000000000000000000000000000000000000000,\"docs/\"") < largeBody/20 {
			paths = append(paths, fmt.Sprintf("docs/%040x", len(paths)))
		}
	}
	var commits []any
	for size := len(whole); size < largeBody; {
		id := fmt.Sprintf("%040x", len(commits))
		commit := map[string]any{
			"id": id, "tree_id": id, "message": "change " + id, "distinct": true, "url": w.git.page() + "/commit/" + id,
			"added": []string{"a/" + id}, "removed": []string{}, "modified": paths,
		}
		text, err := json.Marshal(commit)
		w.must(err)
		commits, size = append(commits, commit), size+len(text)+1
	}
	body["commits"] = commits[1:]
	text, err := json.Marshal(body)
	w.must(err)
	return w.git.signed(d, text, w.webhookSecret())
}

func (w *world) webhookSecret() string {
	w.t.Helper()
	namespace, name, key := w.git.secret(w)
	secret, err := w.Kube.CoreV1().Secrets(namespace).Get(w.ctx, name, metav1.GetOptions{})
	w.must(err)
	return string(secret.Data[key])
}

// memory is the most that a receiver had, and what config/ allows it, in bytes.
func (w *world) memory(receiver *installation.Process) (used, allowed int64) {
	w.t.Helper()
	used, err := receiver.Memory(installation.Peak)
	w.must(err)
	allowed, err = installation.ContainerMemory("receiver")
	w.must(err)
	return used, allowed
}
