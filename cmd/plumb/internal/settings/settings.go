// SPDX-License-Identifier: Apache-2.0

// Package settings reads what an event is planned with: its Repository, the global one and the
// ConfigMap, from files or from a cluster.
package settings

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	pacv1alpha1 "github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/config"
	"github.com/plumbline-ci/plumbline/pkg/pipeline/template"
)

// Settings are what an event is planned with.
type Settings struct {
	// Repository is completed by the global one and by Params. It is nil until a file, the cluster
	// or a flag names one.
	Repository *pacv1alpha1.Repository
	Config     *config.Config
	// Warnings are keys of the ConfigMap that cannot be used: the controller ignores them, too.
	Warnings []string
	// Secret reads a Secret of the Repository's namespace; nil without a cluster.
	Secret func(ctx context.Context, ref template.SecretRef) (string, error)
}

// FromFiles reads a Repository and a ConfigMap, either of which may be nil. The namespace is that
// of a Repository that names none.
func FromFiles(repository, configMap []byte, namespace string) (*Settings, error) {
	s := &Settings{Config: config.Default()}
	if repository != nil {
		if err := s.readRepository(repository, namespace); err != nil {
			return nil, err
		}
	}
	if configMap != nil {
		if err := s.readConfig(configMap); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// configure takes the data of a ConfigMap.
func (s *Settings) configure(data map[string]string) {
	read, err := config.New(data)
	s.Config = read
	if err != nil {
		s.Warnings = append(s.Warnings, strings.Split(err.Error(), "\n")...)
	}
	s.Warnings = append(s.Warnings, config.DescribeIgnored(data)...)
}

// Serve sets a minimal Repository with the URL if there is none. It refuses a Repository with
// another URL, because the event is not for it.
func (s *Settings) Serve(url, namespace string) error {
	if s.Repository == nil {
		s.Repository = plain(url, namespace)
		return nil
	}
	if s.Repository.Spec.URL == "" || v1alpha1.SameURL(s.Repository.Spec.URL, url) {
		s.Repository.Spec.URL = cmp.Or(s.Repository.Spec.URL, url)
		return nil
	}
	return fmt.Errorf("the event is about %s, and Repository %s/%s is of %s: give the Repository of the event's URL",
		url, s.Repository.Namespace, s.Repository.Name, s.Repository.Spec.URL)
}

// defaultNamespace is where kubectl creates an object without a namespace.
const defaultNamespace = "default"

var notInName = regexp.MustCompile(`[^a-z0-9]+`)

// plain returns the Repository that README shows.
func plain(url, namespace string) *pacv1alpha1.Repository {
	last := url[strings.LastIndex(url, "/")+1:]
	name := strings.Trim(notInName.ReplaceAllString(strings.ToLower(last), "-"), "-")
	return &pacv1alpha1.Repository{
		ObjectMeta: metav1.ObjectMeta{Namespace: cmp.Or(namespace, defaultNamespace), Name: cmp.Or(name, "repository")},
		Spec:       pacv1alpha1.RepositorySpec{URL: url},
	}
}

// Override sets custom params (k=v). Each replaces all params of the Repository with the same name.
func (s *Settings) Override(params []string) error {
	for _, param := range params {
		name, value, found := strings.Cut(param, "=")
		if !found || name == "" {
			return fmt.Errorf("--param %q is not like --param tier=gold", param)
		}
		var kept []pacv1alpha1.Params
		if s.Repository.Spec.Params != nil {
			kept = slices.DeleteFunc(slices.Clone(*s.Repository.Spec.Params),
				func(p pacv1alpha1.Params) bool { return p.Name == name })
		}
		kept = append(kept, pacv1alpha1.Params{Name: name, Value: value})
		s.Repository.Spec.Params = &kept
	}
	return nil
}

// errEmpty is returned for a file without content.
var errEmpty = errors.New("it is empty")
