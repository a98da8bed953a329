// SPDX-License-Identifier: Apache-2.0

package language

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/pkg/pipeline/template"
)

// The golden file holds, for each text, what was looked up for it and what becomes of it.
func TestTemplates(t *testing.T) {
	corpus(t, "templates", func(t *testing.T, data []byte) string {
		var c Templates
		if err := yaml.UnmarshalStrict(data, &c); err != nil {
			t.Fatal(err)
		}
		var b strings.Builder
		for _, text := range slices.Concat(Everywhere(), c.Texts) {
			fmt.Fprintf(&b, "%s\n    %s\n", text, replaced(c.read(t), text))
		}
		return b.String()
	})
}

func replaced(k *known, text string) string {
	for range maxRounds {
		left := 1 << 20
		got, err := k.scope.Place(text, &left)
		needs, unknown := template.NeedsOf(err)
		switch {
		case unknown:
			k.learn(needs)
		case fault.Is(err, fault.Invalid):
			return k.asked + "invalid: " + err.Error()
		case err != nil:
			return k.asked + "NOT THE AUTHOR'S: " + err.Error()
		default:
			return fmt.Sprintf("%s%q", k.asked, got)
		}
	}
	return k.asked + "still not known"
}
