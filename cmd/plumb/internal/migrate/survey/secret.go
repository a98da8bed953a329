// SPDX-License-Identifier: Apache-2.0

package survey

import (
	"context"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	pacv1alpha1 "github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/provider/github"
	"github.com/plumbline-ci/plumbline/pkg/provider/gitlab"
)

// credentials reports Secrets that events would wait for.
func (s *surveyor) credentials(ctx context.Context, m *moving) error {
	page, title := pageOfGitLab, "GitLab"
	if m.service() == github.Name {
		page, title = pageOfWebhook, "GitHub"
	}
	if m.service() == gitlab.Name || m.service() == github.Name && !m.byApp() {
		if err := s.tokenSecrets(ctx, m, page, title); err != nil {
			return err
		}
	}
	if m.Spec.Params == nil {
		return nil
	}
	for _, param := range *m.Spec.Params {
		if ref := param.SecretRef; ref != nil && param.Value == "" {
			key := pacv1alpha1.SecretKey{Namespace: m.Namespace, Name: ref.Name, Key: ref.Key}
			if err := s.secretKey(ctx, m, key, "a param", " of param "+param.Name); err != nil {
				return err
			}
		}
	}
	return nil
}

// tokenSecrets reports the Secrets of a Repository that no App serves.
func (s *surveyor) tokenSecrets(ctx context.Context, m *moving, page, title string) error {
	service, wrong := pacv1alpha1.ServiceOf(m.own, m.global)
	if wrong != nil {
		s.add(Finding{Kind: Blocks, Topic: Repositories, Says: wrong.Error(), Page: page}, m.name(), m.name())
		return nil //nolint:nilerr // the finding reports it
	}
	for _, key := range []struct {
		pacv1alpha1.SecretKey
		field, use string
	}{
		{service.Token, "git_provider.secret", "the token of " + title},
		{service.Webhook, "git_provider.webhook_secret", "the secret token of the webhook"},
	} {
		if key.Name == "" {
			s.add(Finding{
				Kind: Blocks, Topic: Repositories, Page: page,
				Says:   fmt.Sprintf("%s names no Secret, and %s is needed", key.field, key.use),
				Remedy: "create the Secret, and name it there",
			}, m.name(), m.name())
			continue
		}
		if err := s.secretKey(ctx, m, key.SecretKey, key.use, ""); err != nil {
			return err
		}
	}
	return nil
}

// secretKey reports a Secret or key that does not exist. use is what it is for, and of what else is
// said of the Secret.
func (s *surveyor) secretKey(ctx context.Context, m *moving, key pacv1alpha1.SecretKey, use, of string) error {
	where := key.Namespace + "/" + key.Name
	secret, err := s.cluster.Kube.CoreV1().Secrets(key.Namespace).Get(ctx, key.Name, metav1.GetOptions{})
	says := ""
	switch {
	case apierrors.IsNotFound(err):
		says = "the Secret for " + use + " does not exist"
	case err != nil:
		return s.unlessForbidden("reading Secret "+where, err)
	case strings.TrimSpace(string(secret.Data[key.Key])) == "":
		says = "the Secret for " + use + " has no key " + key.Key + ", or it is empty"
	default:
		return nil
	}
	s.add(Finding{
		Kind: Blocks, Topic: Repositories, Says: says,
		Remedy: "events wait for it: create it, or remove the field that names it",
	}, m.name(), m.name()+" (Secret "+where+of+")")
	return nil
}
