// SPDX-License-Identifier: Apache-2.0

package verdicts

import corev1 "k8s.io/api/core/v1"

// scenario is a PipelineRun that fails. Its pods get their statuses in the order of acts: each one
// after the TaskRun of the one before has ended.
type scenario struct {
	name string
	spec string
	acts []act
}

type act struct {
	task string
	do   change
	open bool // the TaskRun does not end because of it
}

// The specs that scenarios share.
const (
	one = `{pipelineSpec: {tasks: [{name: unit, taskSpec: {steps: [
  {name: prepare, image: "registry.example.com/team/app:1", script: "true"},
  {name: test, image: "registry.example.com/team/app:1", script: "make test"}]}}]}}`
	twoTasks = `{pipelineSpec: {tasks: [
  {name: unit, taskSpec: {steps: [{name: test, image: "registry.example.com/team/app:1", script: "true"}]}},
  {name: lint, taskSpec: {steps: [{name: test, image: "registry.example.com/team/app:1", script: "true"}]}}]}}`
	retried = `{pipelineSpec: {tasks: [{name: unit, retries: 1, taskSpec: {steps: [
  {name: test, image: "registry.example.com/team/app:1", script: "true"}]}}]}}`
	withSidecar = `{pipelineSpec: {tasks: [{name: unit, taskSpec: {
  sidecars: [{name: database, image: "registry.example.com/team/db:1"}],
  steps: [{name: test, image: "registry.example.com/team/app:1", script: "true"}]}}]}}`
	shortTask = `{pipelineSpec: {tasks: [{name: unit, timeout: 3s, taskSpec: {steps: [
  {name: test, image: "registry.example.com/team/app:1", script: "true"}]}}]}}`
	shortRun = `{timeouts: {pipeline: 3s}, pipelineSpec: {tasks: [{name: unit, taskSpec: {steps: [
  {name: test, image: "registry.example.com/team/app:1", script: "true"}]}}]}}`
)

// sample are the scenarios that the suites play in each run: one of each kind.
func sample() []string {
	return []string{
		"step-exits-1", "step-oom", "evicted-memory", "init-oom", "sidecar-oom", "node-shutdown-rejected", "pod-gc",
		"image-not-found", "image-429", "task-timeout-running", "run-timeout-unschedulable", "author-then-evicted",
		"evicted-then-author", "config-then-evicted", "missing-result", "config-secret-missing", "parameter-missing",
	}
}

func scenarios() []scenario {
	s := steps()
	s = append(s, nodes()...)
	s = append(s, append(images(), notCreated()...)...)
	s = append(s, timeouts()...)
	return append(s, definitions()...)
}

// unit is a scenario of one task, whose pod gets one status.
func unit(name string, do change) scenario { return scenario{name, one, []act{{"unit", do, false}}} }

