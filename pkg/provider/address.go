// SPDX-License-Identifier: Apache-2.0

package provider

import (
	"net/url"
	"path"
	"strings"
)

// Segments returns the unescaped segments of a web URL's path below the service's base URL. It
// returns none if the URL is not the service's, or if a segment is empty.
func Segments(base, u *url.URL) []string {
	if u.Scheme != base.Scheme || u.User != nil {
		return nil
	}
	below, found := strings.CutPrefix(u.EscapedPath(), strings.TrimSuffix(base.EscapedPath(), "/")+"/")
	if !found {
		return nil
	}
	parts := strings.Split(below, "/")
	for i, part := range parts {
		plain, err := url.PathUnescape(part)
		if err != nil || plain == "" {
			return nil
		}
		parts[i] = plain
	}
	return parts
}

// RefAndPath splits the part of a file's address that follows the repository. A ref is one segment
// (a slash in a branch's name is written %2F), unless it starts with refs/heads/ or refs/tags/.
func RefAndPath(parts []string) (ref, file string, ok bool) {
	if len(parts) > 2 && parts[0] == "refs" && (parts[1] == "heads" || parts[1] == "tags") {
		parts = parts[2:]
	}
	if len(parts) < 2 {
		return "", "", false
	}
	file = strings.Join(parts[1:], "/")
	return parts[0], file, path.Clean(file) == file && !strings.Contains(file, "..")
}
