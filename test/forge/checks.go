// SPDX-License-Identifier: Apache-2.0

package forge

import (
	"cmp"
	"net/http"
	"slices"
	"strconv"
	"time"
)

const (
	statusQueued     = "queued"
	statusInProgress = "in_progress"
	statusCompleted  = "completed"

	// maxSameName is how many check runs of one name a suite keeps, and how many a listing reaches.
	maxSameName = 1000
)

// CheckRun is a check run as the forge holds it.
type CheckRun struct {
	ID          int64
	AppID       int64
	Repo        string
	HeadSHA     string
	Name        string
	ExternalID  string
	DetailsURL  string
	Status      string
	Conclusion  string
	Title       string
	Summary     string
	Text        string
	Annotations []Annotation
	StartedAt   time.Time
	CompletedAt time.Time
	Updates     int // PATCH calls that took effect
}

// Annotation is one on a source line.
type Annotation struct {
	Path      string `json:"path"`
	StartLine int    `json:"start_line"`
	EndLine   int    `json:"end_line"`
	Level     string `json:"annotation_level"`
	Message   string `json:"message"`
}

type checkRun struct {
	id                     int64
	suite                  int64
	app                    *app
	repo                   *repo
	headSHA, name          string
	externalID, detailsURL string
	status, conclusion     string
	title, summary, text   *string
	annotations            []Annotation
	started                time.Time
	completed              *time.Time
	updates                int
}

func (k *checkRun) view() CheckRun {
	v := CheckRun{
		ID: k.id, AppID: k.app.ID, Repo: k.repo.fullName(), HeadSHA: k.headSHA, Name: k.name,
		ExternalID: k.externalID, DetailsURL: k.detailsURL, Status: k.status, Conclusion: k.conclusion,
		Title: deref(k.title), Summary: deref(k.summary), Text: deref(k.text), Annotations: slices.Clone(k.annotations),
		StartedAt: k.started, Updates: k.updates,
	}
	if k.completed != nil {
		v.CompletedAt = *k.completed
	}
	return v
}

