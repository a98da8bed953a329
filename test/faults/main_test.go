// SPDX-License-Identifier: Apache-2.0

// Package faults makes a real API server give every error of docs/errors.md that it can be brought
// to give, and holds how pkg/fault classifies it, and the sentence that a person reads, to a table.
package faults

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/plumbline-ci/plumbline/test/cluster"
)

// environment is what the rows share.
type environment struct {
	*cluster.Cluster
	config *rest.Config
	typed  kubernetes.Interface
	judge  *judge
	// odd is another API server of the same cluster: see oddFlags.
	odd *rest.Config
}

var shared *environment // set once before any test runs

func TestMain(m *testing.M) {
	os.Exit(cluster.Suite{Name: "faults", Limit: 5 * time.Minute, Prepare: prepare}.Run(m))
}

func prepare(ctx context.Context, c *cluster.Cluster, dir string) error {
	w := &environment{Cluster: c, config: c.RESTConfig()}
	var err error
	if w.typed, err = kubernetes.NewForConfig(w.config); err != nil {
		return err
	}
	if w.judge, err = newJudge(w.typed); err != nil {
		return err
	}
	flags, err := w.judge.oddFlags(dir)
	if err != nil {
		return err
	}
	part, odd, err := c.OtherAPIServer("odd-apiserver", flags...)
	if err != nil {
		return err
	}
	if err := part.Start(ctx); err != nil {
		return err
	}
	w.odd, shared = odd, w
	if err := c.Apply(ctx, []byte(objects)); err != nil {
		return err
	}
	return w.settle(ctx)
}

// settle waits until controllers have handled the objects: service accounts, and the usage of
// quotas.
func (w *environment) settle(ctx context.Context) error {
	return cluster.Poll(ctx, 50*time.Millisecond, func() error {
		for _, namespace := range []string{ci, "limited", "restricted"} {
			if _, err := w.typed.CoreV1().ServiceAccounts(namespace).Get(ctx, "default", metav1.GetOptions{}); err != nil {
				return err
			}
		}
		for _, namespace := range []string{"full", "roomy", "contended"} {
			quota, err := w.typed.CoreV1().ResourceQuotas(namespace).Get(ctx, "runs", metav1.GetOptions{})
			if err != nil {
				return err
			}
			if len(quota.Status.Used) == 0 {
				return errors.New("a quota has no sum yet")
			}
		}
		return nil
	})
}

// oddFlags: an expired certificate; Services are called at their endpoints, so that one without
// any fails; and lists and watches read from etcd, so that an old revision fails.
func (j *judge) oddFlags(dir string) ([]string, error) {
	cert, key := filepath.Join(dir, "expired.crt"), filepath.Join(dir, "expired.key")
	return []string{
		"--tls-cert-file=" + cert, "--tls-private-key-file=" + key,
		"--enable-aggregator-routing=true", "--watch-cache=false",
	}, errors.Join(os.WriteFile(cert, j.certificate, 0o600), os.WriteFile(key, j.key, 0o600))
}

// ci is the namespace of most rows. Messages name it, so it is always the same.
const ci = "ci"

// objects exist before the first row. A priority level without any seat takes one request at a
// time.
const objects = `
apiVersion: v1
kind: Namespace
metadata: {name: ci}
---
apiVersion: v1
kind: Namespace
metadata: {name: full}
---
apiVersion: v1
kind: ResourceQuota
metadata: {name: runs, namespace: full}
spec: {hard: {count/pipelineruns.tekton.dev: "0"}}
---
apiVersion: v1
kind: Namespace
metadata: {name: roomy}
---
apiVersion: v1
kind: ResourceQuota
metadata: {name: runs, namespace: roomy}
spec: {hard: {count/pipelineruns.tekton.dev: "100"}}
---
apiVersion: v1
kind: Namespace
metadata: {name: contended}
---
apiVersion: v1
kind: ResourceQuota
metadata: {name: runs, namespace: contended, labels: {row: k14}}
spec: {hard: {count/pipelineruns.tekton.dev: "100"}}
---
apiVersion: v1
kind: Namespace
metadata: {name: limited}
---
apiVersion: v1
kind: LimitRange
metadata: {name: small, namespace: limited}
spec: {limits: [{type: Container, max: {cpu: "1"}, default: {cpu: "1"}}]}
---
apiVersion: v1
kind: Namespace
metadata: {name: restricted, labels: {pod-security.kubernetes.io/enforce: restricted}}
---
apiVersion: v1
kind: Namespace
metadata: {name: leaving}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: stays, namespace: leaving, finalizers: [example.com/never]}
---
apiVersion: v1
kind: Service
metadata: {name: policy, namespace: ci}
spec: {selector: {app: nobody}, ports: [{port: 443}]}
---
apiVersion: v1
kind: ServiceAccount
metadata: {name: busy, namespace: ci}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: large, namespace: ci}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: busy, namespace: ci}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: cluster-admin}
subjects: [{kind: ServiceAccount, name: busy, namespace: ci}]
---
apiVersion: flowcontrol.apiserver.k8s.io/v1
kind: PriorityLevelConfiguration
metadata: {name: nothing}
spec:
  type: Limited
  limited: {nominalConcurrencyShares: 0, lendablePercent: 0, borrowingLimitPercent: 0, limitResponse: {type: Reject}}
---
apiVersion: flowcontrol.apiserver.k8s.io/v1
kind: FlowSchema
metadata: {name: busy}
spec:
  priorityLevelConfiguration: {name: nothing}
  matchingPrecedence: 2
  rules:
  - subjects: [{kind: ServiceAccount, serviceAccount: {name: busy, namespace: ci}}]
    resourceRules: [{verbs: ["*"], apiGroups: ["*"], resources: ["*"], namespaces: ["*"]}]
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: has-owner}
spec:
  matchConstraints:
    objectSelector: {matchLabels: {row: k10}}
    resourceRules: [{apiGroups: [tekton.dev], apiVersions: [v1], operations: [CREATE, UPDATE], resources: [pipelineruns]}]
  validations: [{expression: "has(object.metadata.annotations) && 'owner' in object.metadata.annotations", message: a PipelineRun needs the annotation owner}]
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: has-owner}
spec: {policyName: has-owner, validationActions: [Deny]}
---
apiVersion: apiregistration.k8s.io/v1
kind: APIService
metadata: {name: v1.away.example.com}
spec:
  group: away.example.com
  version: v1
  groupPriorityMinimum: 100
  versionPriority: 100
  insecureSkipTLSVerify: true
  service: {name: policy, namespace: ci}
`

// must ends the test at an error.
func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
