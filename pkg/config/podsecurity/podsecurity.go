// SPDX-License-Identifier: Apache-2.0

package podsecurity

import (
	"cmp"
	"errors"
	"fmt"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/pod-security-admission/api"
	"k8s.io/pod-security-admission/policy"
)

// standard judges the parts of a PipelineRun that Tekton copies into pods, each as a pod of its
// own. The rules are those of Kubernetes' own admission plugin, in their newest version.
type standard struct {
	level     string
	evaluator policy.Evaluator
}

// newestChecks returns the evaluator of all checks, which takes longer to make than to use.
//
//nolint:gochecknoglobals // it does not change
var newestChecks = sync.OnceValues(func() (policy.Evaluator, error) {
	return policy.NewEvaluator(policy.DefaultChecks(), nil)
})

func standardOf(level string) (*standard, error) {
	evaluator, err := newestChecks()
	if err != nil {
		return nil, fmt.Errorf("reading the checks of Kubernetes' Pod Security: %w", err)
	}
	return &standard{level, evaluator}, nil
}

// isPart reports whether forbids reads the value of a field as a part of a pod.
func isPart(key string) bool {
	switch key {
	case "metadata", "podTemplate", "volumes", "steps", "sidecars", "containers", "initContainers", "stepTemplate",
		"securityContext", "hostNetwork", "hostPID", "hostIPC":
		return true
	}
	return false
}

// forbids is the rule of the level. What it forbids of a whole pod (the last two cases), it forbids
// everywhere: the spec of a custom task may have a pod's fields under any name.
func (s *standard) forbids(_, key string, value any) string {
	pod := &corev1.Pod{}
	var err error
	switch key {
	case "metadata": // Tekton copies annotations to pods
		err = convert(value, &pod.ObjectMeta)
	case "podTemplate":
		err = convert(value, &pod.Spec)
	case "volumes":
		err = convert(value, &pod.Spec.Volumes)
	case "steps", "sidecars", "containers", "initContainers":
		err = convert(value, &pod.Spec.Containers)
	case "stepTemplate":
		container := corev1.Container{}
		err = convert(value, &container)
		pod.Spec.Containers = []corev1.Container{container}
	case "securityContext": // a pod's or a container's
		container := corev1.Container{}
		err = errors.Join(convert(value, &pod.Spec.SecurityContext), convert(value, &container.SecurityContext))
		pod.Spec.Containers = []corev1.Container{container}
	case "hostNetwork", "hostPID", "hostIPC":
		err = convert(map[string]any{key: value}, &pod.Spec)
	default:
		return ""
	}
	if err != nil {
		return fmt.Sprintf(" cannot be checked: %v", err)
	}
	fillIn(&pod.Spec)
	level := api.LevelVersion{Level: api.Level(s.level), Version: api.LatestVersion()}
	for _, result := range s.evaluator.EvaluatePod(level, &pod.ObjectMeta, &pod.Spec) {
		if !result.Allowed {
			why := cmp.Or(result.ForbiddenDetail, result.ForbiddenReason)
			return fmt.Sprintf(": the Pod Security level %q does not allow this: %s", s.level, why)
		}
	}
	return ""
}

// fillIn sets what the level "restricted" demands where the author has left it out: Tekton and the
// defaults of the cluster may add it later. What a check relaxes for some pods is not relaxed:
// another part of the PipelineRun may make it another pod.
func fillIn(pod *corev1.PodSpec) {
	pod.HostUsers, pod.OS = nil, nil
	if pod.SecurityContext == nil {
		pod.SecurityContext = &corev1.PodSecurityContext{}
	}
	setDefault(&pod.SecurityContext.RunAsNonRoot, true)
	setDefault(&pod.SecurityContext.SeccompProfile, corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault})
	for i := range pod.Volumes {
		if v := &pod.Volumes[i]; v.VolumeSource == (corev1.VolumeSource{}) {
			v.EmptyDir = &corev1.EmptyDirVolumeSource{} // the API server's default
		}
	}
	for i := range pod.Containers {
		c := &pod.Containers[i]
		c.Name = cmp.Or(c.Name, fmt.Sprint(i))
		setDefault(&c.SecurityContext, corev1.SecurityContext{})
		setDefault(&c.SecurityContext.AllowPrivilegeEscalation, false)
		setDefault(&c.SecurityContext.Capabilities, corev1.Capabilities{})
		c.SecurityContext.Capabilities.Drop = append(c.SecurityContext.Capabilities.Drop, "ALL")
	}
}

func setDefault[T any](field **T, value T) {
	if *field == nil {
		*field = &value
	}
}