func deref(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

// ChecksFor lists the check runs of a commit, oldest first.
func (s *State) ChecksFor(repo, sha string) []CheckRun {
	var out []CheckRun
	for _, k := range s.g.checks {
		if key(k.repo.fullName()) == key(repo) && k.headSHA == sha {
			out = append(out, k.view())
		}
	}
	return out
}

// Current is the newest check run with this name on a commit: the one whose result GitHub shows.
func (s *State) Current(repo, sha, name string) (CheckRun, bool) {
	all := s.ChecksFor(repo, sha)
	for _, k := range slices.Backward(all) {
		if k.Name == name {
			return k, true
		}
	}
	return CheckRun{}, false
}

// ChecksFor is State.ChecksFor.
func (g *GitHub) ChecksFor(repo, sha string) []CheckRun {
	return locked(g, func(s *State) []CheckRun { return s.ChecksFor(repo, sha) })
}

// Current is State.Current.
func (g *GitHub) Current(repo, sha, name string) (CheckRun, bool) {
	defer g.lock()()
	return (&State{g: g}).Current(repo, sha, name)
}

func (g *GitHub) findCheck(repo string, id int64) *checkRun {
	for _, k := range g.checks {
		if k.id == id && key(k.repo.fullName()) == key(repo) {
			return k
		}
	}
	return nil
}

func createCheck(c *call) answer {
	req := c.checkRequest(true)
	if o := c.repo.db[*req.HeadSHA]; o == nil || o.Commit == nil {
		return refuse(http.StatusUnprocessableEntity, c.rt.doc, "No commit found for SHA: "+*req.HeadSHA)
	}
	k := &checkRun{
		id: c.g.core.NextID(), suite: c.g.suiteOf(c.app, c.repo, *req.HeadSHA), app: c.app, repo: c.repo,
		headSHA: *req.HeadSHA, status: statusQueued, started: c.g.now(),
		detailsURL: "https://example.com",
	}
	k.take(req, c.g.now())
	c.g.checks = append(c.g.checks, k)
	c.g.forget(k)
	c.check = k
	return created(k.json(c.g))
}

func updateCheck(c *call) answer {
	k := c.g.findCheck(c.repo.fullName(), c.number("id"))
	if k == nil {
		return notFound(c.rt.doc)
	}
	c.check = k
	if k.app != c.app {
		return refuse(http.StatusForbidden, c.rt.doc, "Invalid app_id `"+itoa(c.app.ID)+
			"` - check run can only be modified by the GitHub App that created it.")
	}
	req := c.checkRequest(false)
	k.take(req, c.g.now())
	k.updates++
	return ok(k.json(c.g))
}

// take carries a valid request over. A completed check run stays completed: a status alone does
// not open it again and its conclusion stays, while a new conclusion replaces the old one.
func (k *checkRun) take(req checkRequest, now time.Time) {
	set(&k.name, req.Name)
	set(&k.externalID, req.ExternalID)
	set(&k.detailsURL, req.DetailsURL)
	if req.StartedAt != nil {
		k.started = parseTime(*req.StartedAt)
	}
	if req.Output != nil {
		k.title, k.summary = req.Output.Title, req.Output.Summary
		if req.Output.Text != nil {
			k.text = req.Output.Text
		}
		// Annotations of later requests are added to those that are there.
		k.annotations = append(k.annotations, req.Output.Annotations...)
	}
	if req.Conclusion == nil {
		if k.status != statusCompleted {
			set(&k.status, req.Status)
		}
		return
	}
	k.status, k.conclusion = statusCompleted, *req.Conclusion
	done := now
	if req.CompletedAt != nil {
		done = parseTime(*req.CompletedAt)
	}
	k.completed = &done
}

func set(to *string, v *string) {
	if v != nil {
		*to = *v
	}
}

// suiteOf is the check suite of an App on a commit: GitHub makes one of its own.
func (g *GitHub) suiteOf(a *app, r *repo, sha string) int64 {
	k := itoa(a.ID) + "/" + itoa(r.id) + "/" + sha
	if g.suites[k] == 0 {
		g.suites[k] = g.core.NextID()
	}
	return g.suites[k]
}

// forget drops the oldest check runs of a name beyond what a suite keeps.
func (g *GitHub) forget(added *checkRun) {
	same := 0
	for _, k := range g.checks {
		if k.suite == added.suite && k.name == added.name {
			same++
		}
	}
	g.checks = slices.DeleteFunc(g.checks, func(k *checkRun) bool {
		if same <= maxSameName || k.suite != added.suite || k.name != added.name {
			return false
		}
		same--
		return true
	})
}

func getCheck(c *call) answer {
	k := c.g.findCheck(c.repo.fullName(), c.number("id"))
	if k == nil {
		return notFound(c.rt.doc)
	}
	return ok(k.json(c.g))
}

func listChecks(c *call) answer {
	cm := c.commitAt(c.r.PathValue("ref"))
	q := c.r.URL.Query()
	filter := cmp.Or(q.Get("filter"), "latest")
	if filter != "latest" && filter != "all" {
		return invalidRequest(c.rt.doc, []string{filter + ` is not a member of ["latest", "all"].`})
	}
	var list []*checkRun
	told := map[string]bool{}
	for _, k := range slices.Backward(c.g.checks) {
		if k.repo != c.repo || k.headSHA != cm.SHA {
			continue
		}
		id := strconv.FormatInt(k.suite, 10) + "/" + k.name
		hidden := filter == "latest" && told[id]
		told[id] = true
		if hidden || !k.matches(q.Get("check_name"), q.Get("status"), q.Get("app_id")) {
			continue
		}
		list = append(list, k)
	}
	list = list[:min(len(list), maxSameName)]
	return paged(c, list, func(part []*checkRun) any {
		return object{"total_count": len(list), "check_runs": shown(c.g, part, (*checkRun).json)}
	})
}

func (k *checkRun) matches(name, status, appID string) bool {
	return (name == "" || name == k.name) && (status == "" || status == k.status) &&
		(appID == "" || appID == itoa(k.app.ID))
}
