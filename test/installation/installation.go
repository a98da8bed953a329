// SPDX-License-Identifier: Apache-2.0

// Package installation puts config/ on a test cluster and runs the built receiver and controller
// beside it, with the tokens of the ServiceAccounts that config/ makes: rights that are missing
// show.
package installation

import (
	"context"
	"fmt"
	"strconv"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	tektonclient "github.com/tektoncd/pipeline/pkg/client/clientset/versioned"

	pacv1alpha1 "github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/client/clientset/versioned"
	"github.com/plumbline-ci/plumbline/pkg/credentials/webhooksecret"
	"github.com/plumbline-ci/plumbline/test/cluster"
	"github.com/plumbline-ci/plumbline/test/forge"
)

// appSecret is the Secret with the GitHub App's credentials.
const appSecret = "plumbline-github-app"

// Options of New.
type Options struct {
	Cluster *cluster.Cluster
	// Forge and App are nil and zero for an installation without a GitHub App.
	Forge    *forge.GitHub
	App      forge.App
	Programs Programs
	// Namespace is where Plumbline is installed; "plumbline" for the product's own, "" for one that
	// is made.
	Namespace string
	// Config are changes to ConfigMaps: name, key, value.
	Config [][3]string
	// Limited runs each process below the memory limit of its container in config/.
	Limited bool
}

// Installation is Plumbline installed in a namespace of a test cluster, with an App on a forge. Its
// processes are started by Receiver and Controller.
type Installation struct {
	Namespace string
	Cluster   *cluster.Cluster
	Forge     *forge.GitHub
	App       forge.App

	// Clients with all rights, for tests to look at and change things.
	Kube      kubernetes.Interface
	Tekton    tektonclient.Interface
	Plumbline versioned.Interface

	programs Programs
	limited  bool
	mu       sync.Mutex
	started  map[string]int // processes by component, for their names
	made     []*Process
}

// Programs are the built binaries.
type Programs struct{ Receiver, Controller string }

// New applies config/ and stores the App's credentials. It starts no process.
func New(ctx context.Context, o Options) (_ *Installation, err error) {
	if o.Namespace == "" {
		if o.Namespace, err = o.Cluster.CreateNamespace(ctx, product); err != nil {
			return nil, err
		}
	}
	i, err := Adopt(o.Cluster.RESTConfig(), o)
	if err != nil {
		return nil, err
	}
	objects, err := manifests()
	if err != nil {
		return nil, err
	}
	// The Git services of tests are on this machine.
	o.Config = append([][3]string{{"plumbline", "git-allowed-hosts", "127.0.0.1"}}, o.Config...)
	if o.Forge != nil {
		o.Config = append([][3]string{{"plumbline", "github-url", o.Forge.URL()}}, o.Config...)
	}
	for _, change := range o.Config {
		if err := Configure(objects, change[0], change[1], change[2]); err != nil {
			return nil, err
		}
	}
	move(objects, o.Namespace)
	if err := apply(ctx, o.Cluster, objects, func(kind string) bool { return kind != definitions }); err != nil {
		return nil, fmt.Errorf("applying config/: %w", err)
	}
	if err := i.shard(ctx); err != nil {
		return nil, err
	}
	if o.Forge == nil {
		return i, nil
	}
	return i, i.StoreApp(ctx)
}

// Adopt returns an installation whose manifests were applied by other means. Only processes need
// o.Cluster.
func Adopt(config *rest.Config, o Options) (*Installation, error) {
	i := &Installation{
		Namespace: o.Namespace,
		Cluster:   o.Cluster,
		Forge:     o.Forge,
		App:       o.App,
		programs:  o.Programs,
		limited:   o.Limited,
		started:   map[string]int{},
	}
	return i, i.clients(config)
}

// shard creates the Secrets for copies of webhook secrets in the state in which a controller
// leaves them after it copied the App's. So receivers become ready without a controller. Other
// tests cover how a controller makes them.
func (i *Installation) shard(ctx context.Context) error {
	app := webhooksecret.ID(pacv1alpha1.SecretKey{Namespace: i.Namespace, Name: appSecret, Key: webhooksecret.AppKey})
	for shard := range webhooksecret.Shards {
		secret := &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{
				Name: webhooksecret.ShardName(shard), Annotations: map[string]string{webhooksecret.CompleteAnnotation: "true"},
			},
			Data: map[string][]byte{},
		}
		if i.Forge != nil && shard == webhooksecret.ShardOf(app) {
			webhooksecret.Put(secret.Data, app, webhooksecret.Value{Current: []byte(i.App.WebhookSecret)})
		}
		if _, err := i.Kube.CoreV1().Secrets(i.Namespace).Create(ctx, secret, metav1.CreateOptions{}); err != nil &&
			!apierrors.IsAlreadyExists(err) {
			return fmt.Errorf("creating Secret %s: %w", secret.Name, err)
		}
	}
	return nil
}

// Define installs the CustomResourceDefinitions of config/, once a cluster.
func Define(ctx context.Context, c *cluster.Cluster) error {
	objects, err := manifests()
	if err != nil {
		return err
	}
	if err := apply(ctx, c, objects, func(kind string) bool { return kind == definitions }); err != nil {
		return fmt.Errorf("applying the CRDs: %w", err)
	}
	return nil
}

func (i *Installation) clients(config *rest.Config) (err error) {
	config.QPS, config.Burst = 500, 1000
	if i.Kube, err = kubernetes.NewForConfig(config); err != nil {
		return err
	}
	if i.Tekton, err = tektonclient.NewForConfig(config); err != nil {
		return err
	}
	i.Plumbline, err = versioned.NewForConfig(config)
	return err
}

// StoreApp creates the Secret with the App's credentials.
func (i *Installation) StoreApp(ctx context.Context) error {
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: appSecret, Namespace: i.Namespace},
		StringData: map[string]string{
			"github-application-id": strconv.FormatInt(i.App.ID, 10),
			"github-private-key":    i.App.PrivateKeyPEM,
			"webhook.secret":        i.App.WebhookSecret,
		},
	}
	_, err := i.Kube.CoreV1().Secrets(i.Namespace).Create(ctx, secret, metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("storing the App's credentials: %w", err)
	}
	return nil
}
