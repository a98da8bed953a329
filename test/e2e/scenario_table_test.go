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

// shownBy names the tests that show a scenario of docs/codes.md, and on which Git services.
type shownBy struct {
	scenario string
	on       string // "both", or the reason why it is not
	tests    []string
}

const both = "both"

func by(scenario, on string, tests ...string) shownBy { return shownBy{scenario, on, tests} }

// table assigns tests to scenarios: what passes for a GitHub App passes for a GitLab.
func table() []shownBy {
	return []shownBy{
		by("headline", both, "TestWebhookDiesBeforePatch"),
		by("A1", both, "TestAnswerFollowsDurableRecord"),
		by("A2", both, "TestUnpersistedDeliveryIsRefused"),
		by("A3", both, "TestProcessesKilledUnderLoad"),
		by("A4", both, "TestFiftyCopiesMakeOneRecord"),
		by("A5", both, "TestFiftyCopiesMakeOneRecord"),
		by("A6", both, "TestPendingEventIsReprocessedOnce"),
		by("A9", both, "TestBadDeliveriesAreRefused", "TestUnreadableSecretWaits"),
		by("A10", both, "TestBadDeliveriesAreRefused"),
		by("A12", both, "TestIrrelevantDeliveriesAreIgnored"),
		by("A14", "each service has a log of its own: GitHub an App's, GitLab a project's",
			"TestUndeliveredEventsRunAfterOutage", "TestGitLabRedeliversUndelivered"),
		by("B1", both, "TestFailedFetchWaits"),
		by("B2", both, "TestCommitWithoutPipelinesEnds", "TestHiddenRepositoryWaits"),
		by("B3", both, "TestWaitingPipelineBlocksNoOther"),
		by("B4", both, "TestWaitingPipelineBlocksNoOther", "TestReferenceOutagesWait"),
		by("B5", both, "TestReferenceOutagesWait"),
		by("B6", both, "TestFailedAccessLookupWaits"),
		by("B9", both, "TestEventWaitsForGlobalRepository"),
		by("B11", both, "TestForcePushSupersedesWaitingRun"),
		by("B15", "it needs two hosts at once: a GitLab hangs, a GitHub goes on", "TestHungHostDelaysNoOtherHost"),
		by("C3", both, "TestCreatedRunWithLostAnswerIsAdopted"),
		by("C4", both, "TestRefusedPipelineRunFailsCheck"),
		by("C9", both, "TestControllerKilledAtEveryCall"),
		by("D1", both, "TestWebhookDiesBeforePatch", "TestChecksAreCorrectWhenRunWritesFail"),
		by("D2", both, "TestEveryCallFails"),
		by("D3", both, "TestChecksAreCorrectWhenRunWritesFail"),
		by("D4", both, "TestChecksAreCorrectWhenRunWritesFail"),
		by("D5", both, "TestRunEndsBeforeItIsCancelled"),
		by("D6", both, "TestRunGoesOnWithoutCheck"),
		by("D7", both, "TestCreateRequestCarriesAllMetadata"),
		by("E1", both, "TestOnlySuccessIsSuccess"),
		by("E2", both, "TestCancellingRunIsInProgress"),
		by("E3", both, "TestDeletedRunCancelsCheck"),
		by("E4", both, "TestRunsOutliveDeletedRepository"),
		by("E6", both, "TestDelayedWriteDoesNotReopenCheck"),
		by("E7", both, "TestAnotherRunHasAnotherCheck"),
		by("E8", both, "TestStoredCheckIsAdopted"),
		by("E9", both, "TestTwoControllersReconcileOneEvent"),
		by("E10", both, "TestForkIsReportedInOneComment"),
		by("E11", both, "TestBusyServiceIsRetried"),
		by("E12", "GitHub has no transitions that it refuses", "TestStatusTransitionRefusals"),
		by("E17", "each service limits in its own words, which go test ./pkg/provider/github ./pkg/provider/gitlab -run TestRateLimitStopsCalls has", "TestUntrustedUserNeverRunsWhileRateLimited"),
		by("F1", both, "TestRunsWaitForSlot"), // the limits of test/campaign do this at every kind of call
		by("F2", both, "TestRunsWaitForSlot"),
		by("F3", both, "TestQuotaRefusalKeepsSlot"),
		by("F4", "it is about two Repositories, whatever their services", "TestDeletedRepositoryCancelsQueuedRuns"),
		by("F9", both, "TestRunsWaitForSlot", "TestQuotaRefusalKeepsSlot"),
		by("F10", "it is the Repository that is deleted, whatever its service", "TestDeletedRepositoryCancelsQueuedRuns"),
		by("F11", "it is the run that waits, whatever the service", "TestPendingRunKeepsSlot"),
		by("F12", both, "TestRunsWaitForSlot"),
		by("G5", both, "TestRunsAreKeptUntilReported"),
		// it keeps its slot: docs/adr/0041
		by("F13", "it is the PipelineRun that is held, whatever the service", "TestPendingRunKeepsSlot"),
	}
}

// decided are the rules S10 to S27 of docs/codes.md, and bad input.
func decided() []shownBy {
	const signed = "GitHub signs its deliveries"
	const buttons = "GitLab has no buttons for statuses that come from outside"
	return []shownBy{
		by("S10", both, "TestUntrustedPushToWritersForkWaits", "TestUntrustedLabelStartsNothing"),
		by("S11", signed, "TestForgedBodyStartsNothing"),
		by("S12", both, "TestUntrustedUserNeverRunsWhenLookupsFail"),
		by("S13", both, "TestUnevaluablePolicyDenies"),
		by("S14", both, "TestTakenOverRepositoryStartsNothing"),
		by("S15", both, "TestURLIsServedWithProof"),
		by("S16", both, "TestNonCommandsStartNothing", "TestCommandsStartPipelines"),
		by("S17", both, "TestCommandsStartPipelines"),
		by("S18", both, "TestCommandsStartPipelines"),
		by("S19", both, "TestCommandsStartPipelines"),
		by("S21", both, "TestApprovalRunsOneCommit", "TestMovedHeadIsNotApproved"),
		by("S22", both, "TestApprovalIsRememberedUntilDefinitionsChange"),
		by("S23", both, "TestApprovedCodeHasLimitedRights"),
		by("S24", both, "TestApprovalRunsOneCommit"),
		by("S25", both, "TestOwnersAllowRuns", "TestTeamPolicyDecidesAccess"),
		by("S26", both, "TestCommentCancelsRuns", "TestClosedPullRequestCancelsRuns", "TestRunEndsBeforeItIsCancelled"),
		by("S27", buttons, "TestRerunButtonRunsPipeline"),
		by("unknown names, two commands, prefixes", both, "TestCommandsStartPipelines"),
		by("a head that moved", both, "TestMovedHeadIsNotApproved"),
		by("a team that is not there: condition Policy", both, "TestTeamPolicyDecidesAccess"),
		by("look-ups that fail", both, "TestUntrustedUserNeverRunsWhenLookupsFail"),
		by("OWNERS that are broken, loop or are too large", both, "TestOwnersAllowRuns"),
	}
}

// The tests of every row exist, those of a scenario for both services can run on both, and every
// test is in a tier. TestGuaranteesAreListed of test/language finds the codes that no test of make
// test shows.
func TestScenarioTableIsComplete(t *testing.T) {
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
			onBoth := strings.Contains(body, "forEach") || strings.Contains(body, "forBoth") ||
				strings.Contains(body, "bothKinds()")
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
