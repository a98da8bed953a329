// SPDX-License-Identifier: Apache-2.0

package bootstrap

import (
	"context"
	"errors"
	"html"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/plumbline-ci/plumbline/test/forge"
)

const hookURL = "https://hooks.example.com/"

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func enterprise(t *testing.T) *forge.GitHub {
	t.Helper()
	g := forge.New(forge.Options{})
	must(t, g.Start())
	t.Cleanup(func() { _ = g.Close() })
	return g
}

// flow registers an App at g. browser gets the address of the local page. The test waits for it: it
// reads the last answer after Run has returned.
func flow(t *testing.T, g *forge.GitHub, browser func(address string)) Flow {
	t.Helper()
	var browsers sync.WaitGroup
	t.Cleanup(browsers.Wait)
	return Flow{
		GitHub: g.URL(), Organization: "acme", Listen: "127.0.0.1:0",
		Manifest: Manifest{
			Name: "Plumbline acme", URL: "https://example.com", Hook: Hook{hookURL, true},
			Permissions: Permissions(false), Events: Events(),
		},
		Announce: func(address string) { browsers.Go(func() { browser(address) }) },
	}
}

// get returns the status and the body of a page.
func get(t *testing.T, address, host string) (int, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address, http.NoBody)
	must(t, err)
	req.Host = host
	resp, err := http.DefaultClient.Do(req)
	must(t, err)
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(resp.Body)
	must(t, err)
	return resp.StatusCode, string(body)
}

// submit presses the button of the page, as a user who is signed in, and follows GitHub's redirect.
func submit(t *testing.T, page string) string {
	t.Helper()
	found := regexp.MustCompile(`action="([^"]+)".*name="manifest" value="([^"]+)"`).FindStringSubmatch(page)
	if found == nil {
		t.Errorf("the page has no form: %s", page)
		return ""
	}
	resp, err := http.PostForm(html.UnescapeString(found[1]), url.Values{"manifest": {html.UnescapeString(found[2])}})
	if err != nil {
		t.Error(err)
		return ""
	}
	defer func() { _ = resp.Body.Close() }()
	body, _ := io.ReadAll(resp.Body)
	return string(body)
}

// redirect returns where GitHub leads the browser.
func redirect(t *testing.T, page string) string {
	t.Helper()
	u, err := url.Parse(page)
	must(t, err)
	return "http://" + u.Host + registered
}

func TestRunReturnsTheCredentialsOfTheApp(t *testing.T) {
	g := enterprise(t)
	last := make(chan string, 1)
	app, err := flow(t, g, func(address string) {
		_, page := get(t, address, "")
		last <- submit(t, page)
	}).Run(t.Context())
	must(t, err)
	registered, known := g.AppByID(app.ID)
	if !known || registered.PrivateKeyPEM != app.Key || registered.WebhookSecret != app.WebhookSecret ||
		app.WebhookSecret == "" {
		t.Error("the credentials are not those of the registered App")
	}
	if app.URL != g.URL()+"/apps/plumbline-acme" || app.Name != "Plumbline acme" {
		t.Errorf("the App is %q at %s", app.Name, app.URL)
	}
	if page := <-last; !strings.Contains(page, "Return to the terminal") || strings.Contains(page, app.WebhookSecret) {
		t.Errorf("the last page says %s", page)
	}
}

// A page of another site could lead the browser to the local address with a code of its own App.
func TestRedirectWithAnotherStateIsRefused(t *testing.T) {
	g := enterprise(t)
	forged := make(chan int, 1)
	app, err := flow(t, g, func(address string) {
		status, _ := get(t, redirect(t, address)+"?code=stolen&state=guessed", "")
		forged <- status
		_, page := get(t, address, "")
		submit(t, page)
	}).Run(t.Context())
	must(t, err)
	if status := <-forged; status != http.StatusBadRequest || app.ID == 0 {
		t.Errorf("the forged redirect is answered %d", status)
	}
}

func TestPageAnswersItsOwnAddressOnly(t *testing.T) {
	g := enterprise(t)
	answered := make(chan int, 1)
	_, err := flow(t, g, func(address string) {
		status, _ := get(t, address, "attacker.example")
		answered <- status
		_, page := get(t, address, "")
		submit(t, page)
	}).Run(t.Context())
	must(t, err)
	if status := <-answered; status != http.StatusMisdirectedRequest {
		t.Errorf("another name for the address is answered %d", status)
	}
}

func TestRunSaysWhatToDoIfTheCodeIsRefused(t *testing.T) {
	_, err := flow(t, enterprise(t), func(address string) {
		_, page := get(t, address, "")
		state := regexp.MustCompile(`state=([0-9A-Z]+)`).FindStringSubmatch(page)[1]
		get(t, redirect(t, address)+"?code=too-old&state="+state, "")
	}).Run(t.Context())
	if err == nil || !strings.Contains(err.Error(), "404") || !strings.Contains(err.Error(), "delete the App on GitHub") {
		t.Errorf("got %v", err)
	}
}

