// SPDX-License-Identifier: Apache-2.0

package resources

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/validation"
)

func TestRunName(t *testing.T) {
	tests := map[string]struct{ name, want string }{
		"a plain name is kept":                           {"build", "build-"},
		"upper case is lowered":                          {"Build-ALL", "build-all-"},
		"dots, spaces and underscores become dashes":     {"a.b c_d", "a-b-c-d-"},
		"leading and trailing dashes go":                 {"--a--", "a-"},
		"letters of other scripts become dashes":         {"bäu日", "b--u-"},
		"a digit may come first":                         {"1st", "1st-"},
		"a name of which nothing is left is called run":  {"日本語", "run-"},
		"no name is called run":                          {"", "run-"},
		"a long name is cut to 49":                       {strings.Repeat("x", 300), strings.Repeat("x", 49) + "-"},
		"a name is not cut so that dashes are in a row":  {strings.Repeat("x", 48) + "-y", strings.Repeat("x", 48) + "-"},
		"a file's path is as good as any":                {".tekton/push.yaml", "tekton-push-yaml-"},
		"a placeholder that nobody replaced":             {"{{ repo_name }}-build", "repo-name----build-"},
		"a NUL and a newline":                            {"a\x00\nb", "a--b-"},
		"a letter that is lowered to more than one byte": {"İ", "i-"},
	}
	for title, tt := range tests {
		t.Run(title, func(t *testing.T) {
			got := RunName("push-1", ".tekton/a.yaml", 0, tt.name)
			if cut := len(got) - hashLength; cut < 0 || got[:cut] != tt.want {
				t.Errorf("RunName(%q) = %s, want %s<hash>", tt.name, got, tt.want)
			}
			if problems := validation.IsDNS1123Label(got); len(problems) > 0 {
				t.Errorf("%s is no DNS-1123 label: %v", got, problems)
			}
		})
	}
}

func TestRunNameTellsItsPartsApart(t *testing.T) {
	names := map[string]bool{}
	for _, parts := range []struct {
		event, file string
		document    int
		name        string
	}{
		{"e", "f", 0, "n"}, {"e2", "f", 0, "n"}, {"e", "f2", 0, "n"}, {"e", "f", 1, "n"}, {"e", "f", 0, "N"},
		{"ef", "", 0, "n"}, {"", "ef", 0, "n"}, {"e", "f0", 0, "n"}, {"e", "f", 10, "n"}, {"e", "f1", 0, "n"},
		{"e", "f", 0, "n-"},
	} {
		names[RunName(parts.event, parts.file, parts.document, parts.name)] = true
	}
	if len(names) != 11 {
		t.Errorf("%d names of 11 inputs: %v", len(names), names)
	}
}

// The names are a promise to objects that exist: another release must find them again.
func TestNamesStayWhatTheyAre(t *testing.T) {
	run := RunName("push-0123456789abcdef0123456789abcdef", ".tekton/push.yaml", 0, "build")
	if run != goldenRunName {
		t.Errorf("RunName = %s, want %s", run, goldenRunName)
	}
	if secret := SecretName(run); secret != goldenSecretName {
		t.Errorf("SecretName = %s, want %s", secret, goldenSecretName)
	}
}

func TestLabelValue(t *testing.T) {
	tests := map[string]struct{ value, want string }{
		"a valid value is kept":            {"feature-1.x_y", "feature-1.x_y"},
		"nothing is a valid value":         {"", ""},
		"slashes and colons become dashes": {"group/sub:x", "group-sub-x"},
		"a space becomes an underscore":    {"Merge Request", "Merge_Request"},
		"brackets become two underscores":  {"dependabot[bot]x", "dependabot__bot__x"},
		"other characters go":              {"a@b#c(日)", "abc"},
		"the ends are trimmed":             {"_-.a[]", "a"},
		"nothing but what is trimmed":      {"---", ""},
		"the last 63 characters of a long value": {
			strings.Repeat("a", 40) + strings.Repeat("b", 60), "aaa" + strings.Repeat("b", 60),
		},
		"a cut that leaves a dash at the start": {
			"aa" + strings.Repeat("-", 3) + strings.Repeat("b", 60), strings.Repeat("b", 60),
		},
		"characters that a careless range lets by": {"a;<=>?^b", "ab"},
	}
	for title, tt := range tests {
		t.Run(title, func(t *testing.T) {
			got := labelValue(tt.value)
			if got != tt.want {
				t.Errorf("labelValue(%q) = %q, want %q", tt.value, got, tt.want)
			}
			if problems := validation.IsValidLabelValue(got); len(problems) > 0 {
				t.Errorf("%q is no label value: %v", got, problems)
			}
		})
	}
}

func FuzzNames(f *testing.F) {
	for _, seed := range []string{"build", "", "-", "日本語", strings.Repeat(".", 100), "A B", "\xff", "[x]"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, value string) {
		run := RunName("e", "f", 0, value)
		for _, name := range []string{run, SecretName(run)} {
			if problems := validation.IsDNS1123Label(name); len(problems) > 0 {
				t.Errorf("%q gives %q: %v", value, name, problems)
			}
		}
		if problems := validation.IsValidLabelValue(labelValue(value)); len(problems) > 0 {
			t.Errorf("%q gives the label %q: %v", value, labelValue(value), problems)
		}
	})
}

const (
	goldenRunName    = "build-dy442nmg5z4jw"
	goldenSecretName = "pac-gitauth-u4yopckcfvnqk"
)
