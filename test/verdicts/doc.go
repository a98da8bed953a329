// SPDX-License-Identifier: Apache-2.0

// Package verdicts makes a real Tekton write the statuses of failed PipelineRuns that pkg/status
// diagnoses, and compares the corpus in pkg/status/testdata/corpus with them. The tests play the
// kubelet and the scheduler: they write the pods' statuses as these do, in their words.
package verdicts
