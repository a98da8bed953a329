// SPDX-License-Identifier: Apache-2.0

package command

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// kubeconfigOf returns a kubeconfig for an API server that answers each path with a status and
// JSON.
func kubeconfigOf(t *testing.T, answer func(r *http.Request) (int, string)) string {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		status, body := answer(r)
		w.WriteHeader(status)
		_, _ = w.Write([]byte(body))
	}))
	t.Cleanup(server.Close)
	file := filepath.Join(t.TempDir(), "kubeconfig")
	text := "apiVersion: v1\nkind: Config\nclusters: [{name: c, cluster: {server: '" + server.URL + "'}}]\n" +
		"contexts: [{name: x, context: {cluster: c, namespace: team-a}}]\ncurrent-context: x\n"
	must(t, os.WriteFile(file, []byte(text), 0o600))
	return file
}

// refusedBy is the API server's answer to an account without rights.
func refusedBy(r *http.Request) (int, string) {
	resource, verb, in := filepath.Base(r.URL.Path), "list", "at the cluster scope"
	parts := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	for i, part := range parts {
		if part == "namespaces" && i+2 < len(parts) {
			resource, in = parts[i+2], fmt.Sprintf("in the namespace %q", parts[i+1])
			if i+3 < len(parts) {
				verb = "get"
			}
		}
	}
	if r.Method == http.MethodPost {
		verb = "create"
	}
	message := fmt.Sprintf(
		"%s is forbidden: User %q cannot %s resource %q in API group %q %s",
		resource,
		"eve",
		verb,
		resource,
		"",
		in,
	)
	if strings.HasPrefix(r.URL.Path, "/openapi/") {
		message = fmt.Sprintf("forbidden: User %q cannot get path %q", "eve", r.URL.Path)
	}
	data, _ := json.Marshal(map[string]any{
		"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "Forbidden", "code": 403, "message": message,
	})
	return http.StatusForbidden, string(data)
}

const notFoundStatus = `{"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "NotFound", "code": 404}`

// lines returns the lines of a table by the name of the check.
func lines(table string) map[string]string {
	all := map[string]string{}
	for _, line := range strings.Split(strings.TrimSpace(table), "\n")[1:] {
		name, rest, _ := strings.Cut(line, "  ")
		all[name] += strings.TrimSpace(rest)
	}
	return all
}

func TestDoctorWithABrokenKubeconfig(t *testing.T) {
	dir := t.TempDir()
	must(t, os.WriteFile(filepath.Join(dir, "broken"), []byte("clusters: ["), 0o600))
	for _, file := range []string{"/nowhere/kubeconfig", filepath.Join(dir, "broken")} {
		got := plumb(t.Context(), dir, "", "doctor", "--kubeconfig", file)
		all := lines(got.out)
		if got.code != exitAuthor || !strings.HasPrefix(all["Kubernetes"], "failed") ||
			!strings.Contains(all["Kubernetes"], "The kubeconfig cannot be used") {
			t.Errorf("exit %d: %s%s", got.code, got.out, got.said)
		}
		if len(all) < 12 || !strings.HasPrefix(all["Secret of the GitHub App"], "skipped") {
			t.Errorf("there is not one line for each check:\n%s", got.out)
		}
	}
}

func TestDoctorWithoutRights(t *testing.T) {
	file := kubeconfigOf(t, func(r *http.Request) (int, string) {
		if r.URL.Path == "/version" {
			return http.StatusOK, `{"gitVersion": "v1.35.0"}`
		}
		return refusedBy(r)
	})
	got := plumb(t.Context(), t.TempDir(), "", "doctor", "--kubeconfig", file)
	all := lines(got.out)
	if got.code != exitTool || !strings.HasPrefix(all["Kubernetes"], "passed") ||
		!strings.Contains(got.said, "nothing failed") {
		t.Errorf("exit %d: %s%s", got.code, got.out, got.said)
	}
	for check, right := range map[string]string{
		"Secret of the GitHub App":     "lacks the right to get secrets in namespace plumbline",
		"Deployments":                  "lacks the right to get deployments in namespace plumbline",
		"Rights of the controller":     "lacks the right to create subjectaccessreviews in all namespaces",
		"Git services of Repositories": "lacks the right to get configmaps in namespace plumbline",
		"Pipelines-as-Code":            "lacks the right to list deployments in all namespaces",

		"CustomResourceDefinition gitevents": "lacks the right to get /openapi/v3/apis/plumbline.dev/v1alpha1.",
	} {
		if !strings.HasPrefix(all[check], "not allowed") || !strings.Contains(all[check], right) {
			t.Errorf("%s: %q, want that it says %q", check, all[check], right)
		}
	}
}

