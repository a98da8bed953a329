// SPDX-License-Identifier: Apache-2.0

package migrate

import (
	"context"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-ci/plumbline/cmd/internal/preflight"
	"github.com/plumbline-ci/plumbline/cmd/plumb/internal/kube"
	"github.com/plumbline-ci/plumbline/cmd/plumb/internal/pac"
	pacv1alpha1 "github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/config"
)

// copies is what Plumbline lacks and PaC has.
type copies struct {
	// secrets are to be created in Plumbline's namespace.
	secrets []*corev1.Secret
	global  *pacv1alpha1.Repository
	// keys are those of PaC's ConfigMap.
	keys map[string]*string
}

// missing reads what PaC has and Plumbline lacks, and says what stays.
func (s *Start) missing(ctx context.Context, found *pac.Installation, cm *corev1.ConfigMap) (m copies, err error) {
	if m.keys, err = s.changedKeys(ctx, found, cm); err != nil {
		return m, err
	}
	app, err := s.secret(ctx, found, found.Secret, s.AppSecret,
		preflight.KeyAppID, preflight.KeyPrivateKey, preflight.KeyWebhookSecret)
	if err != nil {
		return m, err
	}
	if app != nil {
		m.secrets = append(m.secrets, app)
	}
	m.global, err = s.globalRepository(ctx, found)
	if m.global == nil || err != nil || m.global.Spec.GitProvider == nil {
		return m, err
	}
	service := m.global.Spec.GitProvider
	for _, named := range []*pacv1alpha1.Secret{service.Secret, service.WebhookSecret} {
		if named == nil || slices.ContainsFunc(m.secrets, func(s *corev1.Secret) bool { return s.Name == named.Name }) {
			continue
		}
		secret, err := s.secret(ctx, found, named.Name, named.Name)
		if err != nil {
			return m, err
		}
		if secret != nil {
			m.secrets = append(m.secrets, secret)
		}
	}
	return m, nil
}

// changedKeys returns the keys of PaC's ConfigMap whose values differ from what Plumbline does
// without them.
func (s *Start) changedKeys(
	ctx context.Context, found *pac.Installation, own *corev1.ConfigMap,
) (map[string]*string, error) {
	what := fmt.Sprintf("ConfigMap %s/%s", found.Namespace, found.ConfigMap)
	theirs, err := s.Cluster.Kube.CoreV1().ConfigMaps(found.Namespace).Get(ctx, found.ConfigMap, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		s.say("%s does not exist: no setting is copied", what)
		return nil, nil
	}
	if err != nil {
		return nil, kube.Failed("reading "+what, err)
	}
	all, wrong := config.New(theirs.Data)
	keys := map[string]*string{}
	for _, key := range slices.Sorted(maps.Keys(theirs.Data)) {
		value, rest := theirs.Data[key], maps.Clone(theirs.Data)
		delete(rest, key)
		without, _ := config.New(rest)
		switch ignored := config.Ignored(map[string]string{key: value}); {
		case len(ignored) > 0:
			s.say("Not copied: key %s, which has no effect here: %s", key, ignored[0].Instead)
		case wrong != nil && strings.Contains(wrong.Error(), strconv.Quote(key)):
			s.say("Not copied: key %s, whose value is not allowed here", key)
		case reflect.DeepEqual(all, without): // the default
		case own.Data[key] != "":
			s.say("Not copied: key %s, which ConfigMap %s/%s has already", key, own.Namespace, own.Name)
		default:
			keys[key] = &value
		}
	}
	return keys, nil
}

// secret returns a Secret of PaC as it is to be created in Plumbline's namespace, nil if Plumbline
// has one or PaC has none. Without keys, all keys are copied.
func (s *Start) secret(
	ctx context.Context, found *pac.Installation, theirs, own string, keys ...string,
) (*corev1.Secret, error) {
	here := fmt.Sprintf("Secret %s/%s", s.Namespace, own)
	_, err := s.Cluster.Kube.CoreV1().Secrets(s.Namespace).Get(ctx, own, metav1.GetOptions{})
	if err == nil {
		s.say("%s exists already and stays", here)
		return nil, nil
	}
	if !apierrors.IsNotFound(err) {
		return nil, kube.Failed("reading "+here, err)
	}
	there := fmt.Sprintf("Secret %s/%s", found.Namespace, theirs)
	from, err := s.Cluster.Kube.CoreV1().Secrets(found.Namespace).Get(ctx, theirs, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		s.say("%s does not exist, so %s is not created", there, here)
		return nil, nil
	}
	if err != nil {
		return nil, kube.Failed("reading "+there, err)
	}
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: own}, Data: map[string][]byte{}}
	for key, value := range from.Data {
		if len(keys) == 0 || slices.Contains(keys, key) {
			secret.Data[key] = value
		}
	}
	return secret, nil
}

// globalRepository returns PaC's global Repository as it is to be created in Plumbline's namespace,
// nil if Plumbline has one or PaC has none.
func (s *Start) globalRepository(ctx context.Context, found *pac.Installation) (*pacv1alpha1.Repository, error) {
	for _, at := range []metav1.ObjectMeta{
		{Namespace: s.Namespace, Name: s.Global}, {Namespace: found.Namespace, Name: found.Global},
	} {
		what := fmt.Sprintf("Repository %s/%s", at.Namespace, at.Name)
		known, err := s.Cluster.Own.PipelinesascodeV1alpha1().Repositories(at.Namespace).
			Get(ctx, at.Name, metav1.GetOptions{})
		switch {
		case apierrors.IsNotFound(err):
		case err != nil:
			return nil, kube.Failed("reading "+what, err)
		case at.Namespace == s.Namespace:
			s.say("%s exists already and stays", what)
			return nil, nil
		default:
			// Without its labels: a GitOps tool that tracks objects by a label would delete the copy.
			own := metav1.ObjectMeta{Namespace: s.Namespace, Name: s.Global}
			return &pacv1alpha1.Repository{ObjectMeta: own, Spec: known.Spec}, nil
		}
	}
	return nil, nil
}
