// SPDX-License-Identifier: Apache-2.0

package v1alpha1_test

import (
	"strings"
	"testing"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
)

func TestCanonicalURL(t *testing.T) {
	for name, c := range map[string]struct{ in, want string }{
		"a canonical URL stays":                   {"https://github.com/acme/app", "https://github.com/acme/app"},
		"scheme, host and path become lower case": {"HTTPS://GitHub.com/Acme/App", "https://github.com/acme/app"},
		"slashes at the end go":                   {"https://github.com/acme/app//", "https://github.com/acme/app"},
		".git goes":                               {"https://github.com/acme/app.git", "https://github.com/acme/app"},
		".GIT and its slash go":                   {"https://github.com/acme/app.GIT/", "https://github.com/acme/app"},
		"a second .git goes with the first":       {"https://github.com/acme/app.git.git", "https://github.com/acme/app"},
		"user and password go": {
			"https://me:secret@github.com/acme/app", "https://github.com/acme/app",
		},
		"a user that looks like a host is no host": {
			"https://github.com@evil.example/acme/app", "https://evil.example/acme/app",
		},
		"query and fragment go": {
			"https://github.com/acme/app?tab=x#readme", "https://github.com/acme/app",
		},
		"the default port goes":           {"https://github.com:443/acme/app", "https://github.com/acme/app"},
		"another port stays":              {"http://127.0.0.1:8081/acme/app", "http://127.0.0.1:8081/acme/app"},
		"a port has one spelling":         {"http://localhost:08081/acme/app", "http://localhost:8081/acme/app"},
		"the root's dot of a host goes":   {"https://github.com./acme/app", "https://github.com/acme/app"},
		"groups within groups are a path": {"https://gitlab.com/a/b/c/d", "https://gitlab.com/a/b/c/d"},
		"an IPv6 host keeps its brackets": {"http://[::1]:80/acme/app", "http://[::1]/acme/app"},
		"a name may hold dots, dashes, tilde and so": {
			"https://git.example/~me/a.b-c_d+e", "https://git.example/~me/a.b-c_d+e",
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := v1alpha1.CanonicalURL(c.in)
			if err != nil || got != c.want {
				t.Fatalf("CanonicalURL(%q) = %q, %v; want %q", c.in, got, err, c.want)
			}
			again, err := v1alpha1.CanonicalURL(got)
			if err != nil || again != got {
				t.Errorf("not idempotent: CanonicalURL(%q) = %q, %v", got, again, err)
			}
		})
	}
}

func TestCanonicalURLRefusesAmbiguousSpellings(t *testing.T) {
	for name, in := range map[string]string{
		"nothing":                                "",
		"no scheme":                              "github.com/acme/app",
		"another scheme":                         "ssh://git@github.com/acme/app",
		"a script":                               "javascript:alert(1)",
		"no host":                                "https:///acme/app",
		"no path":                                "https://github.com/",
		"only .git":                              "https://github.com/.git",
		"a repository called .git":               "https://github.com/acme/.git",
		"an encoded slash":                       "https://github.com/acme%2Fapp",
		"an encoded letter":                      "https://github.com/acme/%61pp",
		"a broken escape":                        "https://github.com/acme/%zz",
		"dot segments":                           "https://github.com/evil/../acme/app",
		"an empty segment":                       "https://github.com//acme/app",
		"the Kelvin sign, whose lower case is k": "https://github.com/acme/\u212A8s",
		"a host with it":                         "https://gith\u212Ab.com/acme/app",
		"a Cyrillic letter":                      "https://github.com/\u0430cme/app",
		"a line break":                           "https://github.com/acme/app\nx",
		"a NUL":                                  "https://github.com/acme/app\x00",
		"a space":                                "https://github.com/acme/app ",
		"a backslash":                            `https://github.com\@evil.example/acme/app`,
		"a port that is no number":               "https://github.com:http/acme/app",
		"a port out of range":                    "https://github.com:65536/acme/app",
		"port 0":                                 "https://github.com:0/acme/app",
		"an empty label in the host":             "https://github..com/acme/app",
		"an IPv6 zone":                           "http://[fe80::1%25eth0]/acme/app",
		"more than a claim can hold":             "https://github.com/acme/" + strings.Repeat("a", 2048),
	} {
		t.Run(name, func(t *testing.T) {
			if got, err := v1alpha1.CanonicalURL(in); err == nil {
				t.Errorf("CanonicalURL(%q) = %q, want an error", in, got)
			}
		})
	}
}

func TestCanonicalURLErrorsHideThePassword(t *testing.T) {
	for _, in := range []string{"https://me:hunter2@github.com/%zz", "https://me:hunter2@github.com/",
		"https://me:hunter2@[/x", "https://me:hun ter2@h/x\x7f"} {
		_, err := v1alpha1.CanonicalURL(in)
		if err == nil || strings.Contains(err.Error(), "hunter2") || strings.Contains(err.Error(), "ter2") {
			t.Errorf("CanonicalURL(%q): %v, want an error without the password", in, err)
		}
	}
}

func FuzzCanonicalURL(f *testing.F) {
	for _, seed := range []string{"https://github.com/acme/app.git/", "http://[::1]:1/a/b", "https://a@b/c?d#e",
		"HTTPS://X.:443/Y.git.git"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, raw string) {
		once, err := v1alpha1.CanonicalURL(raw)
		if err != nil {
			return
		}
		twice, err := v1alpha1.CanonicalURL(once)
		if err != nil || twice != once || strings.ToLower(once) != once {
			t.Errorf("%q -> %q -> %q, %v", raw, once, twice, err)
		}
	})
}

func TestSameURL(t *testing.T) {
	for name, c := range map[string]struct {
		a, b string
		want bool
	}{
		"one spelling":                         {"https://git.example/acme/app", "https://git.example/acme/app", true},
		"capitals, .git and a slash":           {"https://Git.example/acme/App.git/", "https://git.example/acme/app", true},
		"another repository":                   {"https://git.example/acme/app", "https://git.example/acme/other", false},
		"another host":                         {"https://git.example/acme/app", "https://git2.example/acme/app", false},
		"what is no URL is compared as it is":  {"acme/app", "acme/app", true},
		"what is no URL has one spelling only": {"acme/app", "acme/App", false},
		"a URL and what is none":               {"https://git.example/acme/app", "git.example/acme/app", false},
	} {
		if got := v1alpha1.SameURL(c.a, c.b); got != c.want || v1alpha1.SameURL(c.b, c.a) != c.want {
			t.Errorf("%s: SameURL(%q, %q) = %t, want %t", name, c.a, c.b, got, c.want)
		}
	}
}
