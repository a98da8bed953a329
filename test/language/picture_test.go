// SPDX-License-Identifier: Apache-2.0

package language

import (
	"os"
	"regexp"
	"strings"
	"testing"
	"text/template"
)

const checksPicture = "../../docs/images/checks.svg"

// card is one check as a commit shows it.
type card struct {
	X                    int
	Above, Title         string
	State, Colour, Below string
	Lines                []string
}

// picture has a background and colours of its own, so that it can be read on light and dark pages.
var picture = template.Must(template.New("").Funcs(template.FuncMap{
	"down": func(i int) int { return 116 + 20*i },
}).Parse(`<svg xmlns="http://www.w3.org/2000/svg" width="900" height="410" viewBox="-12 -4 924 421" role="img" aria-label="The check of Pipelines-as-Code and of Plumbline after the same fault">
  <!-- SPDX-License-Identifier: Apache-2.0. Written by: go test ./test/language -run TestPicture -update -->
  <style>
    text { font-family: -apple-system, "Segoe UI", Helvetica, Arial, sans-serif; font-size: 14px; fill: #1f2328 }
    .small { font-size: 13px; fill: #59636e } .mono { font-family: ui-monospace, Menlo, Consolas, monospace; font-size: 12px }
    .bold { font-weight: 600 } .box { fill: #ffffff; stroke: #d1d9e0 } .line { stroke: #d1d9e0 }
    @media (prefers-color-scheme: dark) {
      text { fill: #f0f6fc } .small { fill: #9198a1 } .box { fill: #0d1117; stroke: #3d444d } .line { stroke: #3d444d }
    }
  </style>
  <rect class="box" x="-11.5" y="-3.5" width="923" height="420" rx="6"/>
  <text class="small" x="4" y="22">Tekton's admission webhook was down for seconds, just after the PipelineRun was created. The PipelineRun then succeeded.</text>
{{- range .}}
  <g transform="translate({{.X}} 30)">
    <text class="bold" x="4" y="22">{{.Above}}</text>
    <rect class="box" x="0.5" y="36.5" width="439" height="320" rx="6"/>
    <circle cx="22" cy="62" r="7" fill="{{.Colour}}"/>
    <text class="bold" x="40" y="67">{{.Title}}</text>
    <text class="small" x="424" y="67" text-anchor="end">{{.State}}</text>
    <line class="line" x1="0" x2="440" y1="86" y2="86"/>
{{- range $i, $line := .Lines}}
    <text class="mono" x="16" y="{{down $i}}">{{$line | html}}</text>
{{- end}}
    <text class="small" x="4" y="377">{{.Below}}</text>
  </g>
{{- end}}
</svg>
`))

// TestPictureShowsTexts compares the picture of the README with golden files: the check that the
// oracle has seen at Pipelines-as-Code, and the check that pkg/status writes for the same run.
func TestPictureShowsTexts(t *testing.T) {
	t.Parallel()
	name, state, lines := foreign(t, "../oracle/testdata/check-refused-patch.md")
	var drawn strings.Builder
	err := picture.Execute(&drawn, []card{
		{
			X: 0, Above: "Pipelines-as-Code v0.49.0", Title: name, State: state, Colour: "#cf222e", Lines: lines,
			Below: "The check stays red, although the PipelineRun succeeded.",
		},
		{
			X: 460, Above: "Plumbline", Title: name, State: "success", Colour: "#1a7f37",
			Lines: shown(t, "check-succeeded.md", "result-succeeded.md"), Below: "The patch was retried. The check is about the run.",
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	if *update {
		if err := os.WriteFile(checksPicture, []byte(drawn.String()), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if readFile(t, checksPicture) != drawn.String() {
		t.Error("docs/images/checks.svg is out of date: go test ./test/language -run TestPicture -update")
	}
}

// foreign returns the name, the conclusion and the text of a check that the oracle has recorded.
func foreign(t *testing.T, path string) (name, conclusion string, lines []string) {
	t.Helper()
	parts := strings.SplitN(readFile(t, path), "\n", 3)
	if len(parts) < 3 {
		t.Fatalf("%s has %d lines", path, len(parts))
	}
	return parts[0], parts[1], wrapped(withoutTags(parts[2]), pictureWidth)
}

// pictureWidth is how many letters a line has.
const pictureWidth = 55

func withoutTags(text string) string {
	return regexp.MustCompile(`<[^>]+>`).ReplaceAllString(text, "")
}

// shown returns the lines of a check in a golden file of pkg/status, with another one in the place
// of its report.
func shown(t *testing.T, name, report string) []string {
	t.Helper()
	text := readFile(t, "../../pkg/status/testdata/"+name)
	if report != "" {
		text = strings.Replace(text, "the report", readFile(t, "../../pkg/status/testdata/"+report), 1)
	}
	text = strings.ReplaceAll(strings.ReplaceAll(text, "`", ""), "</td><td>", "   ")
	text = strings.ReplaceAll(regexp.MustCompile(`<tr><th>.*|<hr>`).ReplaceAllString(text, ""), "</li>", "\n")
	text = strings.ReplaceAll(text, "Plumbline CI/", "Pipelines as Code CI/")
	return wrapped(withoutTags(text), pictureWidth)
}

// wrapped breaks lines at a width.
func wrapped(text string, width int) (lines []string) {
	for _, paragraph := range strings.Split(strings.TrimSpace(text), "\n") {
		line := ""
		for _, word := range strings.Fields(paragraph) {
			for ; len(word) > width; word = word[width:] {
				lines, line = append(lines, strings.TrimPrefix(line, " ")), word[:width]
			}
			if line != "" && len(line)+1+len(word) > width {
				lines, line = append(lines, line), ""
			}
			line = strings.TrimPrefix(line+" "+word, " ")
		}
		if line != "" {
			lines = append(lines, line)
		}
	}
	return lines
}
