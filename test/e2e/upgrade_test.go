// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/yaml"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/test/installation"
)

// H5: events that the previous version left in every unsettled state are finished by this one.
// Each has one run and one correct check, and nothing runs twice.
func TestEventsOfPreviousVersionFinish(t *testing.T) {
	t.Parallel()
	if os.Getenv(installation.OfEnv) != "" {
		t.Skip("another version is recorded")
	}
	env, commits := newUpgradeEnvironment(t)
	env.git.open("", upPulled, somebody)
	before := env.restoreRecord()
	env.startReceiver(false)
	env.startController(false)

	env.awaitCheck(commits[upRunning], checkName(upRunning), "in_progress", soon)
	for _, state := range upgradeStates() {
		if strings.Contains(upgradePipeline(state), held) && state != upFinished {
			event := env.awaitRunsCreated(commits[state])
			env.releaseRuns(event)
		}
	}
	for _, state := range upgradeStates() {
		sha := commits[state]
		env.awaitCheck(sha, checkName(state), "success", afterFault)
		env.awaitSettled(sha, afterFault)
		env.requireOneCheck(sha, checkName(state))
		env.requireNoFailure(sha)
		if runs := env.runsOfState(state); len(runs) != 1 || before[state] != "" && runs[0] != before[state] {
			t.Errorf("%s: runs %v, want one, and %q if it is not empty", state, runs, before[state])
		}
	}
	events := env.awaitAllSettled(afterFault)
	if len(events) != len(commits) {
		t.Errorf("%d events, want %d", len(events), len(commits))
	}
	for _, event := range events {
		if event.Status.Disposition != v1alpha1.DispositionRuns {
			t.Errorf("%s is %s, want its run", event.Name, event.Status.Disposition)
		}
	}
	for _, kept := range env.ownObjects(upgradeKinds()[3]) {
		t.Errorf("EventPayload %s is left", kept.GetName())
	}
}

// restoreRecord restores the recorded objects and checks and returns the recorded runs by state.
// Values that servers assign, UIDs and ids of checks, are replaced in all objects. Times of events
// are moved together, so that the last one is now.
func (env *environment) restoreRecord() map[string]string {
	env.t.Helper()
	client, err := dynamic.NewForConfig(env.Cluster.RESTConfig())
	env.must(err)
	checks, uids := env.restoreChecks(), map[string]string{}
	objects := env.readRecord(uids)
	for _, kind := range upgradeKinds() {
		for _, object := range objects[kind.Resource] {
			text := replaceAll(string(object), uids)
			if kind.Resource == "pipelineruns" {
				text = replaceAll(text, checks)
			}
			var o unstructured.Unstructured
			env.must(yaml.Unmarshal([]byte(text), &o.Object))
			old := string(o.GetUID())
			o.SetUID("")
			made, err := client.Resource(kind).Namespace(o.GetNamespace()).Create(env.ctx, &o, metav1.CreateOptions{})
			env.must(err)
			uids[old] = string(made.GetUID())
		}
	}
	// The runs have their new UIDs now, which the events' status names.
	gitevents := upgradeKinds()[1]
	for _, object := range objects[gitevents.Resource] {
		var o unstructured.Unstructured
		env.must(yaml.Unmarshal([]byte(replaceAll(replaceAll(string(object), uids), checks)), &o.Object))
		if o.Object["status"] == nil {
			continue
		}
		now, err := client.Resource(gitevents).Namespace(o.GetNamespace()).Get(env.ctx, o.GetName(), metav1.GetOptions{})
		env.must(err)
		now.Object["status"] = o.Object["status"]
		env.must(errOf(client.Resource(gitevents).Namespace(o.GetNamespace()).UpdateStatus(env.ctx, now,
			metav1.UpdateOptions{})))
	}
	runs := map[string]string{}
	for _, state := range upgradeStates() {
		if found := env.runsOfState(state); len(found) == 1 {
			runs[state] = found[0]
		}
	}
	if len(runs) != 6 {
		env.t.Fatalf("the record has the runs %v: record anew", runs)
	}
	for _, state := range []string{upFinished, upReported, upSettled} {
		name, _, _ := strings.Cut(runs[state], " ")
		env.awaitRunEnd(v1alpha1.Run{Namespace: env.ci, Name: name})
	}
	return runs
}

var recordedTime = regexp.MustCompile(`"?(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z)"?`)

// readRecord reads the recorded objects by resource, and adds to uids the Repository's.
func (env *environment) readRecord(uids map[string]string) map[string][][]byte {
	env.t.Helper()
	data, err := os.ReadFile(filepath.Join(upgradeData, "objects.yaml"))
	env.must(err)
	repository, err := env.Plumbline.PipelinesascodeV1alpha1().Repositories(env.ci).Get(env.ctx, "app",
		metav1.GetOptions{})
	env.must(err)
	found := map[string][][]byte{}
	for _, text := range bytes.Split(data, []byte("---\n")) {
		var object unstructured.Unstructured
		env.must(yaml.Unmarshal(text, &object.Object))
		if object.Object == nil {
			continue
		}
		resource := strings.ToLower(object.GetKind()) + "s"
		if resource == "repositoryclaims" {
			uid, _, err := unstructured.NestedString(object.Object, "spec", "repository", "uid")
			env.must(err)
			uids[uid] = string(repository.UID)
		}
		if resource == "gitevents" {
			text = []byte(movedTimes(string(text), object.GetCreationTimestamp().Time))
		}
		found[resource] = append(found[resource], text)
	}
	return found
}

// movedTimes moves all times of an object by the age of its creation.
func movedTimes(text string, created time.Time) string {
	by := time.Since(created)
	return recordedTime.ReplaceAllStringFunc(text, func(found string) string {
		at, err := time.Parse(time.RFC3339Nano, strings.Trim(found, `"`))
		if err != nil {
			panic(err)
		}
		return fmt.Sprintf("%q", at.Add(by).UTC().Format(time.RFC3339))
	})
}

// restoreChecks repeats the recorded calls to GitHub and returns the ids that the checks have now.
func (env *environment) restoreChecks() map[string]string {
	env.t.Helper()
	data, err := os.ReadFile(filepath.Join(upgradeData, "checks.json"))
	env.must(err)
	var writes []upgradeWrite
	env.must(json.Unmarshal(data, &writes))
	fresh, token := map[string]string{}, env.forge.Mint(env.git.(*onGitHub).installation)
	for _, write := range writes {
		body, err := json.Marshal(write.Body)
		env.must(err)
		path := "repos/" + repoName + "/check-runs"
		if write.Method != http.MethodPost {
			path += "/" + fresh[write.Check]
		}
		if code := env.callWithRunToken(write.Method, path, token, string(body)); code/100 != 2 {
			env.t.Fatalf("%s %s is answered %d: record anew", write.Method, path, code)
		}
		calls := env.forge.Writes()
		last := calls[len(calls)-1]
		fresh[write.Check] = fmt.Sprint(last.CheckRunID)
		if last.HeadSHA != write.SHA {
			env.t.Fatalf("the check of %s is of %s: commits have other ids than when they were recorded: record anew", write.SHA,
				last.HeadSHA)
		}
	}
	return fresh
}

// replaceAll replaces whole words.
func replaceAll(text string, by map[string]string) string {
	words := make([]string, 0, len(by))
	for old := range by {
		words = append(words, regexp.QuoteMeta(old))
	}
	slices.Sort(words)
	return regexp.MustCompile(`\b(`+strings.Join(words, "|")+`)\b`).ReplaceAllStringFunc(text,
		func(old string) string { return by[old] })
}
