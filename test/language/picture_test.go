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
	X             int
	State, Colour string
	Lines         []string
}

// picture has a background and colours of its own, so that it can be read on light and dark pages.
var picture = template.Must(template.New("").Funcs(template.FuncMap{
	"down": func(i int) int { return 116 + 20*i },
}).Parse(`<svg xmlns="http://www.w3.org/2000/svg" width="900" height="290" viewBox="-12 -4 924 302" role="img" aria-label="Two states of one check">
  <!-- SPDX-License-Identifier: Apache-2.0. Written by: go test ./test/language -run TestPicture -update -->
  <style>
    text { font-family: -apple-system, "Segoe UI", Helvetica, Arial, sans-serif; font-size: 14px; fill: #1f2328 }
    .small { font-size: 13px; fill: #59636e } .mono { font-family: ui-monospace, Menlo, Consolas, monospace; font-size: 12px }
    .bold { font-weight: 600 } .box { fill: #ffffff; stroke: #d1d9e0 } .line { stroke: #d1d9e0 }
    @media (prefers-color-scheme: dark) {
      text { fill: #f0f6fc } .small { fill: #9198a1 } .box { fill: #0d1117; stroke: #3d444d } .line { stroke: #3d444d }
    }
  </style>
  <rect class="box" x="-11.5" y="-3.5" width="923" height="301" rx="6"/>
{{- range .}}
  <g transform="translate({{.X}} 0)">
    <text class="small" x="4" y="22">{{index .Lines 0}}</text>
    <rect class="box" x="0.5" y="36.5" width="439" height="245" rx="6"/>
    <circle cx="22" cy="62" r="7" fill="{{.Colour}}"/>
    <text class="bold" x="40" y="67">Plumbline CI / build</text>
    <text class="small" x="424" y="67" text-anchor="end">{{.State}}</text>
    <line class="line" x1="0" x2="440" y1="86" y2="86"/>
{{- range $i, $line := slice .Lines 1}}
    <text class="mono" x="16" y="{{down $i}}">{{$line | html}}</text>
{{- end}}
  </g>
{{- end}}
</svg>
`))

// TestPictureShowsTexts compares the picture of the README with the texts of pkg/status: a check
// while Tekton's webhook is dead, and the same check later.
func TestPictureShowsTexts(t *testing.T) {
	t.Parallel()
	var drawn strings.Builder
	err := picture.Execute(&drawn, []card{
		{0, "queued", "#bf8700", append([]string{"While Tekton's admission webhook is down"}, shown(t, "check-waiting-webhook.md", "")...)},
		{460, "success", "#1a7f37", append([]string{"The webhook is back: the pipeline ran by itself"}, shown(t, "check-succeeded.md", "result-succeeded.md")...)},
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
	return wrapped(regexp.MustCompile(`<[^>]+>`).ReplaceAllString(text, ""), 55)
}

// wrapped breaks lines at a width.
func wrapped(text string, width int) (lines []string) {
	for _, paragraph := range strings.Split(strings.TrimSpace(text), "\n") {
		line := ""
		for _, word := range strings.Fields(paragraph) {
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
