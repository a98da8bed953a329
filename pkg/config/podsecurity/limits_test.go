// SPDX-License-Identifier: Apache-2.0

package podsecurity

import (
	"strings"
	"testing"

	pipelinev1 "github.com/tektoncd/pipeline/pkg/apis/pipeline/v1"
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
	return "spec: {pipelineSpec: {tasks: [{name: build, taskSpec: {steps: [{name: say, image: busybox, " + fields + "}]}}]}}"
}

func TestCheck(t *testing.T) {
	const step = "spec.pipelineSpec.tasks[build].taskSpec.steps[say]."
	const none, baseline, strict = "", Baseline, Restricted
	for _, c := range []struct {
		sentence, text string
		// field is refused from the level on, none if it is refused at no level.
		field, from string
	}{
		{"the host's network", "spec: {taskRunTemplate: {podTemplate: {hostNetwork: true}}}", "spec.taskRunTemplate.podTemplate.hostNetwork is true", baseline},
		{"of one task", "spec: {taskRunSpecs: [{pipelineTaskName: build, podTemplate: {hostNetwork: true}}]}", "spec.taskRunSpecs[build].podTemplate.hostNetwork", baseline},
		{"not the host's network", "spec: {taskRunTemplate: {podTemplate: {hostNetwork: false}}}", "", none},
		{"a path of the host", "spec: {taskRunTemplate: {podTemplate: {volumes: [{name: d, hostPath: {path: /}}]}}}", "spec.taskRunTemplate.podTemplate.volumes[d].hostPath", baseline},
		{"a path of the host in a task", "spec: {pipelineSpec: {finally: [{name: x, taskSpec: {volumes: [{name: d, hostPath: {path: /}}], steps: [{image: x}]}}]}}", "spec.pipelineSpec.finally[x].taskSpec.volumes[d].hostPath", baseline},
		{"another kind of volume", "spec: {pipelineSpec: {tasks: [{name: x, taskSpec: {volumes: [{name: d, nfs: {server: s, path: /}}], steps: [{image: x}]}}]}}", "spec.pipelineSpec.tasks[x].taskSpec.volumes is of the kind nfs", strict},
		{"a privileged step", inStep("securityContext: {privileged: true}"), step + "securityContext.privileged is true", baseline},
		{"a privileged template of steps", "spec: {pipelineSpec: {tasks: [{name: x, taskSpec: {stepTemplate: {securityContext: {privileged: true}}, steps: [{image: x}]}}]}}", "taskSpec.stepTemplate.securityContext.privileged", baseline},
		{"a privileged sidecar", "spec: {pipelineSpec: {tasks: [{name: x, taskSpec: {sidecars: [{name: s, image: x, securityContext: {privileged: true}}], steps: [{image: x}]}}]}}", "taskSpec.sidecars[s].securityContext.privileged", baseline},
		{"a port of the host", "spec: {pipelineSpec: {tasks: [{name: x, taskSpec: {sidecars: [{name: s, image: x, ports: [{containerPort: 1, hostPort: 80}]}], steps: [{image: x}]}}]}}", "hostPort is 80", baseline},
		{"a capability", inStep("securityContext: {capabilities: {add: [SYS_ADMIN]}}"), `capabilities.add is "SYS_ADMIN"`, baseline},
		{"a capability that baseline allows", inStep("securityContext: {capabilities: {add: [CHOWN]}}"), `capabilities.add is "CHOWN"`, strict},
		{"dropped capabilities", inStep("securityContext: {capabilities: {drop: [ALL], add: [NET_BIND_SERVICE]}}"), "", none},
		{"no seccomp", "spec: {taskRunTemplate: {podTemplate: {securityContext: {seccompProfile: {type: Unconfined}}}}}", `seccompProfile.type is "Unconfined"`, baseline},
		{"no AppArmor", "spec: {taskRunTemplate: {podTemplate: {securityContext: {appArmorProfile: {type: Unconfined}}}}}", `appArmorProfile.type is "Unconfined"`, baseline},
		{"no seccomp by a variable", "spec: {params: [{name: p, value: Unconfined}], taskRunTemplate: {podTemplate: {securityContext: {seccompProfile: {type: $(params.p)}}}}}", `seccompProfile.type is "$(params.p)"`, baseline},
		{"no AppArmor by a variable", "spec: {taskRunSpecs: [{pipelineTaskName: x, podTemplate: {securityContext: {appArmorProfile: {type: $(params.p)}}}}]}", `appArmorProfile.type is "$(params.p)"`, baseline},
		{"profiles that confine", "spec: {taskRunTemplate: {podTemplate: {securityContext: {seccompProfile: {type: Localhost, localhostProfile: x}, appArmorProfile: {type: RuntimeDefault}}}}}", "", none},
		{"no AppArmor, as it was written before", "metadata: {annotations: {container.apparmor.security.beta.kubernetes.io/step-say: unconfined}}", "metadata.annotations.", baseline},
		{"another SELinux type", inStep("securityContext: {seLinuxOptions: {type: spc_t}}"), `seLinuxOptions.type is "spc_t"`, baseline},
		{"an SELinux level", inStep("securityContext: {seLinuxOptions: {type: container_t, level: s0}}"), "", none},
		{"an SELinux user", inStep("securityContext: {seLinuxOptions: {user: root}}"), `seLinuxOptions.user is "root"`, baseline},
		{"the whole of /proc", inStep("securityContext: {procMount: Unmasked}"), `procMount is "Unmasked"`, baseline},
		{"a sysctl of the node", "spec: {taskRunTemplate: {podTemplate: {securityContext: {sysctls: [{name: kernel.msgmax, value: '1'}]}}}}", `sysctls is "kernel.msgmax"`, baseline},
		{"a safe sysctl", "spec: {taskRunTemplate: {podTemplate: {securityContext: {sysctls: [{name: net.ipv4.tcp_syncookies, value: '1'}]}}}}", "", none},
		{"root", "spec: {taskRunTemplate: {podTemplate: {securityContext: {runAsUser: 0}}}}", "runAsUser is 0", strict},
		{"more privileges", inStep("securityContext: {allowPrivilegeEscalation: true}"), "allowPrivilegeEscalation is true", strict},
		{"perhaps root", inStep("securityContext: {runAsNonRoot: false}"), "runAsNonRoot is false", strict},
		{"what Tekton fetches", "spec: {pipelineRef: {resolver: git, params: [{name: url, value: x}]}}", `spec.pipelineRef.resolver is "git"`, baseline},
		{"a task that Tekton fetches", "spec: {pipelineSpec: {tasks: [{name: x, taskRef: {resolver: bundles}}]}}", `tasks[x].taskRef.resolver is "bundles"`, baseline},
		{"a step that Tekton fetches", "spec: {pipelineSpec: {tasks: [{name: x, taskSpec: {steps: [{name: s, ref: {resolver: hub}}]}}]}}", `ref.resolver is "hub"`, baseline},
		{"what the cluster has", "spec: {pipelineSpec: {tasks: [{name: x, taskRef: {resolver: cluster}}, {name: y, taskRef: {name: z}}]}}", "", none},
		{"a param is a text of its author", "spec: {params: [{name: x, value: {hostPath: a, resolver: git}}], pipelineSpec: {tasks: [{name: x, taskRef: {name: z}, params: [{name: serviceAccountName, value: y}]}]}}", "", none},
	} {
		t.Run(c.sentence, func(t *testing.T) {
			run := runOf(t, c.text)
			if err := Check(run, "x", Limits{}); err != nil {
				t.Errorf("no ceiling: %v", err)
			}
			for level, refused := range map[string]bool{Baseline: c.from == baseline, Restricted: c.from != none} {
				err := Check(run, ".tekton/x.yaml", Limits{}, Limits{PodSecurity: level, Setting: "the setting"})
				if fault.Is(err, fault.Invalid) != refused {
					t.Errorf("%s: %v, want it refused: %t", level, err, refused)
				}
				if refused && err != nil && (!strings.HasPrefix(err.Error(), ".tekton/x.yaml: ") || !strings.Contains(err.Error(), c.field) || !strings.Contains(err.Error(), "the setting")) {
					t.Errorf("%s: %q does not name the file, %q and the setting", level, err, c.field)
				}
			}
		})
	}
}

func TestServiceAccounts(t *testing.T) {
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
		err := Check(runOf(t, text), "x", limits)
		if (err == nil) != (refused == "") || err != nil && !strings.Contains(err.Error(), refused) {
			t.Errorf("%s: %v, want %q", text, err, refused)
		}
	}
	// Each of two ceilings holds.
	both := runOf(t, "spec: {taskRunTemplate: {serviceAccountName: builder}}")
	if err := Check(both, "x", limits, Limits{ServiceAccounts: []string{"tester"}, Setting: "the other"}); err == nil || !strings.Contains(err.Error(), "the other") {
		t.Errorf("%v, want the other ceiling's refusal", err)
	}
}
