// SPDX-License-Identifier: Apache-2.0

package migrate

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/plumbline-ci/plumbline/cmd/internal/preflight"
	"github.com/plumbline-ci/plumbline/cmd/plumb/internal/kube"
	"github.com/plumbline-ci/plumbline/cmd/plumb/internal/pac"
	"github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode"
	pacv1alpha1 "github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode/v1alpha1"
)

// exemptTimeout is how long API servers may call PaC's webhook after exempt has changed it.
const exemptTimeout = 10 * time.Second

// Start lets Plumbline run next to PaC, with no namespace moved yet.
type Start struct {
	Migration
	// URL is where PaC's controller listens; if it is empty, that is read from its Service.
	URL string
	// AppSecret and Global are the names of Plumbline's Secret of the GitHub App and of its global
	// Repository.
	AppSecret, Global string
}

// Run starts the migration.
func (s *Start) Run(ctx context.Context) error {
	found, err := pac.Find(ctx, s.Cluster.Kube)
	if err != nil {
		return err
	}
	if err := s.check(ctx, found); err != nil {
		return err
	}
	cm, err := s.settings(ctx)
	if err != nil {
		return err
	}
	s.say("Pipelines-as-Code is in namespace %s and listens on %s", found.Namespace, s.URL)
	if _, err := s.keys(cm, nil); err != nil {
		return err
	}
	if err := s.servesNone(ctx, cm); err != nil {
		return err
	}
	for _, other := range found.Additional {
		s.say("Deployment %s/%s is an additional controller, with the GitHub App of Secret %s. Plumbline serves one App: "+
			"its Repositories have to use the App of Secret %s", other.Namespace, other.Deployment, other.Secret, found.Secret)
	}
	missing, err := s.missing(ctx, found, cm)
	if err != nil {
		return err
	}
	if err := s.Cluster.CheckRights(ctx, s.rights(missing)); err != nil {
		return err
	}
	if err := s.copy(ctx, missing); err != nil {
		return err
	}
	return s.begin(ctx, cm, missing)
}

// servesNone returns an error if a migration would start by giving Repositories back to PaC.
func (s *Start) servesNone(ctx context.Context, cm *corev1.ConfigMap) error {
	if strings.TrimSpace(cm.Data[keyPaC]) != "" {
		return nil
	}
	claims, err := s.claims(ctx)
	if err != nil {
		return err
	}
	var served []string
	for _, claim := range claims {
		if owner := claim.Spec.Repository; claim.Status.ReleasedAt == nil && owner.Namespace != s.Namespace {
			served = append(served, owner.Namespace+"/"+owner.Name)
		}
	}
	if len(served) == 0 {
		return nil
	}
	return fmt.Errorf("the Repositories that Plumbline serves would all return to Pipelines-as-Code, for example %s. "+
		"To go back, see docs/migration.md#go-back", slices.Min(served))
}

// begin sets the keys of the migration.
func (s *Start) begin(ctx context.Context, cm *corev1.ConfigMap, missing copies) error {
	changed, err := s.change(ctx,
		func(cm *corev1.ConfigMap) (map[string]*string, error) { return s.keys(cm, missing.keys) })
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
func (s *Start) check(ctx context.Context, found *pac.Installation) (err error) {
	if found == nil {
		return errors.New("no Deployment " + pac.ControllerName + " is in this cluster, so there is nothing to move from: " +
			"check the kubeconfig's context")
	}
	if stopped := found.Stopped(); stopped != "" {
		return fmt.Errorf("the Deployment %s/%s does not run, so nothing serves the namespaces that have not moved: "+
			"start it again", found.Namespace, stopped)
	}
	if s.URL == "" {
		if s.URL, err = found.Address(ctx, s.Cluster.Kube); err != nil {
			return err
		}
	}
	if u, err := url.Parse(s.URL); err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" ||
		u.User != nil {
		return errors.New("--pac-url is not a URL that begins with http:// or https://, without a user or password")
	}
	return s.installed(ctx)
}

// installed returns an error unless Plumbline is installed.
func (s *Start) installed(ctx context.Context) error {
	for _, component := range []preflight.Component{preflight.Controller, preflight.Receiver} {
		_, err := s.Cluster.Kube.AppsV1().Deployments(s.Namespace).Get(ctx, string(component), metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return fmt.Errorf("the Deployment %s/%s does not exist: install Plumbline first, or name its namespace with "+
				"--system-namespace", s.Namespace, component)
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
		return nil, fmt.Errorf("%s has %s: %q, but Pipelines-as-Code listens on %s: correct the key, or give its value "+
			"with --pac-url", what, keyPaC, set, s.URL)
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

// rights returns the rights that copy and change use.
func (s *Start) rights(m copies) []authorizationv1.ResourceAttributes {
	all := []authorizationv1.ResourceAttributes{
		{Verb: "patch", Resource: "configmaps", Namespace: s.Namespace, Name: s.ConfigMap},
	}
	for _, verb := range []string{"get", "update"} {
		all = append(all, authorizationv1.ResourceAttributes{
			Verb: verb, Group: admissionv1.GroupName, Resource: "validatingwebhookconfigurations", Name: pacWebhookConfig,
		})
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

// copy creates what is missing, in the namespace that PaC's webhook no longer checks. Objects that
// another call has created meanwhile stay.
func (s *Start) copy(ctx context.Context, m copies) error {
	if err := s.exempt(ctx); err != nil {
		return err
	}
	for _, secret := range m.secrets {
		what := fmt.Sprintf("Secret %s/%s", secret.Namespace, secret.Name)
		_, err := s.Cluster.Kube.CoreV1().Secrets(s.Namespace).Create(ctx, secret, metav1.CreateOptions{})
		if err != nil && !apierrors.IsAlreadyExists(err) {
			return kube.Failed("creating "+what, err)
		}
		s.say("%s was created, with the keys %s", what, strings.Join(slices.Sorted(maps.Keys(secret.Data)), ", "))
	}
	if m.global == nil {
		return nil
	}
	what := fmt.Sprintf("Repository %s/%s", s.Namespace, m.global.Name)
	if err := s.createGlobal(ctx, m.global); err != nil && !apierrors.IsAlreadyExists(err) {
		return kube.Failed("creating "+what, err)
	}
	s.say("%s was created: the global Repository", what)
	return nil
}

// createGlobal creates the global Repository. API servers learn by a watch that PaC's webhook does
// not check Plumbline's namespace any more, so it may still refuse the Repository for a moment.
func (s *Start) createGlobal(ctx context.Context, global *pacv1alpha1.Repository) (err error) {
	_ = wait.PollUntilContextTimeout(ctx, s.Poll, exemptTimeout, true, func(ctx context.Context) (bool, error) {
		_, err = s.Cluster.Own.PipelinesascodeV1alpha1().Repositories(s.Namespace).
			Create(ctx, global, metav1.CreateOptions{})
		// Only the text of a denial names the webhook: its code and reason are those of every webhook.
		return err == nil || !strings.Contains(err.Error(), pacWebhookConfig), nil
	})
	return err
}

// next says what the administrator does now.
func (s *Start) next(cm *corev1.ConfigMap) {
	s.say(`
Next:
  1. Set the webhook URL of the GitHub App to %s
     This is needed once. Plumbline forwards the deliveries of namespaces that have not moved.
  2. Move a namespace: plumb migrate namespace NAMESPACE
     It also says which repositories have webhooks of their own, which are to be changed.`, receiverURL(cm))
}
