// SPDX-License-Identifier: Apache-2.0

package config

import (
	"strings"
	"testing"
)

// An invalid URL keeps the earlier one. A process that knows none must not act as if
// Pipelines-as-Code did not run.
func TestPipelinesAsCodeURL(t *testing.T) {
	const url = "http://pac.example.svc:8080"
	for _, c := range []struct {
		values string // one after the other
		want   PipelinesAsCode
		runs   bool
	}{
		{"", PipelinesAsCode{}, false},
		{url, PipelinesAsCode{URL: url}, true},
		{"HTTP://PaC.example.svc:8080/", PipelinesAsCode{URL: url}, true},
		{url + " ", PipelinesAsCode{}, false},
		{url + " pac:8080", PipelinesAsCode{URL: url}, true},
		{"pac:8080", PipelinesAsCode{Broken: true}, true},
		{url + "/path", PipelinesAsCode{Broken: true}, true},
		{url + "?query", PipelinesAsCode{Broken: true}, true},
		{"pac:8080 ftp://pac", PipelinesAsCode{Broken: true}, true},
		{"pac:8080 ", PipelinesAsCode{}, false},
		{"pac:8080 " + url, PipelinesAsCode{URL: url}, true},
		{" pac:8080", PipelinesAsCode{}, false},
	} {
		logger := &recordingLogger{}
		store := NewStore(logger)
		for _, value := range strings.Split(c.values, " ") {
			store.OnConfigChanged(configMap(map[string]string{"pipelines-as-code-url": value}))
		}
		if got := store.Load().PipelinesAsCode; got != c.want || got.Runs() != c.runs {
			t.Errorf("%q: %+v, runs %t; want %+v, %t", c.values, got, got.Runs(), c.want, c.runs)
		}
		for _, said := range logger.errors {
			if !strings.Contains(said, `key "pipelines-as-code-url"`) || !strings.Contains(said, "pipelines-as-code-controller") {
				t.Errorf("%q: logged %q, want the key and an example", c.values, said)
			}
		}
	}
}
