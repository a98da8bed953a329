// SPDX-License-Identifier: Apache-2.0

// Package memory limits the memory that events can make a process use: a Budget that they share,
// the weight of a JSON text before it is decoded, and the limit of the process itself.
package memory

// MaxAnswer is the most that one JSON text, or all pages of one list, may weigh when they are
// decoded: some 28 MiB. The longest ordinary ones are a push of 2,048 commits (200,000) and a page
// of 100 pull requests (60,000).
const MaxAnswer = 400_000

// object is what an object weighs in addition to its members: an empty one, "{}", may become a
// structure of a kilobyte, or a map.
const object = 16

// Weight estimates the memory that a JSON text takes once it is decoded: some 70 bytes for each
// unit, and the bytes of its strings. It is a writer that stores nothing of the text, which need
// not be valid JSON. The zero value is ready.
type Weight struct {
	total           int
	quoted, escaped bool
}

// Write implements io.Writer; it never fails.
func (w *Weight) Write(text []byte) (int, error) {
	for _, c := range text {
		switch {
		case w.escaped:
			w.escaped = false
		case w.quoted:
			w.escaped, w.quoted = c == '\\', c != '"'
		case c == '"':
			w.quoted = true
		case c == '{':
			w.total += object
		case c == '[', c == ',', c == ':':
			w.total++
		}
	}
	return len(text), nil
}

// Bytes returns what the text takes once it is decoded, without the bytes of its strings.
func (w *Weight) Bytes() int { return 70 * w.total }

// Total returns the weight of what was written.
func (w *Weight) Total() int { return w.total }

// Of returns the weight of a text.
func Of(text []byte) int {
	var w Weight
	_, _ = w.Write(text)
	return w.total
}
