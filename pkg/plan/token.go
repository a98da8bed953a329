// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"encoding/json"
	"strings"

	pipelinev1 "github.com/tektoncd/pipeline/pkg/apis/pipeline/v1"
)

// gitAuthVariable is the placeholder for the name of the git-auth secret.
const gitAuthVariable = "git_auth_secret"

// hasToken reports whether runs get a git-auth secret. They do not get the token of the global
// Repository: a user with write access to a tenant's namespace could read every project that it
// covers. An approved commit gets only a token of its own, which reads this repository and nothing
// else.
func (d *draft) hasToken() bool {
	if d.Approval != nil && d.spec.InstallationID == 0 {
		return false
	}
	return d.Config.SecretAutoCreate && (!d.Shared || d.Config.ShareGlobalToken)
}

// tokenNote returns what the author may not expect about the token, empty for nothing.
func (d *draft) tokenNote(made *pipelinev1.PipelineRun) string {
	if !d.hasToken() {
		if !d.Config.SecretAutoCreate || !mentions(made, gitAuthVariable) {
			return ""
		}
		if d.Approval != nil && d.spec.InstallationID == 0 {
			return "There is no git-auth secret: the commit is by an untrusted user, and the Repository's token may do more than read it."
		}
		return "There is no git-auth secret: the token is that of the global Repository, and it is not given to pods. " +
			"Name a Secret of this namespace in git_provider.secret of the Repository, or ask the administrator for share-global-token."
	}
	settings := d.Repository.Spec.Settings
	if settings == nil {
		return ""
	}
	_, denied := d.Config.RunToken(settings.RunTokenPermissions)
	if len(denied) == 0 {
		return ""
	}
	return "The run's token lacks permissions that settings.run_token_permissions requests: " +
		"the administrator's run-token-permissions does not allow " + strings.Join(denied, ", ") + "."
}

// mentions reports whether a word occurs in a PipelineRun.
func mentions(made *pipelinev1.PipelineRun, word string) bool {
	text, err := json.Marshal(made)
	return err == nil && strings.Contains(string(text), word)
}
