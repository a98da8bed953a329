// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/plumbline-ci/plumbline/cmd/plumb/internal/bootstrap"
	"github.com/plumbline-ci/plumbline/cmd/plumb/internal/kube"
	"github.com/plumbline-ci/plumbline/cmd/plumb/internal/onboard"
	"github.com/plumbline-ci/plumbline/pkg/provider/github"
)

const bootstrapLong = `Registers a GitHub App with the permissions and events that Plumbline needs, and stores its
credentials.

The command serves a page on this machine. Open it in a browser that is signed in to GitHub, and confirm there. GitHub
then returns the App's ID, private key and webhook secret to this command, which stores them in a Secret. They are not
printed. With --url, the first Repository is created, too.`

const bootstrapExample = `  plumb bootstrap github --organization acme --webhook-url https://hooks.example.com
  plumb bootstrap github --organization acme --webhook-url https://hooks.example.com \
    --url https://github.com/acme/app --namespace team-a
  plumb bootstrap github --github-url https://github.example.com --webhook-url https://hooks.example.com`

// githubURL is the default of --github-url.
const githubURL = "https://github.com"

// homepage is what the App's page links to; users can change it there.
const homepage = "https://github.com/plumbline-ci/plumbline"

type bootstrapFlags struct {
	target
	flow             bootstrap.Flow
	secret, webhook  string
	name             string
	members          bool
	first, namespace string
}

func (p Process) bootstrap() *cobra.Command {
	f := &bootstrapFlags{}
	c := &cobra.Command{
		Use: "github", Short: "Register a GitHub App", Long: bootstrapLong, Example: bootstrapExample, Args: noArgs,
		RunE: func(c *cobra.Command, _ []string) error { return p.runBootstrap(c.Context(), f) },
	}
	flags := c.Flags()
	flags.SortFlags = false
	flags.StringVar(&f.webhook, "webhook-url", "", "`URL` that leads to Service plumbline-receiver (required)")
	flags.StringVar(&f.flow.Organization, "organization", "", "`organization` that owns the App (default: you)")
	flags.StringVar(&f.flow.GitHub, "github-url", githubURL, "`URL` of an Enterprise Server")
	flags.StringVar(&f.name, "name", "",
		"`name` of the App, which GitHub wants unique (default: Plumbline and the organization)")
	flags.BoolVar(&f.members, "members", false,
		"request the permission Members: read, for teams in settings.policy and members-may-run")
	flags.StringVar(&f.secret, "app-secret", defaultAppSecret, "`name` of the Secret that is created")
	flags.StringVar(&f.first, "url", "", "web `URL` of a repository to create a Repository for")
	flags.StringVarP(&f.namespace, "namespace", "n", "", "`namespace` of that Repository")
	flags.StringVar(&f.flow.Listen, "listen", "127.0.0.1:0", "loopback `address` of the local page")
	f.define(c)
	return c
}

// check completes the flags.
func (f *bootstrapFlags) check() (*onboard.Repository, error) {
	if err := onboard.CheckWebhookURL(f.webhook); err != nil {
		return nil, err
	}
	if !strings.HasPrefix(f.flow.Listen, "127.0.0.1:") && !strings.HasPrefix(f.flow.Listen, "[::1]:") {
		return nil, fmt.Errorf(
			"--listen %q is not an address of this machine alone: use 127.0.0.1:PORT, and ssh -L to reach it", f.flow.Listen,
		)
	}
	if f.name == "" {
		f.name = strings.TrimSuffix("Plumbline "+f.flow.Organization, " ")
	}
	f.flow.Manifest = bootstrap.Manifest{
		Name: f.name, URL: homepage, Hook: bootstrap.Hook{URL: f.webhook, Active: true},
		Permissions: bootstrap.Permissions(f.members), Events: bootstrap.Events(),
	}
	if f.first == "" {
		if f.namespace != "" {
			return nil, errors.New("--namespace is that of the first Repository: give its repository with --url")
		}
		return nil, nil
	}
	if f.namespace == "" {
		return nil, errors.New(
			"--url needs --namespace: a Repository is in the namespace of the team whose pipelines run there",
		)
	}
	first := &onboard.Repository{Namespace: f.namespace, URL: f.first}
	return first, first.Check()
}

func (p Process) runBootstrap(ctx context.Context, f *bootstrapFlags) error {
	first, err := f.check()
	if err != nil {
		return err
	}
	cluster, err := f.Connect()
	if err != nil {
		return err
	}
	store := bootstrap.Store{Kube: cluster.Kube, Namespace: f.system, Name: f.secret}
	if err := store.Check(ctx); err != nil {
		return err
	}
	f.flow.Announce = func(address string) {
		p.tell("Open %s in a browser that is signed in to GitHub, and confirm there. Waiting ...", address)
	}
	app, err := f.flow.Run(ctx)
	if err != nil {
		return err
	}
	if err := p.keep(ctx, store, app); err != nil {
		return err
	}
	p.tell("App %q (ID %d) was registered; its credentials are in Secret %s/%s", app.Name, app.ID, f.system, f.secret)
	p.tell("Install the App on your repositories: %s/installations/new", app.URL)
	if err := p.pointToServer(ctx, cluster, f); err != nil {
		return err
	}
	if first != nil {
		return first.Create(ctx, cluster, p.tell)
	}
	return nil
}

// storeBudget is the time limit of storing the credentials.
const storeBudget = 30 * time.Second

// keep stores the credentials in the Secret or, if it cannot be created, in a file. Ctrl-C does not
// end it: GitHub does not show them again.
func (p Process) keep(ctx context.Context, store bootstrap.Store, app *bootstrap.App) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), storeBudget)
	defer cancel()
	err := store.Put(ctx, app)
	if err == nil {
		return nil
	}
	file, err2 := store.Save(p.Dir, app)
	if err2 != nil {
		return fmt.Errorf("%w; saving the credentials failed, too (%w): delete the App on GitHub and run the command again",
			err, err2)
	}
	return fmt.Errorf("%w. The credentials are in %s: kubectl apply -f %s, then delete the file", err, file, file)
}

// pointToServer sets github-url in the ConfigMap for an Enterprise Server.
func (p Process) pointToServer(ctx context.Context, c *kube.Cluster, f *bootstrapFlags) error {
	_, web, err := github.APIOf(f.flow.GitHub)
	if err != nil || web.Host == "github.com" {
		return err
	}
	patch, err := json.Marshal(map[string]any{"data": map[string]string{"github-url": web.String()}})
	if err != nil {
		return err
	}
	_, err = c.Kube.CoreV1().ConfigMaps(f.system).
		Patch(ctx, f.configMap, types.MergePatchType, patch, metav1.PatchOptions{})
	if err != nil {
		return fmt.Errorf("%w; set github-url: %s there yourself",
			kube.Failed("changing ConfigMap "+f.system+"/"+f.configMap, err), web)
	}
	p.tell("github-url in ConfigMap %s/%s is %s", f.system, f.configMap, web)
	return nil
}
