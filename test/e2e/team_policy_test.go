// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"knative.dev/pkg/apis"

	pacv1alpha1 "github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode/v1alpha1"
	"github.com/plumbline-ci/plumbline/test/forge"
)

// changeSettings patches the Repository's settings and waits until the controller has seen them.
func (env *environment) changeSettings(patch string) {
	env.t.Helper()
	env.patchSpec(`{"settings":` + patch + `}`)
}

// patchSpec patches the Repository's spec and waits until the controller has seen it.
func (env *environment) patchSpec(patch string) {
	env.t.Helper()
	repositories := env.Plumbline.PipelinesascodeV1alpha1().Repositories(env.ci)
	patched, err := repositories.Patch(env.ctx, "app", types.MergePatchType, []byte(`{"spec":`+patch+`}`),
		metav1.PatchOptions{})
	env.must(err)
	env.eventually(soon, "the spec "+patch+" is seen", func() error {
		repository, err := repositories.Get(env.ctx, "app", metav1.GetOptions{})
		if err == nil && repository.Status.ObservedGeneration < patched.Generation {
			err = errMissing
		}
		return err
	})
}

// patchSettings patches the Repository's settings and waits for its condition about them.
func (env *environment) patchSettings(patch, want, says string) {
	env.t.Helper()
	env.changeSettings(patch)
	env.awaitCondition(pacv1alpha1.RepositorySettings, want, says)
}

// awaitCondition waits for a condition of the Repository: its status and reason, and words of its
// message.
func (env *environment) awaitCondition(of apis.ConditionType, want string, says ...string) {
	env.t.Helper()
	env.eventually(afterFault, "the Repository's condition "+string(of)+" is "+want, func() error {
		repository, err := env.Plumbline.PipelinesascodeV1alpha1().Repositories(env.ci).Get(env.ctx, "app",
			metav1.GetOptions{})
		if err != nil {
			return err
		}
		condition := repository.Status.GetCondition(of)
		if condition == nil || string(condition.Status)+" "+condition.Reason != want ||
			!containsAll(condition.Message, says...) {
			env.takeOverCondition(repository, of)
			return fmt.Errorf("it is %v", condition)
		}
		return nil
	})
}

// takeOverCondition takes a condition over from the installation of another environment, which may
// have ended with its test: no other process updates it (docs/repository.md).
func (env *environment) takeOverCondition(r *pacv1alpha1.Repository, of apis.ConditionType) {
	env.t.Helper()
	writer := "plumbline.dev/" + string(of)
	if by := r.Status.Annotations[writer]; by == "" || by == env.Namespace {
		return
	}
	patch := fmt.Sprintf(`{"metadata":{"resourceVersion":%q},"status":{"annotations":{%q:null}}}`, r.ResourceVersion,
		writer)
	repositories := env.Plumbline.PipelinesascodeV1alpha1().Repositories(r.Namespace)
	if _, err := repositories.Patch(env.ctx, r.Name, types.MergePatchType, []byte(patch), metav1.PatchOptions{},
		"status"); !apierrors.IsConflict(err) {
		env.must(err)
	}
}

// requireRuns delivers the pull request of a user's fork, which must run and report nothing else.
func (env *environment) requireRuns(user string) {
	env.t.Helper()
	number, sha := env.openForkPull(user)
	env.deliver(env.opened(number), http.StatusAccepted)
	env.awaitCheck(sha, checkName("pr"), "success", soon)
	env.requireNoFailure(sha)
}

// requirePending delivers the pull request of a user's fork, which must wait for approval for the
// reason.
func (env *environment) requirePending(user, reason string) {
	env.t.Helper()
	number, _ := env.openForkPull(user)
	env.requirePendingReason(env.opened(number), reason)
}

func (env *environment) requirePendingReason(d delivery, reason string) {
	env.t.Helper()
	env.deliver(d, http.StatusAccepted)
	env.awaitPending(d)
	if event := env.recordOf(d); len(event.Status.Runs) != 0 || !strings.Contains(planOf(event).Message, reason) {
		env.t.Errorf("%d runs and %q, want none because %q", len(event.Status.Runs), planOf(event).Message, reason)
	}
}

// awaitRepositoryEvent waits for a Kubernetes Event on the Repository.
func (env *environment) awaitRepositoryEvent(reason, says string) {
	env.t.Helper()
	env.eventually(soon, "the Repository has a Kubernetes Event "+reason, func() error {
		if reported := env.reportedReasons(says); reported[reason] == 0 {
			return fmt.Errorf("the Events that say so are %v", reported)
		}
		return nil
	})
}

