// SPDX-License-Identifier: Apache-2.0

package provider

import (
	"crypto/sha1" //nolint:gosec // Git's own ids are SHA-1; the id says what was asked for, it proves nothing else
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"mime"
	"net/http"
	"regexp"
	"strings"

	"github.com/plumbline-ci/plumbline/pkg/fault"
)

// ReasonBadAnswer is the reason of a Transient fault: the answer is not what was requested. It is a
// proxy's page, a log-in form or part of an answer, and says nothing about the repository.
const ReasonBadAnswer = "BadAnswer"

// ModeLink is Git's mode of a symbolic link. Its content is a path and not a definition, and no
// link is followed.
const ModeLink = "120000"

// ModeSubmodule is Git's mode of a submodule, a commit of another repository.
const ModeSubmodule = "160000"

// mediaType matches the Content-Types that a message repeats. A server may send any text there.
var mediaType = regexp.MustCompile(`^[a-z0-9.+-]{1,40}/[a-z0-9.+-]{1,40}$`)

// expected refuses an answer whose media type is not JSON although JSON was requested. Raw files
// are checked against the id of their blob instead (IsBlob).
func expected(req *http.Request, resp *http.Response, body []byte) error {
	accept := req.Header.Get("Accept")
	if len(body) == 0 || !strings.Contains(accept, "json") || strings.Contains(accept, ".raw") {
		return nil
	}
	kind, _, err := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	if err == nil && (kind == "application/json" || strings.HasSuffix(kind, "+json")) {
		return nil
	}
	if !mediaType.MatchString(kind) {
		kind = "something else"
	}
	f := fault.Transientf(ReasonBadAnswer,
		"%s answers %s where JSON was asked for: a proxy or a log-in page stands in front of the Git service", req.URL.Host,
		kind)
	f.Unknown = writes(req)
	return f
}

// IsBlob reports whether data is the file with this id in Git. A proxy's page, a JSON object, a
// part of the file and an empty answer have another id.
func IsBlob(id string, data []byte) bool {
	sum := sha1.New() //nolint:gosec // as above
	if len(id) == hex.EncodedLen(sha256.Size) {
		sum = sha256.New()
	}
	_, _ = fmt.Fprintf(sum, "blob %d\x00", len(data)) // a hash never fails to write
	_, _ = sum.Write(data)
	return id == hex.EncodeToString(sum.Sum(nil))
}
