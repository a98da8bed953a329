// SPDX-License-Identifier: Apache-2.0

package command

import (
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/plumbline-ci/plumbline/cmd/plumb/internal/scratch"
)

var update = flag.Bool("update", false, "write what commands answer into the documentation")

const docs = "../../../../docs"

// block is a fenced block: its language, its text, and where the text is in the file.
type block struct {
	language, text string
	from, to       int
}

var fenced = regexp.MustCompile("(?ms)^```([a-z]*)\n(.*?)^```$")

func blocks(page string) []block {
	var all []block
	for _, at := range fenced.FindAllStringSubmatchIndex(page, -1) {
		all = append(all, block{page[at[2]:at[3]], page[at[4]:at[5]], at[4], at[5]})
	}
	return all
}

// Each example of language.md is tried with the command beneath it, as a reader would: the first
// one is a file, the others are lines for its annotations.
func TestLanguageExamples(t *testing.T) {
	page := string(read(t, filepath.Join(docs, "language.md")))
	all := blocks(page)
	var first, example string
	tried := map[string]bool{}
	check(t, "language.md", page, func(i int, command string) answer {
		for j := i; j >= 0; j-- {
			if all[j].language == "yaml" {
				example = all[j].text
				break
			}
		}
		if first == "" {
			first = example
		}
		tried[example] = true
		repo := scratch.New(t, map[string]string{"README.md": "x"})
		repo.Git("checkout", "--quiet", "-b", "topic")
		repo.Write(map[string]string{".tekton/build.yaml": pasted(t, first, example)})
		if strings.Contains(command, "--payload") {
			save(t, repo, "github/pull-opened-fork.json", githubHeaders+"pull_request")
		}
		repo.Commit("Build it")
		return plumb(t.Context(), repo.Dir, "", words(t, command)...)
	})
	for _, b := range all {
		if b.language == "yaml" && !tried[b.text] {
			t.Errorf("nothing tries the example\n%s", b.text)
		}
	}
}

// pasted is the first example with the lines of another among its annotations, in place of those of
// the same name.
func pasted(t *testing.T, first, example string) string {
	t.Helper()
	if example == first {
		return first
	}
	const above = "  annotations:\n"
	begin, end, found := strings.Cut(first, above)
	if !found {
		t.Fatal("the first example has no annotations")
	}
	name := regexp.MustCompile(`(?m)^(pipelinesascode\.tekton\.dev/[a-z-]+):`)
	for _, own := range name.FindAllStringSubmatch(example, -1) {
		end = regexp.MustCompile(`(?m)^ *`+regexp.QuoteMeta(own[1])+`:.*\n`).ReplaceAllString(end, "")
	}
	return begin + above + regexp.MustCompile(`(?m)^`).ReplaceAllString(strings.TrimSuffix(example, "\n"), "    ") + "\n" +
		end
}

// Each command of plumb.md was run in a repository with pipelines of all kinds.
func TestPlumbExamples(t *testing.T) {
	page := string(read(t, filepath.Join(docs, "plumb.md")))
	right := run("docs", "on-event: pull_request", "on-target-branch: main", `on-path-change: "[docs/**]"`)
	repo := scratch.New(t, map[string]string{
		".tekton/build.yaml":   run("build", `on-event: "[push, pull_request]"`, `on-target-branch: "[main]"`),
		".tekton/deploy.yaml":  run("deploy", `on-comment: "^/deploy"`),
		".tekton/docs.yaml":    right,
		".tekton/release.yaml": run("release", "on-event: push", `on-target-branch: "[refs/tags/v*]"`),
	})
	repo.Git("checkout", "--quiet", "-b", "topic")
	repo.Write(map[string]string{"cmd/app/main.go": "package main\n"})
	repo.Commit("Say hello")
	check(t, "plumb.md", page, func(i int, command string) answer {
		docs := right
		if before := page[:blocks(page)[i].from]; strings.HasSuffix(
			section.FindString(before[strings.LastIndex(before, "\n## ")+1:]), "Mistakes") {
			docs = run("docs", `on-cel-expression: taget_branch == "main" && "docs/**".pathChanged()`)
		}
		repo.Write(map[string]string{".tekton/docs.yaml": docs}) // not committed, where there is a mistake
		return plumb(t.Context(), repo.Dir, "", words(t, command)...)
	})
}

