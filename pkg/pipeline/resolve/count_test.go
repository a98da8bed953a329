// SPDX-License-Identifier: Apache-2.0

package resolve

import (
	"errors"
	"fmt"
	"io"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/pkg/git"
)

// seeds are texts of which the parser makes as much as it can of few bytes.
func seeds() []string {
	return []string{
		"", "a", "a: b", "- - - a", "[a, b]", "{a, b}", "{a: }", "[a: b, c: d]", "[: ]", "{: }", "? a\n? b\n", "?\n?\n",
		":\n", "- ? a\n  : b\n", "-\n-\n",
		"[? a : b, ? ]", "{? a, ? b}", "{\"a\":b,\"c\":d}", "[\"a\":b]", "{*a:b}", "&a [*a:c]", "&a a", "- &a\n- *a\n",
		"!!map\n", "- !a\n", "a: |\n  b: c\n  - d\n",
		"a: 'b\n  c: d'\n", "[[[[]]]]", "{{{{}}}}", "[{},{},[]]", "# c\na: b # d\n# e\n", "a:\n- b\n- c:\n  - d\n",
		"...\na\n", "--- a\n...\n--- b\n", "%YAML 1.1\n---\na\n",
		"\ta: b", "a:\tb", "-\ta", "a: b\u0085c: d", "a: b\u2028c: d", "\xfe\xff\x00a\x00:\x00 \x00b",
		"\xff\xfea\x00:\x00 \x00b\x00", "a: >\n\n b\n", "{a: , b: , c}", "a: {b: [c, d: e]}",
		"? - a\n  - b\n: - c\n", "? [a, b]\n: {c: d}\n", "a: \"b:\\\n  c\"", "<<: *a", "- a\r- b\r", "a: b: c", "[a:]",
		"[a:,b]", "{a:}", "{a:,b:}", "[,]", "{,}",
	}
}

// nodes counts what is in a tree, aliases not followed: that is what the parser has built.
func nodes(node *yaml.Node) int {
	n := 1
	for _, child := range node.Content {
		n += nodes(child)
	}
	return n
}

// built returns how many values the parser makes of a text, those of all its documents together,
// and whether it is YAML.
func built(text string) (n int, valid bool) {
	decoder := yaml.NewDecoder(strings.NewReader(text))
	for {
		var root yaml.Node
		err := decoder.Decode(&root)
		if errors.Is(err, io.EOF) {
			return n, true
		}
		if err != nil {
			return n, false
		}
		n += nodes(&root)
	}
}

func TestCountIsNeverLessThanWhatTheParserBuilds(t *testing.T) {
	for _, text := range seeds() {
		for _, repeated := range []string{text, strings.Repeat(text+"\n", 50), strings.Repeat(text+", ", 50),
			"[" + strings.Repeat(text+",", 50) + "]", "{" + strings.Repeat(text+",", 50) + "}"} {
			if n, _ := built(repeated); n > count(repeated) {
				t.Errorf("%.60q: %d are built, %d counted", repeated, n, count(repeated))
			}
		}
	}
}

func FuzzCount(f *testing.F) {
	for _, seed := range seeds() {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if len(text) > 10_000 {
			t.Skip()
		}
		if n, _ := built(text); n > count(text) {
			t.Errorf("%q: %d are built, %d counted", text, n, count(text))
		}
	})
}

// filled are files of 1 MiB that are full of one text each.
func filled(files int, head, text string) []git.File {
	var all []git.File
	for i := range files {
		data := head + strings.Repeat(text, (maxFile-len(head)-100)/len(text))
		all = append(all, git.File{Path: fmt.Sprintf(".tekton/%d.yaml", i), Data: []byte(data)})
	}
	return all
}

// peak returns the most that is in use while f runs beyond what was before, in bytes. What the
// collector has not looked at yet is part of it: it runs often here.
func peak(t *testing.T, f func()) uint64 {
	t.Helper()
	defer debug.SetGCPercent(debug.SetGCPercent(20))
	runtime.GC()
	sample := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(sample)
	idle := sample[0].Value.Uint64()
	end, most := make(chan struct{}), make(chan uint64)
	go func() {
		highest := uint64(0)
		for {
			select {
			case <-end:
				most <- highest
				return
			default:
				sample := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
				metrics.Read(sample)
				highest = max(highest, sample[0].Value.Uint64())
				runtime.Gosched()
			}
		}
	}()
	f()
	close(end)
	return max(<-most, idle) - idle
}

