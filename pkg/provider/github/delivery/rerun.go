// SPDX-License-Identifier: Apache-2.0

package delivery

import (
	"slices"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/pkg/provider"
	"github.com/plumbline-ci/plumbline/pkg/provider/payload"
	"github.com/plumbline-ci/plumbline/pkg/status/text"
)

// actionRerequested means that a user clicked "Re-run" at a check, "Re-run failed checks" (one
// delivery for each check) or "Re-run all checks" (one for the suite). GitHub sends it to the App
// that owns the check, without a subscription. Other actions of checks (created, completed) start
// nothing.
const actionRerequested = "rerequested"

// payloadRerun is a check run or a check suite that is requested again.
type payloadRerun struct {
	payloadCommon
	CheckRun *struct {
		Name         string            `json:"name"`
		HeadSHA      string            `json:"head_sha"`
		ExternalID   string            `json:"external_id"`
		App          payloadApp        `json:"app"`
		Suite        *payloadSuite     `json:"check_suite"`
		PullRequests []payloadPullLink `json:"pull_requests"`
	} `json:"check_run"`
	CheckSuite *payloadSuite `json:"check_suite"`
}

// payloadSuite has all check runs of an App on a commit. For a fork's commit GitHub knows neither
// branch nor pull requests: these are null and empty.
type payloadSuite struct {
	HeadBranch   string            `json:"head_branch"`
	HeadSHA      string            `json:"head_sha"`
	App          payloadApp        `json:"app"`
	PullRequests []payloadPullLink `json:"pull_requests"`
	// UpdatedAt is when the re-run was requested: that sets the suite's status back to queued.
	UpdatedAt moment `json:"updated_at"`
}

type payloadApp struct {
	ID int64 `json:"id"`
}

// payloadPullLink is a pull request in the form that checks have. Its base may be another
// repository.
type payloadPullLink struct {
	Number int64 `json:"number"`
	Base   struct {
		Repo struct {
			ID int64 `json:"id"`
		} `json:"repo"`
	} `json:"base"`
}

// decodeRerun decodes a re-run request. The delivery does not say whether a push or a pull request
// ran. It is recorded as a push to the branch that GitHub names, until the plan knows.
func decodeRerun(event string, body []byte) (*v1alpha1.GitEventSpec, error) {
	var p payloadRerun
	if err := payload.Unmarshal(body, &p); err != nil {
		return nil, err
	}
	if p.Action != actionRerequested {
		return nil, fault.Ignoredf(reasonUnsupportedAction, "%s action %q starts nothing", event, p.Action)
	}
	spec, err := p.base()
	if err != nil {
		return nil, err
	}
	if p.Sender == nil {
		return nil, payload.Missing("sender")
	}
	if err := payload.Check(payload.Text("sender.login", p.Sender.Login, payload.MaxLogin)); err != nil {
		return nil, err
	}
	spec.Trigger, spec.EventType, spec.Action, spec.Sender = v1alpha1.TriggerPush, "push", p.Action, p.Sender.Login
	if event == "check_run" {
		return spec, p.ofRun(spec)
	}
	return spec, p.ofSuite(spec)
}

func (p *payloadRerun) ofRun(spec *v1alpha1.GitEventSpec) error {
	run := p.CheckRun
	switch {
	case run == nil:
		return payload.Missing("check_run")
	case run.App.ID <= 0:
		return payload.Missing("check_run.app.id")
	case run.ExternalID == "": // each of our checks has one
		return fault.Ignoredf(reasonUnknownCheck, "the check is none of Plumbline's: it has no external id")
	}
	if err := payload.Check(
		payload.Text("check_run.name", run.Name, payload.MaxName),
		payload.Text("check_run.external_id", run.ExternalID, payload.MaxName),
	); err != nil {
		return err
	}
	spec.Rerun = &v1alpha1.Rerun{Check: run.Name, ExternalID: run.ExternalID, AppID: run.App.ID}
	suite := payloadSuite{}
	if run.Suite != nil {
		suite = *run.Suite
	}
	return p.locate(spec, run.HeadSHA, &suite, append(run.PullRequests, suite.PullRequests...))
}

func (p *payloadRerun) ofSuite(spec *v1alpha1.GitEventSpec) error {
	suite := p.CheckSuite
	switch {
	case suite == nil:
		return payload.Missing("check_suite")
	case suite.App.ID <= 0:
		return payload.Missing("check_suite.app.id")
	}
	spec.Rerun = &v1alpha1.Rerun{All: true, AppID: suite.App.ID}
	return p.locate(spec, suite.HeadSHA, suite, suite.PullRequests)
}

// locate fills in the commit, and what GitHub says about where it is.
func (p *payloadRerun) locate(
	spec *v1alpha1.GitEventSpec, sha string, suite *payloadSuite, pulls []payloadPullLink,
) error {
	if !provider.IsSHA(sha) {
		return payload.Missing("head_sha")
	}
	if branch := suite.HeadBranch; branch != "" {
		if len(branch) > payload.MaxRef || text.Clean(branch) != branch {
			return payload.Missing("check_suite.head_branch")
		}
		spec.BaseRef, spec.HeadRef, spec.HeadURL = branchPrefix+branch, branchPrefix+branch, p.Repository.HTMLURL
	}
	for _, pull := range pulls {
		known := slices.Contains(spec.Rerun.Pulls, pull.Number)
		if pull.Number > 0 && pull.Base.Repo.ID == p.Repository.ID && !known &&
			len(spec.Rerun.Pulls) < v1alpha1.MaxRerunPulls {
			spec.Rerun.Pulls = append(spec.Rerun.Pulls, pull.Number)
		}
	}
	spec.SHA, spec.Body = sha, suite.UpdatedAt.identity()
	return nil
}
