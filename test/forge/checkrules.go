// SPDX-License-Identifier: Apache-2.0

package forge

import (
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/plumbline-ci/plumbline/test/forge/internal/traffic"
)

// GitHub's limits on a check run; rules.md has their pages.
const (
	maxCheckText   = 65535 // characters of summary and of text
	maxAnnotations = 50    // of one request
	maxMessage     = 64 << 10
	maxActions     = 3
)

// checkRequest is the body of POST and PATCH check-runs.
type checkRequest struct {
	Name        *string      `json:"name"`
	HeadSHA     *string      `json:"head_sha"`
	DetailsURL  *string      `json:"details_url"`
	ExternalID  *string      `json:"external_id"`
	Status      *string      `json:"status"`
	Conclusion  *string      `json:"conclusion"`
	StartedAt   *string      `json:"started_at"`
	CompletedAt *string      `json:"completed_at"`
	Output      *checkOutput `json:"output"`
}

type checkOutput struct {
	Title       *string      `json:"title"`
	Summary     *string      `json:"summary"`
	Text        *string      `json:"text"`
	Annotations []Annotation `json:"annotations"`
}

// checkRequest validates the body as the API's schema does, then as its model
// does, and returns it; the answer is the refusal.
func (c *call) checkRequest(create bool) checkRequest {
	var req checkRequest
	var body map[string]any
	if err := json.Unmarshal(c.body, &body); err != nil {
		panic(traffic.Refuse(c.problemsParsing()))
	}
	s := &schema{}
	s.check(body, create)
	if c.g.opts.RefuseEarlyConclusion && text(body, "conclusion") != "" {
		if st := text(body, "status"); st != "" && st != statusCompleted {
			s.fail("For 'properties/status', %s does not go with a conclusion.", st)
		}
	}
	if len(s.problems) > 0 {
		panic(traffic.Refuse(invalidRequest(c.rt.doc, s.problems)))
	}
	if err := json.Unmarshal(c.body, &req); err != nil {
		panic(traffic.Refuse(c.problemsParsing()))
	}
	if problem := badURL(req.DetailsURL); problem != "" {
		panic(traffic.Refuse(validationFailed(c.rt.doc, fieldError{"CheckRun", "custom", "details_url", problem})))
	}
	return req
}

func badURL(s *string) string {
	if s == nil {
		return ""
	}
	u, err := url.Parse(*s)
	if err == nil && u.Scheme != "http" && u.Scheme != "https" {
		return "details_url must use the http or https scheme"
	}
	if err != nil || u.Host == "" {
		return "details_url is not a valid URL"
	}
	return ""
}

// schema collects what is wrong with a body, in the words of GitHub's schema check.
type schema struct{ problems []string }

func (s *schema) fail(format string, args ...any) {
	s.problems = append(s.problems, fmt.Sprintf(format, args...))
}

func (s *schema) check(body map[string]any, create bool) {
	if create {
		s.required(body, "name", "head_sha")
	}
	for _, f := range []string{"name", "head_sha", "details_url", "external_id", "status", "conclusion", "started_at",
		"completed_at"} {
		s.isString(body, f)
	}
	for _, f := range []string{"name", "head_sha"} {
		if v, given := body[f]; given && v == "" {
			s.fail("For 'properties/%s', \"\" is too short.", f)
		}
	}
	s.member(body, "status", statusQueued, statusInProgress, statusCompleted)
	s.member(body, "conclusion", "success", "failure", "neutral", "cancelled", "timed_out", "action_required", "skipped")
	s.timestamp(body, "started_at")
	s.timestamp(body, "completed_at")
	_, ended := body["completed_at"]
	if _, concluded := body["conclusion"]; !concluded && (ended || body["status"] == statusCompleted) {
		s.fail(`"conclusion" wasn't supplied.`)
	}
	s.output(body)
	s.actions(body)
}

