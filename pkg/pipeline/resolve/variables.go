// SPDX-License-Identifier: Apache-2.0

package resolve

import (
	"cmp"
	"strconv"
	"strings"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/git"
	"github.com/plumbline-ci/plumbline/pkg/pipeline/match"
)

const (
	branchPrefix = "refs/heads/"
	tagPrefix    = "refs/tags/"
)

// Variables returns the standard template variables of an event. A variable that has no value for
// the event is empty, except pull_request_number, which is then missing. The caller adds
// git_auth_secret. PaC's documentation has the variable event, but its code does not; here it
// exists.
func Variables(ev *v1alpha1.GitEventSpec, head git.Head, namespace string) map[string]string {
	vars := map[string]string{
		"revision":            head.SHA,
		"repo_url":            cmp.Or(ev.Project.CloneURL, ev.Project.URL),
		"repo_owner":          strings.ToLower(ev.Project.Owner),
		"repo_name":           strings.ToLower(ev.Project.Name),
		"target_branch":       branch(ev.BaseRef),
		"source_branch":       branch(ev.HeadRef),
		"git_tag":             tag(ev.BaseRef),
		"source_url":          ev.HeadURL,
		"sender":              strings.ToLower(ev.Sender),
		"target_namespace":    namespace,
		"event":               string(ev.Trigger),
		"event_type":          eventType(ev),
		"trigger_comment":     "",
		"pull_request_labels": "",
	}
	if ev.Comment != nil {
		vars["trigger_comment"] = strings.NewReplacer("\r\n", `\n`, "\n", `\n`).Replace(ev.Comment.Body)
	}
	if ev.PullRequest != nil {
		vars["pull_request_labels"] = strings.Join(ev.PullRequest.Labels, `\n`)
		vars["pull_request_number"] = strconv.FormatInt(ev.PullRequest.Number, 10)
	}
	return vars
}

// eventType returns the type that definitions read. For a command it is the type of the command's
// subject, without the command itself. Pipelines-as-Code has "pull_request" on commits as well,
// which are pushes.
func eventType(ev *v1alpha1.GitEventSpec) string {
	if ev.Comment != nil && ev.EventType != match.CommentEvent {
		return string(ev.Trigger)
	}
	return ev.EventType
}

// branch returns a ref as authors write it: branches without prefix, tags with theirs.
func branch(ref string) string {
	return strings.TrimPrefix(ref, branchPrefix)
}

// tag returns a tag's name, or "" for a branch.
func tag(ref string) string {
	name, isTag := strings.CutPrefix(ref, tagPrefix)
	if !isTag {
		return ""
	}
	return name
}
