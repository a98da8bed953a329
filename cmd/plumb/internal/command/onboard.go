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
	"github.com/plumbline-ci/plumbline/pkg/provider/gitlab"
)

const createLong = `Creates a Repository, so that Plumbline runs the pipelines of a Git repository in a namespace.

For a project of a GitLab it also creates a Secret with the access token, after GitLab has accepted it, and with the
webhook's secret token. plumb webhook add then adds the webhook. What exists already stays.`

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
	flags.StringVar(
		&f.service,
		"provider",
		"",
		"Git `service`: github or gitlab (default: gitlab with a token or if the host's name says so)",
	)
	flags.StringVar(&f.GitLabURL, "gitlab-url", "", "`URL` of a GitLab that is not at the root of the host")
	flags.StringVar(&f.tokenFile, "token-file", "", "`file` with GitLab's access token, - for standard input")
	flags.StringVar(
		&f.webhookFile,
		"webhook-secret-file",
		"",
		"`file` with the webhook's secret token (default: generated)",
	)
	f.define(c)
	return c
}

// provider decides which Git service is meant.
func (f *onboardFlags) provider() error {
	if f.service == "" {
		u, err := url.Parse(f.URL)
		f.GitLab = f.tokenFile != "" || f.GitLabURL != "" || err == nil && strings.Contains(u.Hostname(), "gitlab")
		return nil
	}
	f.GitLab = f.service == gitlab.Name
	if f.service != gitlab.Name && f.service != "github" {
		return fmt.Errorf("--provider %q is none of %s", f.service, strings.Join(delivery.Names(), ", "))
	}
	if !f.GitLab && cmp.Or(f.tokenFile, f.webhookFile, f.GitLabURL) != "" {
		return errors.New(
			"a token, a webhook secret and --gitlab-url are for GitLab: the credentials for GitHub are those of the App",
		)
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

const webhookAddLong = `Adds the webhook of a GitLab project, or corrects its triggers and its secret token. It may be
repeated.

The secret token is the one in the Repository's Secret; if there is none, one is generated and stored. GitLab lets only
Maintainers set a webhook: if the Repository's own token is a Developer's, give another one with --token-file. That one
is not stored.`

func (p Process) webhookAdd() *cobra.Command {
	f := &onboardFlags{}
	c := &cobra.Command{
		Use: "add NAME", Short: "Add the webhook of a GitLab project", Long: webhookAddLong, Args: repositoryArg,
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
				Namespace: cmp.Or(
					f.Namespace,
					cluster.Namespace,
				),
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
		StringVar(&f.tokenFile, "token-file", "", "`file` with a Maintainer's token, - for standard input (default: the Repository's)")
	f.define(c)
	return c
}

const updateLong = `Stores a new access token in the Secret of a GitLab project's Repository. GitLab must accept
the token first: it sees the project, has the scope api, and its role is Developer or Maintainer. Otherwise the Secret
keeps the old one.`

func (p Process) webhookUpdateToken() *cobra.Command {
	f := &onboardFlags{}
	c := &cobra.Command{
		Use:     "update-token NAME",
		Short:   "Replace the access token of a GitLab project",
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
