// SPDX-License-Identifier: Apache-2.0

package podsecurity

import (
	"strings"
	"testing"

	pipelinev1 "github.com/tektoncd/pipeline/pkg/apis/pipeline/v1"
	"k8s.io/pod-security-admission/policy"
	"sigs.k8s.io/yaml"

	"github.com/plumbline-ci/plumbline/pkg/fault"
)

func runOf(t *testing.T, text string) *pipelinev1.PipelineRun {
	t.Helper()
	run := &pipelinev1.PipelineRun{}
	if err := yaml.UnmarshalStrict([]byte(text), run); err != nil {
		t.Fatal(err)
	}
	return run
}

// inStep is a PipelineRun with one inlined task that has one step.
func inStep(fields string) string {
	return "spec: {pipelineSpec: {tasks: [{name: build, taskSpec: {steps: [{name: say, image: busybox, " + fields +
		"}]}}]}}"
}

type limitCase struct {
	sentence, text string
	// says is in the message, with LEVEL for the level.
	says string
	// check of the library forbids the run, from the level on; "" for none.
	check policy.CheckID
	from  string
}

func cases() []limitCase {
	const none, baseline, strict = "", Baseline, Restricted
	return []limitCase{
		{"the host's network", "spec: {taskRunTemplate: {podTemplate: {hostNetwork: true}}}",
			`spec.taskRunTemplate.podTemplate: the Pod Security level "LEVEL" does not allow this: hostNetwork=true`,
			"hostNamespaces", baseline},
		{"the host's network for one task",
			"spec: {taskRunSpecs: [{pipelineTaskName: build, podTemplate: {hostNetwork: true}}]}",
			"spec.taskRunSpecs[build].podTemplate: ", "hostNamespaces", baseline},
		{"not the host's network", "spec: {taskRunTemplate: {podTemplate: {hostNetwork: false}}}", "", "", none},
		{"a path of the host", "spec: {taskRunTemplate: {podTemplate: {volumes: [{name: d, hostPath: {path: /}}]}}}",
			"podTemplate: ", "hostPathVolumes", baseline},
		{"a path of the host in a task", "spec: {pipelineSpec: {finally: [{name: x, taskSpec: {volumes: [{name: d, hostPath: {path: /}}], steps: [{image: x}]}}]}}", "spec.pipelineSpec.finally[x].taskSpec.volumes: ", "hostPathVolumes", baseline},
		{"another kind of volume", "spec: {pipelineSpec: {tasks: [{name: x, taskSpec: {volumes: [{name: d, nfs: {server: s, path: /}}], steps: [{image: x}]}}]}}", `volume "d" uses restricted volume type "nfs"`, "restrictedVolumes", strict},
		{"a privileged step", inStep("securityContext: {privileged: true}"),
			`spec.pipelineSpec.tasks[build].taskSpec.steps: the Pod Security level "LEVEL" does not allow this: container "say" must not set securityContext.privileged=true`, "privileged", baseline},
		{"a privileged template of steps", "spec: {pipelineSpec: {tasks: [{name: x, taskSpec: {stepTemplate: {securityContext: {privileged: true}}, steps: [{image: x}]}}]}}", "taskSpec.stepTemplate: ", "privileged", baseline},
		{"a privileged sidecar", "spec: {pipelineSpec: {tasks: [{name: x, taskSpec: {sidecars: [{name: s, image: x, securityContext: {privileged: true}}], steps: [{image: x}]}}]}}", "taskSpec.sidecars: ", "privileged", baseline},
		{"a port of the host", "spec: {pipelineSpec: {tasks: [{name: x, taskSpec: {sidecars: [{name: s, image: x, ports: [{containerPort: 1, hostPort: 80}]}], steps: [{image: x}]}}]}}", `container "s" uses hostPort 80`, "hostPorts", baseline},
		{"a capability", inStep("securityContext: {capabilities: {add: [SYS_ADMIN]}}"),
			`container "say" must not include "SYS_ADMIN" in securityContext.capabilities.add`, "capabilities_baseline",
			baseline},
		{"a capability that baseline allows", inStep("securityContext: {capabilities: {add: [CHOWN]}}"),
			`"CHOWN" in securityContext.capabilities.add`, "capabilities_restricted", strict},
		{"dropped capabilities", inStep("securityContext: {capabilities: {drop: [ALL], add: [NET_BIND_SERVICE]}}"), "", "",
			none},
		{"no seccomp", "spec: {taskRunTemplate: {podTemplate: {securityContext: {seccompProfile: {type: Unconfined}}}}}",
			`seccompProfile.type to "Unconfined"`, "seccompProfile_baseline", baseline},
		{"no AppArmor", "spec: {taskRunTemplate: {podTemplate: {securityContext: {appArmorProfile: {type: Unconfined}}}}}",
			`AppArmor profile type to "Unconfined"`, "appArmorProfile", baseline},
		{"no seccomp by a variable", "spec: {params: [{name: p, value: Unconfined}], taskRunTemplate: {podTemplate: {securityContext: {seccompProfile: {type: $(params.p)}}}}}", `seccompProfile.type to "$(params.p)"`, "seccompProfile_restricted", baseline},
		{"no AppArmor by a variable", "spec: {taskRunSpecs: [{pipelineTaskName: x, podTemplate: {securityContext: {appArmorProfile: {type: $(params.p)}}}}]}", `type to "$(params.p)"`, "appArmorProfile", baseline},
		{"profiles that confine", "spec: {taskRunTemplate: {podTemplate: {securityContext: {seccompProfile: {type: Localhost, localhostProfile: x}, appArmorProfile: {type: RuntimeDefault}}}}}", "", "", none},
		{"no AppArmor by the annotation of older clusters",
			"metadata: {annotations: {container.apparmor.security.beta.kubernetes.io/step-say: unconfined}}", "metadata: ",
			"appArmorProfile", baseline},
		{"another SELinux type", inStep("securityContext: {seLinuxOptions: {type: spc_t}}"), `type "spc_t"`, "seLinuxOptions",
			baseline},
		{"an SELinux level", inStep("securityContext: {seLinuxOptions: {type: container_t, level: s0}}"), "", "", none},
		{"an SELinux user", inStep("securityContext: {seLinuxOptions: {user: root}}"), "user may not be set",
			"seLinuxOptions", baseline},
		{"the whole of /proc", inStep("securityContext: {procMount: Unmasked}"), `procMount to "Unmasked"`, "procMount",
			baseline},
		{"the whole of /proc, which restricted forbids as well", inStep("securityContext: {procMount: Unmasked}"),
			"container \"say\" must not set securityContext.procMount", "procMount_restricted", baseline},
		{"a volume of no kind, which is an emptyDir", "spec: {taskRunTemplate: {podTemplate: {volumes: [{name: d}]}}}", "",
			"", none},
		{"a sysctl of the node",
			"spec: {taskRunTemplate: {podTemplate: {securityContext: {sysctls: [{name: kernel.msgmax, value: '1'}]}}}}",
			"kernel.msgmax", "sysctls", baseline},
		{"a safe sysctl", "spec: {taskRunTemplate: {podTemplate: {securityContext: {sysctls: [{name: net.ipv4.tcp_syncookies, value: '1'}]}}}}", "", "", none},
		{"root", "spec: {taskRunTemplate: {podTemplate: {securityContext: {runAsUser: 0}}}}", "pod must not set runAsUser=0",
			"runAsUser", strict},
		{"more privileges", inStep("securityContext: {allowPrivilegeEscalation: true}"),
			`container "say" must set securityContext.allowPrivilegeEscalation=false`, "allowPrivilegeEscalation", strict},
		{"a user that may be root", inStep("securityContext: {runAsNonRoot: false}"),
			`container "say" must not set securityContext.runAsNonRoot=false`, "runAsNonRoot", strict},
		{"what Tekton fetches", "spec: {pipelineRef: {resolver: git, params: [{name: url, value: x}]}}",
			`spec.pipelineRef.resolver is "git"`, "", baseline},
		{"a task that Tekton fetches", "spec: {pipelineSpec: {tasks: [{name: x, taskRef: {resolver: bundles}}]}}",
			`tasks[x].taskRef.resolver is "bundles"`, "", baseline},
		{"a step that Tekton fetches",
			"spec: {pipelineSpec: {tasks: [{name: x, taskSpec: {steps: [{name: s, ref: {resolver: hub}}]}}]}}",
			`ref.resolver is "hub"`, "", baseline},
		{"what the cluster has",
			"spec: {pipelineSpec: {tasks: [{name: x, taskRef: {resolver: cluster}}, {name: y, taskRef: {name: z}}]}}", "", "",
			none},
		{"a param is a text of its author", "spec: {params: [{name: x, value: {hostPath: a, resolver: git}}], pipelineSpec: {tasks: [{name: x, taskRef: {name: z}, params: [{name: serviceAccountName, value: y}]}]}}", "", "", none},
		{"a process of the host", inStep("securityContext: {windowsOptions: {hostProcess: true}}"),
			"windowsOptions.hostProcess=true", "windowsHostProcess", baseline},
		{"a user that may be root, in a user namespace",
			"spec: {taskRunTemplate: {podTemplate: {hostUsers: false, securityContext: {runAsNonRoot: false}}}}",
			"pod must not set securityContext.runAsNonRoot=false", "runAsNonRoot", strict},
		{"a host that a probe of the kubelet calls", "spec: {pipelineSpec: {tasks: [{name: x, taskSpec: {sidecars: [{name: s, image: x, livenessProbe: {httpGet: {port: 80, host: 169.254.169.254}}}], steps: [{image: x}]}}]}}", `container "s" uses probe or lifecycle host "169.254.169.254"`, "hostProbesAndHostLifecycle", baseline},
		{"a task in a custom task", "spec: {pipelineSpec: {tasks: [{name: x, taskSpec: {apiVersion: example.dev/v1, kind: Loop, spec: {taskSpec: {steps: [{image: x, securityContext: {privileged: true}}]}}}}]}}", "spec.pipelineSpec.tasks[x].taskSpec.spec.taskSpec.steps: ", "privileged", baseline},
		{"steps that Kubernetes could not read",
			"spec: {pipelineSpec: {tasks: [{name: x, taskSpec: {apiVersion: example.dev/v1, kind: Loop, spec: {steps: 3}}}]}}",
			"taskSpec.spec.steps cannot be checked", "", baseline},
	}
}

