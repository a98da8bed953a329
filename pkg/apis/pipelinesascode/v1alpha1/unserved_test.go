// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"encoding/json"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestNotActedOn(t *testing.T) {
	for text, want := range map[string][]string{
		`{"url":"https://github.com/a/b","git_provider":{"type":"gitlab","url":"x","user":"u"},"params":[{"name":"x"}],"settings":{"pipelinerun_provenance":"source"}}`: nil,
		`{"settings":{"policy":{"pull_request":["team"]},"gitlab":{},"github":{},"forgejo":{},"github_app_token_scope_repos":[]},"incoming":[]}`:                        nil,
		`{"concurrency_limit":1,"incoming":[{"type":"webhook-url","secret":{"name":"x"}}]}`:                                                                             nil,
		`{"incoming":[` + strings.Repeat(`{"type":"webhook-url","secret":{"name":"x"}},`, MaxIncomingRules) + `{"type":"webhook-url","secret":{"name":"x"}}]}`: {
			"incoming[64] and those after it",
		},
		`{"git_provider":{"type":"gitlab"},"settings":{"run_token_permissions":{"issues":"write"}}}`: {
			"settings.run_token_permissions (GitLab's tokens are what their owner made them)",
		},
		`{"git_provider":{"type":"gitlab"},"settings":{"github_app_token_scope_repos":["a/b"]}}`: {
			"settings.github_app_token_scope_repos (GitLab's tokens are what their owner made them)",
		},
		`{"git_provider":{"secret":{"name":"x"},"webhook_secret":{"name":"x"}},"settings":{"github_app_token_scope_repos":["a/b"],"run_token_permissions":{"issues":"write"}}}`: {
			"settings.github_app_token_scope_repos (the token of git_provider is what its owner made it)",
			"settings.run_token_permissions (the token of git_provider is what its owner made it)",
		},
		`{"settings":{"run_token_permissions":{"issues":"write"}}}`: nil,
		`{"git_provider":{"type":"gitea"}}`:                         {"git_provider.type: gitea"},
		`{"settings":{"github_app_token_scope_repos":["a/b"],"ai":{"enabled":true},"github":{"comment_strategy":"update"},
			"forgejo":{"user_agent":"x"},"gitlab":{"comment_strategy":"update","token_auto_rotation":true}}}`: {
			"settings.ai", "settings.forgejo", "settings.gitlab.token_auto_rotation",
		},
	} {
		var spec RepositorySpec
		if err := json.Unmarshal([]byte(text), &spec); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, spec.IgnoredFields()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", text, diff)
		}
	}
}

// A policy is evaluated at GitHub and GitLab alone.
func TestRestricts(t *testing.T) {
	for text, want := range map[string]string{
		`{}`: "", `{"settings":{}}`: "", `{"settings":{"policy":{}}}`: "", `{"git_provider":{"type":"gitea"}}`: "",
		`{"git_provider":{"type":"gitlab"},"settings":{"policy":{"ok_to_test":["a"]}}}`: "",
		`{"git_provider":{"type":"github"},"settings":{"policy":{}}}`:                   "",
		`{"git_provider":{"type":"gitea"},"settings":{"policy":{}}}`:                    "settings.policy",
	} {
		var spec RepositorySpec
		if err := json.Unmarshal([]byte(text), &spec); err != nil {
			t.Fatal(err)
		}
		if got := spec.Restricts(); got != want {
			t.Errorf("%s: %q, want %q", text, got, want)
		}
		if slices.ContainsFunc(spec.IgnoredFields(), func(field string) bool { return strings.Contains(field, "policy") }) {
			t.Errorf("%s: what denies is acted on", text)
		}
	}
}

// Each setting that Pipelines-as-Code does not have is an own field when it is set, and no other
// is.
func TestOwnFields(t *testing.T) {
	data, err := os.ReadFile("testdata/pac-fields.txt")
	if err != nil {
		t.Fatal(err)
	}
	theirs := strings.Fields(string(data))
	var want []string
	var spec RepositorySpec
	settings := reflect.New(reflect.TypeFor[Settings]()).Elem()
	for i := range settings.NumField() {
		name, _, _ := strings.Cut(settings.Type().Field(i).Tag.Get("json"), ",")
		if !slices.Contains(theirs, "spec.settings."+name) {
			want = append(want, "settings."+name)
		}
		switch field := settings.Field(i); field.Kind() {
		case reflect.Pointer:
			field.Set(reflect.New(field.Type().Elem()))
		case reflect.Slice:
			field.Set(reflect.MakeSlice(field.Type(), 1, 1))
		case reflect.Map:
			field.Set(reflect.ValueOf(map[string]PermissionLevel{"issues": "read"}))
		default:
			field.SetString("x")
		}
	}
	set := settings.Interface().(Settings)
	spec.Settings, spec.Params = &set, &[]Params{{Name: "other"}, {Name: "x", Untrusted: true}}
	want = append(want, "params.untrusted")
	slices.Sort(want)
	if diff := cmp.Diff(want, spec.OwnFields()); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if own := (&RepositorySpec{Params: &[]Params{{Name: "x"}}, Settings: &Settings{}}).OwnFields(); own != nil {
		t.Errorf("own fields of an empty spec: %q", own)
	}
}
