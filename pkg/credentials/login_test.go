// SPDX-License-Identifier: Apache-2.0

package credentials

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	pacv1alpha1 "github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/pkg/provider"
	"github.com/plumbline-ci/plumbline/pkg/provider/egress"
)

func named(name string) func(*pacv1alpha1.Repository) {
	return func(r *pacv1alpha1.Repository) {
		r.Spec.GitProvider = &pacv1alpha1.GitProvider{
			URL: "https://git.example", User: "me", Secret: &pacv1alpha1.Secret{Name: name},
		}
	}
}

// A login uses the right credentials at the right address.
func TestCredentialsOfALogin(t *testing.T) {
	t.Parallel()
	for service, want := range map[string]struct {
		base        string
		credentials provider.Credentials
	}{
		"app": {"https://ghe.example",
			provider.Credentials{AppID: 7, PrivateKey: []byte("pem"), InstallationID: 42, From: "secret plumbline/app"}},
		"own": {"https://git.example https://git.example/acme/app",
			provider.Credentials{User: "me", Token: "t", From: "key provider.token of secret team/token",
				Reach: egress.Policy{Refused: egress.Hosts{"203.0.0.0/8"}}}}, // a tenant named it
	} {
		r := newFixture(t)
		r.provide(named("token"))
		r.store(secret(tenant, "token", map[string]string{"provider.token": " t\n"}))
		if _, err := r.begin("e", service, "git.example").Connect(t.Context()); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff([]provider.Credentials{want.credentials}, r.logins) + cmp.Diff([]string{want.base},
			r.bases); diff != "" {
			t.Errorf("%s: %s", service, diff)
		}
	}
}

// The global Repository's token goes to the host that the global Repository names, not to the host
// of another Repository that uses it.
func TestEventMayUseTheGlobalToken(t *testing.T) {
	t.Parallel()
	r := newFixture(t)
	r.provide(func(own *pacv1alpha1.Repository) { own.Spec.GitProvider = &pacv1alpha1.GitProvider{} })
	global := &pacv1alpha1.Repository{ObjectMeta: metav1.ObjectMeta{Namespace: system, Name: "global"}}
	named("all")(global)
	r.must(r.cache.Add(global))
	r.store(secret(system, "all", map[string]string{"provider.token": "t"}))
	if _, err := r.begin("e", "own", "git.example").Connect(t.Context()); err != nil {
		t.Fatal(err)
	}
	want := []provider.Credentials{{User: "me", Token: "t", Shared: true,
		From:  "key provider.token of secret plumbline/all",
		Reach: egress.Policy{Trusted: "git.example:443"}}} // the administrator named it, so it may be anywhere
	if diff := cmp.Diff(want, r.logins) + cmp.Diff([]string{"https://git.example "}, r.bases); diff != "" {
		t.Error(diff)
	}
}

// A Repository's own strategy comes before that of the global one.
func TestLoginKnowsWhetherCommentsAreDisabled(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		own, global string
		want        bool
	}{
		"neither":                {"", "", false},
		"its own":                {"disable_all", "", true},
		"the global one's":       {"", "disable_all", true},
		"its own before":         {"update", "disable_all", false},
		"another one of its own": {"update", "", false},
		"its own before another": {"disable_all", "update", true},
	} {
		with := func(strategy string) *pacv1alpha1.Settings {
			if strategy == "" {
				return nil
			}
			comments := pacv1alpha1.CommentSettings{CommentStrategy: strategy}
			return &pacv1alpha1.Settings{Gitlab: &pacv1alpha1.GitlabSettings{CommentSettings: comments}}
		}
		r := newFixture(t)
		r.provide(func(own *pacv1alpha1.Repository) {
			named("token")(own)
			own.Spec.Settings = with(test.own)
		})
		global := &pacv1alpha1.Repository{ObjectMeta: metav1.ObjectMeta{Namespace: system, Name: "global"}}
		global.Spec.Settings = with(test.global)
		r.must(r.cache.Add(global))
		r.store(secret(tenant, "token", map[string]string{"provider.token": "t"}))
		if _, err := r.begin("e", "own", "git.example").Connect(t.Context()); err != nil {
			t.Fatal(err)
		}
		if len(r.logins) != 1 || r.logins[0].Quiet != test.want {
			t.Errorf("%s: logins %+v, want quiet %t", name, r.logins, test.want)
		}
	}
}

