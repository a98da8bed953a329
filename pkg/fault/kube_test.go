// SPDX-License-Identifier: Apache-2.0

package fault

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	callPrefix = `Internal error occurred: failed calling webhook "validation.webhook.pipeline.tekton.dev": failed to call webhook: Post "https://tekton-pipelines-webhook.tekton-pipelines.svc:443/resource-validation?timeout=10s": `
	denyPrefix = `admission webhook "validation.webhook.pipeline.tekton.dev" denied the request: `
)

// status makes the error client-go makes of a Status body.
func status(code int, reason, message, details string) error {
	if details == "" {
		details = "{}"
	}
	quoted, err := json.Marshal(message)
	if err != nil {
		panic(err)
	}
	body := fmt.Sprintf(`{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":%s,"reason":%q,"details":%s,"code":%d}`,
		quoted, reason, details, code)
	var s metav1.Status
	if err := json.Unmarshal([]byte(body), &s); err != nil {
		panic(err)
	}
	return &apierrors.StatusError{ErrStatus: s}
}

func internal(message string) error {
	return status(500, "InternalError", message, `{"causes":[{"message":"inner"}]}`)
}

type kubeCase struct {
	name string
	verb Verb
	err  error
	want Error
}

func checkKube(t *testing.T, cases []kubeCase) {
	t.Helper()
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			got := FromKube(c.verb, c.err)
			if got == nil {
				t.Fatal("FromKube returned nil")
			}
			if c.want.Message == "" {
				c.want.Message = c.err.Error()
			}
			c.want.Remedy = got.Remedy // TestRemedies
			if diff := cmp.Diff(&c.want, got, cmpopts.IgnoreUnexported(Error{})); diff != "" {
				t.Errorf("FromKube (-want +got):\n%s", diff)
			}
			if !errors.Is(got, c.err) {
				t.Error("the original error is not in the chain")
			}
		})
	}
}

