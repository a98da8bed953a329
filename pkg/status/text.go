// SPDX-License-Identifier: Apache-2.0

package status

import (
	"cmp"
	"embed"
	"html"
	"regexp"
	"strings"
	"text/template"

	"github.com/plumbline-ci/plumbline/pkg/status/text"
)

// files are GitHub-flavoured Markdown with HTML. The caller escapes their values.
//
//go:embed templates/*.md
var files embed.FS

// place is where a PipelineRun can be watched.
type place struct {
	Name, Namespace string
	// Link is empty if there is no console.
	Link, Console string
}

type approval struct{ User, Actor, Why, Commit string }

func placeOf(run RunState) place {
	return place{
		Name: plain(run.Run.Name), Namespace: plain(run.Run.Namespace),
		Link: target(run.Links.Run), Console: plain(run.Links.ConsoleName),
	}
}

// render fills a template. No data makes it fail; a template with an unknown field fails in its
// test.
func render(name string, data any) string {
	var b strings.Builder
	parsed, err := template.ParseFS(files, "templates/"+name)
	if err == nil {
		err = parsed.Execute(&b, data)
	}
	if err != nil {
		return "This report could not be written: " + plain(err.Error())
	}
	return strings.TrimSpace(b.String())
}

// plain makes words safe in one line of Markdown and in HTML: no tag, no link, no emphasis, no
// mention of a user.
func plain(words string) string {
	words = escape(strings.Join(strings.Fields(words), " "))
	return strings.NewReplacer(
		`\`, `\\`, "`", "\\`", "*", `\*`, "[", `\[`, "]", `\]`, "|", `\|`, "~", `\~`, "@", "@\u200b", "__", `\_\_`,
	).Replace(words)
}

// escape makes text safe between HTML tags. Quotes stay as they are: people search for what a
// server said.
func escape(text string) string {
	return strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;").Replace(strings.ToValidUTF8(text, "\uFFFD"))
}

// line is escape for one line inside an HTML block, which a blank line would end. It mentions no
// user.
func line(text string) string {
	return mention.ReplaceAllString(escape(strings.Join(strings.Fields(text), " ")), "@\u200b")
}

// mention matches what may mention a user, but not the digest of an image.
var mention = regexp.MustCompile(`\B@`)

// target makes a URL safe in a Markdown link.
func target(url string) string {
	if !isWeb(url) {
		return ""
	}
	return strings.NewReplacer(" ", "%20", "(", "%28", ")", "%29", "<", "%3C", ">", "%3E", "\n", "", "\r", "").Replace(url)
}

// isWeb reports whether a URL opens a web page. No other URL becomes a link.
func isWeb(url string) bool {
	return strings.HasPrefix(url, "https://") || strings.HasPrefix(url, "http://")
}

// anchor links words if there is a URL.
func anchor(url, words string) string {
	if !isWeb(url) {
		return line(words)
	}
	return `<a href="` + html.EscapeString(strings.Join(strings.Fields(url), "%20")) + `">` + line(words) + `</a>`
}

// code makes words a Markdown code span, in which nothing is interpreted.
func code(words string) string { return cmp.Or(text.Code(words), wordsNoReason) }

// block makes words a Markdown code block, verbatim.
func block(words string) string {
	mark := text.Fence(words, "```")
	return mark + "\n" + strings.Trim(strings.ToValidUTF8(words, "\uFFFD"), "\n") + "\n" + mark
}

// cutMark ends a text that was cut.
const cutMark = "\n\n… (cut: the report is longer than the Git service allows)"

// shorten cuts words between two characters, to at most limit bytes with the mark. 0 means no
// limit. A limit that is shorter than the mark leaves the mark out.
func shorten(words, mark string, limit int) string {
	if limit <= 0 || len(words) <= limit {
		return words
	}
	if limit < len(mark) {
		mark = ""
	}
	return text.Bytes(words, limit-len(mark)) + mark
}
