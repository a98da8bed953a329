// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"encoding/json"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-ci/plumbline/pkg/fault"
)

// compactedRows: K33, of the API server without a watch cache.
func compactedRows() []row {
	const read, old = fault.VerbRead, fault.ReasonExpired
	return []row{
		{id: "K33", when: "a list is continued too late", verb: read, cause: continued, reason: old},
		{id: "K33", when: "a watch begins too long ago", verb: read, cause: longAgo, reason: old},
	}
}

// compact makes etcd discard all but the latest revision.
func (w *environment) compact(t *testing.T) {
	t.Helper()
	latest, err := w.write(t.Context())
	must(t, err)
	if err := w.etcd(t.Context(), "/v3/kv/compaction", `{"revision":"`+latest+`"}`, nil); err != nil {
		t.Log(err) // the other row has compacted later
	}
}

// continued reads the second page of a list whose revision etcd has discarded.
func continued(t *testing.T, w *environment) error {
	page := get(corev1.SchemeGroupVersion.WithResource("configmaps"), "", "").with("limit", "1")
	data, err := page.answer(t.Context(), w.odd)
	must(t, err)
	var list metav1.PartialObjectMetadataList
	must(t, json.Unmarshal(data, &list))
	w.compact(t)
	return page.with("continue", list.Continue).do(t.Context(), w.odd)
}

// longAgo is the error in a watch that the API server starts and ends at once.
func longAgo(t *testing.T, w *environment) error {
	w.compact(t)
	list := get(corev1.SchemeGroupVersion.WithResource("configmaps"), ci, "").with("watch", "true").with("resourceVersion",
		"1").with("timeoutSeconds", "5")
	data, err := list.answer(t.Context(), w.odd)
	if err != nil {
		return err
	}
	var event struct {
		Type   string        `json:"type"`
		Object metav1.Status `json:"object"`
	}
	if err := json.Unmarshal(data, &event); err != nil || event.Type != "ERROR" {
		t.Fatalf("the watch says %s: %v", data, err)
	}
	return apierrors.FromObject(&event.Object)
}