func TestFromKubeWebhooks(t *testing.T) {
	refused := internal(callPrefix + "dial tcp 10.96.0.1:443: connect: connection refused")
	invalid := status(400, "BadRequest",
		denyPrefix+"validation failed: expected exactly one, got neither: spec.pipelineRef, spec.pipelineSpec", "")
	policy := status(422, "Invalid",
		`pipelineruns.tekton.dev "x" is forbidden: ValidatingAdmissionPolicy 'p' with binding 'b' denied request: no`, "")
	echo := status(403, "", `admission webhook "kyverno.svc" denied the request: failed to load context: Get "https://10.0.0.1": dial tcp 10.0.0.1:443: i/o timeout`, "")
	started := status(400, "BadRequest",
		denyPrefix+"validation failed: invalid value: Once the PipelineRun has started, only status updates are allowed", "")
	complete := status(400, "BadRequest",
		denyPrefix+"validation failed: invalid value: Once the PipelineRun is complete, no updates are allowed", "")
	unavailable := Error{Class: Transient, Reason: "AdmissionWebhookUnavailable"}
	checkKube(t, []kubeCase{
		{"K1: a webhook that refuses connections decided nothing at create", VerbCreate, refused, unavailable},
		{"K1: nor at patch", VerbPatch, refused, unavailable},
		{"K2: a webhook's service without endpoints is transient", VerbCreate,
			internal(callPrefix + `no endpoints available for service "tekton-pipelines-webhook"`), unavailable},
		{"K3: a slow webhook leaves the outcome unknown", VerbCreate, internal(callPrefix + "context deadline exceeded"),
			Error{Class: Transient, Reason: "AdmissionWebhookUnavailable", Unknown: true}},
		{"K3: a read has no outcome to be unknown", VerbRead, internal(callPrefix + "EOF"), unavailable},
		{"K4: an expired certificate of the webhook is transient and its clock is taken out", VerbCreate,
			internal(callPrefix + "tls: failed to verify certificate: x509: certificate has expired or is not yet valid: current time 2026-08-01T12:00:00Z is after 2026-07-31T12:00:00Z"),
			Error{Class: Transient, Reason: "AdmissionWebhookUnavailable", Message: callPrefix +
				"tls: failed to verify certificate: x509: certificate has expired or is not yet valid: current time is after 2026-07-31T12:00:00Z"}},
		{"K5: a webhook that answers rubbish is transient, and the id of its question is taken out", VerbCreate,
			internal(`Internal error occurred: failed calling webhook "x": received invalid webhook response: expected response.uid="713a753e", got ""`),
			Error{Class: Transient, Reason: "AdmissionWebhookUnavailable",
				Message: `Internal error occurred: failed calling webhook "x": received invalid webhook response: expected response.uid="…", got ""`}},
		{"K6: a conversion webhook that is down is transient on a read and has no reason", VerbRead, status(500, "",
			`conversion webhook for tekton.dev/v1beta1, Kind=PipelineRun failed: Post "https://w.svc:443/resource-conversion?timeout=30s": dial tcp 10.0.0.1:443: connect: connection refused`, ""), unavailable},
		{"K7: a denial at create is the author's", VerbCreate, invalid, Error{Class: Invalid, Reason: "AdmissionDenied"}},
		{"K7: the same denial at dry run is the author's", VerbDryRun, invalid,
			Error{Class: Invalid, Reason: "AdmissionDenied"}},
		{"K7: the same denial at patch is the operator's", VerbPatch, invalid,
			Error{Class: Operator, Reason: "AdmissionDenied"}},
		{"K7: the same denial at update is the operator's", VerbUpdate, invalid,
			Error{Class: Operator, Reason: "AdmissionDenied"}},
		{"K7: the same denial at delete is the operator's", VerbDelete, invalid,
			Error{Class: Operator, Reason: "AdmissionDenied"}},
		{"K7: a denial with code 403 and without reason or explanation is a denial", VerbCreate,
			status(403, "", `admission webhook "x" denied the request without explanation`, ""),
			Error{Class: Invalid, Reason: "AdmissionDenied"}},
		{"K8: a denial with code 500 is the judge's own failure", VerbCreate,
			status(500, "", `admission webhook "x" denied the request: Get "https://opa": context deadline exceeded`, ""),
			Error{Class: Transient, Reason: "AdmissionWebhookFailed"}},
		{"K8: so is one with code 429", VerbCreate, status(429, "", `admission webhook "x" denied the request: slow down`,
			""), Error{Class: Transient, Reason: "AdmissionWebhookFailed"}},
		{"K8 before K27: a denial with code 500 that speaks of etcd's size limit is still the judge's failure", VerbCreate,
			status(500, "", `admission webhook "x" denied the request: etcdserver: request is too large`, ""),
			Error{Class: Transient, Reason: "AdmissionWebhookFailed"}},
		{"K9: a denial that echoes an outage is retried", VerbCreate, echo,
			Error{Class: Transient, Reason: "AdmissionDenialEchoesOutage"}},
		{"K10: a ValidatingAdmissionPolicy at create is the author's", VerbCreate, policy,
			Error{Class: Invalid, Reason: "AdmissionDenied"}},
		{"K10: and at patch the operator's", VerbPatch, policy, Error{Class: Operator, Reason: "AdmissionDenied"}},
		{"K10: a policy that chose 401 is no credential problem", VerbCreate,
			status(401, "Unauthorized", `ValidatingAdmissionPolicy 'p' with binding 'b' denied request: no`, ""),
			Error{Class: Invalid, Reason: "AdmissionDenied"}},
		{"K37: an update after the start makes the caller read again", VerbUpdate, started,
			Error{Class: Conflict, Reason: "AlreadyStarted"}},
		{"K37: a patch after the end makes the caller read again", VerbPatch, complete,
			Error{Class: Conflict, Reason: "AlreadyComplete"}},
		{"K38: a webhook without dry run says nothing about the object", VerbDryRun, status(400, "BadRequest",
			`admission webhook "x" does not support dry run`, ""), Error{Class: Ignored, Reason: "DryRunNotSupported"}},
	})
}