// teamsPolicy returns the patch that lets the teams' pull requests run.
func teamsPolicy(teams ...string) string {
	return `{"policy":{"pull_request":["` + strings.Join(teams, `","`) + `"]}}`
}

// S10, S25: a policy of teams replaces write access as the condition to run, on branches of the
// repository too. The user who acted must be in a team too. A list that names no team allows no
// user, and a missing team has no members.
func TestTeamPolicyDecidesAccess(t *testing.T) {
	forEachService(t, setup{receivers: 1, controllers: 1}, func(t *testing.T, env *environment) {
		env.git.grant("writer", "write")
		env.git.commit("main", forge.Change{Files: map[string]string{
			".tekton/pr.yaml": pipeline("pr", "pull_request"), ".tekton/push.yaml": pipeline("push", "push"),
			"OWNERS": "approvers: [owen]\n",
		}})
		team := env.git.join("releasers", "lisa")
		env.changeSettings(teamsPolicy(team))
		env.requireRuns("lisa")
		env.requireRuns("owen")
		env.requirePending("stranger", "is in no team that the Repository's settings.policy lists")
		own := env.git.commit("topic", forge.Change{Files: map[string]string{"a": "b"}, Author: "writer"})
		branch := env.git.open("", "topic", "writer")
		env.requirePendingReason(env.opened(branch), "is in no team")

		env.git.join("releasers", "lena")
		number, first := env.openForkPull("lena")
		env.deliver(env.opened(number), http.StatusAccepted)
		env.awaitCheck(first, checkName("pr"), "success", soon)
		theirs, pushed := env.pushText("lena", number, "writer", "theirs")
		env.requirePendingReason(pushed, "but the user who changed it may not")

		env.changeSettings(teamsPolicy("", " "))
		env.git.join("releasers", "lara")
		env.requirePending("lara", "names no team for pull requests")
		env.changeSettings(teamsPolicy("nowhere"))
		env.git.join("releasers", "lotte")
		env.requirePending("lotte", `"nowhere"`)
		env.awaitRepositoryEvent("TeamNotFound", `"nowhere"`)
		env.awaitCondition(pacv1alpha1.RepositoryPolicy, "False TeamNotFound", `"nowhere"`)
		env.changeSettings(teamsPolicy(team))
		env.git.join("releasers", "lulu")
		env.requireRuns("lulu")
		env.awaitCondition(pacv1alpha1.RepositoryPolicy, "True TeamsFound")
		pushedTo := env.git.commit("main", forge.Change{Files: map[string]string{"c": "d"}})
		env.deliver(env.git.pushed("refs/heads/main"), http.StatusAccepted)
		env.awaitCheck(pushedTo, checkName("push"), "success", soon)

		env.changeSettings(`{"policy":null}`)
		mine := env.git.commit("other", forge.Change{Files: map[string]string{"e": "f"}, Author: "writer"})
		env.deliver(env.opened(env.git.open("", "other", "writer")), http.StatusAccepted)
		env.awaitCheck(mine, checkName("pr"), "success", soon)
		if got := env.runsBySHA(); got[own] != 0 || got[theirs] != 0 || len(env.runs()) != 6 {
			t.Errorf("PipelineRuns by commit: %v, want six and none of %s and %s", got, own, theirs)
		}
	})
}

// S13: a policy that cannot be evaluated, because the Repository names a service that is not
// served, denies every run of a pull request: for members of its teams and for users with write
// access, by a pull request or a command. The condition names the policy. Pushes go on, and so do
// pull requests without the policy.
func TestUnevaluablePolicyDenies(t *testing.T) {
	forEachService(t, setup{receivers: 1, controllers: 1}, func(t *testing.T, env *environment) {
		const because = "in a way that this version cannot evaluate"
		env.git.grant("writer", "write")
		env.git.commit("main", forge.Change{Files: map[string]string{
			".tekton/pr.yaml": pipeline("pr", "pull_request"), ".tekton/push.yaml": pipeline("push", "push"),
		}})
		team := env.git.join("releasers", "lisa")
		env.patchSpec(`{"git_provider":{"type":"gitea"},"settings":{"policy":{"pull_request":["` + team +
			`"],"ok_to_test":["` + team + `"]}}}`)
		env.awaitCondition(pacv1alpha1.RepositorySettings, "False NotEvaluated", "settings.policy")
		env.requirePending("lisa", because)
		sha := env.git.commit("topic", forge.Change{Files: map[string]string{"a": "b"}, Author: "writer"})
		number := env.git.open("", "topic", "writer")
		env.requirePendingReason(env.opened(number), because)
		for _, who := range []string{"writer", "lisa"} {
			asked := env.comment(number, who, "/test")
			env.deliver(asked, http.StatusAccepted)
			env.requireDeclined(asked, because)
		}
		env.requireRunCount(0)
		pushed := env.git.commit("main", forge.Change{Files: map[string]string{"c": "d"}})
		env.deliver(env.git.pushed("refs/heads/main"), http.StatusAccepted)
		env.awaitCheck(pushed, checkName("push"), "success", soon)

		env.changeSettings(`{"policy":null}`)
		env.deliver(env.reopen(number, "writer"), http.StatusAccepted)
		env.awaitCheck(sha, checkName("pr"), "success", soon)
	})
}

