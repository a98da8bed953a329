// SPDX-License-Identifier: Apache-2.0

package receiver_test

import (
	"cmp"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// While Pipelines-as-Code runs, a delivery is recorded if a Repository of a served namespace has
// claimed its URL. It is forwarded if another namespace has the Repository, or if the claim is not
// made yet. Nothing is done twice, and no Repository's delivery is lost.
func TestDeliveriesArePartitioned(t *testing.T) {
	const none, recorded, forwarded = "", "recorded", "forwarded"
	for name, c := range map[string]struct {
		arrange func(*env)
		send    func(*delivery)
		want    string // the outcome
	}{
		"served and claimed": {nil, nil, recorded},
		"served and not claimed yet": {
			func(e *env) { e.unclaim() }, nil, forwarded,
		},
		"not served and not claimed": {
			func(e *env) { e.unclaim(); e.unserved = "ci" }, nil, forwarded,
		},
		"not served any more, and the claim still exists": {
			func(e *env) { e.unserved = "ci" }, nil, forwarded,
		},
		"not served any more, and the claim is released": {
			func(e *env) { e.unserved = "ci"; e.release() }, nil, forwarded,
		},
		"served, and another namespace has a Repository, too": {
			func(e *env) { e.unserved = "theirs"; e.replace(repository("theirs", "app", webhookURL)) }, nil, recorded,
		},
		"the owner of the claim is gone, and another namespace has a Repository": {
			func(e *env) {
				e.unserved = "theirs"
				e.remove("own")
				e.replace(repository("theirs", "app", webhookURL))
			}, nil,
			forwarded,
		},
		"the claim has not moved yet within its namespace": {
			func(e *env) { e.remove("own"); e.replace(repository("ci", "renamed", webhookURL)) }, nil, "rejected",
		},
		"its namespace may not claim it": {
			func(e *env) { e.unclaim(); e.barred = "ci" }, nil, "ignored",
		},
		"not served, and its namespace may not claim it": {
			func(e *env) { e.unclaim(); e.barred, e.unserved = "ci", "ci" }, nil, forwarded,
		},
		"no Repository has it": {
			func(e *env) { e.unclaim(); e.remove("own") }, nil, "rejected",
		},
		"no Repository has it, and one of its group is not served": {
			func(e *env) {
				e.unclaim()
				e.remove("own")
				e.unserved = "theirs"
				e.replace(repository("theirs", "app", "https://lab.example/acme/another"))
			}, nil, forwarded,
		},
		"not served, and the sender knows no secret": {
			func(e *env) { e.unserved = "ci"; e.store("ci", "own", nil) }, func(d *delivery) { d.signature = "none" }, forwarded,
		},
		"served, and the sender knows no secret": {nil, func(d *delivery) { d.signature = "none" }, "rejected"},
		"not served, and Pipelines-as-Code does not run": {
			func(e *env) { e.pac, e.unserved = none, "ci" }, nil, "rejected",
		},
	} {
		t.Run(name, func(t *testing.T) {
			e := webhookEnv(t)
			pac := e.besides("", http.StatusAccepted)
			if c.arrange != nil {
				c.arrange(e)
			}
			d := webhookPush(repositorySecret)
			if c.send != nil {
				c.send(&d)
			}
			answer := e.send(e.both(), d.request())
			if e.sum("plumbline.receiver.deliveries", map[string]string{"outcome": c.want}) != 1 {
				t.Errorf("not %s:\n%s", c.want, e.log())
			}
			if got := pac.requests.Load(); got > 1 || (got == 1) != (c.want == forwarded) {
				t.Errorf("forwarded %d times", got)
			}
			if len(e.events()) > 1 || (len(e.events()) == 1) != (c.want == recorded) {
				t.Errorf("%d events", len(e.events()))
			}
			if c.want == forwarded &&
				(answer.Code != http.StatusAccepted || answer.Body.String() != "accepted by the original") {
				t.Errorf("answered %d %s", answer.Code, answer.Body)
			}
		})
	}
}

// The cache may lack a Repository that was just created. Pipelines-as-Code reads live.
func TestDeliveryOfUnknownRepositoryIsForwarded(t *testing.T) {
	for name, c := range map[string]struct {
		signature string
		event     string // "" is push
		without   bool   // Pipelines-as-Code
		known     bool   // a Repository of a served namespace has the URL, and cannot claim it
		forwarded int64
		status    int
	}{
		"verified":                     {forwarded: 1, status: http.StatusAccepted},
		"not verified":                 {signature: "none", status: http.StatusUnauthorized},
		"not acted on":                 {event: "star", status: http.StatusOK},
		"without Pipelines-as-Code":    {without: true, status: http.StatusOK},
		"refused by the administrator": {known: true, status: http.StatusOK},
	} {
		e := newEnv(t)
		pac := e.besides("theirs", http.StatusAccepted)
		e.drop(repositoryURL)
		e.replace(repository("theirs", "another", repositoryURL+"-2")) // of the same group
		if e.barred = "ci"; !c.known {
			e.remove("app")
		}
		if c.without {
			e.pac = ""
		}
		d := push("k1")
		d.signature, d.event = c.signature, cmp.Or(c.event, d.event)
		answer := e.send(e.replica(), d.request())
		if e.wantEvents(0); answer.Code != c.status || pac.requests.Load() != c.forwarded {
			t.Errorf("%s: answered %d, forwarded %d times\n%s", name, answer.Code, pac.requests.Load(), e.log())
		}
	}
}

// Pipelines-as-Code verifies the signature, so what it gets is what the Git service has sent.
func TestForwardedRequestIsUnchanged(t *testing.T) {
	e := newEnv(t)
	pac := e.besides("ci", http.StatusOK)
	d := push("k1")
	r := d.request()
	r.URL.Path, r.URL.RawQuery = "/hook", "a=b"
	r.Header.Set("Connection", "X-Of-This-Connection")
	r.Header.Set("X-Of-This-Connection", "x")
	r.Header.Set("Idempotency-Key", "key")
	e.send(e.replica(), r)
	if pac.body != string(d.body()) || pac.target != "POST /hook?a=b" || pac.requests.Load() != 1 {
		t.Errorf("%d requests, %s: %s", pac.requests.Load(), pac.target, pac.body)
	}
	if pac.header.Get("X-Test-Signature") != r.Header.Get("X-Test-Signature") ||
		pac.header.Get("Plumbline-Forwarded") == "" ||
		pac.header.Get("Idempotency-Key") != "key" ||
		pac.header.Get("X-Of-This-Connection") != "" {
		t.Errorf("headers %v", pac.header)
	}
}

// What Pipelines-as-Code has not accepted must be sent again. Its other answers are passed on.
func TestAnswersOfPipelinesAsCode(t *testing.T) {
	for answered, want := range map[int]struct {
		status  int
		counted string
	}{
		http.StatusOK:                 {http.StatusOK, "forwarded/Forwarded"},
		http.StatusBadRequest:         {http.StatusBadRequest, "forwarded/Forwarded"},
		http.StatusFound:              {http.StatusServiceUnavailable, "unavailable/PipelinesAsCodeUnavailable"},
		http.StatusServiceUnavailable: {http.StatusServiceUnavailable, "unavailable/PipelinesAsCodeUnavailable"},
		http.StatusLoopDetected:       {http.StatusLoopDetected, "unavailable/ForwardingLoop"},
	} {
		e := newEnv(t)
		e.besides("ci", answered)
		answer := e.send(e.replica(), push("k1").request())
		outcome, reason, _ := strings.Cut(want.counted, "/")
		if answer.Code != want.status || e.counted(outcome, reason) != 1 || answer.Header().Get("Location") != "" {
			t.Errorf("%d: answered %d\n%s", answered, answer.Code, e.log())
		}
		if again := answer.Header().Get("Retry-After") != ""; again != (want.status == http.StatusServiceUnavailable) {
			t.Errorf("%d: Retry-After is set: %t", answered, again)
		}
		if told := e.undelivered.Load() == 1; told != (outcome == "unavailable") {
			t.Errorf("%d: the controllers know: %t", answered, told)
		}
	}
}

func TestUnreachablePipelinesAsCode(t *testing.T) {
	for name, url := range map[string]string{"nothing listens": "http://127.0.0.1:1", "the URL is invalid": "http://"} {
		e := newEnv(t)
		e.besides("ci", http.StatusOK)
		e.pac = url
		e.expect(http.StatusServiceUnavailable, push("k1"))
		if e.wantEvents(0); e.undelivered.Load() != 1 || strings.Contains(e.log(), `answer: {"status":503,"message":"127`) {
			t.Errorf("%s:\n%s", name, e.log())
		}
	}
}

// A receiver never forwards what a receiver has forwarded, whatever it would do with it.
func TestForwardedRequestIsNotForwardedAgain(t *testing.T) {
	for _, unserved := range []string{"", "ci"} {
		e := newEnv(t)
		pac := e.besides(unserved, http.StatusOK)
		r := push("k1").request()
		r.Header.Set("Plumbline-Forwarded", "1")
		e.check(http.StatusLoopDetected, e.send(e.replica(), r))
		if e.wantEvents(0); pac.requests.Load() != 0 || e.counted("rejected", "ForwardingLoop") != 1 {
			t.Errorf("forwarded %d times\n%s", pac.requests.Load(), e.log())
		}
	}
}

// Another receiver's answer shows that the URL leads back.
func TestForwardingToAReceiver(t *testing.T) {
	e := newEnv(t)
	e.besides("ci", http.StatusOK)
	other := httptest.NewServer(e.replica())
	t.Cleanup(other.Close)
	e.pac = other.URL
	if answer := e.send(e.replica(), push("k1").request()); answer.Code != http.StatusLoopDetected {
		t.Errorf("answered %d", answer.Code)
	}
}
