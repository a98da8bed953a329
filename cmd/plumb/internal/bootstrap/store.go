// SPDX-License-Identifier: Apache-2.0

package bootstrap

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/yaml"

	"github.com/plumbline-ci/plumbline/cmd/internal/preflight"
	"github.com/plumbline-ci/plumbline/cmd/plumb/internal/kube"
)

// Store is the Secret that an App's credentials are stored in.
type Store struct {
	Kube            kubernetes.Interface
	Namespace, Name string
}

// Check reports whether the Secret can be created, without creating it: the credentials of an App
// are shown once, so a missing right must be known before GitHub is called.
func (s Store) Check(ctx context.Context) error {
	return s.create(ctx, &App{ID: 1, Key: "none", WebhookSecret: "none"}, metav1.DryRunAll)
}

// Put creates the Secret.
func (s Store) Put(ctx context.Context, app *App) error { return s.create(ctx, app) }

func (s Store) create(ctx context.Context, app *App, dryRun ...string) error {
	what := fmt.Sprintf("creating Secret %s/%s", s.Namespace, s.Name)
	_, err := s.Kube.CoreV1().Secrets(s.Namespace).Create(ctx, s.secret(app), metav1.CreateOptions{DryRun: dryRun})
	if apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("%s: it exists already, so there is an App: delete the Secret if that App is not used any more, "+
			"or choose another name with --app-secret", what)
	}
	if err != nil {
		return kube.Failed(what, err)
	}
	return nil
}

func (s Store) secret(app *App) *corev1.Secret {
	return &corev1.Secret{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"},
		ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: s.Name},
		Data: map[string][]byte{
			preflight.KeyAppID:         []byte(strconv.FormatInt(app.ID, 10)),
			preflight.KeyPrivateKey:    []byte(app.Key),
			preflight.KeyWebhookSecret: []byte(app.WebhookSecret),
		},
	}
}

// Save writes the Secret to a new file in a directory that only this user can read. It is for an
// App whose Secret could not be created: GitHub does not show the credentials again.
func (s Store) Save(dir string, app *App) (file string, err error) {
	data, err := yaml.Marshal(s.secret(app))
	if err != nil {
		return "", err
	}
	file = filepath.Join(dir, s.Name+"-"+strconv.FormatInt(app.ID, 10)+".yaml")
	to, err := os.OpenFile(file, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600) // #nosec G304 -- named after the App
	if err != nil {
		return "", err
	}
	_, err = to.Write(data)
	if err2 := to.Close(); err == nil {
		err = err2
	}
	return file, err
}
