// SPDX-License-Identifier: Apache-2.0

// Command kube-controllers is kube-controller-manager with the few controllers that the test
// cluster needs, made as kube-controller-manager makes them, and without what the others need to be
// built. There is one; it elects nobody.
package main

import (
	"context"
	"flag"
	"net/http"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apiserver/pkg/quota/v1/generic"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/metadata/metadatainformer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
	"k8s.io/client-go/scale"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/controller-manager/pkg/informerfactory"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/controller/clusterroleaggregation"
	"k8s.io/kubernetes/pkg/controller/disruption"
	"k8s.io/kubernetes/pkg/controller/garbagecollector"
	"k8s.io/kubernetes/pkg/controller/namespace"
	"k8s.io/kubernetes/pkg/controller/resourcequota"
	"k8s.io/kubernetes/pkg/controller/serviceaccount"
	quota "k8s.io/kubernetes/pkg/quota/v1/install"
)

const (
	resync = 12 * time.Hour   // of informers
	again  = 5 * time.Minute  // namespaces and quotas are looked at without a change
	look   = 30 * time.Second // for kinds that are new
)

func main() {
	kubeconfig := flag.String("kubeconfig", "", "the administrator's")
	address := flag.String("address", "", "answers 200 when the controllers are started")
	flag.Parse()
	config, err := clientcmd.BuildConfigFromFlags("", *kubeconfig)
	must(err)
	config.QPS = -1 // no limit: the server decides
	must(run(context.Background(), config))
	must(http.ListenAndServe(*address, http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})))
}

func must(err error) {
	if err != nil {
		klog.Fatal(err)
	}
}

// parts are what the controllers share.
type parts struct {
	config   *rest.Config
	client   kubernetes.Interface
	metadata metadata.Interface
	mapper   *restmapper.DeferredDiscoveryRESTMapper
	typed    informers.SharedInformerFactory
	any      informerfactory.InformerFactory
	started  chan struct{}
}

func run(ctx context.Context, config *rest.Config) error {
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	meta, err := metadata.NewForConfig(config)
	if err != nil {
		return err
	}
	p := &parts{config: config, client: client, metadata: meta, started: make(chan struct{})}
	p.typed = informers.NewSharedInformerFactory(client, resync)
	untyped := metadatainformer.NewSharedInformerFactory(meta, resync)
	p.any = informerfactory.NewInformerFactory(p.typed, untyped)
	p.mapper = restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(client.Discovery()))
	go wait.UntilWithContext(ctx, func(context.Context) { p.mapper.Reset() }, look)
	for _, start := range []func(context.Context) error{p.accounts, p.garbage, p.namespaces, p.quotas, p.roles, p.disruption} {
		if err := start(ctx); err != nil {
			return err
		}
	}
	p.typed.Start(ctx.Done())
	untyped.Start(ctx.Done())
	close(p.started)
	return nil
}

func (p *parts) accounts(ctx context.Context) error {
	core := p.typed.Core().V1()
	c, err := serviceaccount.NewServiceAccountsController(klog.FromContext(ctx), core.ServiceAccounts(), core.Namespaces(),
		p.client, serviceaccount.DefaultServiceAccountsControllerOptions())
	if err == nil {
		go c.Run(ctx, 1)
	}
	return err
}

func (p *parts) garbage(ctx context.Context) error {
	c, err := garbagecollector.NewGarbageCollector(ctx, p.client, p.metadata, p.mapper,
		garbagecollector.DefaultIgnoredResources(), p.any, p.started)
	if err == nil {
		go c.Run(ctx, 5, look)
		go c.Sync(ctx, p.client.Discovery(), look)
	}
	return err
}

func (p *parts) namespaces(ctx context.Context) error {
	c := namespace.NewNamespaceController(ctx, p.client, p.metadata, p.client.Discovery().ServerPreferredNamespacedResources,
		p.typed.Core().V1().Namespaces(), again, corev1.FinalizerKubernetes)
	go c.Run(ctx, 10)
	return nil
}

func (p *parts) quotas(ctx context.Context) error {
	discover := p.client.Discovery().ServerPreferredNamespacedResources
	how := quota.NewQuotaConfigurationForControllers(generic.ListerFuncForResourceFunc(p.typed.ForResource), p.typed)
	c, err := resourcequota.NewController(ctx, &resourcequota.ControllerOptions{
		QuotaClient:               p.client.CoreV1(),
		ResourceQuotaInformer:     p.typed.Core().V1().ResourceQuotas(),
		ResyncPeriod:              func() time.Duration { return again },
		InformerFactory:           p.any,
		ReplenishmentResyncPeriod: func() time.Duration { return resync },
		DiscoveryFunc:             discover,
		IgnoredResourcesFunc:      how.IgnoredResources,
		InformersStarted:          p.started,
		Registry:                  generic.NewRegistry(how.Evaluators()),
		UpdateFilter:              quota.DefaultUpdateFilter(),
	})
	if err == nil {
		go c.Run(ctx, 5)
		go c.Sync(ctx, discover, look)
	}
	return err
}

func (p *parts) roles(ctx context.Context) error {
	c := clusterroleaggregation.NewClusterRoleAggregation(p.typed.Rbac().V1().ClusterRoles(), p.client.RbacV1())
	go c.Run(ctx, 5)
	return nil
}

func (p *parts) disruption(ctx context.Context) error {
	discovery := p.client.Discovery()
	scales, err := scale.NewForConfig(p.config, p.mapper, dynamic.LegacyAPIPathResolverFunc, scale.NewDiscoveryScaleKindResolver(discovery))
	if err != nil {
		return err
	}
	core, apps := p.typed.Core().V1(), p.typed.Apps().V1()
	c := disruption.NewDisruptionController(ctx, core.Pods(), p.typed.Policy().V1().PodDisruptionBudgets(), core.ReplicationControllers(),
		apps.ReplicaSets(), apps.Deployments(), apps.StatefulSets(), p.client, p.mapper, scales, discovery)
	go c.Run(ctx)
	return nil
}
