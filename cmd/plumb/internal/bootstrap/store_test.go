// SPDX-License-Identifier: Apache-2.0

package bootstrap

import (
	"errors"
	"os"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"sigs.k8s.io/yaml"
)

func TestCheckFindsWhatWouldLoseTheCredentials(t *testing.T) {
	secrets := schema.GroupResource{Resource: "secrets"}
	for name, test := range map[string]struct{ err, want string }{
		"no right": {`User "eve" cannot create resource "secrets" in API group "" in the namespace "plumbline"`,
			"this account lacks the right to create secrets in namespace plumbline"},
		"an App exists": {"exists", "it exists already, so there is an App"},
	} {
		t.Run(name, func(t *testing.T) {
			client := fake.NewSimpleClientset()
			client.PrependReactor("create", "secrets", func(a clienttesting.Action) (bool, runtime.Object, error) {
				options := a.(clienttesting.CreateActionImpl).GetCreateOptions() //nolint:forcetypeassert // of this verb
				if len(options.DryRun) != 1 || options.DryRun[0] != metav1.DryRunAll {
					t.Errorf("the check is no dry run: %v", options)
				}
				if test.err == "exists" {
					return true, nil, apierrors.NewAlreadyExists(secrets, "app")
				}
				return true, nil, apierrors.NewForbidden(secrets, "app", errors.New(test.err))
			})
			err := Store{Kube: client, Namespace: "plumbline", Name: "app"}.Check(t.Context())
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want %q", err, test.want)
			}
		})
	}
}

func TestPutStoresTheKeysThatTheControllerReads(t *testing.T) {
	client := fake.NewSimpleClientset()
	store := Store{Kube: client, Namespace: "plumbline", Name: "app"}
	must(t, store.Put(t.Context(), &App{ID: 7, Key: "pem", WebhookSecret: "shared"}))
	secret, err := client.CoreV1().Secrets("plumbline").Get(t.Context(), "app", metav1.GetOptions{})
	must(t, err)
	for key, want := range map[string]string{"github-application-id": "7", "github-private-key": "pem", "webhook.secret": "shared"} {
		if got := string(secret.Data[key]); got != want {
			t.Errorf("%s is %q, want %q", key, got, want)
		}
	}
}

func TestSaveWritesAFileForThisUserOnly(t *testing.T) {
	store := Store{Namespace: "plumbline", Name: "app"}
	dir := t.TempDir()
	file, err := store.Save(dir, &App{ID: 7, Key: "pem", WebhookSecret: "shared"})
	must(t, err)
	info, err := os.Stat(file)
	must(t, err)
	if info.Mode().Perm() != 0o600 {
		t.Errorf("the file has mode %v", info.Mode())
	}
	data, err := os.ReadFile(file)
	must(t, err)
	secret := &corev1.Secret{}
	must(t, yaml.UnmarshalStrict(data, secret))
	if secret.Kind != "Secret" || secret.Namespace != "plumbline" || string(secret.Data["github-private-key"]) != "pem" {
		t.Errorf("kubectl would apply %+v", secret.ObjectMeta)
	}
	if _, err := store.Save(dir, &App{ID: 7}); err == nil {
		t.Error("a file with credentials is overwritten")
	}
}
