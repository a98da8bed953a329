// SPDX-License-Identifier: Apache-2.0

package command

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-ci/plumbline/cmd/plumb/internal/delivery"
	"github.com/plumbline-ci/plumbline/cmd/plumb/internal/onboard"
	"github.com/plumbline-ci/plumbline/pkg/provider/github"
	"github.com/plumbline-ci/plumbline/pkg/provider/gitlab"
)

const createLong = `Creates a Repository, so that Plumbline runs the pipelines of a Git repository in a namespace.

With an access token, for GitLab or for GitHub without an App, it also creates a Secret with the token, after the Git
service has accepted it, and with the webhook's secret. plumb webhook add then adds the webhook. What exists already
stays.`

const createExample = `  plumb create repository --url https://github.com/acme/app --namespace team-a
  plumb create repository --url https://gitlab.com/acme/app --namespace team-a --token-file token.txt
  pass show gitlab/app | plumb create repository --url https://gitlab.com/acme/app -n team-a --token-file -`

// onboardFlags are those of plumb create repository and of plumb webhook.
type onboardFlags struct {
	target
	onboard.Repository
	service, tokenFile, webhookFile, webhookURL string
}

// namespaceFlag adds the flag for the Repository's namespace.
func (f *onboardFlags) namespaceFlag(c *cobra.Command) {
	c.Flags().StringVarP(&f.Namespace, "namespace", "n", "", "`namespace` of the Repository (default: the kubeconfig's)")
}

