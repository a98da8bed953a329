// SPDX-License-Identifier: Apache-2.0

package bootstrap

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"fmt"
	"html/template"
	"io"
	"net"
	"net/http"
	"net/url"
	"time"

	"github.com/plumbline-ci/plumbline/pkg/provider/github"
)

const (
	// codeLife is how long GitHub keeps the code, and so how long the command waits.
	codeLife = time.Hour
	// callBudget is the time limit of the exchange, and of one request to the local page.
	callBudget = 30 * time.Second
	maxAnswer  = 1 << 20
	registered = "/registered"
)

// Flow is one registration.
type Flow struct {
	// GitHub is the address of github.com or of an Enterprise Server.
	GitHub string
	// Organization owns the App; empty means the user who is signed in.
	Organization string
	// Manifest is completed with the address of the local page.
	Manifest Manifest
	// Listen is the loopback address of the local page.
	Listen string
	// Announce is called once with the address that a browser has to open.
	Announce func(address string)
}

// App is a registered App. Key and WebhookSecret are shown once, and never printed.
type App struct {
	ID            int64  `json:"id"`
	Name          string `json:"name"`
	URL           string `json:"html_url"`
	Key           string `json:"pem"`
	WebhookSecret string `json:"webhook_secret"`
}

// Run registers the App. It returns when GitHub has given its credentials, or with an error.
func (f Flow) Run(ctx context.Context) (*App, error) {
	api, web, err := github.APIOf(f.GitHub)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, codeLife)
	defer cancel()
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", f.Listen)
	if err != nil {
		return nil, fmt.Errorf("the local page cannot be served: %w: choose another port with --listen", err)
	}
	p := f.page(web, "http://"+listener.Addr().String())
	server := &http.Server{Handler: p.handler(listener.Addr().String()), ReadHeaderTimeout: callBudget}
	go func() { _ = server.Serve(listener) }() // it ends with Shutdown
	defer func() {
		end, cancel := context.WithTimeout(context.WithoutCancel(ctx), callBudget)
		defer cancel()
		_ = server.Shutdown(end) // after the last answer
	}()
	f.Announce(p.local + p.path)
	select {
	case code := <-p.codes:
		return exchange(context.WithoutCancel(ctx), api, code) // GitHub gives the credentials once
	case <-ctx.Done():
		return nil, errors.New(
			"the command ended before GitHub led the browser back to it. Run it again; if GitHub shows the App already, delete it first",
		)
	}
}

// page is the local page.
type page struct {
	// path is random: other users of this machine must not read the state from the form.
	local, path, state string
	Action             string
	JSON               string
	codes              chan string
}

func (f Flow) page(web *url.URL, local string) *page {
	p := &page{local: local, path: "/" + rand.Text(), state: rand.Text(), codes: make(chan string, 1)}
	at := web.JoinPath("settings/apps/new")
	if f.Organization != "" {
		at = web.JoinPath("organizations", f.Organization, "settings/apps/new")
	}
	at.RawQuery = url.Values{"state": {p.state}}.Encode()
	p.Action = at.String()
	f.Manifest.Redirect = local + registered
	data, _ := json.Marshal(f.Manifest) // of strings and booleans
	p.JSON = string(data)
	return p
}

var form = template.Must(template.New("form").Parse( //nolint:gochecknoglobals // parsed once
	`<!doctype html><meta charset="utf-8"><title>plumb bootstrap github</title>
<p>Register a GitHub App for Plumbline with these settings. GitHub asks for your confirmation.</p>
<pre>{{.JSON}}</pre>
<form action="{{.Action}}" method="post"><input type="hidden" name="manifest" value="{{.JSON}}">
<button>Register the App on GitHub</button></form>
`))

// handler serves the form, and the address that GitHub redirects to. It answers no other host name,
// so that no other site can read the form through a name of its own for this address.
func (p *page) handler(host string) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+p.path, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		_ = form.Execute(w, p) // the browser went away
	})
	mux.HandleFunc("GET "+registered, p.redirected)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Host != host {
			http.Error(w, "This page is at the address that the command prints only.", http.StatusMisdirectedRequest)
			return
		}
		w.Header().Set("Referrer-Policy", "no-referrer") // the address has the code
		w.Header().Set("Cache-Control", "no-store")
		mux.ServeHTTP(w, r)
	})
}

// redirected accepts the first code with this registration's state. Another state is that of
// another page, which must not choose the App.
func (p *page) redirected(w http.ResponseWriter, r *http.Request) {
	query := r.URL.Query()
	code := query.Get("code")
	if subtle.ConstantTimeCompare([]byte(query.Get("state")), []byte(p.state)) != 1 || code == "" {
		const other = "This redirect does not belong to this command: open the address that it prints."
		http.Error(w, other, http.StatusBadRequest)
		return
	}
	select {
	case p.codes <- code:
		_, _ = fmt.Fprintln(w, "GitHub has registered the App. Return to the terminal; you can close this page.")
	default:
		http.Error(w, "The App was registered before.", http.StatusConflict)
	}
}

// exchange returns the App of a code. The call needs no credentials.
func exchange(ctx context.Context, api *url.URL, code string) (*App, error) {
	app, err := conversion(ctx, api.JoinPath("app-manifests", url.PathEscape(code), "conversions").String())
	if err != nil {
		return nil, fmt.Errorf("exchanging GitHub's code for the App's credentials: %w: "+
			"delete the App on GitHub and run the command again", err)
	}
	return app, nil
}

func conversion(ctx context.Context, address string) (*App, error) {
	ctx, cancel := context.WithTimeout(ctx, callBudget)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, address, http.NoBody)
	if err != nil {
		return nil, withoutCode(err)
	}
	req.Header.Set("Accept", "application/vnd.github+json")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, withoutCode(err)
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode != http.StatusCreated {
		return nil, fmt.Errorf("GitHub answers %s", resp.Status)
	}
	app := &App{}
	if err := json.NewDecoder(io.LimitReader(resp.Body, maxAnswer)).Decode(app); err != nil {
		return nil, fmt.Errorf("the answer cannot be read: %w", err)
	}
	if app.ID <= 0 || app.Key == "" || app.WebhookSecret == "" {
		return nil, errors.New("the answer has no credentials")
	}
	return app, nil
}

// withoutCode removes the address from an error: it contains the code.
func withoutCode(err error) error {
	if failed := (*url.Error)(nil); errors.As(err, &failed) {
		return failed.Err
	}
	return err
}
