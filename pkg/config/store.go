// SPDX-License-Identifier: Apache-2.0

package config

import (
	"context"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"knative.dev/pkg/configmap"
)

// Store holds the current configuration. Until the ConfigMap has been read, that is Default.
type Store struct {
	*configmap.UntypedStore
	// OpenShift returns the URL of the cluster's own console, "" if none was found. It is set
	// before the first use, and may be nil.
	OpenShift func() string
}

// NewStore returns a store to be filled by WatchConfigs. Each update with bad keys logs one error;
// the bad keys keep their previous values. It also logs the keys of Pipelines-as-Code that have no
// effect. onAfterStore is called with the ConfigMap's name and the *Config.
func NewStore(logger configmap.Logger, onAfterStore ...func(name string, value any)) *Store {
	s := &Store{}
	// An error of the constructor would make knative's store exit the process at the first
	// ConfigMap.
	construct := func(cm *corev1.ConfigMap) (*Config, error) {
		c, err := parse(cm.Data, s.Load())
		c.Namespaces.own = cm.Namespace
		if err != nil {
			logger.Errorf("ConfigMap %s/%s: these keys keep their previous values: %v", cm.Namespace, nameOf(cm), err)
		}
		for _, line := range DescribeIgnored(cm.Data) {
			logger.Infof("ConfigMap %s/%s: %s", cm.Namespace, nameOf(cm), line)
		}
		return c, nil
	}
	s.UntypedStore = configmap.NewUntypedStore(Name, logger, configmap.Constructors{Name: construct}, onAfterStore...)
	return s
}

// Load returns the current configuration.
func (s *Store) Load() *Config {
	c, ok := s.UntypedLoad(Name).(*Config)
	if !ok {
		c = Default()
	}
	if s.OpenShift == nil {
		return c
	}
	url := s.OpenShift()
	if _, problem := parseWeb(url); problem != "" {
		return c
	}
	found := *c
	found.Console.openShift = strings.TrimRight(url, "/")
	return &found
}

type contextKey struct{}

// ToContext freezes the current configuration in the context of one reconcile.
func (s *Store) ToContext(ctx context.Context) context.Context {
	return ToContext(ctx, s.Load())
}

// ToContext puts a configuration into a context.
func ToContext(ctx context.Context, c *Config) context.Context {
	return context.WithValue(ctx, contextKey{}, c)
}

// FromContext returns the configuration that ToContext put there, Default if none was.
func FromContext(ctx context.Context) *Config {
	c, ok := ctx.Value(contextKey{}).(*Config)
	if !ok {
		return Default()
	}
	return c
}