func (p Process) createRepository() *cobra.Command {
	f := &onboardFlags{}
	c := &cobra.Command{
		Use: "repository [NAME]", Short: "Create a Repository", Long: createLong, Example: createExample,
		Args: func(c *cobra.Command, args []string) error {
			if len(args) > 1 {
				return fmt.Errorf("%q is one name too many: give one Repository at a time", args[1])
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error {
			f.Name = strings.Join(args, "")
			return p.runCreate(c.Context(), f)
		},
	}
	flags := c.Flags()
	flags.SortFlags = false
	flags.StringVar(&f.URL, "url", "", "web `URL` of the repository (required)")
	f.namespaceFlag(c)
	flags.StringVar(&f.service, "provider", "",
		"Git `service`: github or gitlab (default: as the host's name says; else gitlab with a token, and github without)")
	flags.StringVar(&f.GitLabURL, "gitlab-url", "", "`URL` of a GitLab that is not at the root of the host")
	flags.StringVar(&f.tokenFile, "token-file", "", "`file` with the access token, - for standard input")
	flags.StringVar(&f.webhookFile, "webhook-secret-file", "",
		"`file` with the webhook's secret token (default: generated)")
	f.define(c)
	return c
}

// provider decides which Git service is meant.
func (f *onboardFlags) provider() error {
	if f.service == "" {
		u, err := url.Parse(f.URL)
		named := func(service string) bool { return err == nil && strings.Contains(u.Hostname(), service) }
		f.GitLab = f.GitLabURL != "" || named(gitlab.Name) || f.tokenFile != "" && !named(github.Name)
		return nil
	}
	f.GitLab = f.service == gitlab.Name
	switch {
	case f.service != gitlab.Name && f.service != github.Name:
		return fmt.Errorf("--provider %q is not one of %s", f.service, strings.Join(delivery.Names(), ", "))
	case !f.GitLab && f.GitLabURL != "":
		return errors.New("--gitlab-url is for GitLab, and --provider is github")
	}
	return nil
}

// readSecrets reads the secrets that are given in files.
func (p Process) readSecrets(f *onboardFlags) (err error) {
	switch {
	case f.webhookFile != "" && f.tokenFile == "":
		return errors.New("--webhook-secret-file needs --token-file: both are stored in one Secret")
	case f.tokenFile == stdin && f.webhookFile == stdin:
		return errTwoFromStdin
	}
	if f.Token, err = p.secretFrom("token-file", f.tokenFile); err != nil {
		return err
	}
	f.WebhookSecret, err = p.secretFrom("webhook-secret-file", f.webhookFile)
	return err
}

func (p Process) runCreate(ctx context.Context, f *onboardFlags) error {
	if f.URL == "" {
		return errors.New("--url is missing: give the address of the repository's page")
	}
	if err := f.provider(); err != nil {
		return err
	}
	if err := f.Check(); err != nil {
		return err
	}
	if err := p.readSecrets(f); err != nil {
		return err
	}
	cluster, err := f.Connect()
	if err != nil {
		return err
	}
	f.Namespace = cmp.Or(f.Namespace, cluster.Namespace)
	if err := f.Create(ctx, cluster, p.tell); err != nil {
		return err
	}
	if f.Token != "" {
		p.tell("Now add the webhook: plumb webhook add %s --namespace %s", f.Name, f.Namespace)
	}
	return nil
}

const webhookAddLong = `Adds the webhook of a GitLab project, or of a GitHub repository that no App serves, or corrects
its events and its secret. It may be repeated.

The secret is the one in the Repository's Secret; if there is none, one is generated and stored. At GitLab only
Maintainers may set a webhook, at GitHub only users with the role Admin. If the Repository's own token may not, give
another one with --token-file. That one is not stored.`

func (p Process) webhookAdd() *cobra.Command {
	f := &onboardFlags{}
	c := &cobra.Command{
		Use: "add NAME", Short: "Add the webhook of a repository", Long: webhookAddLong, Args: repositoryArg,
		Example: "  plumb webhook add app --namespace team-a --webhook-url https://hooks.example.com/",
		RunE: func(c *cobra.Command, args []string) error {
			token, err := p.secretFrom("token-file", f.tokenFile)
			if err != nil {
				return err
			}
			cluster, err := f.Connect()
			if err != nil {
				return err
			}
			hook := onboard.Webhook{
				Namespace: cmp.Or(f.Namespace, cluster.Namespace),
				Name:      args[0],
				URL:       f.webhookURL,
				System:    f.system,
				ConfigMap: f.configMap,
				Token:     token,
			}
			return hook.Add(c.Context(), cluster, p.tell)
		},
	}
	c.Flags().SortFlags = false
	f.namespaceFlag(c)
	c.Flags().
		StringVar(&f.webhookURL, "webhook-url", "", "`URL` that leads to Service plumbline-receiver (default: webhook-url of the ConfigMap)")
	c.Flags().
		StringVar(&f.tokenFile, "token-file", "", "`file` with a token that may set webhooks, - for standard input (default: the Repository's)")
	f.define(c)
	return c
}

const updateLong = `Stores a new access token in the Secret of a Repository. The Git service must accept the token
first: at GitLab it sees the project, has the scope api, and its role is Developer or Maintainer; at GitHub it sees the
repository, and its user has write access. Otherwise the Secret keeps the old one.`

func (p Process) webhookUpdateToken() *cobra.Command {
	f := &onboardFlags{}
	c := &cobra.Command{
		Use:     "update-token NAME",
		Short:   "Replace the access token of a Repository",
		Long:    updateLong,
		Args:    repositoryArg,
		Example: "  plumb webhook update-token app --namespace team-a --token-file token.txt",
		RunE: func(c *cobra.Command, args []string) error {
			if f.tokenFile == "" {
				return errors.New("--token-file is missing: name the file with the new token, - for standard input")
			}
			token, err := p.secretFrom("token-file", f.tokenFile)
			if err != nil {
				return err
			}
			cluster, err := f.Connect()
			if err != nil {
				return err
			}
			of := metav1.ObjectMeta{Namespace: cmp.Or(f.Namespace, cluster.Namespace), Name: args[0]}
			return onboard.UpdateToken(c.Context(), cluster, of, token, p.tell)
		},
	}
	c.Flags().SortFlags = false
	f.namespaceFlag(c)
	c.Flags().StringVar(&f.tokenFile, "token-file", "", "`file` with the new token, - for standard input (required)")
	f.define(c)
	return c
}
