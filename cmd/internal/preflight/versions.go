// SPDX-License-Identifier: Apache-2.0

package preflight

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/version"
)

// Plumbline needs selectable fields of custom resources (Kubernetes 1.32), and the Tekton that it
// is tested with.
const (
	oldestKubernetes = "1.32"
	oldestTekton     = "1.0.0"
)

// kubernetes checks the version of Kubernetes. answered reports whether the API server responded.
func (c *Checker) kubernetes(ctx context.Context) (all []Finding, answered bool) {
	const object = "Kubernetes"
	data, err := c.fetch(ctx, "/version")
	if err != nil {
		var status apierrors.APIStatus
		f := unknown(object, err, "make the API server reachable from here, then try again")
		return []Finding{f}, errors.As(err, &status)
	}
	var info struct{ GitVersion string }
	if err := json.Unmarshal(data, &info); err != nil {
		return []Finding{unknown(object, err, "check kubectl version")}, true
	}
	if f := older(object, info.GitVersion, oldestKubernetes, "upgrade the cluster"); f.Object != "" {
		all = append(all, f)
	}
	return all, true
}

// older returns a finding if the version is too old. A version that is no number is a development
// build, and accepted.
func older(object, is, oldest, remedy string) Finding {
	found, err := version.ParseGeneric(is)
	if err != nil || found.AtLeast(version.MustParseGeneric(oldest)) {
		return Finding{}
	}
	return Finding{
		Object:  object,
		Problem: fmt.Sprintf("is %s, older than the %s that Plumbline needs", is, oldest),
		Remedy:  remedy,
	}
}

// tekton checks whether Tekton's kinds are served, and its version. Each account may read the
// ConfigMap pipelines-info, in Tekton's namespace or in that of Red Hat's operator.
func (c *Checker) tekton(ctx context.Context) []Finding {
	const object, install = "Tekton Pipelines", "install Tekton Pipelines " + oldestTekton + " or later: https://tekton.dev/docs/installation/pipelines/"
	served, err := c.served(ctx, "tekton.dev", "v1")
	if err != nil {
		return []Finding{
			unknown(object, err, "let this account read discovery, as ClusterRole system:discovery does for every account"),
		}
	}
	for _, kind := range []string{"PipelineRun", "TaskRun", "Task"} {
		if served.kind("tekton.dev", "v1", kind) == nil {
			return []Finding{
				{
					Object:  object,
					Problem: fmt.Sprintf("is missing: version v1 of %s.tekton.dev is not served", kind),
					Remedy:  install,
					Awaited: true,
				},
			}
		}
	}
	var problems []error
	for _, namespace := range []string{"tekton-pipelines", "openshift-pipelines"} {
		info, err := c.kube.CoreV1().ConfigMaps(namespace).Get(ctx, "pipelines-info", metav1.GetOptions{})
		if err != nil {
			problems = append(problems, err)
			continue
		}
		if f := older(object, info.Data["version"], oldestTekton, install); f.Object != "" {
			return []Finding{f}
		}
		return nil
	}
	return []Finding{
		unknown(
			object+"' version",
			errors.Join(problems...),
			"make sure that it is "+oldestTekton+" or later; its ConfigMap pipelines-info says so to every account",
		),
	}
}