func TestRunEndsWithTheCommand(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	_, err := flow(t, enterprise(t), func(string) { cancel() }).Run(ctx)
	if err == nil || !strings.Contains(err.Error(), "Run it again") {
		t.Errorf("got %v", err)
	}
}

// GitHub exchanges a code once. Ctrl-C must not lose the key that it is about to return.
func TestCtrlCDoesNotLoseTheKey(t *testing.T) {
	asked, interrupted := make(chan struct{}), make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		close(asked)
		select {
		case <-interrupted:
		case <-r.Context().Done():
		}
		w.WriteHeader(http.StatusCreated)
		_, _ = io.WriteString(w, `{"id": 7, "pem": "key", "webhook_secret": "shared"}`)
	}))
	defer server.Close()
	ctx, cancel := context.WithCancel(t.Context())
	f := flow(t, enterprise(t), func(address string) {
		_, page := get(t, address, "")
		state := regexp.MustCompile(`state=([0-9A-Z]+)`).FindStringSubmatch(page)[1]
		get(t, redirect(t, address)+"?code=c&state="+state, "")
	})
	f.GitHub = server.URL
	go func() {
		<-asked
		cancel()
		close(interrupted)
	}()
	if app, err := f.Run(ctx); err != nil || app.Key != "key" {
		t.Errorf("the key is lost: %v", err)
	}
}

func TestRunSaysWhatToDoWithAnAnswerThatCannotBeUsed(t *testing.T) {
	for name, test := range map[string]struct {
		status int
		body   string
	}{
		"no JSON":  {http.StatusCreated, "<html>"},
		"cut":      {http.StatusCreated, `{"id": 7, "pem": "se`},
		"no key":   {http.StatusCreated, `{"id": 7}`},
		"the code": {http.StatusUnprocessableEntity, "{}"},
		"failure":  {http.StatusInternalServerError, ""},
	} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.WriteHeader(test.status)
				_, _ = io.WriteString(w, test.body)
			}))
			defer server.Close()
			api, err := url.Parse(server.URL)
			must(t, err)
			_, err = exchange(t.Context(), api, "c0de")
			if err == nil || !strings.Contains(err.Error(), "delete the App on GitHub") || strings.Contains(err.Error(), "c0de") {
				t.Errorf("got %v", err)
			}
		})
	}
}

// Another user of this machine can connect to the page. With its state they could have their own
// App registered.
func TestOnlyThePrintedAddressShowsTheState(t *testing.T) {
	g := enterprise(t)
	answered := make(chan int, 1)
	_, err := flow(t, g, func(address string) {
		status, _ := get(t, strings.TrimSuffix(redirect(t, address), registered)+"/", "")
		answered <- status
		_, page := get(t, address, "")
		submit(t, page)
	}).Run(t.Context())
	must(t, err)
	if status := <-answered; status != http.StatusNotFound {
		t.Errorf("the page without its random path is answered %d", status)
	}
}

func TestErrorsDoNotShowTheCode(t *testing.T) {
	failed := &url.Error{
		Op:  "Post",
		URL: "https://api.github.com/app-manifests/c0de/conversions",
		Err: errors.New("refused"),
	}
	if said := withoutCode(failed).Error(); said != "refused" {
		t.Errorf("the error is %q", said)
	}
}

var (
	permission = regexp.MustCompile(`(?m)^\| (?:organisation permission )?\*([A-Z][a-z ]+)\*: (read and write|read) \|`)
	event      = regexp.MustCompile(`(?m)^\| \*([A-Z][a-z ]+)\* \|`)
)

func key(words string) string { return strings.ReplaceAll(strings.ToLower(words), " ", "_") }

func TestManifestIsThatOfTheDocumentation(t *testing.T) {
	page, err := os.ReadFile("../../../../docs/github.md")
	must(t, err)
	section, _, _ := strings.Cut(string(page), "**2. Install it**")
	permissions, events := map[string]string{}, map[string]bool{}
	for _, row := range permission.FindAllStringSubmatch(section, -1) {
		permissions[key(row[1])] = map[string]string{"read": "read", "read and write": "write"}[row[2]]
	}
	for _, row := range event.FindAllStringSubmatch(section, -1) {
		events[key(row[1])] = true
	}
	wanted := map[string]bool{}
	for _, event := range Events() {
		wanted[event] = true
	}
	if diff := cmp.Diff(permissions, Permissions(true)); diff != "" {
		t.Errorf("permissions (-docs/github.md +manifest):\n%s", diff)
	}
	if diff := cmp.Diff(events, wanted); diff != "" {
		t.Errorf("events (-docs/github.md +manifest):\n%s", diff)
	}
	if _, optional := Permissions(false)[membersPermission]; optional {
		t.Error("Members: read is requested without a need")
	}
}
