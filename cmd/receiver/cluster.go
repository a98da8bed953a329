// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"time"

	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	kubeinformers "k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/metadata/metadatainformer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"

	pacv1alpha1 "github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/client/clientset/versioned"
	informers "github.com/plumbline-ci/plumbline/pkg/client/informers/externalversions"
	"github.com/plumbline-ci/plumbline/pkg/config"
	"github.com/plumbline-ci/plumbline/pkg/credentials/webhooksecret"
	"github.com/plumbline-ci/plumbline/pkg/flowcontrol/quota"
	"github.com/plumbline-ci/plumbline/pkg/receiver"
	"github.com/plumbline-ci/plumbline/pkg/receiver/secrets"
	"github.com/plumbline-ci/plumbline/pkg/store/informerhandler"
	"github.com/plumbline-ci/plumbline/pkg/store/signal"
)

// resync is off: the caches watch everything they hold.
const resync time.Duration = 0

// cluster has the clients and caches of the API server. Claims, the ConfigMap, the copies of
// webhook secrets and the metadata of unsettled events are watched in the receiver's own namespace,
// Repositories in all namespaces.
type cluster struct {
	namespace string
	// configMap is the name of the ConfigMap with the settings.
	configMap string
	client    versioned.Interface
	// unverified makes the calls that unverified senders cause, with a rate limit of its own.
	unverified versioned.Interface
	kube       kubernetes.Interface
	logger     *zap.SugaredLogger
	config     *config.Store

	own, everywhere informers.SharedInformerFactory
	settings        kubeinformers.SharedInformerFactory
	// open has the metadata of unsettled events; budget adds up what they use.
	open   cache.SharedIndexInformer
	budget *quota.Ledger
	// counted reports whether budget has the events that existed at the start.
	counted cache.InformerSynced
	// configured reports whether the ConfigMap, if there is one, was read.
	configured cache.InformerSynced
	refresher  *secrets.Refresher
	// undelivered signals to the controllers that webhooks may be undelivered.
	undelivered *signal.Asker
	copies      *secrets.Copies
	waits       *waits
}

// newCluster makes no call.
func newCluster(cfg *rest.Config, namespace, configMap string, logger *zap.SugaredLogger) (*cluster, error) {
	client, err := versioned.NewForConfig(cfg)
	if err != nil {
		return nil, fmt.Errorf("making the client: %w", err)
	}
	kube, err := kubernetes.NewForConfig(cfg)
	if err != nil {
		return nil, fmt.Errorf("making the client for ConfigMaps and the copies of webhook secrets: %w", err)
	}
	unverified, err := versioned.NewForConfig(forUnverified(cfg))
	if err != nil {
		return nil, fmt.Errorf("making the client for unverified deliveries: %w", err)
	}
	objects, err := metadata.NewForConfig(cfg)
	if err != nil {
		return nil, fmt.Errorf("making the client for metadata: %w", err)
	}
	settings := config.NewStore(logger)
	refresher := secrets.NewRefresher(kube.CoreV1().ConfigMaps(namespace), clock.RealClock{}, logger)
	one := func(o *metav1.ListOptions) {
		// With the name as field selector, a Role that names the ConfigMap is enough.
		o.FieldSelector = fields.OneTermEqualSelector("metadata.name", configMap).String()
	}
	return &cluster{
		namespace:   namespace,
		configMap:   configMap,
		client:      client,
		unverified:  unverified,
		kube:        kube,
		logger:      logger,
		config:      settings,
		undelivered: signal.NewAsker(kube.CoreV1().ConfigMaps(namespace), logger),
		refresher:   refresher,
		copies:      secrets.New(refresher, clock.RealClock{}),
		own:         informers.NewSharedInformerFactoryWithOptions(client, resync, informers.WithNamespace(namespace)),
		everywhere:  informers.NewSharedInformerFactoryWithOptions(client, resync, informers.WithTransform(trim)),
		settings: kubeinformers.NewSharedInformerFactoryWithOptions(kube, resync,
			kubeinformers.WithNamespace(namespace), kubeinformers.WithTweakListOptions(one)),
		open: metadatainformer.NewFilteredMetadataInformer(
			objects, v1alpha1.SchemeGroupVersion.WithResource("gitevents"), namespace, resync,
			cache.Indexers{}, func(o *metav1.ListOptions) { o.FieldSelector = v1alpha1.OpenEvents }).
			Informer(),
		budget: quota.New(func() quota.Limits { return settings.Load().Open }, clock.RealClock{}, nil),
		waits:  newWaits(),
	}, nil
}

