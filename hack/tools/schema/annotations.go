// SPDX-License-Identifier: Apache-2.0

package main

// described returns what an editor shows for each annotation that authors write.
func described() map[string]string {
	const list = ` A value is one word, or a list in brackets: "[main, release-*]".`
	return map[string]string{
		"on-event":              "The events that start the pipeline: push, pull_request. It needs on-target-branch." + list,
		"on-target-branch":      "The branches that the pipeline starts for, as globs: the pushed branch or tag (refs/tags/v*), or the target branch of the pull request." + list,
		"on-path-change":        "The pipeline starts if one changed file matches one of these globs." + list,
		"on-path-change-ignore": "The pipeline does not start if one changed file matches one of these globs." + list,
		"on-label":              "The pipeline starts for a pull request that has one of these labels." + list,
		"on-comment":            "The pipeline starts for a comment on a pull request that matches this regular expression, by a user who may start runs.",
		"on-cel-expression":     "The pipeline starts if this CEL expression is true. It replaces on-event, on-target-branch, on-label, on-path-change and on-path-change-ignore.",
		"target-namespace":      "The pipeline starts only for the Repository in this namespace.",
		"cancel-in-progress":    `"true" cancels older runs of the pipeline for the same pull request, branch or tag.`,
		"max-keep-runs":         "How many finished runs of the pipeline are kept.",
		"task":                  "Tasks that replace taskRefs of the same name: paths in the repository, URLs, or names in the Artifact Hub. More are in task-1, task-2 and so on." + list,
		"pipeline":              "The Pipeline that replaces a pipelineRef: a path in the repository, a URL, or a name in the Artifact Hub.",
	}
}