func steps() []scenario {
	skipped := func(code int32, reason string) change {
		return containers(corev1.PodFailed, map[string]corev1.ContainerState{
			"step-prepare": terminated(code, reason, ""), "step-test": terminated(1, "Error", result("Reason", "Skipped")),
		})
	}
	sidecar := func(name string, code int32, reason string) scenario {
		return scenario{name, withSidecar, []act{{"unit", ends("sidecar-database", code, reason, ""), false}}}
	}
	return []scenario{
		unit("step-exits-1", ends("step-test", 1, "Error", "")),
		unit("first-step-exits-2", skipped(2, "Error")),
		unit("step-exits-127", ends("step-test", 127, "Error", "")),
		unit("step-killed", ends("step-test", 137, "Error", "")),
		unit("step-terminated", ends("step-test", 143, "Error", "")),
		unit("step-exits-255", ends("step-test", 255, "Error", "")),
		unit("step-oom", ends("step-test", 137, "OOMKilled", "")),
		unit("first-step-oom", skipped(137, "OOMKilled")),
		unit("step-timeout", ends("step-test", 1, "Error", result("Reason", "TimeoutExceeded"))),
		unit("step-start-error", ends(
			"step-test",
			128,
			"StartError",
			"failed to create containerd task: failed to create shim task: OCI runtime create failed: runc create failed: unable to start container process",
		)),
		unit("container-status-unknown", ends("step-test", 137, "ContainerStatusUnknown",
			"The container could not be located when the pod was terminated")),
		unit("init-oom", ends("prepare", 137, "OOMKilled", "")),
		unit("init-fails", ends("place-scripts", 1, "Error", "")),
		sidecar("sidecar-oom", 137, "OOMKilled"),
		sidecar("sidecar-fails", 3, "Error"),
		sidecar("sidecar-killed", 137, "Error"),
		{"retried-exits-twice", retried, []act{
			{"unit", ends("step-test", 1, "Error", ""), true}, {"unit", ends("step-test", 1, "Error", ""), false},
		}},
		{"retried-exits-then-evicted", retried, []act{
			{"unit", ends("step-test", 1, "Error", ""), true}, {"unit", lowMemory(), false},
		}},
		{"retried-evicted-then-exits", retried, []act{
			{"unit", lowMemory(), true}, {"unit", ends("step-test", 1, "Error", ""), false},
		}},
		{"retried-evicted-twice", retried, []act{{"unit", lowMemory(), true}, {"unit", lowMemory(), false}}},
	}
}

func lowMemory() change {
	return because(
		ends("step-test", 137, "Error", ""),
		"Evicted",
		"The node was low on resource: memory. Threshold quantity: 100Mi, available: 52Mi. Container step-test was using 2Gi, request is 0, has larger consumption of memory. ",
	)
}

func nodes() []scenario {
	lost := stays(corev1.PodFailed, "step-test", runs())
	return []scenario{
		unit("evicted-memory", lowMemory()),
		unit("evicted-condition", rejected("Evicted", "The node had condition: [DiskPressure]. ")),
		unit("evicted-empty-dir", because(ends("step-test", 137, "Error", ""), "Evicted",
			`Usage of EmptyDir volume "cache" exceeds the limit "8Mi". `)),
		unit("evicted-ephemeral-storage", because(ends("step-test", 137, "Error", ""), "Evicted",
			"Pod ephemeral local storage usage exceeds the total limit of containers 1Gi. ")),
		unit("evicted-container-storage", because(ends("step-test", 137, "Error", ""), "Evicted",
			`Container step-test exceeded its local ephemeral storage limit "1Gi". `)),
		unit("node-shutdown-running", because(ends("step-test", 143, "Error", ""), "Terminated",
			"Pod was terminated in response to imminent node shutdown.")),
		unit("node-shutdown-waiting", because(stays(corev1.PodFailed, "step-test", waits("PodInitializing", "")),
			"Terminated", "Pod was terminated in response to imminent node shutdown.")),
		unit("node-shutdown-rejected", rejected("NodeShutdown", "Pod was rejected as the node is shutting down.")),
		unit("node-lost", because(lost, "NodeLost", "Node node-7 which was running pod unit-pod is unresponsive")),
		unit("pod-gc", lost),
		unit("out-of-cpu", rejected("OutOfcpu",
			"Pod was rejected: Node didn't have enough resource: cpu, requested: 1000, used: 3500, capacity: 4000")),
		unit("node-affinity", rejected("NodeAffinity",
			"Pod was rejected: Predicate NodeAffinity failed: node(s) didn't match Pod's node affinity/selector")),
		unit("kubelet-preempts", because(ends("step-test", 137, "Error", ""), "Preempting",
			"Preempted in order to admit critical pod")),
		unit("past-deadline", because(stays(corev1.PodFailed, "step-test", waits("PodInitializing", "")), "DeadlineExceeded",
			"Pod was active on the node longer than the specified deadline")),
		{"author-then-evicted", twoTasks, []act{
			{"unit", ends("step-test", 1, "Error", ""), false}, {"lint", lowMemory(), false},
		}},
		{"evicted-then-author", twoTasks, []act{
			{"unit", lowMemory(), false}, {"lint", ends("step-test", 1, "Error", ""), false},
		}},
		{"config-then-evicted", twoTasks, []act{
			{"unit", stays(corev1.PodPending, "step-test",
				waits("CreateContainerConfigError", `secret "deploy-key" not found`)), false},
			{"lint", lowMemory(), false},
		}},
		{"one-fails-one-succeeds", twoTasks, []act{
			{"unit", succeeds(), false}, {"lint", ends("step-test", 1, "Error", ""), false},
		}},
	}
}

