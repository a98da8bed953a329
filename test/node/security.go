// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// podSecurity shows what the kernel lets Plumbline's processes do, and that each namespace refuses
// a pod that may do more.
func (n *node) podSecurity(ctx context.Context) (string, error) {
	processes, err := restrained()
	if err != nil {
		return "", err
	}
	namespaces := []string{plumblineNamespace, tektonNamespace, tenant}
	for _, namespace := range namespaces {
		pod := &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Name: "as-root"},
			Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "shell", Image: toolsImage}}},
		}
		_, err := n.Kube.CoreV1().Pods(namespace).Create(ctx, pod, metav1.CreateOptions{})
		if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "violates PodSecurity") {
			return "", fmt.Errorf("%s answers %w to a pod that may run as root, want that it is forbidden", namespace, err)
		}
	}
	return fmt.Sprintf("%d processes: user 65532, no capabilities, seccomp, read-only root; "+
		"%d namespaces refuse a pod that may run as root", processes, len(namespaces)), nil
}

// restrained counts Plumbline's processes. Their state is what the kernel says.
func restrained() (count int, err error) {
	processes, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		return 0, err
	}
	for _, process := range processes {
		program, _ := os.Readlink(filepath.Join(process, "exe"))
		if program != "/ko-app/receiver" && program != "/ko-app/controller" {
			continue
		}
		arguments, _ := os.ReadFile(filepath.Join(process, "cmdline"))
		if strings.Contains(string(arguments), "-entrypoint-image") {
			continue // Tekton's controller has the same name
		}
		status, err := os.ReadFile(filepath.Join(process, "status"))
		if err != nil {
			return 0, err
		}
		mounts, err := os.ReadFile(filepath.Join(process, "mounts"))
		if err != nil {
			return 0, err
		}
		if complaint := loose(string(status), string(mounts)); complaint != "" {
			return 0, fmt.Errorf("%s: %s", program, complaint)
		}
		count++
	}
	if count != 4 {
		return count, fmt.Errorf("%d processes of receivers and controllers, want 4", count)
	}
	return count, nil
}

// loose returns what a process may do too much, by its status and mounts (proc(5)).
func loose(status, mounts string) string {
	for field, want := range map[string]string{
		"Uid": "65532 65532 65532 65532", "CapBnd": "0000000000000000", "CapEff": "0000000000000000", "NoNewPrivs": "1", "Seccomp": "2",
	} {
		if got := fieldOf(status, field); got != want {
			return fmt.Sprintf("%s is %q, want %q", field, got, want)
		}
	}
	for l := range strings.Lines(mounts) {
		if fields := strings.Fields(l); fields[1] == "/" && !strings.HasPrefix(fields[3], "ro") {
			return "its root file system can be written: " + l
		}
	}
	return ""
}

// fieldOf is a field of a process's status, with single spaces.
func fieldOf(status, field string) string {
	for l := range strings.Lines(status) {
		if value, found := strings.CutPrefix(l, field+":"); found {
			return strings.Join(strings.Fields(value), " ")
		}
	}
	return ""
}
