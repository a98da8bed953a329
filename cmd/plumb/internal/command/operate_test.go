// SPDX-License-Identifier: Apache-2.0

package command

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestOperatorsFlagsThatCannotBeMeant(t *testing.T) {
	dir := t.TempDir()
	must(t, os.WriteFile(filepath.Join(dir, "token"), []byte("glpat-1\n"), 0o600))
	must(t, os.WriteFile(filepath.Join(dir, "two"), []byte("a\nb\n"), 0o600))
	must(t, os.WriteFile(filepath.Join(dir, "empty"), []byte("\n"), 0o600))
	lab, hub := "--url=https://gitlab.com/acme/app", "--url=https://github.com/acme/app"
	for args, want := range map[string]string{
		"doctor now":       `"now" is not a flag`,
		"doctor -o yaml":   `-o "yaml" is not one of table, json`,
		"bootstrap gitlab": `no command is called "gitlab"`,
		"bootstrap github": "--webhook-url: give the https:// URL",
		"bootstrap github --webhook-url=https://h --listen=:8080":           "is not an address of this machine alone",
		"bootstrap github --webhook-url=https://":                           "--webhook-url: give the https:// URL",
		"create repository a b " + hub:                                      "give one Repository at a time",
		"version now":                                                       "plumb version --help",
		"bootstrap github --webhook-url=https://h -n team-a":                "give its repository with --url",
		"bootstrap github --webhook-url=https://h " + hub:                   "--url needs --namespace",
		"create repository":                                                 "--url is missing",
		"create repository --url=git@github.com:acme/app.git":               "--url: ",
		"create repository --provider=svn " + hub:                           `--provider "svn" is not one of`,
		"create repository --provider=github --gitlab-url=https://x " + hub: "--gitlab-url is for GitLab",
		"create repository --webhook-secret-file=token " + lab:              "--webhook-secret-file needs --token-file",
		"create repository --token-file=- --webhook-secret-file=- " + lab:   "only one secret can be read from standard input",
		"create repository --token-file=two " + lab:                         "--token-file: it has several lines",
		"create repository --token-file=empty " + lab:                       "--token-file: it is empty",
		"create repository --token-file=none " + lab:                        "--token-file: open ",
		"webhook add":                                        "needs the name of one Repository",
		"webhook update-token app":                           "--token-file is missing",
		"webhook update-token app --token-file=token":        "the kubeconfig names no cluster",
		"uninstall --close-checks=maybe":                     "--close-checks=maybe is not one of cancel, wait, no",
		"uninstall --kubeconfig=/nowhere":                    "the kubeconfig names no cluster",
		"create repository --kubeconfig=/nowhere app " + hub: "the kubeconfig names no cluster",
	} {
		got := plumb(t.Context(), dir, "", strings.Fields(args)...)
		if got.code != exitTool || !strings.Contains(got.said, want) {
			t.Errorf("plumb %s: exit %d: %s, want %q", args, got.code, got.said, want)
		}
	}
}

// Other users of a machine see the arguments of its processes.
func TestNoFlagTakesASecret(t *testing.T) {
	for _, args := range []string{"create repository", "webhook add", "webhook update-token", "bootstrap github"} {
		help := plumb(t.Context(), t.TempDir(), "", append(strings.Fields(args), "--help")...).out
		for _, flag := range []string{"--token ", "--webhook-secret ", "--private-key "} {
			if strings.Contains(help, flag) {
				t.Errorf("plumb %s has the flag %s", args, flag)
			}
		}
	}
}

// The namespace is that of the kubeconfig's context, as with kubectl.
func TestCreateRepositoryUsesTheNamespaceOfTheContext(t *testing.T) {
	var created string
	file := kubeconfigOf(t, func(r *http.Request) (int, string) {
		if r.Method == http.MethodPost {
			created = r.URL.Path
			return http.StatusCreated, `{"kind": "Repository", "apiVersion": "pipelinesascode.tekton.dev/v1alpha1", "metadata": {"name": "app"}}`
		}
		return http.StatusOK, `{"kind": "RepositoryList", "apiVersion": "pipelinesascode.tekton.dev/v1alpha1", "items": []}`
	})
	got := plumb(t.Context(), t.TempDir(), "", "create", "repository", "--url=https://github.com/acme/app", "--kubeconfig", file)
	if got.code != exitOK || got.out != "Repository team-a/app was created\n" || !strings.HasSuffix(created, "/namespaces/team-a/repositories") {
		t.Errorf("exit %d: %s%s; created %s", got.code, got.out, got.said, created)
	}
}
