// SPDX-License-Identifier: Apache-2.0

package config

import (
	"maps"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/status"
)

// Whatever a ConfigMap holds, there is a configuration, its values are what they may be, and what
// is complained about does not show a password.
func FuzzNew(f *testing.F) {
	for _, value := range []string{
		"", "true", "maybe", "8", "-1", "99999999999999999999", "https://git.example/", "https://me:hunter2@git.example",
		"http://[::1]:80/%zz",
		"https://c.example/{{ namespace }}/{{pr}}/{{ task }}?q={{ x }}", "{{ pr }}", "git.example, *.a.example, 10.0.0.0/8",
		"hub-2", "a\nb", "\xff", strings.Repeat("x", 300),
	} {
		for i := range 8 {
			f.Add(uint8(i*3), value, uint8(i*3+1), value)
		}
	}
	f.Add(uint8(4), "https://c.example", uint8(5), "https://c.example/{{ pr }}/{{")
	keys := []string{
		keyApplicationName, keySecretAutoCreate, keyDashboardURL, keyConsoleName, keyConsoleURL, keyConsoleRun,
		keyConsoleTask, keyConsoleNamespace, keyGitHubURL, keyWebhookURL,
		keySkipPushOfPulls, keyRetentionDays, keySettledCap, keyOpenEvents, keyOpenPayloads, keyRemoteTasks, keyHubURL,
		keyHubCatalog, keyRemoteAllowed, keyRemoteRefused, keyShareGlobal, keyRunPermissions, keyExtraRepos,
		"catalog-1-id", "catalog-1-name", "catalog-1-url", "catalog-02-id", "unknown", "_example",
	}
	urls := []string{keyDashboardURL, keyConsoleURL, keyConsoleRun, keyConsoleTask, keyConsoleNamespace, keyGitHubURL,
		keyWebhookURL, keyHubURL, "catalog-1-url"}
	f.Fuzz(func(t *testing.T, first uint8, a string, second uint8, b string) {
		data := map[string]string{keys[int(first)%len(keys)]: a, keys[int(second)%len(keys)]: b}
		c, err := New(data)
		if c == nil {
			t.Fatalf("no configuration: %v", err)
		}
		onlyURLs := true
		for key := range maps.Keys(data) {
			onlyURLs = onlyURLs && slices.Contains(urls, key)
		}
		if err != nil && onlyURLs && strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%v shows the password of %v", err, data)
		}
		if c.SettledCap < minSettledCap || c.SettledCap > maxSettledCap || c.SettledRetention < publicRetentionDays*day ||
			c.SettledRetention > maxRetentionDays*day {
			t.Errorf("%v became %+v", data, c)
		}
		again, err := New(map[string]string{keyGitHubURL: c.GitHubURL, keyHubURL: c.Remote.Hub.URL})
		if diff := cmp.Diff(c.GitHubURL+" "+c.Remote.Hub.URL, again.GitHubURL+" "+again.Remote.Hub.URL); err != nil ||
			diff != "" {
			t.Errorf("%v: read again: %v, %s", data, err, diff)
		}
		links := c.Console.Links(v1alpha1.Run{Namespace: "team/a", Name: "run?x", UID: "u"})
		for _, link := range []string{
			links.Run, links.Namespace, links.Archive, links.Task(status.TaskLink{Name: "b&c", Pod: "p/"}),
		} {
			if u, err := url.Parse(link); link != "" && (err != nil || u.Host == "" || strings.Contains(link, "{{")) {
				t.Errorf("%v leads to %q", data, link)
			}
		}
	})
}
