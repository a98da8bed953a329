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

// set patches the Repository's settings and waits until they are known.
func (w *world) set(patch string) {
	w.t.Helper()
	w.specify(`{"settings":` + patch + `}`)
}

// specify patches the Repository's spec and waits until that is known.
func (w *world) specify(patch string) {
	w.t.Helper()
	repositories := w.Plumbline.PipelinesascodeV1alpha1().Repositories(w.ci)
	patched, err := repositories.Patch(w.ctx, "app", types.MergePatchType, []byte(`{"spec":`+patch+`}`), metav1.PatchOptions{})
	w.must(err)
	w.eventually(soon, "the spec "+patch+" is seen", func() error {
		repository, err := repositories.Get(w.ctx, "app", metav1.GetOptions{})
		if err == nil && repository.Status.ObservedGeneration < patched.Generation {
			err = errMissing
		}
		return err
	})
}

// settings patches the Repository's settings and waits for its condition about them.
func (w *world) settings(patch, want, says string) {
	w.t.Helper()
	w.set(patch)
	w.conditioned(pacv1alpha1.RepositorySettings, want, says)
}

// conditioned waits for a condition of the Repository: its status and reason, and words of its
// message.
func (w *world) conditioned(of apis.ConditionType, want string, says ...string) {
	w.t.Helper()
	w.eventually(afterFault, "the Repository's condition "+string(of)+" is "+want, func() error {
		repository, err := w.Plumbline.PipelinesascodeV1alpha1().Repositories(w.ci).Get(w.ctx, "app", metav1.GetOptions{})
		if err != nil {
			return err
		}
		condition := repository.Status.GetCondition(of)
		if condition == nil || string(condition.Status)+" "+condition.Reason != want || !containsAll(condition.Message, says...) {
			w.takesOver(repository, of)
			return fmt.Errorf("it is %v", condition)
		}
		return nil
	})
}

// takesOver takes a condition from another world's installation, which may have ended with its
// test: nobody else makes it true (docs/repository.md).
func (w *world) takesOver(r *pacv1alpha1.Repository, of apis.ConditionType) {
	w.t.Helper()
	writer := "plumbline.dev/" + string(of)
	if by := r.Status.Annotations[writer]; by == "" || by == w.Namespace {
		return
	}
	patch := fmt.Sprintf(`{"metadata":{"resourceVersion":%q},"status":{"annotations":{%q:null}}}`, r.ResourceVersion, writer)
	repositories := w.Plumbline.PipelinesascodeV1alpha1().Repositories(r.Namespace)
	if _, err := repositories.Patch(w.ctx, r.Name, types.MergePatchType, []byte(patch), metav1.PatchOptions{}, "status"); !apierrors.IsConflict(err) {
		w.must(err)
	}
}

// runsFor delivers the pull request of a user's fork, which must run and tell nothing else.
func (w *world) runsFor(user string) {
	w.t.Helper()
	number, sha := w.forkPull(user)
	w.deliver(w.opened(number), http.StatusAccepted)
	w.checkReaches(sha, checkName("pr"), "success", soon)
	w.neverFailed(sha)
}

// pendsFor delivers the pull request of a user's fork, which must wait for approval for the reason.
func (w *world) pendsFor(user, reason string) {
	w.t.Helper()
	number, _ := w.forkPull(user)
	w.pendsBecause(w.opened(number), reason)
}

func (w *world) pendsBecause(d delivery, reason string) {
	w.t.Helper()
	w.deliver(d, http.StatusAccepted)
	w.pends(d)
	if event := w.recordOf(d); len(event.Status.Runs) != 0 || !strings.Contains(planOf(event).Message, reason) {
		w.t.Errorf("%d runs and %q, want none because %q", len(event.Status.Runs), planOf(event).Message, reason)
	}
}

// repositoryTold waits for a Kubernetes Event on the Repository.
func (w *world) repositoryTold(reason, says string) {
	w.t.Helper()
	w.eventually(soon, "the Repository is told "+reason, func() error {
		if told := w.told(says); told[reason] == 0 {
			return fmt.Errorf("the Events that say so are %v", told)
		}
		return nil
	})
}

// listing is the patch that lets the teams' pull requests run.
func listing(teams ...string) string {
	return `{"policy":{"pull_request":["` + strings.Join(teams, `","`) + `"]}}`
}

