// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/plumbline-ci/plumbline/test/cluster"
	"github.com/plumbline-ci/plumbline/test/installation"
)

const namespace = "openshift-pipelines"

// env is a cluster with the kinds of the operator, and the stand-in for it.
type env struct {
	cluster  *cluster.Cluster
	client   dynamic.Interface
	operator *standIn
	plumb    string
}

var shared env // set once before any test runs

func TestMain(m *testing.M) {
	os.Exit(cluster.Suite{Name: "operator", Limit: 10 * time.Minute, Prepare: prepare}.Run(m))
}

func prepare(ctx context.Context, c *cluster.Cluster, dir string) error {
	config := c.RESTConfig()
	config.WarningHandler = rest.NoWarnings{} // about the operator's finalizer
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return err
	}
	shared = env{cluster: c, client: client, plumb: filepath.Join(dir, "plumb")}
	if err := installation.Compile(ctx, dir, "./cmd/plumb"); err != nil {
		return err
	}
	if err := c.MakeNamespace(ctx, namespace); err != nil {
		return err
	}
	var kinds []string
	for kind, plural := range map[string]string{
		"TektonConfig": "tektonconfigs", "OpenShiftPipelinesAsCode": "openshiftpipelinesascodes",
		"TektonInstallerSet": "tektoninstallersets",
	} {
		kinds = append(kinds, fmt.Sprintf(kindOfOperator, plural, kind, strings.ToLower(kind)))
	}
	definition, err := installation.TheirDefinition(ctx)
	if err != nil {
		return err
	}
	if err := c.Apply(ctx, []byte(strings.Join(kinds, "---\n"))); err != nil {
		return err
	}
	static, err := cluster.Documents(append(definition, static...))
	deployments, err2 := cluster.Documents([]byte(deployments))
	shared.operator = &standIn{client: client, static: static, deployments: deployments}
	go shared.operator.run(context.WithoutCancel(ctx))
	return errors.Join(err, err2)
}

const kindOfOperator = `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: %[1]s.operator.tekton.dev}
spec:
  group: operator.tekton.dev
  scope: Cluster
  names: {plural: %[1]s, kind: %[2]s, singular: %[3]s, listKind: %[2]sList}
  versions:
    - name: v1alpha1
      served: true
      storage: true
      schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
`

const static = `
---
apiVersion: v1
kind: ConfigMap
metadata: {name: pipelines-as-code, namespace: openshift-pipelines}
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: validation.pipelinesascode.tekton.dev}
`

const deployments = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: pipelines-as-code-controller, namespace: openshift-pipelines}
spec:
  selector: {matchLabels: {app: pac}}
  template:
    metadata: {labels: {app: pac}}
    spec: {containers: [{name: c, image: test.invalid/pac}]}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: pipelines-as-code-watcher, namespace: openshift-pipelines}
spec:
  selector: {matchLabels: {app: pac}}
  template:
    metadata: {labels: {app: pac}}
    spec: {containers: [{name: c, image: test.invalid/pac}]}
`