func (s *schema) required(o map[string]any, names ...string) {
	var missing []string
	for _, n := range names {
		if _, given := o[n]; !given {
			missing = append(missing, fmt.Sprintf("%q", n))
		}
	}
	switch len(missing) {
	case 0:
	case 1:
		s.fail("%s wasn't supplied.", missing[0])
	default:
		s.fail("%s weren't supplied.", strings.Join(missing, ", "))
	}
}

func (s *schema) isString(o map[string]any, name string) {
	v, given := o[name]
	if _, isText := v.(string); given && !isText {
		s.fail("For 'properties/%s', %s is not a string.", name, ruby(v))
	}
}

func (s *schema) member(o map[string]any, name string, allowed ...string) {
	v, isText := o[name].(string)
	if isText && !slices.Contains(allowed, v) {
		s.fail("%s is not a member of [\"%s\"].", v, strings.Join(allowed, `", "`))
	}
}

func (s *schema) timestamp(o map[string]any, name string) {
	v, isText := o[name].(string)
	if _, err := time.Parse(time.RFC3339, v); isText && err != nil {
		s.fail("For 'properties/%s', %s is not a valid date-time.", name, v)
	}
}

func (s *schema) output(body map[string]any) {
	v, given := body["output"]
	if !given {
		return
	}
	out, isObject := v.(map[string]any)
	if !isObject {
		s.fail("For 'properties/output', %s is not an object.", ruby(v))
		return
	}
	s.required(out, "title", "summary")
	for _, f := range []string{"title", "summary", "text"} {
		s.isString(out, f)
	}
	for _, f := range []string{"summary", "text"} {
		if n := utf8.RuneCountInString(text(out, f)); n > maxCheckText {
			s.fail("Only %d characters are allowed; %d were supplied.", maxCheckText, n)
		}
	}
	list, _ := out["annotations"].([]any)
	if len(list) > maxAnnotations {
		s.fail("No more than %d items are allowed; %d were supplied.", maxAnnotations, len(list))
	}
	for _, a := range list {
		s.annotation(a)
	}
}

func (s *schema) annotation(v any) {
	a, isObject := v.(map[string]any)
	if !isObject {
		s.fail("%s is not an object.", ruby(v))
		return
	}
	s.required(a, "path", "start_line", "end_line", "annotation_level", "message")
	for _, f := range []string{"path", "message", "annotation_level", "title", "raw_details"} {
		s.isString(a, f)
	}
	for _, f := range []string{"start_line", "end_line", "start_column", "end_column"} {
		n, isNumber := a[f].(float64)
		if _, given := a[f]; given && (!isNumber || n != float64(int(n))) {
			s.fail("For 'properties/%s', %s is not an integer.", f, ruby(a[f]))
		}
	}
	s.member(a, "annotation_level", "notice", "warning", "failure")
	if n := len(text(a, "message")); n > maxMessage {
		s.fail("Only %d characters are allowed; %d were supplied.", maxMessage, n)
	}
}

func (s *schema) actions(body map[string]any) {
	list, _ := body["actions"].([]any)
	if len(list) > maxActions {
		s.fail("No more than %d items are allowed; %d were supplied.", maxActions, len(list))
	}
	for _, v := range list {
		a, _ := v.(map[string]any)
		s.required(a, "label", "description", "identifier")
		for f, limit := range map[string]int{"label": 20, "description": 40, "identifier": 20} {
			if n := utf8.RuneCountInString(text(a, f)); n > limit {
				s.fail("Only %d characters are allowed; %d were supplied.", limit, n)
			}
		}
	}
}

// ruby prints a JSON value as GitHub's messages do.
func ruby(v any) string {
	if v == nil {
		return "nil"
	}
	b, err := json.Marshal(v)
	if err != nil {
		return fmt.Sprint(v)
	}
	return string(b)
}

func parseTime(s string) time.Time {
	t, _ := time.Parse(time.RFC3339, s) // the schema check has passed
	return t.UTC()
}
