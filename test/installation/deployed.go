// SPDX-License-Identifier: Apache-2.0

package installation

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/plumbline-ci/plumbline/test/cluster"
)

// portFlag is an argument that chooses a port. All processes share one host here, so each gets
// another one.
var portFlag = regexp.MustCompile(`^-(port|metrics-port|health-port)=\d+$`)

// Deployed makes a process, not started, as the Deployment of a component among the objects says:
// with its arguments, its environment and the token of its ServiceAccount.
func Deployed(ctx context.Context, c *cluster.Cluster, objects []*unstructured.Unstructured, component, path string) (
	*Process, error) {
	var d appsv1.Deployment
	if err := find(objects, "Deployment", product+"-"+component, &d); err != nil {
		return nil, err
	}
	pod := d.Spec.Template.Spec
	token, err := c.Token(ctx, d.Namespace, pod.ServiceAccountName)
	if err != nil {
		return nil, err
	}
	kubeconfig := filepath.Join(c.Dir(), d.Name+".kubeconfig") // a pod finds all of it in its file system
	if err := c.WriteKubeconfig(kubeconfig, token); err != nil {
		return nil, err
	}
	ports := map[string]int{}
	for _, name := range []string{"port", "metrics-port", "health-port"} {
		if ports[name], err = c.FreePort(); err != nil {
			return nil, err
		}
	}
	args := []string{"-kubeconfig=" + kubeconfig}
	for _, arg := range pod.Containers[0].Args {
		if match := portFlag.FindStringSubmatch(arg); match != nil {
			arg = fmt.Sprintf("-%s=%d", match[1], ports[match[1]])
		}
		args = append(args, arg)
	}
	environment, err := environmentOf(objects, &d)
	if err != nil {
		return nil, err
	}
	environment = append(environment,
		"METRICS_PROMETHEUS_HOST=127.0.0.1", "METRICS_PROMETHEUS_PORT="+strconv.Itoa(ports["metrics-port"]))
	p := &Process{URL: fmt.Sprintf("http://127.0.0.1:%d", ports["port"])}
	if component == "controller" {
		p.URL = fmt.Sprintf("http://127.0.0.1:%d", ports["health-port"])
	}
	ready := p.URL + pod.Containers[0].ReadinessProbe.HTTPGet.Path
	live := p.URL + pod.Containers[0].LivenessProbe.HTTPGet.Path
	p.Part = c.Add(cluster.Process{
		Name: d.Name, Path: path, Args: args, Env: environment,
		Ready: func(ctx context.Context) error { return errors.Join(Answers(ctx, live), Answers(ctx, ready)) },
	})
	return p, nil
}

// environmentOf returns the variables of a Deployment's container as the kubelet sets them.
func environmentOf(objects []*unstructured.Unstructured, d *appsv1.Deployment) (all []string, err error) {
	container := d.Spec.Template.Spec.Containers[0]
	for _, variable := range container.Env {
		value, from := variable.Value, variable.ValueFrom
		switch {
		case from == nil:
		case from.FieldRef != nil:
			pod := map[string]string{"metadata.namespace": d.Namespace, "metadata.name": d.Name + "-5d8f7c9b6-x7k2p"}
			value = pod[from.FieldRef.FieldPath]
		case from.ResourceFieldRef != nil && from.ResourceFieldRef.Resource == "limits.memory":
			value = strconv.FormatInt(container.Resources.Limits.Memory().Value(), 10)
		case from.ConfigMapKeyRef != nil:
			var settings corev1.ConfigMap
			if err := find(objects, "ConfigMap", from.ConfigMapKeyRef.Name, &settings); err != nil {
				return nil, err
			}
			if value = settings.Data[from.ConfigMapKeyRef.Key]; value == "" {
				continue // optional
			}
		}
		if value == "" {
			return nil, fmt.Errorf("Deployment %s: the variable %s has no value here", d.Name, variable.Name)
		}
		all = append(all, variable.Name+"="+value)
	}
	return all, nil
}

// find decodes the object of a kind and name.
func find(objects []*unstructured.Unstructured, kind, name string, into any) error {
	for _, object := range objects {
		if object.GetKind() == kind && object.GetName() == name {
			if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, into); err != nil {
				return fmt.Errorf("%s %s: %w", kind, name, err)
			}
			return nil
		}
	}
	return fmt.Errorf("there is no %s %s", strings.ToLower(kind), name)
}
