// SPDX-License-Identifier: Apache-2.0

package resolve

import (
	"strings"
	"testing"

	pipelinev1 "github.com/tektoncd/pipeline/pkg/apis/pipeline/v1"
	"sigs.k8s.io/yaml"
)

// pacReads is what PaC makes of a file that is the last of .tekton: it appends a line end, replaces
// placeholders in the text, and reads YAML then.
func pacReads(t *testing.T, text string, vars map[string]string) string {
	t.Helper()
	text += "\n"
	for name, value := range vars {
		text = strings.NewReplacer("{{ "+name+" }}", value, "{{"+name+"}}", value).Replace(text)
	}
	var run pipelinev1.PipelineRun
	if err := yaml.Unmarshal([]byte(text), &run); err != nil {
		t.Fatal(err)
	}
	return run.Spec.Params[0].Value.StringVal
}

func TestABlockOfTextIsWhatPaCReads(t *testing.T) {
	vars := map[string]string{"trigger_comment": "", "git_tag": "", "sender": "jane"}
	tests := map[string]string{
		"a variable without a value alone":            "|\n      {{ trigger_comment }}\n",
		"two of them on a line":                       "|\n      {{ trigger_comment }}{{git_tag}}\n",
		"two of them with a space between":            "|\n      {{ trigger_comment }} {{ git_tag }}\n",
		"two of them on two lines":                    "|\n      {{ trigger_comment }}\n      {{ git_tag }}\n",
		"a variable with a value":                     "|\n      {{ sender }}\n",
		"white space behind it":                       "|\n      {{ trigger_comment }}  \n",
		"in the last line":                            "|\n      a\n      {{ trigger_comment }}\n",
		"in the last line, white space behind it":     "|\n      a\n      {{ trigger_comment }}  \n",
		"in the last line behind an empty one":        "|\n      a\n\n      {{ trigger_comment }}\n\n",
		"in the first line":                           "|\n      {{ trigger_comment }}\n      a\n",
		"in the first line, before one further right": "|\n      {{ trigger_comment }}\n        a\n",
		"in the midst":                                "|\n      a\n      {{ trigger_comment }}\n      b\n",
		"within a line":                               "|\n      a {{ trigger_comment }}\n",
		"stripped":                                    "|-\n      a\n      {{ trigger_comment }}\n",
		"stripped, alone":                             "|-\n      {{ trigger_comment }}\n",
		"kept":                                        "|+\n      a\n      {{ trigger_comment }}\n",
		"kept, alone":                                 "|+\n      {{ trigger_comment }}\n",
		"kept, with empty lines":                      "|+\n      a\n\n\n",
		"folded":                                      ">\n      a\n      {{ trigger_comment }}\n      b\n",
		"folded, alone":                               ">\n      {{ trigger_comment }}\n",
		"folded, in the last line":                    ">\n      a\n      b\n      {{ trigger_comment }}\n",
		"folded and stripped":                         ">-\n      a\n      {{ trigger_comment }}\n",
		"folded and kept":                             ">+\n      a\n      {{ trigger_comment }}\n\n",
		"with a comment behind the mark":              "| # a | b\n      a\n      {{ trigger_comment }}\n",
		"with an anchor":                              "&a |\n      a\n      {{ trigger_comment }}\n",
		"with its indentation written":                "|2\n      a\n      {{ trigger_comment }}\n",
		"with its indentation and chomping written":   "|2-\n        a\n      {{ trigger_comment }}\n",
		"without a line end at the end of the file":   "|\n      a",
		"stripped, without a line end":                "|-\n      a",
		"kept, without a line end":                    "|+\n      a",
		"folded, without a line end":                  ">\n      a\n      b",
		"a variable without a line end":               "|\n      {{ trigger_comment }}",
		"a value without a line end":                  "|\n      {{ sender }}",
		"a list of words":                             "|\n      {{ sender }}\n      {{ trigger_comment }}\n      {{ sender }}\n      {{ git_tag }}\n",
	}
	for name, block := range tests {
		t.Run(name, func(t *testing.T) {
			for ends, rest := range map[string]string{"the file": "", "the param": "  - {name: c, value: d}\n"} {
				if rest != "" && !strings.HasSuffix(block, "\n") {
					continue
				}
				text := header + "metadata: {name: a}\nspec:\n  params:\n  - name: x\n    value: " + block + rest
				set := load(text)
				run, err := set.Render(t.Context(), set.Definitions()[0], scopeOf(t, vars), nil)
				if err != nil {
					t.Fatal(err)
				}
				if got, want := run.Spec.Params[0].Value.StringVal, pacReads(t, text, vars); got != want {
					t.Errorf("a block that ends %s is %q, and in PaC %q", ends, got, want)
				}
			}
		})
	}
}
