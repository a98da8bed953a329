// SPDX-License-Identifier: Apache-2.0

package e2e

// operated are scenarios of e2e that do not depend on the Git service, or that one service alone has.
func operated() []shownBy {
	const any = "it does not depend on the service"
	return []shownBy{
		by("A7", any, "TestRollingRestartsAreNotSeen"),
		by("A8", any, "TestA8NoLeader"),
		by("B7", both, "TestB1FetchFails"),
		by("B8", both, "TestB8CredentialsMissing"),
		by("B10", both, "TestACloseIsNotLost"),
		by("B13", both, "TestB13TheNewestRunStays"),
		by("B16", any, "TestB16Poison"),
		by("C6", any, "TestC6WhatAnAdministratorHasToMend"),
		by("C7", any, "TestC7TheNamespaceIsTerminating"),
		by("C10", any, "TestAForeignPipelineRunIsNotAdopted"),
		by("E15", both, "TestE15CredentialsRefused"),
		by("G1", any, "TestG1ADeletedRunIsGoneAtOnce"),
		by("G2", any, "TestG2ANamespaceGoesWithoutUs"),
		by("G3", any, "TestARefusedDeleteIsTriedAgain"),
		by("G4", both, "TestASecretGoesWithItsRun"),
		by("H1", both, "TestKilledUnderLoad"),
		by("H2", any, "TestH2ACutOffReceiverStaysReady"),
		by("H3", any, "TestH3TheOrderOfAReceiversEnd"),
		by("H4", any, "TestH4ANodeDrainLeavesOne"),
		by("H6", any, "TestThePausedHolderGoesOn"),
		by("H7", any, "TestH7TheControlPlaneIsDown"),
		by("S5", any, "TestS5AFloodedRepositoryKeepsToItsBudget"),
		by("S28", "GitLab makes no tokens for runs", "TestARunsTokenWritesNoVerdict"),
		by("S29", "a GitHub App shares no token", "TestTheGlobalTokenIsNotWrittenIntoATenantsNamespace"),
		by("S30", both, "TestAGitServiceInsideIsNotCalled"),
		by("S31", both, "TestS31TheReceiverReadsNoSecretButCopies"),
		by("S35", "GitHub signs its deliveries", "TestS35AReplayUnderAnotherIDStartsNothing"),
	}
}

// shownElsewhere are scenarios and rules that other packages show in make test: with fakes at every call, or with a real API server.
func shownElsewhere() []shownBy {
	const below = "shown below the level of installations"
	return []shownBy{
		by("A10", "it is about one receiver", "TestUndecodableAndTooBig"),
		by("A15", below, "TestAPausedWebhookIsTold"),
		by("B8b", below, "TestAForkThatTakesNoStatusGetsOneNote"),
		by("B10", below, "TestAClosedPullRequestCancelsWhatCameBefore", "TestEveryCallOfACloseMayFail"),
		by("D5", below, "TestACancelThatIsRefused", "TestACancelRacesWithTheEnd"),
		by("B11", below, "TestSupersededWhileItWaitsForItsPlan", "TestNotSuperseded"),
		by("E5", below, "TestE5ADayWithoutTheGitService"),
		by("F11", below, "TestWhatWaitsForASlotIsCancelled"),
		by("S20", below, "TestDefinitionsOfTheDefaultBranchRestrictNames"),
		by("S22", below, "TestAnApprovalIsRemembered"),
		by("A13", below, "TestNothingOfOursStandsBeforeARecord"),
		by("B12", below, "TestAnApprovalGoesByTheHeadsThatTheServiceTells", "TestNoOrderRunsAnUnapprovedCommit"),
		by("B14", below, "TestAFailingLookUpOfPullRequestsIsWaitedFor", "TestAPushWaitsAsLongAsTheRecordsCannotBeRead"),
		by("C1, C2", below, "TestKubernetesRows"),
		by("C5", below, "TestKubernetesRows"),
		by("C8", below, "TestAPlanThatIsTooLargeIsToldToTheAuthor"),
		by("C11", below, "TestDenialThatEchoesAnOutage"),
		by("H5", "it is about two versions of one installation", "TestEventsOfTheVersionBeforeGoOn"),
		by("S1", below, "TestAllAttemptsTogetherPlanNoMoreThanOneMay"),
		by("S2", below, "TestAnEventThatKillsTheProcessIsParked"),
		by("S3", below, "TestS3SlowSendersAreEnded", "TestS3SlowConnectionsKeepNobodyWaiting"),
		by("S4", below, "TestS4StrangersHaveABudget", "TestS4AGroupIsLookedAtOnce"),
		by("S6", below, "TestATenantsHostsThatHangHoldAQuarter"),
		by("S7", below, "TestManyPullRequestsAreReportedSlowlyAndAll"),
		by("S9", below, "TestForeignRunsWakeNothing", "TestTheCacheKeepsLittleOfARun"),
		by("S32", "TestMain of this package reads every log, and each world what people may read", "TestASecretIsFoundInEveryForm"),
		by("S33", below, "TestPlacedValuesAreNoVariables"),
		by("S34", below, "TestS34StrangersAreAnsweredAlike"),
		by("S36", below, "TestAPipelineAboveACeilingIsRefused", "TestAuthorsDoNotWriteForChains"),
		by("S37", below, "TestAnSBOMIsOfItsImage", "TestWhatIsReachableAndFixedFails"),
	}
}
