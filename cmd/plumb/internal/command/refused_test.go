// SPDX-License-Identifier: Apache-2.0

package command

import (
	"strings"
	"testing"

	"github.com/plumbline-ci/plumbline/cmd/plumb/internal/scratch"
)

// Each case is a command that cannot be answered, and what the one sentence that it prints holds.
func TestRefused(t *testing.T) {
	shared := refusable(t)
	for name, test := range map[string]struct {
		args    []string
		prepare func(*scratch.Repo)
		want    string
	}{
		"a flag that there is not": {
			args: []string{"--pushed"}, want: "unknown flag: --pushed: plumb plan --help lists the flags",
		},
		"a flag without its value": {args: []string{"--tag"}, want: "flag needs an argument: --tag"},
		"an argument": {
			args: []string{"main"}, want: `"main" is not a flag: only --changed is followed by files`,
		},
		"a branch behind --push": {
			args: []string{"--push", "main"}, want: "write --push=main for a push to that branch",
		},
		"another form": {args: []string{"-o", "xml"}, want: `-o "xml" is not one of table, wide, yaml, json`},
		"two events": {
			args: []string{"--push", "--tag=v1"}, want: "--push and --tag are different events",
		},
		"three events": {
			args: []string{"--tag=v1", "--label=x", "--comment=x"}, want: "--tag and --label and --comment are different events",
		},
		"a push to a base": {
			args: []string{"--push", "--base=main"}, want: "--base is a branch of a pull request, and --push is a push",
		},
		"a tag of a branch": {
			args: []string{"--tag=v1", "--head=x"},
			want: "--head is a branch of a pull request, and --tag pushes a tag: leave one out",
		},
		"a tag with a number": {
			args: []string{"--tag=v1", "--number=1"}, want: "--number is that of a pull request",
		},
		"a matrix of PipelineRuns": {args: []string{"--matrix", "-o=yaml"}, want: "--matrix answers which pipelines start"},
		"a matrix of a delivery": {
			args: []string{"--matrix", "--payload=x", "--headers=y"}, want: "--matrix is about several events",
		},
		"an author of a push": {args: []string{"--push", "--author=eve"}, want: "--author is that of a pull request"},
		"an empty author":     {args: []string{"--author="}, want: "--author has no value"},
		"a negative number":   {args: []string{"--number=-1"}, want: "they count from 1"},
		"a delivery and a described event": {args: []string{"--payload=x", "--headers=y", "--push"},
			want: "--payload gives a delivery, which says itself what happened, and --push describes an event"},
		"a payload without headers": {args: []string{"--payload=x"}, want: "--payload needs --headers"},
		"headers without a payload": {args: []string{"--headers=x"}, want: "--headers needs --payload"},
		"both of standard input": {
			args: []string{"--payload=-", "--headers=-"}, want: "cannot both be read from standard input",
		},
		"an empty tag":               {args: []string{"--tag="}, want: "--tag has no value"},
		"an empty branch to push to": {args: []string{"--push="}, want: "--push has no value"},
		"two comments": {args: []string{"--comment=/test", "--comment=/retest"},
			want: "each --comment is an event of its own: ask about one after the other"},
		"an empty label":                {args: []string{"--label="}, want: "--label has no value"},
		"an empty comment":              {args: []string{"--comment="}, want: "--comment has no value"},
		"an empty name that must start": {args: []string{"--must-start="}, want: "--must-start has no value"},
		"a password in an address": {args: []string{"--url=https://me:s3cr%zz@github.com/acme/app"},
			want: `--url "https://***@github.com/acme/app" is not a URL`},
		"no number": {
			args: []string{"--number=x"}, want: `--number "x" is not the number of a pull request: they count from 1`,
		},
		"an empty file":         {args: []string{"--repository="}, want: "--repository has no value"},
		"no changed file":       {args: []string{"--changed="}, want: "--changed needs the path of a file"},
		"a tag that is none":    {args: []string{"--tag=a b"}, want: `"a b" is not a name that Git accepts`},
		"a branch that is none": {args: []string{"--push=a..b"}, want: `"a..b" is not a name that Git accepts`},
		"a base that is none":   {args: []string{"--base=-x"}, want: `"-x" is not a name that Git accepts`},
		"a context without a cluster": {
			args: []string{"--context=x"}, want: "--context is about a cluster, and none is asked: add --from-cluster",
		},
		"no cluster": {
			args: []string{"--from-cluster", "--kubeconfig=/nowhere"}, want: "--from-cluster: the kubeconfig names no cluster",
		},
		"an empty kubeconfig": {args: []string{"--from-cluster", "--kubeconfig=/dev/null"},
			want: "names no cluster: say with --kubeconfig which file does"},
		"another service": {args: []string{"--provider=gitea"},
			want: `"gitea" is no Git service that Plumbline serves: say --provider github or --provider gitlab`},
		"another service of the Repository": {
			args: []string{"--repository=gitea.yaml"}, want: `"gitea" is no Git service that Plumbline serves`,
		},
		"an address that is none": {
			args: []string{"--url=acme/app"}, want: `--url "acme/app" is not at a Git service`,
		},
		"no repository of GitHub": {
			args: []string{"--url=https://github.com/a/b/c"}, want: "is no repository of github: say with --url and --provider",
		},
		"names that no service has": {args: []string{"--url=https://github.com/a~b/app"},
			want: "no event of GitHub has these names: the delivery's body has no usable repository.owner.login"},
		"a Repository of another URL": {
			args: []string{"--repository=other.yaml", "--push"},
			want: "the event would be about https://github.com/acme/app, and the Repository is of https://github.com/acme/other",
		},
		"a delivery of another URL": {args: []string{
			"--repository=other.yaml", "--payload=payload.json", "--headers=headers.txt",
		}, want: "and Repository default/other is of https://github.com/acme/other"},
		"a param that is none": {
			args: []string{"--param=tier"}, want: `--param "tier" is not like --param tier=gold`,
		},
		"a file that is not there":    {args: []string{"--config=none.yaml"}, want: "--config: there is no file "},
		"a directory":                 {args: []string{"--config=."}, want: "--config: reading "},
		"an empty file that is there": {args: []string{"--config=empty"}, want: "empty is empty"},
		"a huge Repository": {
			args: []string{"--repository=huge"}, want: "has more than 1 MiB, and Plumbline reads no more",
		},
		"a huge payload": {
			args: []string{"--payload=huge", "--headers=headers.txt"}, want: "has more than 25 MiB",
		},
		"another kind": {args: []string{"--repository=.tekton/build.yaml"},
			want: "--repository: this is a PipelineRun of tekton.dev/v1, not a Repository"},
		"a field that is misspelt": {
			args: []string{"--repository=misspelt.yaml"}, want: `unknown field "spec.paramz"`,
		},
		"a payload that is cut in half": {
			args: []string{"--payload=half.json", "--headers=headers.txt"}, want: "the payload is not JSON: is it complete?",
		},
		"a payload of another service": {
			args: []string{"--payload=payload.json", "--headers=gitlab.txt"}, want: "are not those of one delivery of GitLab",
		},
		"headers of no service": {
			args: []string{"--payload=payload.json", "--headers=config.yaml"}, want: "not from a Git service that Plumbline serves",
		},
		"no .tekton": {
			prepare: func(r *scratch.Repo) { r.Remove(".tekton") }, want: "plumb: there is no .tekton in ",
		},
		".tekton without pipelines": {prepare: func(r *scratch.Repo) {
			r.Remove(".tekton")
			r.Write(map[string]string{".tekton/README.md": "x"})
		},
			want: "has no .yaml or .yml file"},
		".tekton that Git ignores": {prepare: func(r *scratch.Repo) {
			r.Git("rm", "--quiet", "-r", "--cached", ".tekton")
			r.Write(map[string]string{".gitignore": ".tekton\n"})
		}, want: "git ignores what is in .tekton"},
		"a branch against itself": {args: []string{"--head=main"}, prepare: func(r *scratch.Repo) { r.Git("checkout", "--quiet", "main") },
			want: "the branch main is the one that the pull request would go to: check another branch out"},
		"a detached HEAD": {
			prepare: func(r *scratch.Repo) { r.Git("checkout", "--quiet", "--detach") }, want: "say it with --head",
		},
		"a push from a detached HEAD": {prepare: func(r *scratch.Repo) { r.Git("checkout", "--quiet", "--detach") },
			args: []string{"--push"}, want: "say which one is pushed to, e.g. --push=main"},
		"no remote": {
			prepare: func(r *scratch.Repo) { r.Git("remote", "remove", "origin") }, want: "--url https://github.com/owner/name",
		},
		"definitions of a branch that is not there": {prepare: func(r *scratch.Repo) {
			r.Git("branch", "-m", "main", "trunk")
			r.Git("branch", "-m", "topic", "work")
		},
			args: []string{"--repository=default.yaml"}, want: "the clone has no branch main: git fetch it"},
	} {
		t.Run(name, func(t *testing.T) {
			repo := shared
			if test.prepare != nil {
				repo = refusable(t)
				test.prepare(repo)
			}
			got := plumb(t.Context(), repo.Dir, "", append([]string{"plan"}, test.args...)...)
			if got.code != exitTool || got.out != "" || !strings.HasPrefix(got.said, "plumb: ") ||
				!strings.Contains(got.said, test.want) || strings.Count(got.said, "\n") != 1 {
				t.Errorf("exit %d: %s%s\nwant one line with %q", got.code, got.out, got.said, test.want)
			}
		})
	}
}

