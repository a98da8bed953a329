// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"encoding/pem"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/plumbline-ci/plumbline/test/cluster"
)

// judge is an admission webhook that answers as the path of the call says, at one address with a
// valid certificate and at one with an expired certificate.
type judge struct {
	typed kubernetes.Interface
	valid *httptest.Server
	over  *httptest.Server
	// certificate and key are those of over, in PEM.
	certificate, key []byte
	// held gets something when a call of /held waits.
	held chan struct{}
}

func newJudge(typed kubernetes.Interface) (*judge, error) {
	j := &judge{typed: typed, held: make(chan struct{})}
	var err error
	if j.certificate, j.key, err = cluster.SelfSigned("127.0.0.1",
		time.Date(2026, time.January, 1, 0, 0, 0, 0, time.UTC)); err != nil {
		return nil, err
	}
	pair, err := tls.X509KeyPair(j.certificate, j.key)
	if err != nil {
		return nil, err
	}
	j.valid, j.over = httptest.NewUnstartedServer(j), httptest.NewUnstartedServer(j)
	j.over.TLS = &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12}
	for _, server := range []*httptest.Server{j.valid, j.over} {
		server.Config.ErrorLog = log.New(io.Discard, "", 0)
		server.StartTLS()
	}
	return j, nil
}

// authority is what a caBundle has for the valid certificate.
func (j *judge) authority() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: j.valid.Certificate().Raw})
}

// ServeHTTP answers a call. Nothing is asserted here.
func (j *judge) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var review admissionv1.AdmissionReview
	if err := json.NewDecoder(r.Body).Decode(&review); err != nil || review.Request == nil {
		http.Error(w, "no review", http.StatusBadRequest)
		return
	}
	verdict := func(code int32, message string) *admissionv1.AdmissionResponse {
		return &admissionv1.AdmissionResponse{UID: review.Request.UID, Result: &metav1.Status{Code: code, Message: message}}
	}
	answer := map[string]*admissionv1.AdmissionResponse{
		"/denies": verdict(0, "image registry.example.com/app has no digest"),
		"/silent": {UID: review.Request.UID},
		"/fails": verdict(http.StatusInternalServerError,
			`Get "https://registry.example.com/v2/": context deadline exceeded`),
		"/busy": verdict(http.StatusTooManyRequests, "too many reviews at once"),
		"/echoes": verdict(http.StatusForbidden,
			`failed to load context: Get "https://10.96.0.7": dial tcp 10.96.0.7:443: i/o timeout`),
		"/another": {UID: "another", Allowed: true},
		"/patches": {
			UID: review.Request.UID, Allowed: true, Patch: []byte("{"), PatchType: new(admissionv1.PatchTypeJSONPatch),
		},
		"/touches": {UID: review.Request.UID, Allowed: true},
	}[r.URL.Path]
	switch r.URL.Path {
	case "/slow":
		<-r.Context().Done()
		return
	case "/held":
		select {
		case j.held <- struct{}{}:
			<-r.Context().Done()
		case <-r.Context().Done():
		}
		return
	case "/hangs-up":
		panic(http.ErrAbortHandler)
	case "/rubbish":
		_, _ = io.WriteString(w, "<html>Log in</html>")
		return
	case "/touches":
		j.touch(r.Context(), review.Request)
	}
	review.Response, review.Request = answer, nil
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(review)
}

// touch changes a ResourceQuota while a change of it is judged.
func (j *judge) touch(ctx context.Context, request *admissionv1.AdmissionRequest) {
	patch := []byte(`{"metadata":{"annotations":{"touched":"` + string(request.UID) + `"}}}`)
	_, _ = j.typed.CoreV1().ResourceQuotas(request.Namespace).Patch(ctx, request.Name, types.MergePatchType, patch,
		metav1.PatchOptions{})
}
