// SPDX-License-Identifier: Apache-2.0

package migrate

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"reflect"
	"slices"
	"strconv"
	"strings"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-ci/plumbline/cmd/internal/preflight"
	"github.com/plumbline-ci/plumbline/cmd/plumb/internal/kube"
	"github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode"
	pacv1alpha1 "github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/config"
)

// Start lets Plumbline run next to PaC, with no namespace moved yet.
type Start struct {
	Migration
	// URL is where PaC's controller listens; if it is empty, that is read from its Service.
	URL string
	// AppSecret and Global are the names of Plumbline's Secret of the GitHub App and of its global
	// Repository.
	AppSecret, Global string
}

// copies is what Plumbline lacks and PaC has.
type copies struct {
	// secrets are to be created in Plumbline's namespace.
	secrets []*corev1.Secret
	global  *pacv1alpha1.Repository
	// keys are those of PaC's ConfigMap.
	keys map[string]*string
}

// Run starts the migration.
func (s *Start) Run(ctx context.Context) error {
	pac, err := FindPaC(ctx, s.Cluster)
	if err != nil {
		return err
	}
	if err := s.check(ctx, pac); err != nil {
		return err
	}
	cm, err := s.settings(ctx)
	if err != nil {
		return err
	}
	s.say("Pipelines-as-Code is in namespace %s and listens on %s", pac.Namespace, s.URL)
	if _, err := s.keys(cm, nil); err != nil {
		return err
	}
	missing, err := s.missing(ctx, pac, cm)
	if err != nil {
		return err
	}
	if err := s.Cluster.CheckRights(ctx, s.rights(missing)); err != nil {
		return err
	}
	if err := s.copy(ctx, missing); err != nil {
		return err
	}
	changed, err := s.change(
		ctx,
		func(cm *corev1.ConfigMap) (map[string]*string, error) { return s.keys(cm, missing.keys) },
	)
	switch {
	case err != nil:
		return err
	case changed:
		s.say("ConfigMap %s/%s was changed: %s is set", s.Namespace, s.ConfigMap, keyPaC)
	default:
		s.say("ConfigMap %s/%s has %s already", s.Namespace, s.ConfigMap, keyPaC)
	}
	if changed && len(missing.keys) > 0 {
		s.say("Copied to it: %s", strings.Join(slices.Sorted(maps.Keys(missing.keys)), ", "))
	}
	s.next(cm)
	return nil
}

// check returns an error unless PaC runs and Plumbline is installed. It sets URL.
func (s *Start) check(ctx context.Context, pac *PaC) (err error) {
	if pac == nil {
		return errNoPaC
	}
	running := pac.Running()
	for _, name := range []string{pacController, pacWatcher} {
		if !slices.Contains(running, name) {
			return fmt.Errorf(
				"Deployment %s/%s does not run, so nothing serves the namespaces that have not moved: start it again",
				pac.Namespace,
				name,
			)
		}
	}
	if s.URL == "" {
		if s.URL, err = pac.Address(ctx, s.Cluster); err != nil {
			return err
		}
	}
	if u, err := url.Parse(
		s.URL,
	); err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" ||
		u.User != nil {
		return errors.New("--pac-url is not a URL that begins with http:// or https://, without a user or password")
	}
	for _, component := range []preflight.Component{preflight.Controller, preflight.Receiver} {
		_, err := s.Cluster.Kube.AppsV1().Deployments(s.Namespace).Get(ctx, string(component), metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return fmt.Errorf(
				"Deployment %s/%s does not exist: install Plumbline first, or name its namespace with --system-namespace",
				s.Namespace,
				component,
			)
		}
		if err != nil {
			return kube.Failed("reading Deployment "+string(component), err)
		}
	}
	return nil
}

// keys returns what is written to ConfigMap plumbline, besides the copied keys. Nothing is written
// if the migration has started already.
func (s *Start) keys(cm *corev1.ConfigMap, copied map[string]*string) (map[string]*string, error) {
	set, served := strings.TrimSpace(cm.Data[keyPaC]), strings.TrimSpace(cm.Data[keyNamespaces])
	what := fmt.Sprintf("ConfigMap %s/%s", s.Namespace, s.ConfigMap)
	switch {
	case set != "" && set != s.URL:
		return nil, fmt.Errorf(
			"%s has %s: %q, but Pipelines-as-Code listens on %s: correct the key, or give its value with --pac-url",
			what,
			keyPaC,
			set,
			s.URL,
		)
	case set != "" && served == "":
		return nil, fmt.Errorf("%s has %s and an empty %s, so Plumbline serves every namespace: set %s to %q",
			what, keyPaC, keyNamespaces, keyNamespaces, s.Namespace)
	case set == "" && served != "" && served != s.Namespace:
		return nil, fmt.Errorf("%s has %s: %q. A migration uses this key for the namespaces that have moved: "+
			"set it to %q, and then move these with plumb migrate namespace",
			what, keyNamespaces, served, s.Namespace)
	}
	keys := maps.Clone(copied)
	if set == "" {
		if keys == nil {
			keys = map[string]*string{}
		}
		keys[keyPaC], keys[keyNamespaces] = &s.URL, &s.Namespace
	}
	for key := range copied { // another client may have set it meanwhile
		if cm.Data[key] != "" {
			delete(keys, key)
		}
	}
	return keys, nil
}

