// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"
)

// Without values the chart installs what `kubectl apply -f config/` installs. Three things differ.
// Helm creates the namespace. The definitions have an annotation that keeps them. The images have
// names, where config/ names the commands that ko builds.
func TestDefaultsRenderConfig(t *testing.T) {
	want, got := manifests(t), rendered(t)
	delete(want, "Namespace <nil>/plumbline")
	for key, object := range want {
		metadata := object["metadata"].(map[string]any)
		if strings.HasPrefix(key, "CustomResourceDefinition ") {
			annotations, _ := metadata["annotations"].(map[string]any)
			annotations = maps.Clone(annotations)
			if annotations == nil {
				annotations = map[string]any{}
			}
			annotations["helm.sh/resource-policy"] = "keep"
			metadata["annotations"] = annotations
		}
	}
	for _, component := range []string{"receiver", "controller"} {
		image := container(t, want, component)
		if image["image"] != "ko://github.com/plumbline-ci/plumbline/cmd/"+component {
			t.Errorf("config/ has the image %v", image["image"])
		}
		image["image"] = "ghcr.io/plumbline-ci/plumbline/" + component + ":v0.0.0"
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("config/ (-) and the chart (+) differ:\n%s", diff)
	}
}

// Each file of examples/ is valid, and changes what its golden file shows.
func TestExamples(t *testing.T) {
	files, err := filepath.Glob(source + "/examples/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("no examples: %v", err)
	}
	base := rendered(t)
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			if out, err := tool(t, "lint", "-f", file); err != nil {
				t.Errorf("helm lint: %v\n%s", err, out)
			}
			golden(t, "chart-"+filepath.Base(file), base, rendered(t, "-f", file))
		})
	}
}

func TestLint(t *testing.T) {
	if out, err := tool(t, "lint"); err != nil {
		t.Errorf("helm lint: %v\n%s", err, out)
	}
}

// A mistake in the values ends with the key that has it.
func TestSchemaRefuses(t *testing.T) {
	for name, test := range map[string]struct {
		values string
		want   []string
	}{
		"an unknown key":                  {"replica: 1", []string{"'replica'"}},
		"an unknown key of a component":   {"receiver: {replica: 1}", []string{"/receiver", "'replica'"}},
		"an unknown setting":              {"settings: {aplication-name: x}", []string{"/settings", "'aplication-name'"}},
		"a setting that is a list":        {"settings: {git-allowed-hosts: [a]}", []string{"/settings/git-allowed-hosts"}},
		"no replicas":                     {"receiver: {replicas: 0}", []string{"/receiver/replicas"}},
		"replicas that are no number":     {"controller: {replicas: two}", []string{"/controller/replicas"}},
		"an unknown resource section":     {"controller: {resources: {limit: {}}}", []string{"/controller/resources", "'limit'"}},
		"a Secret and inline credentials": {`github: {existingSecret: s, app: {id: 1, privateKey: k, webhookSecret: w}}`, []string{"/github/app"}},
		"a ConfigMap and settings":        {`{existingConfigMap: c, settings: {application-name: x}}`, []string{"/settings"}},
		"an address without scheme":       {`pipelinesAsCode: {info: {controllerURL: a.example}}`, []string{"/pipelinesAsCode/info/controllerURL"}},
		"incomplete inline credentials":   {"github: {app: {id: 1}}", []string{"/github/app", "'privateKey'"}},
		"an Ingress without a host":       {"ingress: {enabled: true}", []string{"/ingress/host"}},
		"a HTTPRoute without a parent":    {"gateway: {enabled: true, host: a}", []string{"/gateway/parentRefs"}},
		"a digest that is none":           {"image: {digests: {receiver: latest}}", []string{"/image/digests/receiver"}},
		"a port out of range":             {"networkPolicy: {apiServerPorts: [0]}", []string{"/networkPolicy/apiServerPorts/0"}},
		"a budget of nothing":             {"podDisruptionBudget: {minAvailable: 0}", []string{"/podDisruptionBudget/minAvailable"}},
		"a budget that blocks each drain": {"podDisruptionBudget: {minAvailable: 2}", []string{"podDisruptionBudget.minAvailable", "receiver"}},
		"a share that blocks each drain":  {`podDisruptionBudget: {minAvailable: "51%"}`, []string{"podDisruptionBudget.minAvailable", "receiver"}},
		"metrics from an empty list":      {"networkPolicy: {metricsFrom: []}", []string{"/networkPolicy/metricsFrom"}},
		"metrics from no list":            {"networkPolicy: {metricsFrom: null}", []string{"/networkPolicy", "'metricsFrom'"}},
		"an interval without a unit":      {`monitoring: {serviceMonitors: {interval: "30"}}`, []string{"/serviceMonitors/interval"}},
		"a variable that is a number":     {"controller: {extraEnv: [{name: A, value: 1}]}", []string{"/controller/extraEnv/0/value"}},
		"a variable without a name":       {"receiver: {extraEnv: [{value: a}]}", []string{"/receiver/extraEnv/0", "'name'"}},
		"a registry with a scheme":        {"image: {registry: https://r.example/p}", []string{"/image/registry"}},
		"a registry with a slash at last": {"image: {registry: r.example/p/}", []string{"/image/registry"}},
		"a tag with a digest":             {"image: {tag: v1@sha256}", []string{"/image/tag"}},
		"a namespace twice":               {"rbac: {namespaces: [a, a]}", []string{"/rbac/namespaces"}},
		"no list of arguments":            {"controller: {extraArgs: null}", []string{"/controller", "'extraArgs'"}},
		"no labels":                       {"receiver: {podLabels: null}", []string{"/receiver", "'podLabels'"}},
		"no further egress":               {"networkPolicy: {extraEgress: null}", []string{"/networkPolicy", "'extraEgress'"}},
		"empty credentials":               {`github: {app: {id: 1, privateKey: "", webhookSecret: w}}`, []string{"/github/app/privateKey"}},
		"monitoring by the wrong name":    {"monitoring: {serviceMonitor: {enabled: true}}", []string{"/monitoring", "'serviceMonitor'"}},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := tool(t, "template", "-f", values(t, test.values))
			if err == nil {
				t.Fatal("accepted")
			}
			for _, want := range test.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("%v: want %s", err, want)
				}
			}
		})
	}
}

