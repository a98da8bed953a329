// SPDX-License-Identifier: Apache-2.0

package preflight

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

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

// kubernetes checks the version of Kubernetes.
func (c *Checker) kubernetes(ctx context.Context) []Finding {
	const object = "Kubernetes"
	data, err := c.fetch(ctx, "/version")
	var info struct{ GitVersion string }
	if err == nil {
		err = json.Unmarshal(data, &info)
	}
	if err == nil && info.GitVersion == "" {
		err = errors.New("its answer has no gitVersion")
	}
	if err != nil {
		const remedy = "check with kubectl version whether this is the right server and accepts this account"
		return []Finding{unknown(object, err, remedy)}
	}
	if f := older(object, info.GitVersion, oldestKubernetes, "upgrade the cluster"); f.Object != "" {
		return []Finding{f}
	}
	return nil
}

// Unanswered reports whether the findings of First say that no API server serves this account. A
// server that only refuses to tell its version does.
func Unanswered(first []Finding) bool {
	return slices.ContainsFunc(first, func(f Finding) bool { return f.Err != nil && !apierrors.IsForbidden(f.Err) })
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
		unknown(object+"' version", errors.Join(problems...),
			"make sure that it is "+oldestTekton+" or later; its ConfigMap pipelines-info says so to every account"),
	}
}
