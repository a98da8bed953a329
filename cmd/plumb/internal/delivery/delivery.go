// SPDX-License-Identifier: Apache-2.0

// Package delivery provides the requests that a Git service sends. A recorded delivery is read from
// files. A described one stands for an event that has not happened. The decoder of real deliveries
// decodes both, so the event is the same.
package delivery

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/pkg/provider"
	"github.com/plumbline-ci/plumbline/pkg/provider/github"
	"github.com/plumbline-ci/plumbline/pkg/provider/gitlab"
)

// Delivery is one request of a Git service.
type Delivery struct {
	Header http.Header
	Body   []byte
	// Recorded is true for a delivery that a Git service has sent, false for one that plumb made
	// from flags. Only the body of a recorded delivery can be read by expressions.
	Recorded bool
}

// Services returns the Git services whose deliveries can be read, by name.
func Services() map[string]provider.Provider {
	return map[string]provider.Provider{
		github.Name: github.New(github.Options{}),
		gitlab.Name: gitlab.New(gitlab.Options{}),
	}
}

// Names lists the services for messages.
func Names() []string { return []string{github.Name, gitlab.Name} }

// Event is what a delivery says.
type Event struct {
	// Spec lacks the Repository and the payload.
	Spec *v1alpha1.GitEventSpec
	// URL is the web URL of its repository.
	URL string
	// Ignored is the reason why the delivery never starts a pipeline. Spec is nil then.
	Ignored string
	// Foreign is true for a delivery of a GitHub webhook that is not the App's: the receiver accepts
	// it only for a Repository that names a token and a webhook secret.
	Foreign bool
}

// Read decodes the delivery. Errors are sentences that say what to do.
func (d Delivery) Read() (Event, error) {
	service, err := d.service()
	if err != nil {
		return Event{}, err
	}
	origin, err := service.Webhook.Peek(d.Header, d.Body)
	if err != nil {
		return Event{}, d.unusable(service.Name, err)
	}
	event := Event{URL: origin.URL, Foreign: !origin.App && service.BaseURL == nil}
	event.Spec, err = service.Webhook.Decode(d.Header, d.Body)
	if fault.Is(err, fault.Ignored) {
		event.Ignored = err.Error()
		return event, nil
	}
	if err != nil {
		return Event{}, d.unusable(service.Name, err)
	}
	return event, nil
}

func (d Delivery) service() (provider.Provider, error) {
	services := Services()
	for _, name := range Names() {
		if services[name].Webhook.Claims(d.Header) {
			return services[name], nil
		}
	}
	return provider.Provider{}, errors.New(
		"the headers are not from a Git service that Plumbline serves: GitHub's have X-GitHub-Event, GitLab's X-Gitlab-Event; " +
			"copy all of them from the page of the delivery",
	)
}

// unusable returns what is wrong with a delivery as a whole. A payload that is not JSON was
// probably cut. A payload without the fields of the event in the headers is probably another
// delivery's.
func (d Delivery) unusable(service string, err error) error {
	if !d.Recorded {
		return fmt.Errorf("no event of %s has these names: %w (from --url, --sender, the branches or the remote)",
			cmp.Or(title(service), service), err)
	}
	if strings.HasPrefix(fault.Of(err).Message, "the delivery's body is not JSON") {
		return errors.New(
			"the payload is not JSON: is it complete? Copy all of it from the page of the delivery, from the first { to the last }",
		)
	}
	if d.Header.Get(d.keyHeader()) == "" && d.keyHeader() == githubKey {
		return fmt.Errorf("the headers lack %s, the key of the delivery: copy it too, or make one up with --delivery",
			githubKey)
	}
	return fmt.Errorf("the payload and the headers are not those of one delivery of %s: %w",
		cmp.Or(title(service), service), err)
}

// title is how people write a service's name.
func title(service string) string {
	return map[string]string{github.Name: "GitHub", gitlab.Name: "GitLab"}[service]
}

// For returns the service that a repository is most likely at: the named one, or GitLab if the name
// of the host contains it, else GitHub.
func For(named, host string) (string, error) {
	switch {
	case named != "" && !slices.Contains(Names(), named):
		return "", fmt.Errorf("%q is no Git service that Plumbline serves: say --provider %s",
			named, strings.Join(Names(), " or --provider "))
	case named != "":
		return named, nil
	case strings.Contains(strings.ToLower(host), gitlab.Name):
		return gitlab.Name, nil
	}
	return github.Name, nil
}
