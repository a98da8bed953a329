// SPDX-License-Identifier: Apache-2.0

package github

import (
	"context"
	"crypto/sha256"
	"errors"
	"net/http"

	gh "github.com/google/go-github/v60/github"

	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/pkg/provider"
	"github.com/plumbline-ci/plumbline/pkg/provider/egress"
	"github.com/plumbline-ci/plumbline/pkg/provider/github/delivery"
	"github.com/plumbline-ci/plumbline/pkg/provider/github/limits"
)

// attemptsPerPage is GitHub's maximum.
const attemptsPerPage = 100

// deliveryLog is GitHub's log of an App's deliveries. It goes back three days, on an Enterprise
// Server seven (https://docs.github.com/en/rest/apps/webhooks).
type deliveryLog struct {
	client *gh.Client
	pace   *provider.Pace
	from   string // where the App's key is stored
}

// deliveries returns the log of the App's deliveries, without a call. The App's own calls have
// separate limits at GitHub.
func (s *service) deliveries(baseURL string, c provider.Credentials) (provider.DeliveryLog, error) {
	api, _, err := APIOf(baseURL)
	if err != nil {
		return nil, err
	}
	reach := c.Reach
	reach.Trusted = egress.HostPort(api.String())
	account := s.logins.GetOrCreate(loginKey{c.AppID, sha256.Sum256(c.PrivateKey)},
		func() *login { return newLogin(c.AppID, c.PrivateKey, s.options.Now) })
	client, err := asApp(account, s.transport.Within(reach), api, c.From)
	if err != nil {
		return nil, err
	}
	client.UserAgent = s.options.UserAgent
	pace := s.paces.GetOrCreate(paceKey{api: api.String()},
		func() *provider.Pace { return provider.NewPace(s.options.Now, limits.Of(api.Host)) })
	return &deliveryLog{client: client, pace: pace, from: c.From}, nil
}

// Page implements provider.DeliveryLog.
func (l *deliveryLog) Page(ctx context.Context, cursor string) ([]provider.Attempt, string, error) {
	const what = "listing the App's deliveries"
	leave, err := l.pace.Enter(ctx, provider.Call{Method: http.MethodGet})
	if err != nil {
		return nil, "", err
	}
	defer leave()
	page, resp, err := l.client.Apps.ListHookDeliveries(ctx,
		&gh.ListCursorOptions{Cursor: cursor, PerPage: attemptsPerPage})
	l.learn(resp, err)
	if err != nil {
		return nil, "", l.failed(what, err)
	}
	attempts := make([]provider.Attempt, 0, len(page))
	for _, d := range page {
		if d.GetID() <= 0 || d.GetGUID() == "" || d.GetDeliveredAt().IsZero() {
			return nil, "", noAnswer(what)
		}
		attempts = append(attempts, provider.Attempt{
			ID: d.GetID(), GUID: d.GetGUID(), At: d.GetDeliveredAt().Time, Status: d.GetStatusCode(), Again: d.GetRedelivery(),
			Starts: delivery.Starts(d.GetEvent(), d.GetAction()), Repository: d.GetRepositoryID(),
		})
	}
	return attempts, resp.Cursor, nil
}

// Redeliver implements provider.DeliveryLog.
func (l *deliveryLog) Redeliver(ctx context.Context, id int64) error {
	const what = "asking GitHub for a redelivery"
	leave, err := l.pace.Enter(ctx, provider.Call{Method: http.MethodPost, Repeats: true})
	if err != nil {
		return err
	}
	defer leave()
	_, resp, err := l.client.Apps.RedeliverHookDelivery(ctx, id)
	var accepted *gh.AcceptedError // go-github's name for a 202, which is what GitHub answers
	if errors.As(err, &accepted) {
		err = nil
	}
	l.learn(resp, err)
	if provider.StatusCode(err) == http.StatusNotFound {
		return fault.Ignoredf(reasonDeliveryGone, "%s: GitHub no longer has the delivery", what)
	}
	return l.failed(what, err)
}

func (l *deliveryLog) learn(resp *gh.Response, err error) {
	var header http.Header
	if resp != nil && resp.Response != nil {
		header = resp.Header
	}
	l.pace.Learn(header, err)
}

// failed classifies an error; a 401 means that GitHub does not accept the App's key.
func (l *deliveryLog) failed(what string, err error) error {
	if provider.StatusCode(err) == http.StatusUnauthorized {
		return provider.CredentialsRefused(err,
			"GitHub refuses the App's id and private key in "+l.from+": check both, and the cluster's clock")
	}
	return limits.Failed(what, err)
}
