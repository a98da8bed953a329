// SPDX-License-Identifier: Apache-2.0

package status

import "strings"

// markDigits is how much of the digest of a check's name marks its comment.
const markDigits = 32

// ResultMark begins the comment on a pull request that shows the result of one pipeline, whichever
// event it is of.
func ResultMark(c Check) string {
	return "<!-- plumbline result " + TextDigest(c.Name)[:markDigits] + " -->"
}

// Result returns the comment that shows a concluded check of a commit, for a service whose checks
// have no room for it.
func Result(c Check, sha string) string {
	link := strings.NewReplacer("(", "%28", ")", "%29", " ", "%20").Replace(c.DetailsURL)
	return render("result.md", struct{ Mark, Name, Title, Commit, Summary, Text, Link string }{
		ResultMark(c), quoted(c.Name), quoted(c.Title), quoted(sha), c.Summary, c.Text, link,
	})
}