func TestFromKubeRefusals(t *testing.T) {
	schema := status(422, "Invalid", `PipelineRun.tekton.dev "x" is invalid: spec.timeout: Invalid value`,
		`{"kind":"PipelineRun","group":"tekton.dev","name":"x"}`)
	size := status(500, "", "etcdserver: request is too large", "")
	checkKube(t, []kubeCase{
		{"K11: schema validation at create is the author's", VerbCreate, schema, Error{Class: Invalid, Reason: "Rejected"}},
		{"K11: schema validation at update is the operator's", VerbUpdate, schema,
			Error{Class: Operator, Reason: "Rejected"}},
		{"K11: a body that cannot be decoded strictly is the author's", VerbCreate, status(400, "BadRequest",
			"strict decoding error: unknown field \"spec.x\"", ""), Error{Class: Invalid, Reason: "Rejected"}},
		{"K12: a missing permission is the operator's even at create", VerbCreate, status(403, "Forbidden",
			`pipelineruns.tekton.dev is forbidden: User "system:serviceaccount:plumbline:controller" cannot create resource "pipelineruns" in API group "tekton.dev" in the namespace "ci"`, `{"kind":"pipelineruns"}`), Error{Class: Operator, Reason: "Forbidden"}},
		{"K13: a used-up quota is waited for in steps of a minute, without the usage", VerbCreate, status(403, "Forbidden",
			`pipelineruns.tekton.dev "x" is forbidden: exceeded quota: q, requested: count/pipelineruns.tekton.dev=1, used: count/pipelineruns.tekton.dev=7, limited: count/pipelineruns.tekton.dev=7`, `{"kind":"pipelineruns"}`),
			Error{Class: Throttled, Reason: "QuotaExceeded", RetryAfter: time.Minute,
				Message: `pipelineruns.tekton.dev "x" is forbidden: exceeded quota: q, requested: count/pipelineruns.tekton.dev=1, limited: count/pipelineruns.tekton.dev=7`}},
		{"K13: so is a quota whose status is unknown", VerbCreate,
			status(403, "Forbidden", `x is forbidden: status unknown for quota: q, resources: pods`, ""),
			Error{Class: Throttled, Reason: "QuotaExceeded", RetryAfter: time.Minute}},
		{"K14: a quota evaluation that timed out is transient", VerbCreate,
			internal("Internal error occurred: resource quota evaluation timed out"),
			Error{Class: Transient, Reason: "Unavailable", Unknown: true}},
		{"K14: a conflict on the quota object is a conflict", VerbCreate, status(409, "Conflict",
			`Operation cannot be fulfilled on resourcequotas "q": the object has been modified`, `{"kind":"resourcequotas"}`),
			Error{Class: Conflict, Reason: "Conflict"}},
		{"K15: a LimitRange is the author's at create", VerbCreate,
			status(403, "Forbidden", `pods "x" is forbidden: maximum cpu usage per Container is 1`, `{"kind":"pods"}`),
			Error{Class: Invalid, Reason: "AdmissionDenied"}},
		{"K15: and the operator's at patch", VerbPatch,
			status(403, "Forbidden", `pods "x" is forbidden: violates PodSecurity "restricted:latest"`, `{"kind":"pods"}`),
			Error{Class: Operator, Reason: "AdmissionDenied"}},
		{"K15: a 403 page of a proxy is never the author's", VerbCreate, apierrors.NewGenericServerResponse(403, "POST",
			metav1Resource(), "", "<html>blocked</html>", 0, true), Error{Class: Operator, Reason: "Forbidden"}},
		{"K16: a namespace that is being deleted is told by its cause, not by text", VerbCreate, status(403, "Forbidden",
			`pipelineruns.tekton.dev "x" is forbidden: going away`,
			`{"kind":"pipelineruns","causes":[{"reason":"NamespaceTerminating","message":"namespace ci is being terminated","field":"metadata.namespace"}]}`), Error{Class: Operator, Reason: "NamespaceTerminating"}},
		{"K17: admission that is not ready is transient", VerbCreate,
			status(403, "Forbidden", `pipelineruns.tekton.dev "x" is forbidden: not yet ready to handle request`, ""),
			Error{Class: Transient, Reason: "Unavailable"}},
		{"K18: a missing namespace is the operator's", VerbCreate, status(404, "NotFound", `namespaces "ci" not found`,
			`{"kind":"namespaces","name":"ci"}`), Error{Class: Operator, Reason: "NamespaceMissing"}},
		{"K19: a kind that is not served is the operator's at create", VerbCreate, status(404, "NotFound",
			"the server could not find the requested resource", ""), Error{Class: Operator, Reason: "NotServed"}},
		{"K19: and at list", VerbRead, status(404, "NotFound", "the server could not find the requested resource", ""),
			Error{Class: Operator, Reason: "NotServed"}},
		{"K20: an object that is gone is left to the caller and else transient", VerbPatch,
			status(404, "NotFound", `pipelineruns.tekton.dev "x" not found`, `{"kind":"pipelineruns","name":"x"}`),
			Error{Class: Transient, Reason: "NotFound"}},
		{"K21: a conflict is a conflict", VerbUpdate, status(409, "Conflict",
			`Operation cannot be fulfilled on gitevents "x": the object has been modified; please apply your changes to the latest version and try again`, ""), Error{Class: Conflict, Reason: "Conflict"}},
		{"K22: an object that exists is left to the caller and else transient", VerbCreate, status(409, "AlreadyExists",
			`pipelineruns.tekton.dev "x" already exists`, ""), Error{Class: Transient, Reason: "AlreadyExists"}},
		{"K27 before the 5xx rule: etcd's size limit is the author's at create", VerbCreate, size,
			Error{Class: Invalid, Reason: "TooLarge"}},
		{"K27: and the operator's at patch", VerbPatch, size, Error{Class: Operator, Reason: "TooLarge"}},
		{"K27: gRPC's size limit is the author's", VerbCreate, status(500, "",
			"rpc error: code = ResourceExhausted desc = trying to send message larger than max (3000000 vs. 2097152)", ""),
			Error{Class: Invalid, Reason: "TooLarge"}},
		{"K27: 413 is the author's", VerbCreate, apierrors.NewRequestEntityTooLargeError("limit is 3145728"),
			Error{Class: Invalid, Reason: "TooLarge"}},
	})
}

