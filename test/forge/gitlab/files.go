// SPDX-License-Identifier: Apache-2.0

package gitlab

import (
	"cmp"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/plumbline-ci/plumbline/test/forge/internal/gitdb"
	"github.com/plumbline-ci/plumbline/test/forge/internal/traffic"
)

// treeLine is an entry of a tree with its full path.
type treeLine struct {
	path string
	gitdb.Entry
}

func (l treeLine) json() object {
	kind, mode := "blob", l.Mode
	if l.IsTree() {
		kind, mode = "tree", "040000"
	}
	return object{"id": l.SHA, "name": path.Base(l.path), "type": kind, "path": l.path, "mode": mode}
}

func getTree(c *call) answer {
	mode := cmp.Or(c.text("pagination"), "legacy")
	switch {
	case mode != "legacy" && mode != "keyset" && mode != "none":
		return badParameter("pagination does not have a valid value")
	case mode == "none" && !c.yes("recursive"):
		return badParameter(`pagination cannot be "none" unless "recursive" is true`)
	}
	p := c.readPage()
	sha := c.project.resolve(cmp.Or(c.text("ref"), c.project.defaultBranch))
	if sha == "" {
		return notFound("Tree")
	}
	lines, found := c.project.treeLines(sha, strings.Trim(c.text("path"), "/"), c.yes("recursive"))
	switch {
	case !found:
		return notFound("invalid revision or path")
	case mode == "none":
		return ok(showLines(lines))
	case mode == "keyset":
		return c.treeByKey(lines, p)
	}
	return c.treeByPage(lines, p)
}

// treeLines lists a directory, directories first.
func (p *project) treeLines(sha, dir string, recursive bool) ([]treeLine, bool) {
	at, found := p.db.EntryAt(p.db.Commit(sha).Tree, dir)
	if !found || !at.IsTree() {
		return nil, false
	}
	prefix := ""
	if dir != "" {
		prefix = dir + "/"
	}
	var trees, blobs []treeLine
	add := func(full string, e gitdb.Entry) {
		if e.IsTree() {
			trees = append(trees, treeLine{full, e})
			return
		}
		blobs = append(blobs, treeLine{full, e})
	}
	if recursive {
		p.db.Walk(at.SHA, prefix, add)
	} else {
		for _, e := range p.db[at.SHA].Entries {
			add(prefix+e.Name, e)
		}
	}
	return slices.Concat(trees, blobs), true
}

func showLines(lines []treeLine) []object {
	out := []object{}
	for _, l := range lines {
		out = append(out, l.json())
	}
	return out
}

// treeByKey answers the page after page_token. A full page has a next link,
// even when nothing follows.
func (c *call) treeByKey(lines []treeLine, p pageOf) answer {
	from := 0
	if t := c.text("page_token"); t != "" {
		from = slices.IndexFunc(lines, func(l treeLine) bool { return tokenOf(l) == t }) + 1
		if from == 0 {
			return notFound("invalid revision or path")
		}
	}
	to := min(from+p.per, len(lines))
	a := ok(showLines(lines[from:to]))
	if to-from == p.per {
		a = a.With("Link", c.link(url.Values{"page_token": {tokenOf(lines[to-1])}, "per_page": {strconv.Itoa(p.per)}},
			"next"))
	}
	return a
}

// tokenOf is opaque to clients, who find it in the next link.
func tokenOf(l treeLine) string { return base64.RawURLEncoding.EncodeToString([]byte(l.path)) }

// treeByPage answers a numbered page. The first always promises a second.
func (c *call) treeByPage(lines []treeLine, p pageOf) answer {
	from := min((p.n-1)*p.per, len(lines))
	to := min(from+p.per, len(lines))
	a := ok(showLines(lines[from:to]))
	if p.n == 1 {
		return c.pageHeaders(a, p, whereabouts{next: 2, last: len(lines)/p.per + 1, total: len(lines)})
	}
	return c.offsetHeaders(a, p, len(lines))
}

// fileAt is what the path and ref of a file's routes mean.
type fileAt struct {
	path, ref, commit, blob string
	data                    []byte
}

func (c *call) fileAt() fileAt {
	f := fileAt{path: c.r.PathValue("path"), ref: c.text("ref")}
	if strings.Contains("/"+f.path+"/", "/../") {
		panic(traffic.Refuse(badParameter("file_path should be a valid file path")))
	}
	f.commit = c.project.resolve(cmp.Or(f.ref, c.project.defaultBranch))
	if f.commit == "" {
		panic(traffic.Refuse(notFound("Commit")))
	}
	db := c.project.db
	e, found := db.EntryAt(db.Commit(f.commit).Tree, f.path)
	if !found || e.IsTree() {
		panic(traffic.Refuse(notFound("File")))
	}
	f.blob, f.data = e.SHA, db[e.SHA].Blob
	return f
}

// describe is the metadata that the body and the headers carry.
func (f fileAt) describe(db gitdb.DB) object {
	sum := sha256.Sum256(f.data)
	return object{
		"file_name": path.Base(f.path), "file_path": f.path, "size": len(f.data), "encoding": "base64",
		"content_sha256": hex.EncodeToString(sum[:]), "ref": f.ref, "blob_id": f.blob, "commit_id": f.commit,
		"last_commit_id": lastTouched(db, f.commit, f.path), "execute_filemode": false,
	}
}

// lastTouched is the commit that gave a path the content it has.
func lastTouched(db gitdb.DB, sha, name string) string {
	for {
		c := db.Commit(sha)
		if len(c.Parents) == 0 {
			return sha
		}
		now, _ := db.EntryAt(c.Tree, name)
		before, found := db.EntryAt(db.Commit(c.Parents[0]).Tree, name)
		if !found || before.SHA != now.SHA {
			return sha
		}
		sha = c.Parents[0]
	}
}

func (f fileAt) headers(a answer, o object) answer {
	for field, name := range map[string]string{
		"blob_id": "Blob-Id", "commit_id": "Commit-Id", "content_sha256": "Content-Sha256", "encoding": "Encoding",
		"file_name": "File-Name", "file_path": "File-Path", "last_commit_id": "Last-Commit-Id", "ref": "Ref",
	} {
		a = a.With("X-Gitlab-"+name, o[field].(string))
	}
	return a.With("X-Gitlab-Size", strconv.Itoa(len(f.data))).With("X-Gitlab-Execute-Filemode", "false")
}

func getFile(c *call) answer {
	if _, given := c.params["ref"]; !given {
		return badParameter("ref is missing, ref is empty")
	}
	f := c.fileAt()
	o := f.describe(c.project.db)
	o["content"] = base64.StdEncoding.EncodeToString(f.data)
	return f.headers(ok(o), o)
}

// getRawFile answers the content alone. Here ref defaults to the default branch.
func getRawFile(c *call) answer {
	f := c.fileAt()
	a := answer{Status: http.StatusOK, Raw: f.data}.With("Content-Type", "text/plain; charset=utf-8")
	return f.headers(a, f.describe(c.project.db))
}
