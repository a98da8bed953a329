// SPDX-License-Identifier: Apache-2.0

package webhooksecret

import (
	"sync"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	pacv1alpha1 "github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode/v1alpha1"
	listers "github.com/plumbline-ci/plumbline/pkg/client/listers/pipelinesascode/v1alpha1"
	copies "github.com/plumbline-ci/plumbline/pkg/credentials/webhooksecret"
	"github.com/plumbline-ci/plumbline/pkg/store/informerhandler"
)

// named is a webhook secret, or the secret of an incoming rule, that is to be copied.
type named struct {
	key pacv1alpha1.SecretKey
	// by are the Repositories whose webhook secret it is.
	by []types.NamespacedName
}

// secret returns the name of the Secret.
func (n named) secret() types.NamespacedName {
	return types.NamespacedName{Namespace: n.key.Namespace, Name: n.key.Name}
}

// names collects the secrets that Repositories name for their webhooks and for POST /incoming.
type names struct {
	repositories listers.RepositoryLister
	global       types.NamespacedName
	app          pacv1alpha1.SecretKey
	// unread reports whether serve-namespaces cannot be read.
	unread func() bool

	mu         sync.Mutex
	shards     [copies.Shards]map[string]named // nil if a Repository has changed since
	incomplete bool                            // serve-namespaces could not be read, so there may be more
}

// in returns the secrets of a shard by ID. It also reports whether the list may be incomplete,
// because serve-namespaces cannot be read. The map is shared: do not change it.
func (n *names) in(shard int) (wanted map[string]named, incomplete bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.shards[shard] == nil {
		n.collect()
	}
	return n.shards[shard], n.incomplete
}

// collect reads all Repositories, but only after a change. Each takes some microseconds.
func (n *names) collect() {
	n.incomplete = n.unread != nil && n.unread()
	for shard := range n.shards {
		n.shards[shard] = map[string]named{}
	}
	add := func(key pacv1alpha1.SecretKey, by ...types.NamespacedName) {
		id := copies.ID(key)
		shard := n.shards[copies.ShardOf(id)]
		shard[id] = named{key: key, by: append(shard[id].by, by...)}
	}
	add(n.app)
	all, _ := n.repositories.List(labels.Everything()) // a cache's list cannot fail
	global := n.globalRepository()
	for _, repository := range all {
		if key, named := keyOf(repository, global); named {
			add(key, types.NamespacedName{Namespace: repository.Namespace, Name: repository.Name})
		}
		for _, rule := range pacv1alpha1.IncomingRules(repository, global) {
			if rule.Key.Name != "" {
				add(rule.Key) // the condition is about the webhook's secret
			}
		}
	}
}

// globalRepository returns the global Repository; nil if there is none.
func (n *names) globalRepository() *pacv1alpha1.Repository {
	global, err := n.repositories.Repositories(n.global.Namespace).Get(n.global.Name)
	if err != nil {
		return nil
	}
	return global
}

// keyOf returns the webhook secret of a Repository; false if it names none, or if its settings
// contradict each other, which the receiver reports.
func keyOf(repository, global *pacv1alpha1.Repository) (pacv1alpha1.SecretKey, bool) {
	service, err := pacv1alpha1.ServiceOf(repository, global)
	return service.Webhook, err == nil && service.Webhook.Name != ""
}

// changed drops what was collected.
func (n *names) changed() {
	n.mu.Lock()
	defer n.mu.Unlock()
	clear(n.shards[:])
}

// handler wakes the shards of secrets that a Repository names, or does not name any more.
func (n *names) handler(wake func(shard int)) cache.ResourceEventHandler {
	return informerhandler.ForPairs(func(before, after *pacv1alpha1.Repository) {
		if before == nil || after == nil || !equality.Semantic.DeepEqual(before.Spec.GitProvider, after.Spec.GitProvider) ||
			!equality.Semantic.DeepEqual(before.Spec.Incomings, after.Spec.Incomings) {
			n.moved(wake, before, after)
		}
	})
}

// moved wakes the shards of a Repository before and after a change; one of them may be nil. The
// global Repository affects all shards.
func (n *names) moved(wake func(shard int), repositories ...*pacv1alpha1.Repository) {
	n.changed()
	global := n.globalRepository()
	for _, repository := range repositories {
		if repository == nil {
			continue
		}
		if repository.Namespace == n.global.Namespace && repository.Name == n.global.Name {
			for shard := range copies.Shards {
				wake(shard)
			}
			return
		}
		if key, named := keyOf(repository, global); named {
			wake(copies.ShardOf(copies.ID(key)))
		}
		for _, rule := range pacv1alpha1.IncomingRules(repository, global) {
			if rule.Key.Name != "" {
				wake(copies.ShardOf(copies.ID(rule.Key)))
			}
		}
	}
}
