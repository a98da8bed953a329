// SPDX-License-Identifier: Apache-2.0

package resources

import (
	"cmp"
	"fmt"
	"net/url"
	"slices"
	"strings"

	pipelinev1 "github.com/tektoncd/pipeline/pkg/apis/pipeline/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode"
	pacv1alpha1 "github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline"
	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
)

const (
	// The keys of a git-auth secret, which authors' tasks copy into their home directory.
	keyGitConfig      = ".gitconfig"
	keyGitCredentials = ".git-credentials"
	keyProviderToken  = "git-provider-token"
	// keyFormerTokens holds the tokens before, one a line: pods may be using them, and they are
	// revoked with the last.
	keyFormerTokens = "former-tokens"
	// maxFormerTokens is how many of them are kept. With a renewal at half of a token's life the
	// last but one has expired; more than one works only after processes that were killed while
	// they wrote the secret.
	maxFormerTokens = 3
	// defaultUser is who git says it is when the service looks at the token only.
	defaultUser = "git"
	// urlAnnotation is the repository's URL on the secret.
	urlAnnotation = pipelinesascode.GroupName + "/url"
)

// SecretInput is everything a git-auth secret is made of.
type SecretInput struct {
	Event *v1alpha1.GitEvent
	// Repository owns the secret: it exists, and is in the same namespace.
	Repository *pacv1alpha1.Repository
	// Run is whose secret it is. Its PipelineRun owns the secret, too, once it is created.
	Run *v1alpha1.Run
	// Name is SecretName's, Namespace the Repository's.
	Name, Namespace string
	// Token clones the repository. It goes into the secret and nowhere else.
	Token string
	// Own is true when Token was minted for this run alone.
	Own bool
	// User goes with the token; "git" when empty.
	User string
}

// MakeGitAuthSecret returns the secret with which the pods of a run clone their repository. It is
// created before the run (D7), so that no pod waits for it. With two owners it goes when both are
// gone.
func MakeGitAuthSecret(in SecretInput) *corev1.Secret {
	project := in.Event.Spec.Project
	remote := cloneURL(in.Event.Spec)
	host := url.URL{Scheme: remote.Scheme, Host: remote.Host}
	remote.User = url.UserPassword(cmp.Or(in.User, defaultUser), in.Token)
	secret := &corev1.Secret{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"},
		ObjectMeta: metav1.ObjectMeta{
			Name:      in.Name,
			Namespace: in.Namespace,
			Labels: map[string]string{
				pipelinesascode.ManagedByLabel: pipelinesascode.ManagedBy,
				pipelinesascode.URLOrg:         labelValue(project.Owner),
				pipelinesascode.URLRepository:  labelValue(project.Name),
				plumbline.EventLabel:           labelValue(in.Event.Name),
				plumbline.InstallationLabel:    labelValue(in.Event.Namespace),
			},
			Annotations: map[string]string{
				urlAnnotation:                 project.URL,
				pipelinesascode.SHA:           in.Event.Spec.SHA,
				pipelinesascode.URLOrg:        project.Owner,
				pipelinesascode.URLRepository: project.Name,
			},
			OwnerReferences: []metav1.OwnerReference{{
				APIVersion: pacv1alpha1.SchemeGroupVersion.String(),
				Kind:       "Repository",
				Name:       in.Repository.Name,
				UID:        in.Repository.UID,
			}},
		},
		Type: corev1.SecretTypeOpaque,
		Data: map[string][]byte{
			keyGitConfig:      fmt.Appendf(nil, "\n\t[credential %q]\n\thelper=store\n\t", host.String()),
			keyGitCredentials: []byte(remote.String()),
			keyProviderToken:  []byte(in.Token),
		},
	}
	if in.Run.UID != "" {
		secret.OwnerReferences = append(secret.OwnerReferences, ownedBy(in.Run))
	}
	if in.Own {
		secret.Annotations[plumbline.TokenAnnotation] = plumbline.TokenOwn
	}
	return secret
}