// S10, S25: a policy of teams says who may in the place of write access, on branches of the
// repository as well. Whoever acted has to be in it, too. A list that names no team lets nobody in,
// and a team that is not there has nobody in it.
func TestAPolicyOfTeams(t *testing.T) {
	t.Parallel()
	forEachService(t, setup{receivers: 1, controllers: 1}, func(t *testing.T, w *world) {
		w.git.grant("writer", "write")
		w.git.commit("main", forge.Change{Files: map[string]string{
			".tekton/pr.yaml": pipeline("pr", "pull_request"), ".tekton/push.yaml": pipeline("push", "push"), "OWNERS": "approvers: [owen]\n",
		}})
		team := w.git.join("releasers", "lisa")
		w.set(listing(team))
		w.runsFor("lisa")
		w.runsFor("owen")
		w.pendsFor("stranger", "is in no team that the Repository's settings.policy lists")
		own := w.git.commit("topic", forge.Change{Files: map[string]string{"a": "b"}, Author: "writer"})
		branch := w.git.open("", "topic", "writer")
		w.pendsBecause(w.opened(branch), "is in no team")

		w.git.join("releasers", "lena")
		number, first := w.forkPull("lena")
		w.deliver(w.opened(number), http.StatusAccepted)
		w.checkReaches(first, checkName("pr"), "success", soon)
		theirs, pushed := w.pushTo("lena", number, "writer", "theirs")
		w.pendsBecause(pushed, "but the user who changed it may not")

		w.set(listing("", " "))
		w.git.join("releasers", "lara")
		w.pendsFor("lara", "names no team for pull requests")
		w.set(listing("nowhere"))
		w.git.join("releasers", "lotte")
		w.pendsFor("lotte", `"nowhere"`)
		w.repositoryTold("TeamNotFound", `"nowhere"`)
		w.conditioned(pacv1alpha1.RepositoryPolicy, "False TeamNotFound", `"nowhere"`)
		w.set(listing(team))
		w.git.join("releasers", "lulu")
		w.runsFor("lulu")
		w.conditioned(pacv1alpha1.RepositoryPolicy, "True TeamsFound")
		pushedTo := w.git.commit("main", forge.Change{Files: map[string]string{"c": "d"}})
		w.deliver(w.git.pushed("refs/heads/main"), http.StatusAccepted)
		w.checkReaches(pushedTo, checkName("push"), "success", soon)

		w.set(`{"policy":null}`)
		mine := w.git.commit("other", forge.Change{Files: map[string]string{"e": "f"}, Author: "writer"})
		w.deliver(w.opened(w.git.open("", "other", "writer")), http.StatusAccepted)
		w.checkReaches(mine, checkName("pr"), "success", soon)
		if got := w.runsBySHA(); got[own] != 0 || got[theirs] != 0 || len(w.runs()) != 6 {
			t.Errorf("PipelineRuns by commit: %v, want six and none of %s and %s", got, own, theirs)
		}
	})
}

// S13: a policy that cannot be evaluated, because the Repository names a service that is not
// served, lets nobody start the run of a pull request: not who is in its team, and not who may
// write, by a pull request or a command. The condition names it. Pushes go on, and without the
// policy so do pull requests.
func TestAPolicyThatCannotBeEvaluatedDenies(t *testing.T) {
	t.Parallel()
	forEachService(t, setup{receivers: 1, controllers: 1}, func(t *testing.T, w *world) {
		const because = "which this version cannot evaluate"
		w.git.grant("writer", "write")
		w.git.commit("main", forge.Change{Files: map[string]string{
			".tekton/pr.yaml": pipeline("pr", "pull_request"), ".tekton/push.yaml": pipeline("push", "push"),
		}})
		team := w.git.join("releasers", "lisa")
		w.specify(`{"git_provider":{"type":"gitea"},"settings":{"policy":{"pull_request":["` + team + `"],"ok_to_test":["` + team + `"]}}}`)
		w.conditioned(pacv1alpha1.RepositorySettings, "False NotEvaluated", "settings.policy")
		w.pendsFor("lisa", because)
		sha := w.git.commit("topic", forge.Change{Files: map[string]string{"a": "b"}, Author: "writer"})
		number := w.git.open("", "topic", "writer")
		w.pendsBecause(w.opened(number), because)
		for _, who := range []string{"writer", "lisa"} {
			asked := w.commands(number, who, "/test")
			w.deliver(asked, http.StatusAccepted)
			w.declines(asked, because)
		}
		if runs := w.runs(); len(runs) != 0 {
			t.Errorf("%d PipelineRuns, want none", len(runs))
		}
		pushed := w.git.commit("main", forge.Change{Files: map[string]string{"c": "d"}})
		w.deliver(w.git.pushed("refs/heads/main"), http.StatusAccepted)
		w.checkReaches(pushed, checkName("push"), "success", soon)

		w.set(`{"policy":null}`)
		w.deliver(w.reopens(number, "writer"), http.StatusAccepted)
		w.checkReaches(sha, checkName("pr"), "success", soon)
	})
}

