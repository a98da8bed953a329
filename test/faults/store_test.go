// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/test/cluster"
)

// etcd asks etcd's JSON gateway and reads the answer into out, unless that is nil.
func (w *environment) etcd(ctx context.Context, path, body string, out any) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, w.EtcdURL()+path, strings.NewReader(body))
	if err != nil {
		return err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("etcd answers %s", response.Status)
	}
	if out == nil {
		return nil
	}
	return json.NewDecoder(response.Body).Decode(out)
}

// disarm ends etcd's alarm about missing space.
func (w *environment) disarm(ctx context.Context) error {
	var raised struct {
		Alarms []struct{ MemberID string }
	}
	err := w.etcd(ctx, "/v3/maintenance/alarm", `{"action":"GET"}`, &raised)
	for _, alarm := range raised.Alarms {
		err = errors.Join(err, w.etcd(ctx, "/v3/maintenance/alarm",
			`{"action":"DEACTIVATE","alarm":"NOSPACE","memberID":"`+alarm.MemberID+`"}`, nil))
	}
	return err
}

// write stores something and returns its revision.
func (w *environment) write(ctx context.Context) (revision string, err error) {
	c := post("configmaps", ci, map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"generateName": "any-"},
	})
	data, err := c.answer(ctx, w.config)
	if err != nil {
		return "", err
	}
	var object metav1.PartialObjectMetadata
	err = json.Unmarshal(data, &object)
	return object.ResourceVersion, err
}

// recovered waits until the cluster stores something again.
func (w *environment) recovered(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), time.Minute)
	defer cancel()
	err := cluster.Poll(ctx, 50*time.Millisecond, func() error {
		once, cancel := context.WithTimeout(ctx, 2*time.Second)
		defer cancel()
		_, err := w.write(once)
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

// restartEtcd restarts etcd with flags.
func (w *environment) restartEtcd(t *testing.T, flags ...string) {
	t.Helper()
	must(t, w.Part(cluster.Etcd).RestartWith(context.WithoutCancel(t.Context()), flags...))
}

// etcdHangs: etcd is stopped as if its machine hung.
func etcdHangs(t *testing.T, w *environment) {
	t.Cleanup(func() { w.recovered(t) })
	w.pause(t, cluster.Etcd)
}

// etcdHungRows: K14 and K28.
func etcdHungRows() []row {
	short := create("k28").with("timeout", "1s")
	return []row{
		{id: "K28", when: "etcd does not answer in time", verb: fault.VerbCreate, cause: asked(short),
			reason: fault.ReasonTimeout, unknown: true},
		{id: "K14", when: "what is used of a ResourceQuota cannot be written in time", verb: fault.VerbCreate,
			cause: asked(create("k14").in("roomy")), reason: fault.ReasonUnavailable, unknown: true},
	}
}

// etcdWithoutMajority: etcd has another member that never runs, and no majority.
func etcdWithoutMajority(t *testing.T, w *environment) {
	must(t, w.etcd(t.Context(), "/v3/cluster/member/add", `{"peerURLs":["http://127.0.0.1:1"]}`, nil))
	t.Cleanup(func() {
		w.restartEtcd(t, "--force-new-cluster")
		w.recovered(t)
	})
}

// noMajorityRows: K24.
func noMajorityRows() []row {
	return []row{
		{id: "K24", when: "etcd has no majority", verb: fault.VerbCreate, cause: asked(create("k24")),
			reason: fault.ReasonUnavailable, unknown: true, varies: true},
	}
}

// etcdAway: nothing listens at etcd's address.
func etcdAway(t *testing.T, w *environment) {
	must(t, w.Part(cluster.Etcd).Kill())
	t.Cleanup(func() {
		w.restartEtcd(t)
		w.recovered(t)
	})
}

// goneRows: K25. Current API servers give the answer of K28.
func goneRows() []row {
	short := create("k25").with("timeout", "1s")
	timeout := apierrors.NewServerTimeout(cluster.PipelineRuns().GroupResource(), "create", 2)
	return []row{
		{id: "K25", when: "nothing listens where etcd should be", verb: fault.VerbCreate, cause: asked(short),
			reason: fault.ReasonTimeout, unknown: true},
		{id: "K25", when: "etcd cannot be reached (written)", verb: fault.VerbCreate, cause: written(timeout),
			class: fault.Throttled, reason: fault.ReasonThrottled, wait: 2 * time.Second, unknown: true},
	}
}

// etcdFull: etcd has reached its space quota.
func etcdFull(t *testing.T, w *environment) {
	w.restartEtcd(t, "--quota-backend-bytes=1")
	works(t, func(ctx context.Context) error {
		return get(corev1.SchemeGroupVersion.WithResource("namespaces"), "", ci).do(ctx, w.config)
	})
	t.Cleanup(func() {
		w.restartEtcd(t)
		if err := w.disarm(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
		w.recovered(t)
	})
}

// fullRows: K26.
func fullRows() []row {
	return []row{
		{id: "K26", when: "etcd has no space left", verb: fault.VerbCreate, cause: asked(create("k26")),
			reason: fault.ReasonStoreFull},
	}
}

// serverHangs: the API server is stopped as if its machine hung.
func serverHangs(t *testing.T, w *environment) { w.pause(t, cluster.APIServer) }

// serverHungRows: K35 again.
func serverHungRows() []row {
	frozen := func(t *testing.T, w *environment) error {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		return create("k35").do(ctx, w.config)
	}
	return []row{
		{id: "K35", when: "the API server does not answer", verb: fault.VerbCreate, cause: frozen,
			reason: fault.ReasonTimeout, unknown: true},
	}
}
