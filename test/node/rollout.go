// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/plumbline-ci/plumbline/test/forge"
	"github.com/plumbline-ci/plumbline/test/installation"
)

// pace is the time between two deliveries of the rollout.
const pace = 100 * time.Millisecond

// tally counts deliveries.
type tally struct {
	sync.Mutex
	accepted []string // their GUIDs
	failures []string
	last     time.Time
	slowest  time.Duration
}

// rollout restarts both Deployments as `kubectl rollout restart` does, while pushes come in through
// the Service. It fails if one is not answered 202, or has not exactly one settled GitEvent.
func (n *node) rollout(ctx context.Context) (string, error) {
	n.Forge.Commit(quiet, mainBranch, forge.Change{Files: map[string]string{"README.md": "no pipelines"}})
	var t tally
	var replaced time.Time
	group, groupCtx := errgroup.WithContext(ctx)
	group.Go(func() error {
		n.deliverAll(groupCtx, &t)
		return nil
	})
	group.Go(func() (err error) {
		replaced, err = n.replace(groupCtx)
		return err
	})
	if err := group.Wait(); err != nil {
		return "", err
	}
	if len(t.failures) > 0 || len(t.accepted) != n.deliveries {
		return "", fmt.Errorf("%d of %d deliveries are accepted; the others: %v", len(t.accepted), n.deliveries, t.failures)
	}
	if t.last.Before(replaced) {
		return "", fmt.Errorf("the rollout ended %v after the last delivery: send more with -deliveries",
			replaced.Sub(t.last).Round(time.Second))
	}
	settled := func() error { return n.unsettled(ctx, t.accepted) }
	if err := until(ctx, "each accepted delivery has one settled GitEvent", settled); err != nil {
		return "", err
	}
	return fmt.Sprintf("0 of %d deliveries lost or refused, the slowest answered after %d ms; each has its settled GitEvent",
		n.deliveries, t.slowest.Milliseconds()), nil
}

// replace restarts both Deployments and returns when all old pods were gone.
func (n *node) replace(ctx context.Context) (time.Time, error) {
	for _, name := range []string{"plumbline-receiver", "plumbline-controller"} {
		patch := fmt.Appendf(nil, `{"spec":{"template":{"metadata":{"annotations":{"kubectl.kubernetes.io/restartedAt":%q}}}}}`,
			time.Now().Format(time.RFC3339))
		deployments := n.Kube.AppsV1().Deployments(plumblineNamespace)
		_, err := deployments.Patch(ctx, name, types.StrategicMergePatchType, patch, metav1.PatchOptions{})
		if err != nil {
			return time.Time{}, fmt.Errorf("restarting %s: %w", name, err)
		}
	}
	_, err := n.available(ctx, plumblineNamespace)
	return time.Now(), err
}

// deliverAll sends pushes: half of them on their own connections, as Git services do, half on kept
// connections, as proxies do.
func (n *node) deliverAll(ctx context.Context, t *tally) {
	clients := []*http.Client{
		{Timeout: 10 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}},
		{Timeout: 10 * time.Second, Transport: &http.Transport{MaxIdleConnsPerHost: 10}},
	}
	installation.OpenLoop(ctx, pace, n.deliveries, func(i int, due time.Time) {
		delivery := n.Forge.PushDelivery(forge.PushEvent{Repo: quiet, Ref: "refs/heads/" + mainBranch})
		err := post(ctx, clients[i%2], n.receivers, delivery)
		t.Lock()
		defer t.Unlock()
		t.last, t.slowest = time.Now(), max(t.slowest, time.Since(due))
		if err != nil {
			t.failures = append(t.failures, err.Error())
			return
		}
		t.accepted = append(t.accepted, delivery.GUID)
	})
}

// post sends a delivery once.
func post(ctx context.Context, client *http.Client, url string, d forge.Delivery) error {
	request, err := d.Request(ctx, url)
	if err != nil {
		return err
	}
	request.GetBody = nil // net/http would send it again on its own
	response, err := client.Do(request)
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode != http.StatusAccepted {
		err = fmt.Errorf("answered %d %s", response.StatusCode, body)
	}
	return err
}

// unsettled returns an error while a delivery has not exactly one GitEvent, which is settled.
func (n *node) unsettled(ctx context.Context, guids []string) error {
	list, err := n.Plumbline.PlumblineV1alpha1().GitEvents(plumblineNamespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	events, settled := map[string]int{}, map[string]int{}
	for i := range list.Items {
		events[list.Items[i].Spec.DeliveryKey]++
		if list.Items[i].Settled() {
			settled[list.Items[i].Spec.DeliveryKey]++
		}
	}
	var lost, waiting int
	for _, guid := range guids {
		switch {
		case events[guid] != 1:
			lost++
		case settled[guid] != 1:
			waiting++
		}
	}
	if lost+waiting > 0 {
		return fmt.Errorf("%d deliveries have not exactly one GitEvent, and %d GitEvents are not settled", lost, waiting)
	}
	return nil
}