// missing reads what PaC has and Plumbline lacks, and says what stays.
func (s *Start) missing(ctx context.Context, pac *PaC, cm *corev1.ConfigMap) (m copies, err error) {
	if m.keys, err = s.changedKeys(ctx, pac, cm); err != nil {
		return m, err
	}
	app, err := s.secret(ctx, pac, pac.Secret, s.AppSecret,
		preflight.KeyAppID, preflight.KeyPrivateKey, preflight.KeyWebhookSecret)
	if err != nil {
		return m, err
	}
	if app != nil {
		m.secrets = append(m.secrets, app)
	}
	m.global, err = s.globalRepository(ctx, pac)
	if m.global == nil || err != nil || m.global.Spec.GitProvider == nil {
		return m, err
	}
	service := m.global.Spec.GitProvider
	for _, named := range []*pacv1alpha1.Secret{service.Secret, service.WebhookSecret} {
		if named == nil || slices.ContainsFunc(m.secrets, func(s *corev1.Secret) bool { return s.Name == named.Name }) {
			continue
		}
		secret, err := s.secret(ctx, pac, named.Name, named.Name)
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
func (s *Start) changedKeys(ctx context.Context, pac *PaC, own *corev1.ConfigMap) (map[string]*string, error) {
	what := fmt.Sprintf("ConfigMap %s/%s", pac.Namespace, pac.ConfigMap)
	theirs, err := s.Cluster.Kube.CoreV1().ConfigMaps(pac.Namespace).Get(ctx, pac.ConfigMap, metav1.GetOptions{})
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
func (s *Start) secret(ctx context.Context, pac *PaC, theirs, own string, keys ...string) (*corev1.Secret, error) {
	here := fmt.Sprintf("Secret %s/%s", s.Namespace, own)
	_, err := s.Cluster.Kube.CoreV1().Secrets(s.Namespace).Get(ctx, own, metav1.GetOptions{})
	if err == nil {
		s.say("%s exists already and stays", here)
		return nil, nil
	}
	if !apierrors.IsNotFound(err) {
		return nil, kube.Failed("reading "+here, err)
	}
	there := fmt.Sprintf("Secret %s/%s", pac.Namespace, theirs)
	from, err := s.Cluster.Kube.CoreV1().Secrets(pac.Namespace).Get(ctx, theirs, metav1.GetOptions{})
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
func (s *Start) globalRepository(ctx context.Context, pac *PaC) (*pacv1alpha1.Repository, error) {
	for _, at := range []metav1.ObjectMeta{
		{Namespace: s.Namespace, Name: s.Global}, {Namespace: pac.Namespace, Name: pac.Global},
	} {
		what := fmt.Sprintf("Repository %s/%s", at.Namespace, at.Name)
		known, err := s.Cluster.Own.PipelinesascodeV1alpha1().
			Repositories(at.Namespace).
			Get(ctx, at.Name, metav1.GetOptions{})
		switch {
		case apierrors.IsNotFound(err):
		case err != nil:
			return nil, kube.Failed("reading "+what, err)
		case at.Namespace == s.Namespace:
			s.say("%s exists already and stays", what)
			return nil, nil
		default:
			return &pacv1alpha1.Repository{
				ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: s.Global, Labels: known.Labels}, Spec: known.Spec,
			}, nil
		}
	}
	return nil, nil
}

// rights returns the rights that copy and change use.
func (s *Start) rights(m copies) []authorizationv1.ResourceAttributes {
	all := []authorizationv1.ResourceAttributes{
		{Verb: "patch", Resource: "configmaps", Namespace: s.Namespace, Name: s.ConfigMap},
	}
	if len(m.secrets) > 0 {
		all = append(all, authorizationv1.ResourceAttributes{Verb: "create", Resource: "secrets", Namespace: s.Namespace})
	}
	if m.global != nil {
		all = append(all, authorizationv1.ResourceAttributes{
			Verb: "create", Group: pipelinesascode.GroupName, Resource: "repositories", Namespace: s.Namespace,
		})
	}
	return all
}

// copy creates what is missing. Objects that another call has created meanwhile stay.
func (s *Start) copy(ctx context.Context, m copies) error {
	for _, secret := range m.secrets {
		what := fmt.Sprintf("Secret %s/%s", secret.Namespace, secret.Name)
		_, err := s.Cluster.Kube.CoreV1().Secrets(s.Namespace).Create(ctx, secret, metav1.CreateOptions{})
		if err != nil && !apierrors.IsAlreadyExists(err) {
			return kube.Failed("creating "+what, err)
		}
		s.say("%s was created, with the keys %s", what, strings.Join(slices.Sorted(maps.Keys(secret.Data)), ", "))
	}
	if m.global != nil {
		what := fmt.Sprintf("Repository %s/%s", s.Namespace, m.global.Name)
		_, err := s.Cluster.Own.PipelinesascodeV1alpha1().
			Repositories(s.Namespace).
			Create(ctx, m.global, metav1.CreateOptions{})
		if err != nil && !apierrors.IsAlreadyExists(err) {
			return kube.Failed("creating "+what, err)
		}
		s.say("%s was created: the global Repository", what)
	}
	return nil
}

// next says what the administrator does now.
func (s *Start) next(cm *corev1.ConfigMap) {
	s.say(`
Next:
  1. Set the webhook URL of the GitHub App to %s
     This is needed once. Plumbline forwards the deliveries of namespaces that have not moved.
  2. Move a namespace: plumb migrate namespace NAMESPACE
     It also says which webhooks of GitLab projects are to be changed.`, receiverURL(cm))
}