func TestDoctorBeforeInstallWithoutTekton(t *testing.T) {
	file := kubeconfigOf(t, func(r *http.Request) (int, string) {
		switch {
		case r.URL.Path == "/version":
			return http.StatusOK, `{"gitVersion": "v1.35.0"}`
		case strings.HasSuffix(r.URL.Path, "/selfsubjectaccessreviews"):
			return http.StatusCreated, `{"kind": "SelfSubjectAccessReview", "apiVersion": "authorization.k8s.io/v1", "status": {"allowed": true}}`
		case strings.HasSuffix(r.URL.Path, "/deployments"):
			return http.StatusOK, `{"kind": "DeploymentList", "apiVersion": "apps/v1", "items": []}`
		}
		return http.StatusNotFound, notFoundStatus
	})
	got := plumb(t.Context(), t.TempDir(), "", "doctor", "--before-install", "--kubeconfig", file)
	all := lines(got.out)
	if got.code != exitAuthor || len(all) != 4 || !strings.HasPrefix(all["Rights to install"], "passed") ||
		!strings.Contains(all["Tekton Pipelines"], "install Tekton Pipelines 1.0.0 or later: https://tekton.dev") {
		t.Errorf("exit %d: %s%s", got.code, got.out, got.said)
	}
	got = plumb(t.Context(), t.TempDir(), "", "doctor", "--before-install", "-o", "json", "--kubeconfig", file)
	var answer struct {
		Namespace, Result string
		Checks            []struct{ Check, Result string }
	}
	if err := json.Unmarshal(
		[]byte(got.out),
		&answer,
	); err != nil || answer.Result != "failed" ||
		len(answer.Checks) != 4 {
		t.Errorf("exit %d, %v: %s%s", got.code, err, got.out, got.said)
	}
}

func TestDoctorSaysThatNothingIsInstalled(t *testing.T) {
	file := kubeconfigOf(t, func(r *http.Request) (int, string) {
		if r.URL.Path == "/version" {
			return http.StatusOK, `{"gitVersion": "v1.30.0"}`
		}
		return http.StatusNotFound, notFoundStatus
	})
	got := plumb(
		t.Context(),
		t.TempDir(),
		"",
		"doctor",
		"--system-namespace=ci",
		"--without-github-app",
		"--kubeconfig",
		file,
	)
	all := lines(got.out)
	if got.code != exitAuthor || !strings.Contains(all["Deployments"], "Deployment ci/plumbline-controller does not exist") ||
		!strings.Contains(all["Kubernetes"], "is v1.30.0, older than the 1.32") ||
		all["Secret of the GitHub App"] != "" {
		t.Errorf("exit %d: %s%s", got.code, got.out, got.said)
	}
}

// Expired credentials and the address of another server are one problem, not twenty.
func TestDoctorWithoutAnAPIServerForThisAccount(t *testing.T) {
	for name, test := range map[string]struct {
		status     int
		body, want string
	}{
		"expired credentials": {
			http.StatusUnauthorized,
			`{"kind": "Status", "apiVersion": "v1", "reason": "Unauthorized", "code": 401, "message": "Unauthorized"}`,
			"provide credentials. To fix it: check with kubectl version",
		},
		"another path":   {http.StatusNotFound, "404 page not found", "could not find the requested resource. To fix it: check with"},
		"a login page":   {http.StatusOK, "<html>", "invalid character '<'"},
		"another server": {http.StatusOK, `{"version": "1.2"}`, "no gitVersion"},
		"no etcd":        {http.StatusServiceUnavailable, "", "To fix it: try again when the API server answers"},
	} {
		t.Run(name, func(t *testing.T) {
			file := kubeconfigOf(t, func(*http.Request) (int, string) { return test.status, test.body })
			got := plumb(t.Context(), t.TempDir(), "", "doctor", "--kubeconfig", file)
			all := lines(got.out)
			if got.code != exitAuthor || !strings.Contains(all["Kubernetes"], test.want) {
				t.Errorf("exit %d: %s%s", got.code, got.out, got.said)
			}
			for check, result := range all {
				if check != "Kubernetes" && !strings.HasPrefix(result, "skipped") {
					t.Errorf("%s: %s", check, result)
				}
			}
		})
	}
}
