// SPDX-License-Identifier: Apache-2.0

package settings

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	pacv1alpha1 "github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/pipeline/template"
)

const url = "https://github.com/acme/app"

func served(namespace, name, url string, ready metav1.ConditionStatus) pacv1alpha1.Repository {
	r := pacv1alpha1.Repository{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, UID: "uid-1"},
		Spec:       pacv1alpha1.RepositorySpec{URL: url},
	}
	data, _ := json.Marshal(map[string]any{"conditions": []map[string]string{{"type": "Ready", "status": string(ready)}}})
	_ = json.Unmarshal(data, &r.Status)
	return r
}

// cluster answers as an API server does and returns its kubeconfig. A nil object does not exist. An
// int is the status of the answer.
func cluster(t *testing.T, objects map[string]any) string {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		object, found := objects[r.URL.Path]
		status, refused := object.(int)
		switch {
		case r.Method != http.MethodGet:
			status = http.StatusMethodNotAllowed
		case !found:
			status = http.StatusNotFound
		case !refused:
			_ = json.NewEncoder(w).Encode(object)
			return
		}
		w.WriteHeader(status)
		reason := map[int]metav1.StatusReason{
			http.StatusNotFound: metav1.StatusReasonNotFound, http.StatusForbidden: metav1.StatusReasonForbidden,
		}[status]
		// #nosec G115 -- a status
		_ = json.NewEncoder(w).Encode(metav1.Status{Status: "Failure", Reason: reason, Code: int32(status),
			Message: "refused", TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}})
	}))
	t.Cleanup(server.Close)
	file := filepath.Join(t.TempDir(), "kubeconfig")
	text := "apiVersion: v1\nkind: Config\nclusters: [{name: c, cluster: {server: '" + server.URL +
		"'}}]\ncontexts: [{name: x, context: {cluster: c, user: u}}]\ncurrent-context: x\nusers: [{name: u, user: {}}]\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

const (
	repositories = "/apis/pipelinesascode.tekton.dev/v1alpha1/repositories"
	namespaced   = "/apis/pipelinesascode.tekton.dev/v1alpha1/namespaces/"
	configPath   = "/api/v1/namespaces/plumbline/configmaps/plumbline"
)

func list(items ...pacv1alpha1.Repository) any {
	return pacv1alpha1.RepositoryList{
		TypeMeta: metav1.TypeMeta{APIVersion: pacv1alpha1.SchemeGroupVersion.String(), Kind: "RepositoryList"}, Items: items,
	}
}

