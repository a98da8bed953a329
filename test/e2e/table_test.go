// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// shownBy says which tests show a scenario of docs/codes.md, and on which Git services.
type shownBy struct {
	scenario string
	on       string // "both", or why it is not
	tests    []string
}

const both = "both"

func by(scenario, on string, tests ...string) shownBy { return shownBy{scenario, on, tests} }

// table says: what passes for a GitHub App passes for a GitLab.
func table() []shownBy {
	return []shownBy{
		by("headline", both, "TestTheWebhookDiesAroundThePatch"),
		by("A1", both, "TestA1AnswerAfterDurableRecord"),
		by("A2", both, "TestA2CannotPersist"),
		by("A3", both, "TestKilledUnderLoad"),
		by("A4", both, "TestA5FiftyCopiesOverThreeReplicas"),
		by("A5", both, "TestA5FiftyCopiesOverThreeReplicas"),
		by("A6", both, "TestA6PendingEventIsProcessedAgainOnce"),
		by("A9", both, "TestA9BadDeliveries", "TestA9SecretUnreadable"),
		by("A10", both, "TestA9BadDeliveries"),
		by("A12", both, "TestA12Ignorable"),
		by("A14", "each service has a log of its own: GitHub an App's, GitLab a project's", "TestA14WhatWasMissedRunsAfterTheOutage", "TestA14AGitLabSendsAgainWhatWasMissed"),
		by("B1", both, "TestB1FetchFails"),
		by("B2", both, "TestB2NoPipelines", "TestB2HiddenRepository"),
		by("B3", both, "TestAPipelineThatWaitsKeepsNoOtherWaiting"),
		by("B4", both, "TestAPipelineThatWaitsKeepsNoOtherWaiting", "TestReferences"),
		by("B5", both, "TestReferences"),
		by("B6", both, "TestB6AccessLookupFails"),
		by("B9", both, "TestAnEventWaitsForTheGlobalRepository"),
		by("B11", both, "TestB11SupersededWhileARunWaitsToBeCreated"),
		by("B15", "it needs two hosts at once: a GitLab hangs, a GitHub goes on", "TestB15AHungHostDelaysNoOtherHostsEvents"),
		by("C3", both, "TestACreateThatLandedIsAdopted"),
		by("C4", both, "TestARefusedPipelineRunFailsItsCheck"),
		by("C9", both, "TestKilledAtEveryCall"),
		by("D1", both, "TestTheWebhookDiesAroundThePatch", "TestNoWriteOnPipelineRunsWorks"),
		by("D2", both, "TestEveryCallFails"),
		by("D3", both, "TestNoWriteOnPipelineRunsWorks"),
		by("D4", both, "TestNoWriteOnPipelineRunsWorks"),
		by("D5", both, "TestD5ARunEndsBeforeItIsToldTo"),
		by("D6", both, "TestNoCheckCanBeCreated"),
		by("D7", both, "TestTheCreateCarriesEverythingKnown"),
		by("E1", both, "TestOnlySuccessIsSuccess"),
		by("E2", both, "TestCancellingIsNotCancelled"),
		by("E3", both, "TestADeletedRunIsCancelled"),
		by("E4", both, "TestE4TheRepositoryIsDeleted"),
		by("E6", both, "TestADelayedWriteDoesNotReopenACheck"),
		by("E7", both, "TestE7AnotherRunIsAnotherCheck"),
		by("E8", both, "TestAStoredCheckIsAdopted"),
		by("E9", both, "TestTwoControllersReconcileOneEvent"),
		by("E10", both, "TestE10AForkIsToldOfInOnePlace"),
		by("E11", both, "TestE11ABusyServiceIsAskedAgain"),
		by("E12", "GitHub has no transitions that it refuses", "TestE12CannotTransition"),
		by("E17", "each service limits in its own words, which go test ./pkg/provider/github ./pkg/provider/gitlab -run TestRateLimitStopsCalls has", "TestStrangerNeverRunsWhileLimited"),
		by("F1", both, "TestRunsWaitForASlot"), // at every kind of call: the limits of test/campaign
		by("F2", both, "TestRunsWaitForASlot"),
		by("F3", both, "TestAQuotaKeepsTheSlot"),
		by("F4", "it is about two Repositories, whatever their services", "TestALimitOfADeletedRepository"),
		by("F9", both, "TestRunsWaitForASlot", "TestAQuotaKeepsTheSlot"),
		by("F10", "it is the Repository that is deleted, whatever its service", "TestALimitOfADeletedRepository"),
		by("F11", "it is the run that waits, whatever the service", "TestARunThatIsHeldPendingKeepsItsSlot"),
		by("F12", both, "TestRunsWaitForASlot"),
		by("G5", both, "TestG5RunsAreKeptUntilTheyAreReported"),
		by("F13", "it is the PipelineRun that is held, whatever the service", "TestARunThatIsHeldPendingKeepsItsSlot"), // it keeps its slot: docs/adr/0041
	}
}