// refusable is a repository with files that cannot be used.
func refusable(t *testing.T) *scratch.Repo {
	t.Helper()
	repo := topic(t, nil)
	save(t, repo, "github/push-branch.json", githubHeaders+"push")
	const spec = "apiVersion: pipelinesascode.tekton.dev/v1alpha1\nkind: Repository\nmetadata: {name: other}\nspec:\n  "
	repo.Write(map[string]string{
		"empty": "", "huge": strings.Repeat("x", maxPayload+1), "config.yaml": configFile,
		"half.json": `{"repository": {"id": 1,`, "gitlab.txt": gitlabHeaders + "Push Hook",
		"other.yaml": spec + "url: https://github.com/acme/other\n", "misspelt.yaml": spec + "paramz: []\n",
		"gitea.yaml":   spec + "url: https://github.com/acme/app\n  git_provider: {type: gitea}\n",
		"default.yaml": spec + "settings: {pipelinerun_provenance: default_branch}\n",
	})
	return repo
}

// Of several flags without a value plumb names the same one each time.
func TestEmptyFlagsAreNamedInOneOrder(t *testing.T) {
	w := &planner{flags: flags{comments: []string{""}, labels: []string{""}, mustStart: []string{""}}}
	for range 20 {
		if err := w.checkEmpty(); err == nil || !strings.HasPrefix(err.Error(), "--comment has no value") {
			t.Fatalf("got %v", err)
		}
	}
}

