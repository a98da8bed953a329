// SPDX-License-Identifier: Apache-2.0

package text

// DidYouMean returns what follows a sentence about a misspelt name: a full stop, and a question
// with the known name that it most likely means. It returns "" if no known name is similar.
func DidYouMean(name string, known []string) string {
	meant := Nearest(name, known)
	if meant == "" {
		return ""
	}
	return ". Did you mean " + meant + "?"
}

// Nearest returns the known name that a misspelt one most likely means, or "". The two differ in at
// most two characters, and in fewer than half of them.
func Nearest(name string, known []string) string {
	best, found := min(2, (len(name)-1)/2)+1, ""
	for _, candidate := range known {
		if d := distance(name, candidate, best); d < best {
			best, found = d, candidate
		}
	}
	return found
}

// distance returns how many characters have to be inserted, deleted, replaced or swapped with their
// neighbour to turn one name into the other. If limit is less, it returns limit.
func distance(a, b string, limit int) int {
	if max(len(a), len(b))-min(len(a), len(b)) >= limit {
		return limit
	}
	rows := make([][]int, len(a)+1)
	for i := range rows {
		rows[i] = make([]int, len(b)+1)
		rows[i][0] = i
	}
	for j := range rows[0] {
		rows[0][j] = j
	}
	for i := 1; i <= len(a); i++ {
		for j := 1; j <= len(b); j++ {
			replace := rows[i-1][j-1]
			if a[i-1] != b[j-1] {
				replace++
			}
			rows[i][j] = min(rows[i-1][j]+1, rows[i][j-1]+1, replace)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				rows[i][j] = min(rows[i][j], rows[i-2][j-2]+1)
			}
		}
	}
	return min(rows[len(a)][len(b)], limit)
}