func TestReadingDefinitionsHoldsAtMost64MiB(t *testing.T) {
	const run = "apiVersion: tekton.dev/v1\nkind: PipelineRun\nmetadata: {name: x}\nspec:\n"
	most := func(text string, weight int) string { // just below what one document may hold
		return run + "  a: [" + strings.Repeat(text, (maxCounted-100)/weight) + "]\n"
	}
	for name, files := range map[string][]git.File{
		"flow mappings":      filled(4, run+"  a: [", "{a: },"),
		"deep mappings":      filled(4, run+"  a: ", "{a: "),
		"block mappings":     filled(4, run, "  a:\n"),
		"comments":           filled(4, run, "#\n"),
		"comments apart":     filled(4, run, "#\n\n"),
		"comments of values": filled(4, run+"  a:\n", "  - # x\n"),
		"line ends":          filled(4, run, "\n"),
		"documents":          filled(4, "", "---\na\n"),
		"broken documents":   filled(4, "", "---\n[\n"),
		"block scalars":      filled(4, run, "  a: |\n    {{ revision }}\n"),
		"anchors":            filled(4, run+"  a: [", "&a,"),
		"scalars":            filled(4, run+"  a: ", "x"),
		"placeholders":       filled(4, run+"  a: ", "{{aa}}"),
		"tags":               filled(4, "%TAG ! "+strings.Repeat("x", 250)+"\n---\na: [", "!a,"),
		"just not too much":  {{Path: "a", Data: []byte(strings.Repeat("---\n"+most("{a: },", 9), 20))}},
		"pairs in a list":    {{Path: "a", Data: []byte(strings.Repeat("---\n"+most("a: ,", 6), 20))}},
	} {
		t.Run(name, func(t *testing.T) {
			var set *Set
			most := peak(t, func() { set = Load(files) })
			t.Logf("%d MiB for %d definitions", most>>20, len(set.Definitions()))
			if most > 64<<20 {
				t.Errorf("%d MiB are held, want at most 64", most>>20)
			}
			runtime.KeepAlive(set)
		})
	}
}

func TestMoreValuesThanAnEventMayHoldAreRefusedWithTheFile(t *testing.T) {
	part := "a: [" + strings.Repeat("a,", 15_000) + "]\n"
	var files []git.File
	for i := range 20 {
		files = append(files, git.File{Path: fmt.Sprintf(".tekton/%02d.yaml", i), Data: []byte(part)})
	}
	f := fault.Of(Load(files).Bounded())
	if f == nil || f.Reason != reasonTooMuch || !strings.HasPrefix(f.Message, ".tekton/10.yaml:1: ") ||
		!strings.Contains(f.Message, "160000 values") {
		t.Errorf("fault %v, want one that names the file at which it is too much, and the budget", f)
	}
	if err := Load(files[:10]).Bounded(); err != nil {
		t.Errorf("ten of them: %v", err)
	}
}

func TestALongPlaceholderIsNotMultipliedByAliases(t *testing.T) {
	text := "a: &a '{{ " + strings.Repeat("x", 100_000) + " }}'\nb: [" + strings.Repeat("*a,", 10_000) + "]\n"
	if err := Load([]git.File{{Path: "x", Data: []byte(text)}}).definitions[0].Err; fault.Of(err) == nil ||
		fault.Of(err).Reason != "BadYAML" {
		t.Errorf("error %v, want BadYAML", err)
	}
}

func TestALongTagPrefixIsRefused(t *testing.T) {
	for _, text := range []string{
		"a: b\n...\n%TAG ! " + strings.Repeat("x", 300) + "\n--- # \n!a b\n",
		"a: b\r...\r%TAG ! " + strings.Repeat("x", 300) + "\r---\r!a b\r",
	} {
		definitions := Load([]git.File{{Path: "x", Data: []byte(text)}}).definitions
		if len(definitions) != 1 || !strings.Contains(definitions[0].Err.Error(), "%TAG") {
			t.Errorf("%q: definitions %v, want one with an error about the directive", text, definitions)
		}
	}
}

func TestEmptyStepsThatAreInlinedOftenAreRefused(t *testing.T) {
	text := "apiVersion: tekton.dev/v1\nkind: PipelineRun\nmetadata: {name: x}\nspec:\n  pipelineSpec:\n    tasks:\n" +
		strings.Repeat("    - {name: t, taskRef: {name: big}}\n", 200) +
		"---\napiVersion: tekton.dev/v1\nkind: Task\nmetadata: {name: big}\nspec: {steps: [" + strings.Repeat("{},", 1000) +
		"]}\n"
	set := load(text)
	_, err := set.Render(t.Context(), set.Definitions()[0], knowing(t, standardVariables("x")), nil)
	if f := fault.Of(err); f == nil || f.Reason != "TooLarge" {
		t.Errorf("600 KB of 200,000 steps: %v, want TooLarge", err)
	}
}