// configured is a ConfigMap as the API server has it.
func configured(data map[string]string) any {
	return corev1.ConfigMap{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"}, Data: data}
}

func TestComplete(t *testing.T) {
	global := served("plumbline", "pipelines-as-code", "", metav1.ConditionTrue)
	global.Spec.Params = &[]pacv1alpha1.Params{{Name: "tier", Value: "gold"}}
	kubeconfig := cluster(t, map[string]any{
		configPath: configured(map[string]string{"secret-auto-create": "false"}),
		repositories: list(served("other", "other", "https://github.com/acme/other", metav1.ConditionTrue),
			served("team", "app", "https://github.com/Acme/app.git", metav1.ConditionTrue)),
		namespaced + "plumbline/repositories/pipelines-as-code": global,
		"/api/v1/namespaces/team/secrets/vault": corev1.Secret{
			TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"}, Data: map[string][]byte{"token": []byte("hunter2")},
		},
	})
	s := &Settings{}
	from := Cluster{Kubeconfig: kubeconfig, System: "plumbline", Global: "pipelines-as-code"}
	if err := s.Complete(t.Context(), from, url, false); err != nil {
		t.Fatal(err)
	}
	if s.Repository.Namespace != "team" || s.Repository.UID != "uid-1" || s.Config.SecretAutoCreate ||
		s.Repository.Spec.Params == nil {
		t.Errorf("got %+v, %+v", s.Repository, s.Config)
	}
	if value, err := s.Secret(t.Context(), template.SecretRef{Name: "vault", Key: "token"}); value != "hunter2" ||
		err != nil {
		t.Errorf("got %q, %v", value, err)
	}
	for _, missing := range []template.SecretRef{{Name: "vault", Key: "none"}, {Name: "none", Key: "token"}} {
		if _, err := s.Secret(t.Context(), missing); err == nil ||
			!strings.Contains(err.Error(), "secret team/"+missing.Name) {
			t.Errorf("%v: got %v, want which one is missing", missing, err)
		}
	}
}

// Complete does not read from the cluster what files provide.
func TestCompleteLeavesWhatFilesSay(t *testing.T) {
	s, err := FromFiles([]byte(repository), []byte(configMap), "team")
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Complete(t.Context(),
		Cluster{Kubeconfig: cluster(t, nil), System: "plumbline", Global: "pipelines-as-code"}, url, true); err != nil {
		t.Fatal(err)
	}
	if s.Repository.Namespace != "team" || s.Config.SecretAutoCreate {
		t.Errorf("got %+v, %+v", s.Repository, s.Config)
	}
}

func TestCompleteRefuses(t *testing.T) {
	two := list(served("a", "app", url, metav1.ConditionFalse), served("b", "app", url, metav1.ConditionFalse))
	empty := configured(nil)
	for name, test := range map[string]struct {
		objects map[string]any
		from    Cluster
		want    string // a sentence, or the namespace of the Repository after "="
	}{
		"no ConfigMap": {nil, Cluster{}, "there is no ConfigMap plumbline/plumbline in http://127.0.0.1"},
		"the ConfigMap is secret": {
			map[string]any{configPath: 403}, Cluster{}, "you may not read ConfigMap plumbline/plumbline in http://127.0.0.1",
		},
		"the server is broken": {map[string]any{configPath: 500}, Cluster{}, ": give it with --config"},
		"no Repository": {
			map[string]any{configPath: empty, repositories: list()}, Cluster{}, "no Repository in all namespaces of http",
		},
		"Repositories are secret": {map[string]any{configPath: empty, repositories: 403}, Cluster{},
			"name its namespace with --namespace, or give it with --repository"},
		"two, none is served": {map[string]any{configPath: empty, repositories: two}, Cluster{},
			"has several Repositories (a/app, b/app): choose one with --namespace"},
		"two, one is served": {map[string]any{configPath: empty,
			repositories: list(served("a", "app", url, metav1.ConditionFalse), served("b", "app", url, metav1.ConditionTrue))},
			Cluster{}, "=b"},
		"two, one is in the namespace": {map[string]any{configPath: empty, repositories: two,
			namespaced + "a/repositories": list(served("a", "app", url, metav1.ConditionFalse))},
			Cluster{Namespace: "a"}, "=a"},
		"the global one is secret": {map[string]any{configPath: empty, repositories: list(served("a", "app", url,
			metav1.ConditionTrue)), namespaced + "plumbline/repositories/global": 403},
			Cluster{Global: "global"}, "you may not read the global Repository plumbline/global"},
		"no such context": {nil, Cluster{Context: "none"}, "the kubeconfig names no cluster"},
	} {
		t.Run(name, func(t *testing.T) {
			s := &Settings{}
			test.from.Kubeconfig, test.from.System = cluster(t, test.objects), "plumbline"
			err := s.Complete(t.Context(), test.from, url, false)
			if namespace, found := strings.CutPrefix(test.want, "="); found {
				if err != nil || s.Repository.Namespace != namespace {
					t.Errorf("got %+v, %v, want the Repository in %s", s.Repository, err, namespace)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), test.want) || !strings.HasPrefix(err.Error(), "--from-cluster: ") {
				t.Errorf("got %v, want a sentence with %q", err, test.want)
			}
		})
	}
}

func TestCompleteWithoutACluster(t *testing.T) {
	t.Setenv("KUBECONFIG", filepath.Join(t.TempDir(), "none"))
	t.Setenv("KUBERNETES_SERVICE_HOST", "")
	err := (&Settings{}).Complete(t.Context(), Cluster{System: "plumbline"}, url, false)
	if err == nil || !strings.Contains(err.Error(), "the kubeconfig names no cluster") {
		t.Errorf("got %v, want a sentence about the kubeconfig", err)
	}
}
