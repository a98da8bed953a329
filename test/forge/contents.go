// SPDX-License-Identifier: Apache-2.0

package forge

import (
	"cmp"
	"encoding/base64"
	"net/http"
	"strings"

	"github.com/plumbline-ci/plumbline/test/forge/internal/gitdb"
)

// GitHub's limits on contents.
const (
	maxInlineContent = 1 << 20   // larger files come without content in JSON
	maxContent       = 100 << 20 // larger files are refused
	maxDirEntries    = 1000
)

func getContents(c *call) answer {
	ref := cmp.Or(c.r.URL.Query().Get("ref"), c.repo.defaultBranch)
	if len(c.repo.branches) == 0 {
		return refuse(http.StatusNotFound, c.rt.doc, "This repository is empty.")
	}
	sha := c.repo.resolve(ref)
	if sha == "" {
		return refuse(http.StatusNotFound, c.rt.doc, "No commit found for the ref "+ref)
	}
	path := strings.Trim(c.r.PathValue("path"), "/")
	e, found := c.repo.db.EntryAt(c.repo.db[sha].Commit.Tree, path)
	switch {
	case !found:
		return notFound(c.rt.doc)
	case e.IsTree():
		return c.directory(path, ref, e.SHA)
	}
	return c.file(path, ref, e)
}

func (c *call) directory(path, ref, tree string) answer {
	entries := c.repo.db[tree].Entries
	out := []object{}
	for _, e := range entries[:min(len(entries), maxDirEntries)] {
		full := strings.TrimPrefix(path+"/"+e.Name, "/")
		out = append(out, c.entryJSON(full, ref, e))
	}
	return ok(out)
}

func (c *call) file(path, ref string, e gitdb.Entry) answer {
	blob := c.repo.db[e.SHA].Blob
	accept := c.r.Header.Get("Accept")
	raw := strings.Contains(accept, ".raw")
	if len(blob) > maxContent {
		return refuse(http.StatusForbidden, c.rt.doc,
			"This API returns blobs up to 100 MB in size. The requested blob is too large to fetch via the API, "+
				"but you can always clone the repository via Git to access the data.")
	}
	if raw {
		return answer{Status: http.StatusOK, Raw: blob}.With("Content-Type", "application/vnd.github.raw+json; charset=utf-8")
	}
	o := c.entryJSON(path, ref, e)
	o["encoding"], o["content"] = "base64", wrapped(blob)
	if len(blob) > maxInlineContent {
		o["encoding"], o["content"] = "none", ""
	}
	return ok(o)
}

func (c *call) entryJSON(path, ref string, e gitdb.Entry) object {
	kind, size, under := "file", 0, "/git/blobs/"
	if e.IsTree() {
		kind, under = "dir", "/git/trees/"
	} else {
		size = len(c.repo.db[e.SHA].Blob)
	}
	o := object{
		"type": kind, "name": e.Name, "path": path, "sha": e.SHA, "size": size,
		"url":      c.repo.api(c.g) + "/contents/" + path + "?ref=" + ref,
		"git_url":  c.repo.api(c.g) + under + e.SHA,
		"html_url": c.repo.html(c.g) + "/blob/" + ref + "/" + path, "download_url": nil,
	}
	if kind == "file" {
		o["download_url"] = c.repo.html(c.g) + "/raw/" + ref + "/" + path
	}
	return o
}

// wrapped is base64 in lines of 60 characters, as GitHub sends it.
func wrapped(b []byte) string {
	s := base64.StdEncoding.EncodeToString(b)
	var out strings.Builder
	for len(s) > 0 {
		n := min(60, len(s))
		out.WriteString(s[:n])
		out.WriteByte('\n')
		s = s[n:]
	}
	return out.String()
}

func getTree(c *call) answer {
	sha := c.r.PathValue("sha")
	if cm := c.repo.resolve(sha); cm != "" {
		sha = c.repo.db[cm].Commit.Tree
	}
	o := c.repo.db[sha]
	if o == nil || o.Kind != "tree" {
		return notFound(c.rt.doc)
	}
	// Any value asks for the whole tree, "0" and "false" too.
	recursive := c.r.URL.Query().Has("recursive")
	list, truncated := []object{}, false
	add := func(path string, e gitdb.Entry) {
		if recursive && len(list) >= c.g.opts.TreeLimit {
			truncated = true
			return
		}
		list = append(list, c.treeJSON(path, e))
	}
	if recursive {
		c.repo.db.Walk(sha, "", add)
	} else {
		for _, e := range o.Entries {
			add(e.Name, e)
		}
	}
	return ok(object{"sha": sha, "url": c.repo.api(c.g) + "/git/trees/" + sha, "tree": list, "truncated": truncated})
}

func (c *call) treeJSON(path string, e gitdb.Entry) object {
	if e.IsTree() {
		return object{"path": path, "mode": "040000", "type": "tree", "sha": e.SHA,
			"url": c.repo.api(c.g) + "/git/trees/" + e.SHA}
	}
	return object{"path": path, "mode": e.Mode, "type": "blob", "sha": e.SHA, "size": len(c.repo.db[e.SHA].Blob),
		"url": c.repo.api(c.g) + "/git/blobs/" + e.SHA}
}

func getBlob(c *call) answer {
	sha := c.r.PathValue("sha")
	o := c.repo.db[sha]
	if o == nil || o.Kind != "blob" {
		return notFound(c.rt.doc)
	}
	if strings.Contains(c.r.Header.Get("Accept"), ".raw") {
		return answer{Status: http.StatusOK, Raw: o.Blob}.With("Content-Type",
			"application/vnd.github.raw+json; charset=utf-8")
	}
	return ok(object{"sha": sha, "node_id": "B_" + sha, "size": len(o.Blob), "encoding": "base64",
		"content": wrapped(o.Blob), "url": c.repo.api(c.g) + "/git/blobs/" + sha})
}