// Missing or wrong credentials are an Operator fault. It says what to do and has no value of the
// Secret. No login is tried.
func TestMissingCredentials(t *testing.T) {
	t.Parallel()
	const value = "hidden"
	app := func(data map[string]string) func(*fixture) {
		return func(r *fixture) { r.store(secret(system, "app", data)) }
	}
	own := func(name string, data map[string]string) func(*fixture) {
		return func(r *fixture) {
			r.provide(named(name))
			if data != nil {
				r.store(secret(tenant, name, data))
			}
		}
	}
	none := func(resource string, err error) func(*fixture) {
		return func(r *fixture) { r.provide(named("token")); failing(&r.kube.Fake, resource, err) }
	}
	elsewhere := func(r *fixture) {
		r.provide(func(own *pacv1alpha1.Repository) {
			own.Spec.GitProvider = &pacv1alpha1.GitProvider{URL: "https://b.example"}
		})
		global := &pacv1alpha1.Repository{ObjectMeta: metav1.ObjectMeta{Namespace: system, Name: "global"}}
		named("all")(global)
		r.must(r.cache.Add(global))
	}
	down, denied := apierrors.NewServiceUnavailable("down"),
		apierrors.NewForbidden(corev1.Resource("secrets"), "x", errors.New(`User "x" cannot get resource`))
	absent := apierrors.NewNotFound(corev1.Resource("secrets"), "x")
	for name, test := range map[string]struct {
		service string
		given   func(*fixture)
		reason  string
		says    string
		class   fault.Class
	}{
		"no Secret of the App": {"app", none("secrets", absent), fault.ReasonCredentialsMissing,
			"secret plumbline/app does not exist: create it with the keys github-application-id", fault.Operator},
		"no right to read it": {
			"app", none("secrets", denied), fault.ReasonForbidden, "reading the GitHub App's secret", fault.Operator,
		},
		"it cannot be read": {"app", none("secrets", down), "", "reading the GitHub App's secret", fault.Transient},
		"the App's without its key": {"app", app(map[string]string{keyAppID: "7"}), fault.ReasonCredentialsMissing,
			"no key github-private-key, or it is empty", fault.Operator},
		"the App's with an empty id": {"app", app(map[string]string{keyAppID: " ", keyPrivateKey: value}),
			fault.ReasonCredentialsMissing,
			"no key github-application-id, or it is empty", fault.Operator},
		"the App's with an id that is none": {"app", app(map[string]string{keyAppID: value, keyPrivateKey: value}),
			fault.ReasonCredentialsInvalid,
			"github-application-id is not a number", fault.Operator},
		"no Secret is named": {
			"own", func(*fixture) {}, fault.ReasonCredentialsMissing, "Repository team/app names no token", fault.Operator,
		},
		"the named one is absent": {"own", own("token", nil), fault.ReasonCredentialsMissing,
			"secret team/token does not exist: create it with the key provider.token", fault.Operator},
		"it has no such key": {"own", own("token", map[string]string{"other": value}), fault.ReasonCredentialsMissing,
			"secret team/token has no key provider.token", fault.Operator},
		"it cannot be read now": {
			"own", none("secrets", down), "", "reading the token of the Git service", fault.Transient,
		},
		"the token is for elsewhere": {"own", elsewhere, fault.ReasonCredentialsInvalid,
			"a token must not be sent where another namespace says", fault.Operator},
		"its Repository is gone": {"own", func(r *fixture) {
			r.provide(func(own *pacv1alpha1.Repository) { own.Spec.URL = "https://git.example/acme/other" })
		}, ReasonRepositoryGone,
			"Repository team/app is gone, and with it the credentials", fault.Operator},
		"the Repository cannot be read": {"own", func(r *fixture) {
			r.must(r.cache.Delete(repository()))
			failing(&r.pac.Fake, "repositories", down)
		}, "", "reading Repository team/app", fault.Transient},
		"the global one cannot be read": {"own", func(r *fixture) {
			r.provide(named("token"))
			failing(&r.pac.Fake, "repositories", down)
		}, "", "reading the global Repository plumbline/global", fault.Transient},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newFixture(t)
			test.given(r)
			_, err := r.begin("e", test.service, "git.example").Connect(t.Context())
			f := fault.Of(err)
			if f == nil || f.Class != test.class || test.reason != "" && f.Reason != test.reason {
				t.Fatalf("error %+v, want %s %s", f, test.class, test.reason)
			}
			if !strings.Contains(err.Error(), test.says) || strings.Contains(err.Error(), value) {
				t.Errorf("it says %q, want %q and no value", err, test.says)
			}
			if len(r.logins) != 0 {
				t.Error("logged in with nothing")
			}
		})
	}
}

func TestNamesSecret(t *testing.T) {
	t.Parallel()
	for reason, want := range map[string]bool{
		fault.ReasonCredentialsMissing: true, fault.ReasonCredentialsInvalid: true, fault.ReasonCredentialsRefused: true,
		fault.ReasonSecretMissing: true,
		fault.ReasonForbidden:     false, ReasonRepositoryGone: false, "": false,
	} {
		if NamesSecret(reason) != want {
			t.Errorf("%q: %t", reason, !want)
		}
	}
}
