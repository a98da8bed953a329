// SPDX-License-Identifier: Apache-2.0

package git

// MergeQueues is the prefix of the branches that GitHub's merge queues make, one for each merge
// group. Only GitHub can push to them. "/pr-NUMBER-COMMIT" follows the name of the base branch.
const MergeQueues = "refs/heads/gh-readonly-queue/"