// forUnverified returns a client configuration with its own rate limit. Each delivery costs at most
// two reads: the claim and the Repository.
func forUnverified(cfg *rest.Config) *rest.Config {
	own := rest.CopyConfig(cfg)
	own.RateLimiter, own.QPS, own.Burst = nil, 2*receiver.UnverifiedQPS, 2*receiver.UnverifiedBurst
	return own
}

// start fills the caches in the background, and retries while the API server is down.
func (c *cluster) start(stop <-chan struct{}) error {
	registration, err := c.settings.Core().V1().ConfigMaps().Informer().AddEventHandler(c.settingsHandler())
	if err != nil {
		return fmt.Errorf("watching the ConfigMap: %w", err)
	}
	c.configured = registration.HasSynced // true once configure was called, which is later than the informer's HasSynced
	// A factory starts the informers that were requested from it.
	c.own.Plumbline().V1alpha1().RepositoryClaims().Informer()
	if err := c.repositories().AddIndexers(receiver.RepositoryIndexers()); err != nil {
		return fmt.Errorf("indexing Repositories: %w", err)
	}
	if err := c.count(); err != nil {
		return err
	}
	if err := c.watchSecrets(stop); err != nil {
		return err
	}
	if err := c.watchAll(); err != nil {
		return err
	}
	go c.open.Run(stop)
	go c.undelivered.Run(stop)
	go c.awaitReady(stop)
	c.settings.Start(stop)
	c.own.Start(stop)
	c.everywhere.Start(stop)
	return nil
}

// count adds up in budget the unsettled events that a watch shows.
func (c *cluster) count() error {
	if err := c.open.SetTransform(quota.Trim); err != nil {
		return fmt.Errorf("trimming unsettled GitEvents: %w", err)
	}
	registration, err := c.open.AddEventHandler(informerhandler.For(c.budget.Watched, c.budget.Deleted))
	if err != nil {
		return fmt.Errorf("watching unsettled GitEvents: %w", err)
	}
	c.counted = registration.HasSynced
	return nil
}

// watchSecrets watches the copies of webhook secrets, each Secret by its name, so that a Role that
// names them is enough.
func (c *cluster) watchSecrets(stop <-chan struct{}) error {
	set := func(object any) {
		if shard, ok := object.(*corev1.Secret); ok {
			c.copies.Set(shard)
		}
	}
	var informers []cache.SharedInformer
	for shard := range webhooksecret.Shards {
		one := cache.NewListWatchFromClient(c.kube.CoreV1().RESTClient(), "secrets", c.namespace,
			fields.OneTermEqualSelector("metadata.name", webhooksecret.ShardName(shard)))
		informer := cache.NewSharedInformer(one, &corev1.Secret{}, resync)
		_, err := informer.AddEventHandler(
			cache.ResourceEventHandlerFuncs{AddFunc: set, UpdateFunc: func(_, changed any) { set(changed) }},
		)
		if err != nil {
			return fmt.Errorf("watching the copies of webhook secrets: %w", err)
		}
		informers = append(informers, informer)
	}
	if err := c.waits.watch("Secrets with the copies of webhook secrets", synced(informers), informers...); err != nil {
		return err
	}
	for _, informer := range informers {
		go informer.Run(stop)
	}
	go c.refresher.Run(stop)
	return nil
}

func (c *cluster) repositories() cache.SharedIndexInformer {
	return c.everywhere.Pipelinesascode().V1alpha1().Repositories().Informer()
}

// settingsHandler applies changes of the ConfigMap. Deleting it changes nothing until the next
// start, as in the controllers.
func (c *cluster) settingsHandler() cache.ResourceEventHandler {
	return cache.ResourceEventHandlerFuncs{AddFunc: c.configure, UpdateFunc: func(_, changed any) { c.configure(changed) }}
}

func (c *cluster) configure(object any) {
	if cm, ok := object.(*corev1.ConfigMap); ok {
		c.config.OnConfigChanged(config.As(cm))
	}
}

// trim removes what the receiver does not need and what takes most of an idle Repository: the
// managed fields, the last applied configuration and the status.
func trim(object any) (any, error) {
	if o, ok := object.(metav1.Object); ok {
		o.SetManagedFields(nil)
		delete(o.GetAnnotations(), corev1.LastAppliedConfigAnnotation)
	}
	if repository, ok := object.(*pacv1alpha1.Repository); ok {
		repository.Status = pacv1alpha1.RepositoryStatus{}
	}
	return object, nil
}
