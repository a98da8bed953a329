// SPDX-License-Identifier: Apache-2.0

package diagnosis

import "regexp"

// These patterns decide a verdict where neither Tekton nor Kubernetes has a field for it. They
// never change a conclusion. What authors choose, such as the name of an image, is quoted in these
// messages and removed first.
var (
	quotes = regexp.MustCompile(`\\?"[^"]*"`)

	// Tekton v1.15.0 pkg/reconciler/taskrun/taskrun.go: checkContainerFailure and
	// appendPreviousConditionContext; pkg/pod/status.go: getWaitingMessage.
	podErrored     = regexp.MustCompile(`(?s)The pod errored with the message: "(.*)\."$`)
	previousStatus = regexp.MustCompile(`(?s)\nPrevious status: \[(\w+)\] (.*)$`)
	pendingReason  = regexp.MustCompile(`(?s)^build step "[^"]*" is pending with reason (".*")$`)
	translation    = regexp.MustCompile(`^translating TaskSpec to Pod: `)

	// Tekton v1.15.0 pkg/reconciler/resolutionrequest/resolutionrequest.go.
	resolutionTimeout = regexp.MustCompile(`resolution took longer than global timeout of `)

	// Kubernetes v1.35 pkg/kubelet/eviction/helpers.go: limits of the pod itself, and needs of the
	// node.
	overLimit = regexp.MustCompile(`^(?:Container \S+ exceeded its local ephemeral storage limit |` +
		`Pod ephemeral local storage usage exceeds the total limit of containers |Usage of EmptyDir volume )`)
	nodeEvicts = regexp.MustCompile(`^(?:The node was low on resource: |The node had condition: )`)
	// pkg/kubelet/nodeshutdown.
	nodeShutdown = regexp.MustCompile(`^Pod was (?:terminated in response to imminent node shutdown|` +
		`rejected as the node is shutting down)\.$`)
	// pkg/kubelet/lifecycle/predicate.go and pkg/kubelet/preemption; newer kubelets start the first
	// two with "Pod was rejected: ".
	nodeRefused = regexp.MustCompile(`^(?:Pod was rejected: |Pod )?(?:Node didn't have enough (?:resource: |capacity: )|` +
		`Predicate \w+ failed|Preempted in order to admit critical pod)`)
	// pkg/util/node/node.go.
	nodeLost = regexp.MustCompile(`^Node \S+ which was running pod \S+ is unresponsive$`)
	// pkg/kubelet/active_deadline.go.
	pastDeadline = regexp.MustCompile(`^Pod was active on the node longer than the specified deadline$`)
	// pkg/kubelet/util/manager: a ConfigMap or Secret that the kubelet could not read in time.
	syncTimeout = regexp.MustCompile(`failed to sync (?:secret|configmap) cache: timed out`)

	// The scheduler's words on each kind of node.
	missingClaim  = regexp.MustCompile(`persistentvolumeclaim \S+ not found`)
	nodesUnusable = regexp.MustCompile(`had untolerated taint|were unschedulable|Insufficient `)

	// containerd, CRI-O and the kubelet on images; Docker's registry protocol names the codes.
	pullRefused = regexp.MustCompile(`: not found|manifest unknown|name unknown|pull access denied|` +
		`requested access to the resource is denied|insufficient_scope|: 40[134]\b|[Uu]nauthorized|` +
		`couldn't parse image|invalid reference format|no match for platform`)
	pullOutage = regexp.MustCompile(`: 429 |toomanyrequests:|: 5\d\d |status code 5\d\d|server misbehaving|` +
		`no route to host|network is unreachable|Client\.Timeout exceeded|the registry is unavailable|unexpected EOF|` +
		`pull QPS exceeded`)
)
