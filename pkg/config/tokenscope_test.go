// SPDX-License-Identifier: Apache-2.0

package config

import (
	"strings"
	"testing"
)

func TestTokenScope(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		data    map[string]string
		refuses bool
		reaches string // repositories of three, joined by blanks
		bad     string
	}{
		"by default":              {nil, true, "", ""},
		"open":                    {map[string]string{keyTokenScoped: "false"}, false, "", ""},
		"an administrator's list": {map[string]string{keyExtraRepos: "acme/lib,\n Other/Tasks"}, false, "acme/lib other/tasks", ""},
		"a glob":                  {map[string]string{keyExtraRepos: "acme/*"}, false, "acme/lib acme/app", ""},
		"no overlapping texts":    {map[string]string{keyExtraRepos: "acme/app*pp"}, false, "", ""},
		"no owner":                {map[string]string{keyExtraRepos: "lib"}, true, "", `"lib" is not "owner/repo"`},
		"a path":                  {map[string]string{keyExtraRepos: "acme/lib/x"}, true, "", `"acme/lib/x" is not`},
		"no glob":                 {map[string]string{keyExtraRepos: "acme/[a"}, true, "", `"acme/[a" is not`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, err := New(test.data)
			var reaches []string
			for _, repository := range []string{"acme/lib", "acme/app", "other/tasks"} {
				for _, extra := range c.TokenScope.Extra {
					if extra.Match(repository) {
						reaches = append(reaches, repository)
					}
				}
			}
			if got := strings.Join(reaches, " "); got != test.reaches || c.TokenScope.RefusesLists() != test.refuses {
				t.Errorf("reaches %q, refuses lists: %t", got, c.TokenScope.RefusesLists())
			}
			if (err != nil) != (test.bad != "") || err != nil && !strings.Contains(err.Error(), test.bad) {
				t.Errorf("%v, want %q", err, test.bad)
			}
		})
	}
}
