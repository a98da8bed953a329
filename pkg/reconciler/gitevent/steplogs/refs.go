// SPDX-License-Identifier: Apache-2.0

package steplogs

import (
	"bytes"
	"time"

	pipelinev1 "github.com/tektoncd/pipeline/pkg/apis/pipeline/v1"
	corev1 "k8s.io/api/core/v1"
)

// changed says why a Secret that can be read is not enough.
const changed = ", which has changed since the run began"

// changedAfter reports whether a Secret may have had other values at a time. The API server records
// when its data was last written.
func changedAfter(at time.Time, secret *corev1.Secret) bool {
	if secret.CreationTimestamp.After(at) {
		return true
	}
	for _, entry := range secret.ManagedFields {
		if entry.Time != nil && entry.FieldsV1 != nil && entry.Time.After(at) &&
			bytes.Contains(entry.FieldsV1.Raw, []byte(`"f:data"`)) {
			return true
		}
	}
	return false
}

// refs are the names of Secrets, and whether a container could start without them.
type refs map[string]bool

func (r refs) add(name string, optional *bool) {
	if name == "" {
		return
	}
	before, known := r[name]
	r[name] = optional != nil && *optional && (before || !known)
}

func (r refs) addAll(others refs) {
	for name, optional := range others {
		r.add(name, &optional)
	}
}

// addPod adds the Secrets that the containers of a pod see. It does not add those with which the
// kubelet pulls images and mounts volumes, which no container sees.
func (r refs) addPod(spec *corev1.PodSpec) {
	r.addVolumes(spec.Volumes)
	for _, containers := range [][]corev1.Container{spec.InitContainers, spec.Containers} {
		for i := range containers {
			r.addEnv(containers[i].Env, containers[i].EnvFrom)
		}
	}
	for i := range spec.EphemeralContainers {
		r.addEnv(spec.EphemeralContainers[i].Env, spec.EphemeralContainers[i].EnvFrom)
	}
}

func (r refs) addVolumes(volumes []corev1.Volume) {
	for i := range volumes {
		r.addSecret(volumes[i].Secret)
		r.addProjected(volumes[i].Projected)
	}
}

func (r refs) addSecret(secret *corev1.SecretVolumeSource) {
	if secret != nil {
		r.add(secret.SecretName, secret.Optional)
	}
}

func (r refs) addProjected(projected *corev1.ProjectedVolumeSource) {
	if projected == nil {
		return
	}
	for _, source := range projected.Sources {
		if source.Secret != nil {
			r.add(source.Secret.Name, source.Secret.Optional)
		}
	}
}

func (r refs) addEnv(env []corev1.EnvVar, from []corev1.EnvFromSource) {
	for _, variable := range env {
		if variable.ValueFrom != nil && variable.ValueFrom.SecretKeyRef != nil {
			r.add(variable.ValueFrom.SecretKeyRef.Name, variable.ValueFrom.SecretKeyRef.Optional)
		}
	}
	for _, source := range from {
		if source.SecretRef != nil {
			r.add(source.SecretRef.Name, source.SecretRef.Optional)
		}
	}
}

// addTaskRun adds the Secrets that a TaskRun gave to its pod. The pod may have had more, which
// Tekton took from its ServiceAccount. It returns false if they are not known.
func (r refs) addTaskRun(taskRun *pipelinev1.TaskRun) bool {
	for i := range taskRun.Spec.Workspaces {
		r.addSecret(taskRun.Spec.Workspaces[i].Secret)
		r.addProjected(taskRun.Spec.Workspaces[i].Projected)
	}
	if template := taskRun.Spec.PodTemplate; template != nil {
		r.addVolumes(template.Volumes)
		r.addEnv(template.Env, nil)
	}
	task := taskRun.Status.TaskSpec
	if task == nil {
		return false
	}
	r.addVolumes(task.Volumes)
	if task.StepTemplate != nil {
		r.addEnv(task.StepTemplate.Env, task.StepTemplate.EnvFrom)
	}
	for i := range task.Steps {
		r.addEnv(task.Steps[i].Env, task.Steps[i].EnvFrom)
	}
	for i := range task.Sidecars {
		r.addEnv(task.Sidecars[i].Env, task.Sidecars[i].EnvFrom)
	}
	return true
}