// decided are the rules S10 to S27 of docs/codes.md, and bad input.
func decided() []shownBy {
	const signed = "GitHub signs its deliveries"
	const buttons = "GitLab has no buttons for statuses that come from outside"
	return []shownBy{
		by("S10", both, "TestS10AStrangersPushToAWritersForkWaits", "TestS10AStrangersLabelStartsNothing"),
		by("S11", signed, "TestS11AForgedBodyStartsNothing"),
		by("S12", both, "TestStrangerNeverRunsWhateverIsAskedFor"),
		by("S13", both, "TestAPolicyThatCannotBeEvaluatedDenies"),
		by("S14", both, "TestS14ARepositoryUnderATakenOverNameStartsNothing"),
		by("S15", both, "TestS15AURLIsServedWithAProof"),
		by("S16", both, "TestS16WhatIsNoCommandStartsNothing", "TestCommandsStartPipelines"),
		by("S17", both, "TestCommandsStartPipelines"),
		by("S18", both, "TestCommandsStartPipelines"),
		by("S19", both, "TestCommandsStartPipelines"),
		by("S21", both, "TestS21AnApprovalRunsOneCommit", "TestS21AHeadThatMovesIsNotApproved"),
		by("S22", both, "TestS22AnApprovalIsRememberedUntilSomethingChanges"),
		by("S23", both, "TestS23WhatApprovedCodeMayDo"),
		by("S24", both, "TestS21AnApprovalRunsOneCommit"),
		by("S25", both, "TestOwners", "TestAPolicyOfTeams"),
		by("S26", both, "TestACommentCancels", "TestAClosedPullRequestEndsItsRuns", "TestD5ARunEndsBeforeItIsToldTo"),
		by("S27", buttons, "TestACheckIsPressed"),
		by("unknown names, two commands, prefixes", both, "TestCommandsStartPipelines"),
		by("a head that moved", both, "TestS21AHeadThatMovesIsNotApproved"),
		by("a team that is not there: condition Policy", both, "TestAPolicyOfTeams"),
		by("look-ups that fail", both, "TestStrangerNeverRunsWhateverIsAskedFor"),
		by("OWNERS that are broken, loop or are too large", both, "TestOwners"),
	}
}

// The tests of every row exist, those of a scenario that is for both services can run on both, and
// no test is in neither tier. TestGuaranteesAreListed of test/language finds the codes that no test
// of make test shows.
func TestTheTableHolds(t *testing.T) {
	t.Parallel()
	bodies := map[string]string{}
	files, err := filepath.Glob("*_test.go")
	if err != nil || len(files) == 0 {
		t.Fatalf("no sources: %v", err)
	}
	for _, file := range files {
		source, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, found := range regexp.MustCompile(`(?ms)^func (Test\w+)\(.*?^}`).FindAllStringSubmatch(string(source), -1) {
			bodies[found[1]] = found[0]
		}
	}
	for _, row := range slices.Concat(table(), decided()) {
		for _, name := range row.tests {
			body, found := bodies[name]
			onBoth := strings.Contains(body, "forEach") || strings.Contains(body, "forBoth") || strings.Contains(body, "bothKinds()")
			if !found || row.on == both && !onBoth {
				t.Errorf("%s: test %s exists: %t, runs on both services: %t", row.scenario, name, found, onBoth)
			}
		}
	}
	for name, body := range bodies {
		if strings.Contains(body, "t.Skip") && !strings.Contains(body, "installation.OfEnv") {
			t.Errorf("%s skips by itself: only onlyInTestAll does", name)
		}
	}
}
