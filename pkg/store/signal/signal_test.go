// SPDX-License-Identifier: Apache-2.0

package signal

import (
	"context"
	"encoding/json"
	"errors"
	"testing"
	"time"

	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// patches is an API server that fails so many times (failures), and then accepts patches.
type patches struct {
	failures int
	err      error                  // what it fails with; nil is that it is away
	tries    chan *corev1.ConfigMap // nil for one that failed
}

//nolint:revive // client-go decides what it takes
func (p *patches) Patch(_ context.Context, name string, _ types.PatchType, data []byte, _ metav1.PatchOptions,
	_ ...string) (*corev1.ConfigMap, error) {
	if p.failures > 0 {
		p.failures--
		p.tries <- nil
		if p.err != nil {
			return nil, p.err
		}
		return nil, errors.New("the API server is away")
	}
	cm := &corev1.ConfigMap{}
	if err := json.Unmarshal(data, cm); err != nil {
		return nil, err
	}
	cm.Name = name
	p.tries <- cm
	return cm, nil
}

func run(t *testing.T, p *patches, every time.Duration) *Asker {
	t.Helper()
	a := NewAsker(p, zap.NewNop().Sugar())
	a.every, a.again = every, time.Millisecond
	stop, ended := make(chan struct{}), make(chan struct{})
	go func() { defer close(ended); a.Run(stop) }()
	t.Cleanup(func() { close(stop); <-ended })
	return a
}

// A request is repeated until the API server has accepted it, and not after that.
func TestAskIsRetriedDuringAnOutage(t *testing.T) {
	p := &patches{failures: 3, tries: make(chan *corev1.ConfigMap, 10)}
	a := run(t, p, time.Millisecond)
	a.Ask()
	var at string
	for n := range 4 {
		cm := <-p.tries
		if (cm != nil) != (n == 3) {
			t.Fatalf("try %d: %v", n, cm)
		}
		if cm != nil && (cm.Name != Asks || !Asked(cm)) {
			t.Errorf("asked with %+v", cm)
		}
		if cm != nil {
			at = cm.Data[key]
		}
	}
	a.Ask()
	if cm := <-p.tries; cm == nil || cm.Data[key] == at {
		t.Error("the second ask changes nothing")
	}
	if len(p.tries) != 0 {
		t.Error("an ask that was taken is repeated")
	}
}

// However many deliveries are refused after a request, they cause one more, later.
func TestManyAsksAreOneRequest(t *testing.T) {
	p := &patches{tries: make(chan *corev1.ConfigMap, 10)}
	a := run(t, p, time.Hour)
	a.Ask()
	<-p.tries
	for range 1000 {
		a.Ask()
	}
	if len(p.tries) != 0 || len(a.more) != 1 {
		t.Errorf("%d asks were sent, %d wait", len(p.tries), len(a.more))
	}
}

// If the ConfigMap is missing or may not be patched, the request is not repeated each second:
// config/ may never be applied.
func TestForbiddenAskIsRetriedRarely(t *testing.T) {
	resource := corev1.Resource("configmaps")
	for _, err := range []error{apierrors.NewNotFound(resource, Asks), apierrors.NewForbidden(resource, Asks, nil)} {
		p := &patches{failures: 10, err: err, tries: make(chan *corev1.ConfigMap, 10)}
		run(t, p, time.Hour).Ask()
		<-p.tries
		select {
		case <-p.tries:
			t.Errorf("it is repeated at once: %v", err)
		case <-time.After(50 * time.Millisecond):
		}
	}
}
