// SPDX-License-Identifier: Apache-2.0

package config

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	pacv1alpha1 "github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode/v1alpha1"
)

const (
	noBitbucket  = "Bitbucket is not served"
	noConfigure  = "create the namespace and the Repository of a new repository yourself, for example with plumb create repository"
	alwaysRetry  = "calls of Git services are always repeated"
	noTektonHub  = "every hub is read with the API of Artifact Hub"
	noTraceLabel = "spans have no attributes from labels"
)

// PaCKey returns what Plumbline does with a key of the ConfigMap of Pipelines-as-Code (PaC), and
// whether PaC has the key.
func PaCKey(name string) (pacv1alpha1.Setting, bool) {
	for _, key := range PaCKeys() {
		if key.Name == name {
			return key, true
		}
	}
	if catalogKey.MatchString(name) {
		return pacv1alpha1.Setting{Name: name, Treatment: pacv1alpha1.Served}, true
	}
	if catalogType.MatchString(name) {
		return tektonHub(name), true
	}
	return pacv1alpha1.Setting{}, false
}

// Ignored returns the keys of PaC's ConfigMap that have an effect in PaC with these values and none
// in Plumbline, sorted by their names.
func Ignored(data map[string]string) []pacv1alpha1.Setting {
	var ignored []pacv1alpha1.Setting
	for _, name := range slices.Sorted(maps.Keys(data)) {
		key, known := PaCKey(name)
		value := strings.TrimSpace(data[name])
		if known && key.Treatment == pacv1alpha1.Unserved && value != "" && !slices.Contains(key.Idle, value) {
			ignored = append(ignored, key)
		}
	}
	return ignored
}

// DescribeIgnored returns one line about each key of Ignored.
func DescribeIgnored(data map[string]string) []string {
	var lines []string
	for _, key := range Ignored(data) {
		lines = append(lines, fmt.Sprintf("key %q of Pipelines-as-Code has no effect: %s", key.Name, key.Instead))
	}
	return lines
}

// PaCKeys returns the keys of PaC's ConfigMap and what Plumbline does with each, without those of
// additional hubs (catalog-1-url), which PaCKey knows.
func PaCKeys() []pacv1alpha1.Setting {
	keys := slices.Concat(servedKeys(), []pacv1alpha1.Setting{
		tektonHub("hub-catalog-type"),
		{
			Name:      "trusted-provider-hostnames",
			Treatment: pacv1alpha1.Unserved,
			Instead: "the App's key is used at " + keyGitHubURL + ", a token at the host that its Repository names, and " +
				keyGitAllowed + " lists hosts with private addresses",
		},
		{Name: "enable-api-retry", Treatment: pacv1alpha1.Differs, Instead: alwaysRetry},
		{Name: "api-retry-max-attempts", Treatment: pacv1alpha1.Differs, Instead: alwaysRetry},
		{Name: "api-retry-max-wait-seconds", Treatment: pacv1alpha1.Differs, Instead: alwaysRetry},
	},
		unserved(noTraceLabel, []string{"delivery.tekton.dev/action"}, "tracing-label-action"),
		unserved(noTraceLabel, []string{"delivery.tekton.dev/application"}, "tracing-label-application"),
		unserved(noTraceLabel, []string{"delivery.tekton.dev/component"}, "tracing-label-component"),
		unserved(noBitbucket, []string{"true", "false"}, "bitbucket-cloud-check-source-ip"),
		unserved(noBitbucket, nil, "bitbucket-cloud-additional-source-ip"),
		unserved(noConfigure, []string{"false"}, "auto-configure-new-github-repo"),
		unserved(noConfigure, nil, "auto-configure-repo-namespace-template", "auto-configure-repo-repository-template"),
	)
	slices.SortFunc(keys, func(a, b pacv1alpha1.Setting) int { return strings.Compare(a.Name, b.Name) })
	return keys
}

func servedKeys() []pacv1alpha1.Setting {
	var served []pacv1alpha1.Setting
	for _, name := range []string{
		keyApplicationName, keyHubURL, keyHubCatalog, keyRemoteTasks, keyKeepLimit, keyKeepDefault, keyDashboardURL,
		keySecretAutoCreate, keyLogSnippet, keyLogLines, keyDetect, keyDetectLines, keyDetectPattern,
		keyCancelPulls, keyCancelPushes, keySkipPushOfPulls, keyConsoleName, keyConsoleURL, keyConsoleRun,
		keyConsoleTask, keyConsoleNamespace, keyRemember, keyRequireSHA, keyTokenScoped, keyExtraRepos,
	} {
		served = append(served, pacv1alpha1.Setting{Name: name, Treatment: pacv1alpha1.Served})
	}
	return served
}

func unserved(instead string, idle []string, names ...string) []pacv1alpha1.Setting {
	var settings []pacv1alpha1.Setting
	for _, name := range names {
		settings = append(settings,
			pacv1alpha1.Setting{Name: name, Treatment: pacv1alpha1.Unserved, Instead: instead, Idle: idle})
	}
	return settings
}

func tektonHub(name string) pacv1alpha1.Setting {
	return pacv1alpha1.Setting{
		Name: name, Treatment: pacv1alpha1.Unserved, Instead: noTektonHub, Idle: []string{"artifacthub"},
	}
}