func TestCheckNamesFieldLimitAndSetting(t *testing.T) {
	for _, c := range cases() {
		t.Run(c.sentence, func(t *testing.T) {
			run := runOf(t, c.text)
			if err := Check(run, "x", free, Limits{}); err != nil {
				t.Errorf("no limits: %v", err)
			}
			for level, refused := range map[string]bool{Baseline: c.from == Baseline, Restricted: c.from != ""} {
				err := Check(run, ".tekton/x.yaml", free, Limits{}, Limits{PodSecurity: level, Setting: "the setting"})
				if fault.Is(err, fault.Invalid) != refused {
					t.Errorf("%s: %v, want it refused: %t", level, err, refused)
				}
				if !refused || err == nil {
					continue
				}
				for _, want := range []string{".tekton/x.yaml: ", strings.ReplaceAll(c.says, "LEVEL", level),
					". This limit is set in the setting"} {
					if !strings.Contains(err.Error(), want) {
						t.Errorf("%s: %q does not say %q", level, err, want)
					}
				}
			}
		})
	}
}

// Each check of the library gets to see what it forbids: alone, it refuses one of the cases. A
// check that Kubernetes adds has no case and fails here.
func TestEachCheckOfTheLibraryIsReached(t *testing.T) {
	for _, check := range policy.DefaultChecks() {
		t.Run(string(check.ID), func(t *testing.T) {
			alone, err := policy.NewEvaluator([]policy.Check{check}, nil)
			if err != nil {
				t.Fatal(err)
			}
			tried := 0
			for _, c := range cases() {
				if c.check != check.ID {
					continue
				}
				tried++
				w := walk{rules: []rule{(&standard{string(check.Level), alone}).forbids}}
				var tree map[string]any
				if err := convert(runOf(t, c.text), &tree); err != nil {
					t.Fatal(err)
				}
				if w.mapping("", tree); w.found == "" {
					t.Errorf("%q passes", c.sentence)
				}
			}
			if tried == 0 {
				t.Error("no case of this test is forbidden by the check: add one")
			}
		})
	}
}