// ownedBy makes a run's PipelineRun, which exists, an owner.
func ownedBy(run *v1alpha1.Run) metav1.OwnerReference {
	return metav1.OwnerReference{
		APIVersion: pipelinev1.SchemeGroupVersion.String(),
		Kind:       "PipelineRun",
		Name:       run.Name,
		UID:        run.UID,
	}
}

// ownersOf is the metadata of a patch of owners.
type ownersOf struct {
	OwnerReferences []metav1.OwnerReference `json:"ownerReferences"`
}

// AddRunOwnerPatch returns a strategic merge patch that adds a PipelineRun to the owners of its
// git-auth secret.
func AddRunOwnerPatch(run *v1alpha1.Run) []byte {
	return []byte(mustJSON(map[string]ownersOf{"metadata": {[]metav1.OwnerReference{ownedBy(run)}}}))
}

// SecretOwnedByRunPatch returns a JSON merge patch that gives a git-auth secret to its PipelineRun
// alone: it goes when that is deleted. The tokens of a revoked one are taken out. Its keys stay, so
// that whatever mounts them starts, and git asks without a token.
func SecretOwnedByRunPatch(run *v1alpha1.Run, revoked bool) []byte {
	patch := struct {
		Metadata ownersOf           `json:"metadata"`
		Data     map[string]*[]byte `json:"data,omitempty"`
	}{Metadata: ownersOf{[]metav1.OwnerReference{ownedBy(run)}}}
	if revoked {
		patch.Data = map[string]*[]byte{keyGitCredentials: {}, keyProviderToken: {}, keyFormerTokens: nil}
	}
	return []byte(mustJSON(patch))
}

// Foreign reports whether another installation than this one has made a secret.
func Foreign(secret *corev1.Secret, installation string) bool {
	by := secret.Labels[plumbline.InstallationLabel]
	return by != "" && by != installation
}

// IsOwnedByRunAlone reports whether a secret is its PipelineRun's own, and its event is done with
// it.
func IsOwnedByRunAlone(secret *corev1.Secret, run *v1alpha1.Run) bool {
	owners := secret.OwnerReferences
	return run.UID != "" && len(owners) == 1 && owners[0].UID == run.UID
}

// OwnTokens returns the tokens of a git-auth secret that were minted for its run, the newest first;
// none if they were not.
func OwnTokens(secret *corev1.Secret) []string {
	if secret.Annotations[plumbline.TokenAnnotation] != plumbline.TokenOwn {
		return nil
	}
	all := strings.Fields(string(secret.Data[keyProviderToken]) + "\n" + string(secret.Data[keyFormerTokens]))
	return all[:min(len(all), 1+maxFormerTokens)] // a user who may write the secret may have added to it
}

// KeepTokens adds to a secret the tokens of the one that it replaces.
func KeepTokens(secret, before *corev1.Secret) {
	former := slices.DeleteFunc(OwnTokens(before),
		func(token string) bool { return token == string(secret.Data[keyProviderToken]) })
	if len(former) == 0 {
		return
	}
	secret.Data[keyFormerTokens] = []byte(strings.Join(former[:min(len(former), maxFormerTokens)], "\n"))
}

// cloneURL is the URL the credential is for. One that names another host than the event's, or that
// cannot be read, is not given a credential: the repository's web URL is taken instead.
func cloneURL(spec v1alpha1.GitEventSpec) url.URL {
	for _, raw := range []string{spec.Project.CloneURL, spec.Project.URL} {
		parsed, err := url.Parse(raw)
		if err == nil && (parsed.Scheme == "https" || parsed.Scheme == "http") && strings.EqualFold(parsed.Host, spec.Host) {
			return url.URL{Scheme: parsed.Scheme, Host: parsed.Host, Path: parsed.Path}
		}
	}
	return url.URL{Scheme: "https", Host: spec.Host, Path: "/" + spec.Project.Owner + "/" + spec.Project.Name}
}