func TestFromKubeOutages(t *testing.T) {
	dial := &url.Error{Op: "Post", URL: "https://10.96.0.1:443/apis/tekton.dev/v1/namespaces/ci/pipelineruns",
		Err: fmt.Errorf("read tcp 10.0.0.7:54321->10.96.0.1:443: read: %w", syscall.ECONNRESET)}
	checkKube(t, []kubeCase{
		{"K24: etcd's timeout has code 500, no reason and an unknown outcome", VerbCreate,
			status(500, "", "etcdserver: request timed out", ""), Error{Class: Transient, Reason: "Unavailable", Unknown: true}},
		{"K24: so has a change of its leader", VerbPatch, status(500, "", "etcdserver: leader changed", ""),
			Error{Class: Transient, Reason: "Unavailable", Unknown: true}},
		{"K25: an unreachable etcd names a wait", VerbCreate, apierrors.NewServerTimeout(metav1Resource(), "POST", 2),
			Error{Class: Throttled, Reason: "Throttled", RetryAfter: 2 * time.Second, Unknown: true}},
		{"K26: a full etcd is transient and has its own reason", VerbCreate,
			status(500, "", "etcdserver: mvcc: database space exceeded", ""), Error{Class: Transient, Reason: "StoreFull"}},
		{"K28: a request that timed out may have been applied", VerbCreate, apierrors.NewTimeoutError(
			"request did not complete within requested timeout", 0), Error{Class: Transient, Reason: "Timeout", Unknown: true}},
		{"K29: priority and fairness names a wait", VerbCreate, apierrors.NewTooManyRequests("too many", 3),
			Error{Class: Throttled, Reason: "Throttled", RetryAfter: 3 * time.Second}},
		{"K29: without a wait the backoff decides", VerbCreate,
			apierrors.NewTooManyRequestsError("the server has received too many requests and has asked us to try again later"),
			Error{Class: Transient, Reason: "Throttled"}},
		{"K30: a server that shuts down did not apply the request", VerbCreate,
			apierrors.NewServiceUnavailable("apiserver is shutting down"), Error{Class: Transient, Reason: "Unavailable"}},
		{"K31: a load balancer's 502 leaves the outcome unknown", VerbCreate,
			apierrors.NewGenericServerResponse(502, "POST", metav1Resource(), "", "<html>bad gateway</html>", 0, true),
			Error{Class: Transient, Reason: "Unavailable", Unknown: true}},
		{"K31: and so does its 503", VerbPatch, apierrors.NewGenericServerResponse(503, "PATCH", metav1Resource(), "",
			"<html></html>", 0, true), Error{Class: Transient, Reason: "Unavailable", Unknown: true}},
		{"K32: 401 is transient: tokens rotate", VerbCreate, apierrors.NewUnauthorized("Unauthorized"),
			Error{Class: Transient, Reason: "Unauthorized"}},
		{"K33: an expired list is read again", VerbRead, apierrors.NewResourceExpired(
			"The resourceVersion for the provided watch is too old."), Error{Class: Transient, Reason: "ResourceExpired"}},
		{"K34: a media type the server does not know is the operator's", VerbPatch,
			status(415, "UnsupportedMediaType", "no", ""), Error{Class: Operator, Reason: "NotSupported"}},
		{"K35: a reset connection leaves the outcome unknown, and its source port is taken out", VerbCreate, dial,
			Error{Class: Transient, Reason: "Unreachable", Unknown: true,
				Message: `Post "https://10.96.0.1:443/apis/tekton.dev/v1/namespaces/ci/pipelineruns": read tcp 10.0.0.7->10.96.0.1:443: read: connection reset by peer`}},
		{"K35: a deadline of ours leaves the outcome of a delete unknown", VerbDelete,
			fmt.Errorf("client rate limiter Wait returned an error: %w", context.DeadlineExceeded),
			Error{Class: Transient, Reason: "Timeout", Unknown: true}},
		{"K36: our own shutdown is transient", VerbRead, context.Canceled, Error{Class: Transient, Reason: "Canceled"}},
		{"rule 2: an unexpected code concludes nothing", VerbCreate, status(418, "", "teapot", ""),
			Error{Class: Transient, Reason: "UnknownAnswer", Unknown: true}},
		{"rule 2: an unknown error concludes nothing", VerbCreate, errors.New("boom"),
			Error{Class: Transient, Reason: "Unreachable", Unknown: true}},
	})
}

func TestFromKubeKeepsAClassAndNil(t *testing.T) {
	if got := FromKube(VerbCreate, nil); got != nil {
		t.Errorf("FromKube(nil) = %v", got)
	}
	wrapped := fmt.Errorf("reading: %w", Invalidf("BadYAML", "line 3"))
	got := FromKube(VerbRead, wrapped)
	if got.Class != Invalid || got.Reason != "BadYAML" || got.Message != "reading: line 3" {
		t.Errorf("a classified error became %+v", got)
	}
}