func TestCheckAllowsOnlyTheListedServiceAccounts(t *testing.T) {
	limits := Limits{ServiceAccounts: []string{"builder", "tester"}, Setting: "the setting"}
	for text, refused := range map[string]string{
		"spec: {pipelineRef: {name: x}}":                    "",
		"spec: {taskRunTemplate: {serviceAccountName: ''}}": "",
		"spec: {taskRunTemplate: {serviceAccountName: builder}, taskRunSpecs: [{pipelineTaskName: a, serviceAccountName: tester}]}": "",
		"spec: {taskRunTemplate: {serviceAccountName: default}}":                                                                    `spec.taskRunTemplate.serviceAccountName is "default"`,
		"spec: {taskRunTemplate: {serviceAccountName: builder}, taskRunSpecs: [{pipelineTaskName: a, serviceAccountName: admin}]}":  `spec.taskRunSpecs[a].serviceAccountName is "admin"`,
		// Tekton replaces variables there: which account it becomes is not known.
		"spec: {taskRunTemplate: {serviceAccountName: $(params.sa)}}": `serviceAccountName is "$(params.sa)"`,
	} {
		err := Check(runOf(t, text), "x", free, limits)
		if (err == nil) != (refused == "") || err != nil && !strings.Contains(err.Error(), refused) {
			t.Errorf("%s: %v, want %q", text, err, refused)
		}
	}
	// Each of two limits holds.
	both := runOf(t, "spec: {taskRunTemplate: {serviceAccountName: builder}}")
	if err := Check(both, "x", free, limits, Limits{ServiceAccounts: []string{"tester"}, Setting: "the other"}); err == nil ||
		!strings.Contains(err.Error(), "the other") {
		t.Errorf("%v, want the other limit's refusal", err)
	}
}