func TestRefusedOutsideOfARepository(t *testing.T) {
	for _, args := range [][]string{{"plan"}, {"plan", "--push=main"}} {
		got := plumb(t.Context(), t.TempDir(), "", args...)
		if got.code != exitTool || !strings.Contains(got.said, "is not in a Git repository: run plumb in the working tree") {
			t.Errorf("%v: exit %d: %s", args, got.code, got.said)
		}
	}
}

func TestOtherVerbs(t *testing.T) {
	for name, test := range map[string]struct {
		args []string
		code int
		want string
	}{
		"version":          {[]string{"version"}, exitOK, "plumb devel (go"},
		"help":             {nil, exitOK, "Available Commands:"},
		"help of plan":     {[]string{"plan", "--help"}, exitOK, "plumb plan --push=main"},
		"completion":       {[]string{"completion", "bash"}, exitOK, "bash completion V2 for plumb"},
		"completed values": {[]string{"__complete", "plan", "-o", ""}, exitOK, "table\nwide\nyaml\njson\n"},
		"another verb": {
			[]string{"paln"}, exitTool, `plumb: no command is called "paln". Did you mean plan? plumb --help lists the commands`,
		},
		"no boolean":      {[]string{"plan", "--fetch=maybe"}, exitTool, `plumb: "maybe" is neither true nor false`},
		"version of what": {[]string{"version", "x"}, exitTool, `plumb: "x" is not a flag: plumb version --help lists the flags`},
	} {
		t.Run(name, func(t *testing.T) {
			got := plumb(t.Context(), t.TempDir(), "", test.args...)
			if got.code != test.code || !strings.Contains(got.out+got.said, test.want) {
				t.Errorf("exit %d: %s%s\nwant %q", got.code, got.out, got.said, test.want)
			}
		})
	}
}