func images() []scenario {
	pull := func(name, words string) scenario { return unit(name, backOff(words)) }
	const head = `failed to resolve reference "IMAGE": `
	return []scenario{
		pull("image-not-found", head+`IMAGE: not found`),
		pull(
			"image-denied",
			head+`pull access denied, repository does not exist or may require authorization: server message: insufficient_scope: authorization failed`,
		),
		pull(
			"image-401",
			head+`failed to authorize: failed to fetch anonymous token: unexpected status from GET request to https://registry.example.com/token: 401 Unauthorized`,
		),
		pull(
			"image-403",
			head+`unexpected status from HEAD request to https://registry.example.com/v2/team/app/manifests/1: 403 Forbidden`,
		),
		pull(
			"image-429",
			`failed to copy: httpReadSeeker: failed open: unexpected status code https://registry.example.com/v2/team/app/manifests/sha256:50aa: 429 Too Many Requests - Server message: toomanyrequests: You have reached your pull rate limit.`,
		),
		pull(
			"image-503",
			head+`unexpected status from HEAD request to https://registry.example.com/v2/team/app/manifests/1: 503 Service Unavailable`,
		),
		pull(
			"image-refused",
			head+`failed to do request: Head "https://registry.example.com/v2/team/app/manifests/1": dial tcp 192.0.2.7:443: connect: connection refused`,
		),
		pull(
			"image-timeout",
			head+`failed to do request: Head "https://registry.example.com/v2/team/app/manifests/1": dial tcp 192.0.2.7:443: i/o timeout`,
		),
		pull(
			"image-dns-down",
			head+`failed to do request: Head "https://registry.example.com/v2/team/app/manifests/1": dial tcp: lookup registry.example.com on 10.96.0.10:53: server misbehaving`,
		),
		pull(
			"image-no-such-host",
			head+`failed to do request: Head "https://registry.example.com/v2/team/app/manifests/1": dial tcp: lookup registry.example.com on 10.96.0.10:53: no such host`,
		),
		pull(
			"image-disk-full",
			`failed to extract layer sha256:50aa: write /var/lib/containerd/tmpmounts/x: no space left on device`,
		),
	}
}

// notCreated are scenarios of containers that the kubelet cannot create.
func notCreated() []scenario {
	start := func(name, reason, words string) scenario {
		return unit(name, stays(corev1.PodPending, "step-test", waits(reason, words)))
	}
	return []scenario{
		start(
			"image-name-invalid",
			"InvalidImageName",
			`Failed to apply default image tag "Registry/App": couldn't parse image name "Registry/App": invalid reference format: repository name (Registry/App) must be lowercase`,
		),
		start("config-secret-missing", "CreateContainerConfigError", `secret "deploy-key" not found`),
		start("config-runs-as-root", "CreateContainerConfigError",
			`container has runAsNonRoot and image will run as root (pod: "unit-pod_ci(1)", container: step-test)`),
		start(
			"config-cache",
			"CreateContainerConfigError",
			"failed to sync secret cache: timed out waiting for the condition",
		),
		start("container-deadline", "CreateContainerError", "context deadline exceeded"),
		start(
			"container-name-reserved",
			"CreateContainerError",
			`failed to reserve container name "step-test_unit-pod_ci_1_0": name "step-test_unit-pod_ci_1_0" is reserved for "8f2c"`,
		),
		start(
			"container-mount",
			"CreateContainerError",
			`failed to generate container "8f2c" spec: failed to stat "/data": no such file`,
		),
	}
}
