// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"os"
	"strings"

	"github.com/plumbline-ci/plumbline/test/installation"
)

// processLog returns what a process has printed since the environment was created.
func (env *environment) processLog(p *installation.Process) string {
	env.t.Helper()
	data, err := os.ReadFile(p.Log())
	env.must(err)
	if env.pooled != nil {
		data = data[env.pooled.logs[p]:]
	}
	return string(data)
}

// metricsText returns a process's metrics page.
func (env *environment) metricsText(p *installation.Process) string {
	env.t.Helper()
	text, err := installation.Fetch(env.ctx, p.Metrics)
	env.must(err)
	return string(text)
}

// showLogs prints the ends of the processes' logs when the test failed.
func (env *environment) showLogs() {
	if !env.t.Failed() {
		return
	}
	for _, p := range env.processes() {
		data, err := os.ReadFile(p.Log())
		if err != nil {
			continue
		}
		lines := strings.Split(string(bytes.TrimSpace(data)), "\n")
		env.t.Logf("the end of %s:\n%s", p.Log(), strings.Join(lines[max(0, len(lines)-25):], "\n"))
	}
}