// section is the heading that a command stands under.
var section = regexp.MustCompile(`^## .*`)

// check runs each command of plumb's on a page and compares what it answers with the block beneath
// it.
func check(t *testing.T, name, page string, ask func(i int, command string) answer) {
	t.Helper()
	all := blocks(page)
	updated, moved := page, 0
	for i, b := range all {
		if b.language != "sh" ||
			!strings.HasPrefix(b.text, "plumb plan") && !strings.HasPrefix(b.text, "plumb migrate plan") {
			continue
		}
		if i+1 == len(all) || all[i+1].language != "" {
			t.Errorf("%s: beneath %q there is no answer", name, b.text)
			continue
		}
		got := ask(i, strings.TrimSpace(b.text))
		if diff := cmp.Diff(all[i+1].text, got.shown); diff != "" {
			t.Errorf("%s: %s(-documented +answered):\n%s", name, b.text, diff)
		}
		updated = updated[:all[i+1].from+moved] + got.shown + updated[all[i+1].to+moved:]
		moved += len(got.shown) - len(all[i+1].text)
	}
	if *update {
		must(t, os.WriteFile(filepath.Join(docs, name), []byte(updated), 0o600))
	}
}

var word = regexp.MustCompile(`"([^"]*)"|([^\s"]+)`)

// words are a command's arguments as a shell would read them, quotes included.
func words(t *testing.T, command string) []string {
	t.Helper()
	if strings.ContainsAny(command, "|<>$\\'`\n") {
		t.Fatalf("%q needs a shell", command)
	}
	var all []string
	for _, found := range word.FindAllStringSubmatch(command, -1) {
		all = append(all, found[1]+found[2])
	}
	return all[1:]
}

// The pages that people read first have examples, too: each answer is that for the definition above
// it, on a branch called topic.
func TestFirstExamples(t *testing.T) {
	page := string(read(t, filepath.Join(docs, "authors.md")))
	all := blocks(page)
	check(t, "authors.md", page, func(i int, command string) answer {
		repo := scratch.New(t, map[string]string{"README.md": "x"})
		repo.Git("checkout", "--quiet", "-b", "topic")
		for ; all[i].language != "yaml"; i-- {
		}
		repo.Write(map[string]string{".tekton/pipeline.yaml": all[i].text})
		repo.Commit("Add a pipeline")
		return plumb(t.Context(), repo.Dir, "", words(t, command)...)
	})
}

// The README shows an answer of plumb.md.
func TestReadmeShowsAnswer(t *testing.T) {
	readme := string(read(t, filepath.Join(docs, "..", "README.md")))
	page := string(read(t, filepath.Join(docs, "plumb.md")))
	for i, b := range blocks(readme) {
		if b.text == "plumb plan\n" && strings.Contains(page, "```sh\nplumb plan\n```\n\n```\n"+blocks(readme)[i+1].text) {
			return
		}
	}
	t.Error("README.md shows an answer of plumb plan that plumb.md does not have")
}

// Each command and flag of plumb on a page exists.
func TestPagesNameCommands(t *testing.T) {
	root := (&Process{Args: []string{"plumb"}}).root()
	pages, err := filepath.Glob(filepath.Join(docs, "*.md"))
	must(t, err)
	used := regexp.MustCompile("(?m)(?:^|`)(?:kubectl )?plumb ([a-z][^`\n#|]*)")
	flags := regexp.MustCompile(`(?:^|\s)--([a-z][a-z-]*)`)
	for _, path := range append(pages, filepath.Join(docs, "..", "README.md")) {
		for _, found := range used.FindAllStringSubmatch(string(read(t, path)), -1) {
			words := strings.Fields(found[1])
			if words[0] == "completion" { // cobra adds it when it runs
				continue
			}
			command, _, err := root.Find(words)
			if err != nil || command == root {
				t.Errorf("%s: there is no command plumb %s: %v", path, found[1], err)
				continue
			}
			for _, flag := range flags.FindAllStringSubmatch(found[1], -1) {
				if flag[1] != "help" && command.Flag(flag[1]) == nil && command.InheritedFlags().Lookup(flag[1]) == nil {
					t.Errorf("%s: %s has no flag --%s", path, command.CommandPath(), flag[1])
				}
			}
		}
	}
}