// The schema has the keys of the ConfigMap's example, and no other ones.
func TestSettingsAreThoseOfTheConfigMap(t *testing.T) {
	example := at(t, manifests(t)["ConfigMap plumbline/plumbline"], "data", "_example").(string)
	var want []string
	for _, key := range regexp.MustCompile(`(?m)^([a-z0-9-]+): `).FindAllStringSubmatch(example, -1) {
		want = append(want, key[1])
	}
	var schema map[string]any
	if err := json.Unmarshal([]byte(read(t, source+"/values.schema.json")), &schema); err != nil {
		t.Fatal(err)
	}
	got := slices.Sorted(maps.Keys(at(t, schema, "properties", "settings", "properties").(map[string]any)))
	slices.Sort(want)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("config/400-configmaps.yaml (-) and values.schema.json (+) differ:\n%s", diff)
	}
}

// Settings are strings in the ConfigMap, whatever they are in the values.
func TestSettings(t *testing.T) {
	settings := `settings: {settled-cap: 1000000, remote-tasks: false, application-name: "CI: x", catalog-1-id: acme}`
	data := at(t, rendered(t, "-f", values(t, settings))["ConfigMap plumbline/plumbline"], "data").(map[string]any)
	delete(data, "_example")
	want := map[string]any{
		"settled-cap":      "1000000",
		"remote-tasks":     "false",
		"application-name": "CI: x",
		"catalog-1-id":     "acme",
	}
	if diff := cmp.Diff(want, data); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestInlineCredentials(t *testing.T) {
	app := `github: {app: {id: 1234567, privateKey: "-----BEGIN\nKEY-----\n", webhookSecret: "s\"3"}}`
	want := map[string]any{
		"github-application-id": "1234567",
		"github-private-key":    "-----BEGIN\nKEY-----\n",
		"webhook.secret":        `s"3`,
	}
	got := rendered(t, "-f", values(t, app))["Secret plumbline/plumbline-github-app"]
	if diff := cmp.Diff(want, got["stringData"]); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// In another namespace, nothing of the release is in plumbline or names it.
func TestAnotherNamespace(t *testing.T) {
	out, err := tool(t, "template", "-n", "elsewhere", "-f", values(t, `
rbac: {namespaces: [team-a]}
route: {enabled: true}
monitoring: {serviceMonitors: {enabled: true}, prometheusRules: {enabled: true}, dashboard: {enabled: true}}
`))
	if err != nil {
		t.Fatal(err)
	}
	all := parse(t, out)
	for key, object := range all {
		subjects, _ := object["subjects"].([]any)
		for _, subject := range subjects {
			if in := at(t, subject, "namespace"); in != "elsewhere" {
				t.Errorf("%s: a subject is in %v", key, in)
			}
		}
		switch in := at(t, object, "metadata", "namespace"); in {
		case "elsewhere", nil:
		case "team-a":
			if object["kind"] != "RoleBinding" {
				t.Errorf("%s is in team-a", key)
			}
		default:
			t.Errorf("%s is in %v", key, in)
		}
	}
	if all["RoleBinding team-a/plumbline-controller-secrets"] == nil ||
		all["ClusterRoleBinding <nil>/plumbline-controller"] != nil {
		t.Error("rbac.namespaces does not replace the bindings for all namespaces")
	}
}

// The values that no example has.
func TestDeploymentValues(t *testing.T) {
	all := rendered(t, "-f", values(t, `
image: {registry: r.example/p, tag: v9, pullPolicy: Always, digests: {receiver: "sha256:`+strings.Repeat("0", 64)+`"}}
receiver: {extraArgs: [-api-wait=2s], podLabels: {team: a}, tolerations: [{operator: Exists}], priorityClassName: high}
controller: {extraEnv: [{name: HTTPS_PROXY, value: "http://proxy:3128"}], affinity: {nodeAffinity: {}}, podAnnotations: {a: b}}
podSecurityContext: {fsGroup: 7}
securityContext: {privileged: false}
podDisruptionBudget: {enabled: false}
networkPolicy: {enabled: false}
crds: {enabled: false}
`))
	for key := range all {
		if kind, _, _ := strings.Cut(
			key,
			" ",
		); slices.Contains(
			[]string{"PodDisruptionBudget", "NetworkPolicy", "CustomResourceDefinition"},
			kind,
		) {
			t.Errorf("%s is not disabled", key)
		}
	}
	receiver, controller := container(t, all, "receiver"), container(t, all, "controller")
	pod := func(component string) map[string]any {
		return at(t, all["Deployment plumbline/plumbline-"+component], "spec", "template").(map[string]any)
	}
	for name, test := range map[string]struct{ got, want any }{
		"image":           {receiver["image"], "r.example/p/receiver:v9"},
		"pullPolicy":      {controller["imagePullPolicy"], "Always"},
		"extraArgs":       {at(t, receiver, "args", 3), "-api-wait=2s"},
		"extraEnv":        {at(t, controller, "env", 6, "name"), "HTTPS_PROXY"},
		"securityContext": {at(t, receiver, "securityContext", "privileged"), false},
		"podSecurity":     {at(t, pod("controller"), "spec", "securityContext", "fsGroup"), 7.0},
		"podLabels":       {at(t, pod("receiver"), "metadata", "labels", "team"), "a"},
		"podAnnotations":  {at(t, pod("controller"), "metadata", "annotations", "a"), "b"},
		"tolerations":     {at(t, pod("receiver"), "spec", "tolerations", 0, "operator"), "Exists"},
		"priorityClass":   {at(t, pod("receiver"), "spec", "priorityClassName"), "high"},
	} {
		if diff := cmp.Diff(test.want, test.got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	if at(t, pod("controller"), "spec", "affinity", "nodeAffinity") == nil {
		t.Error("affinity is not set")
	}
}

// Every key of values.yaml has an entry in the schema: Helm checks the defaults too, so this holds
// already. The opposite: a key that the schema allows is one that values.yaml shows.
func TestSchemaKeysAreDocumented(t *testing.T) {
	var schema, defaults map[string]any
	if err := json.Unmarshal([]byte(read(t, source+"/values.schema.json")), &schema); err != nil {
		t.Fatal(err)
	}
	if err := yaml.Unmarshal([]byte(read(t, source+"/values.yaml")), &defaults); err != nil {
		t.Fatal(err)
	}
	for key := range schema["properties"].(map[string]any) {
		if _, ok := defaults[key]; !ok && key != "global" {
			t.Errorf("values.yaml does not show %s", key)
		}
	}
	for key := range at(t, schema, "$defs", "component", "properties").(map[string]any) {
		for _, component := range []string{"receiver", "controller"} {
			if _, ok := defaults[component].(map[string]any)[key]; !ok {
				t.Errorf("values.yaml does not show %s.%s", component, key)
			}
		}
	}
}

// A variable of extraEnv replaces the one of the Deployment: Helm 4 applies on the server, which
// refuses two variables of one name.
func TestExtraEnvReplaces(t *testing.T) {
	all := rendered(t, "-f", values(t, `
caCertificates: {configMap: corp-ca}
controller: {extraEnv: [{name: SSL_CERT_DIR, value: /certs}, {name: POD_NAME, value: a}, {name: NEW, value: b}]}
`))
	got := map[string][]any{}
	for _, variable := range container(t, all, "controller")["env"].([]any) {
		name := at(t, variable, "name").(string)
		got[name] = append(got[name], at(t, variable, "value"))
	}
	for name, want := range map[string]string{"SSL_CERT_DIR": "/certs", "POD_NAME": "a", "NEW": "b"} {
		if diff := cmp.Diff([]any{want}, got[name]); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	if len(got["SYSTEM_NAMESPACE"]) != 1 {
		t.Errorf("SYSTEM_NAMESPACE is there %d times", len(got["SYSTEM_NAMESPACE"]))
	}
}

// Konflux's build-service makes the address of Pipelines-as-Code of the Service's name, its
// namespace and the port http-listener, else 80: getInternalPaCEndpoint in
// konflux-ci/build-service, internal/controller/component_build_controller_pac.go.
func TestNamesOfPipelinesAsCode(t *testing.T) {
	all := "pipelinesAsCode: {service: {enabled: true}, info: {enabled: true}"
	spec := func(in objects, name string) map[string]any { return in["Service "+name]["spec"].(map[string]any) }
	own := spec(rendered(t, "-f", values(t, all+"}")), "plumbline/pipelines-as-code-controller")
	receiver := spec(manifests(t), "plumbline/plumbline-receiver")
	if diff := cmp.Diff(receiver["selector"], own["selector"]); diff != "" {
		t.Errorf("the alias in Plumbline's namespace selects other pods:\n%s", diff)
	}
	if port := at(t, own, "ports", 0).(map[string]any); port["name"] != "http-listener" || port["targetPort"] != "http" {
		t.Errorf("the port of the alias is %v", port)
	}
	elsewhere := rendered(t, "-f", values(t, all+", namespace: openshift-pipelines}"))
	alias := spec(elsewhere, "openshift-pipelines/pipelines-as-code-controller")
	if alias["type"] != "ExternalName" || alias["externalName"] != "plumbline-receiver.plumbline.svc.cluster.local" {
		t.Errorf("the alias is %v", alias)
	}
	// DNS translates the name only: the port has to be one of the Service that it leads to.
	if got, want := at(t, alias, "ports", 0, "port"), at(t, receiver, "ports", 0, "port"); got != want {
		t.Errorf("the alias has port %v, and Service plumbline-receiver has %v", got, want)
	}
	// The console of OpenShift reads controller-url and app-link: WebhookSection.tsx and
	// RepositoryFormSection.tsx in openshift-pipelines/console-plugin, src/components/repositories.
	file := parse(t, read(t, config+"/optional/pipelines-as-code-names.yaml"))["ConfigMap pipelines-as-code/pipelines-as-code-info"]
	info := elsewhere["ConfigMap openshift-pipelines/pipelines-as-code-info"]
	keys := func(in map[string]any) []string { return slices.Sorted(maps.Keys(in["data"].(map[string]any))) }
	want := []string{"app-link", "controller-url", "provider", "version"}
	if diff := cmp.Diff(want, keys(info)) + cmp.Diff(want, keys(file)); diff != "" {
		t.Errorf("the keys of ConfigMap pipelines-as-code-info:\n%s", diff)
	}
	binding := elsewhere["RoleBinding openshift-pipelines/pipelines-as-code-info"]
	if subject := at(t, binding, "subjects", 0).(map[string]any); subject["namespace"] != nil {
		t.Errorf("a group has no namespace: %v", subject)
	}
}