// failOwners makes the look-up of OWNERS fail: on GitHub its location, on GitLab its content.
func (env *environment) failOwners() *forge.FaultHandle {
	at, path := readDirectory, "/git/trees/HEAD"
	if env.git.kind() == gitLab {
		at, path = readReference, "OWNERS"
	}
	return env.git.inject(at, forge.Fault{
		Match: func(r *http.Request) bool { return strings.Contains(r.URL.Path, path) }, Do: forge.ServerError502HTML(),
	})
}

// S12: an error of any look-up makes the event wait, whatever was looked up. That a user is in no
// team is an answer, not an error.
func TestUntrustedUserNeverRunsWhenLookupsFail(t *testing.T) {
	t.Parallel()
	answers := map[string]forge.Action{
		"broken-500":    forge.Answer(500, http.Header{"Content-Type": {"application/json"}}, `{"message":"Server Error"}`),
		"unicorn-502":   forge.ServerError502HTML(),
		"page-200":      forge.Answer(200, http.Header{"Content-Type": {"text/html"}}, "<html>active</html>"),
		"dropped":       forge.Drop(),
		"forbidden-403": forge.Answer(403, http.Header{"Content-Type": {"application/json"}}, `{"message":"Forbidden"}`),
		"empty-200":     forge.Answer(200, http.Header{"Content-Type": {"application/json"}}, `{}`),
	}
	config := [][3]string{{"plumbline", "members-may-run", "true"}}
	for asked, prepare := range map[operation]func(*environment){
		askTeam:   func(env *environment) { env.changeSettings(teamsPolicy(env.git.join("releasers", "somebody"))) },
		askMember: func(*environment) {}, askPermission: func(*environment) {},
	} {
		t.Run(strings.ReplaceAll(string(asked), " ", "_"), func(t *testing.T) {
			onlyInTestAllUnless(t, asked != askMember)
			forEachKind(t, func(t *testing.T, on kind) { // the other events still wait at its end
				env := newClaimedEnvironment(t, setup{service: on, receivers: 1, controllers: 1, proxied: true, config: config})
				env.git.commit("main", forge.Change{
					Files: map[string]string{".tekton/pr.yaml": pipeline("pr", "pull_request"), "OWNERS": "approvers: [somebody]\n"},
				})
				prepare(env)
				owners := env.failOwners()
				type waiting struct {
					sha string
					delivery
				}
				all, faults := map[string]waiting{}, map[string]*forge.FaultHandle{}
				for name, do := range answers {
					if asked != askTeam && env.git.kind() == gitLab && name == "empty-200" {
						continue // no role of GitLab has it
					}
					user := name
					number, sha := env.openForkPull(user)
					faults[name] = env.git.inject(asked, forge.Fault{Match: about(user), Do: do})
					all[name] = waiting{sha, env.opened(number)}
					env.deliver(all[name].delivery, http.StatusAccepted)
				}
				number, sha := env.openForkPull("of-owners")
				all["of-owners"] = waiting{sha, env.opened(number)}
				env.deliver(all["of-owners"].delivery, http.StatusAccepted)
				env.awaitHits(owners, 1)
				for name, e := range all {
					env.requireAccessWait(name, e.sha, e.delivery)
				}
				env.requireNothingStarted()
				owners.Remove()
				env.awaitPending(all["of-owners"].delivery) // OWNERS without this user is an answer
				delete(all, "of-owners")
				for name, e := range all {
					env.awaitHits(faults[name], 1)
					env.requireAccessWait(name, e.sha, e.delivery)
				}
				env.requireNothingStarted()
			})
		})
	}
}