// ownersFail makes the look-up of OWNERS fail: on GitHub where it is, on GitLab what it says.
func (w *world) ownersFail() *forge.FaultHandle {
	at, path := readDirectory, "/git/trees/HEAD"
	if w.git.kind() == gitLab {
		at, path = readReference, "OWNERS"
	}
	return w.git.inject(at, forge.Fault{Match: func(r *http.Request) bool { return strings.Contains(r.URL.Path, path) }, Do: forge.ServerError502HTML()})
}

// S12: an error of any look-up is a wait, whatever was asked for. That somebody is in no team is an
// answer.
func TestStrangerNeverRunsWhateverIsAskedFor(t *testing.T) {
	t.Parallel()
	answers := map[string]forge.Action{
		"broken-500": forge.Answer(500, http.Header{"Content-Type": {"application/json"}}, `{"message":"Server Error"}`), "unicorn-502": forge.ServerError502HTML(),
		"page-200": forge.Answer(200, http.Header{"Content-Type": {"text/html"}}, "<html>active</html>"), "dropped": forge.Drop(),
		"forbidden-403": forge.Answer(403, http.Header{"Content-Type": {"application/json"}}, `{"message":"Forbidden"}`),
		"empty-200":     forge.Answer(200, http.Header{"Content-Type": {"application/json"}}, `{}`),
	}
	config := [][3]string{{"plumbline", "members-may-run", "true"}}
	for asked, prepare := range map[operation]func(*world){
		askTeam:   func(w *world) { w.set(listing(w.git.join("releasers", "somebody"))) },
		askMember: func(*world) {}, askPermission: func(*world) {},
	} {
		t.Run(strings.ReplaceAll(string(asked), " ", "_"), func(t *testing.T) {
			onlyInTestAllUnless(t, asked != askMember)
			t.Parallel()
			forEachKind(t, func(t *testing.T, on kind) { // the others still wait at its end
				w := newWorld(t, setup{service: on, receivers: 1, controllers: 1, proxied: true, config: config})
				w.claimed()
				w.git.commit("main", forge.Change{Files: map[string]string{".tekton/pr.yaml": pipeline("pr", "pull_request"), "OWNERS": "approvers: [somebody]\n"}})
				prepare(w)
				owners := w.ownersFail()
				type waiting struct {
					sha string
					delivery
				}
				all, faults := map[string]waiting{}, map[string]*forge.FaultHandle{}
				for name, do := range answers {
					if asked != askTeam && w.git.kind() == gitLab && name == "empty-200" {
						continue // there it is nobody's role
					}
					user := name
					number, sha := w.forkPull(user)
					faults[name] = w.git.inject(asked, forge.Fault{Match: about(user), Do: do})
					all[name] = waiting{sha, w.opened(number)}
					w.deliver(all[name].delivery, http.StatusAccepted)
				}
				number, sha := w.forkPull("of-owners")
				all["of-owners"] = waiting{sha, w.opened(number)}
				w.deliver(all["of-owners"].delivery, http.StatusAccepted)
				w.hit(owners, 1)
				for name, e := range all {
					w.waitsForAccess(name, e.sha, e.delivery)
				}
				w.nothingRan()
				owners.Remove()
				w.pends(all["of-owners"].delivery) // OWNERS without this user are an answer
				delete(all, "of-owners")
				for name, e := range all {
					w.hit(faults[name], 1)
					w.waitsForAccess(name, e.sha, e.delivery)
				}
				w.nothingRan()
			})
		})
	}
}
