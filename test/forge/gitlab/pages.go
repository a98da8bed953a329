// SPDX-License-Identifier: Apache-2.0

package gitlab

import (
	"cmp"
	"fmt"
	"net/url"
	"strconv"
	"strings"

	"github.com/plumbline-ci/plumbline/test/forge/internal/traffic"
)

// GitLab's page sizes.
const (
	defaultPerPage = 20
	maxPerPage     = 100
)

// pageOf is what the caller asks for.
type pageOf struct{ n, per int }

// readPage reads page and per_page; too much is cut, nonsense is refused.
func (c *call) readPage() pageOf {
	p := pageOf{1, defaultPerPage}
	for name, into := range map[string]*int{"page": &p.n, "per_page": &p.per} {
		s := c.text(name)
		if s == "" {
			continue
		}
		n, err := strconv.Atoi(s)
		if err != nil {
			panic(traffic.Refuse(badParameter(name + " is invalid")))
		}
		*into = n
	}
	if p.per == 0 {
		panic(traffic.Refuse(badParameter("per_page has a value not allowed")))
	}
	if p.per < 0 {
		p.per = defaultPerPage
	}
	p.n, p.per = max(p.n, 1), min(p.per, maxPerPage)
	return p
}

// orderOf is how the caller wants a list sorted.
type orderOf struct {
	column string
	desc   bool
}

// order reads order_by, whose default and other value are given, and sort.
func (c *call) order(column, sort, other string) orderOf {
	by, way := cmp.Or(c.text("order_by"), column), cmp.Or(c.text("sort"), sort)
	for name, valid := range map[string]bool{"order_by": by == column || by == other, "sort": way == "asc" ||
		way == "desc"} {
		if !valid {
			panic(traffic.Refuse(badParameter(name + " does not have a valid value")))
		}
	}
	return orderOf{by, way == "desc"}
}

// paged answers 200 with the caller's page of list, each entry shown by show.
func paged[T any](c *call, list []T, show func(T) object) answer {
	p := c.readPage()
	from := min((p.n-1)*p.per, len(list))
	to := min(from+p.per, len(list))
	out := []object{}
	for _, v := range list[from:to] {
		out = append(out, show(v))
	}
	return c.offsetHeaders(ok(out), p, len(list))
}

// offsetHeaders tells where the page lies. Long lists are not counted.
func (c *call) offsetHeaders(a answer, p pageOf, total int) answer {
	at := whereabouts{last: max((total+p.per-1)/p.per, 1), total: total}
	if p.n < at.last {
		at.next = p.n + 1
	}
	if p.n > 1 {
		at.prev = p.n - 1
	}
	return c.pageHeaders(a, p, at)
}

// whereabouts are a page's neighbours; zero is none.
type whereabouts struct{ prev, next, last, total int }

func (c *call) pageHeaders(a answer, p pageOf, at whereabouts) answer {
	var links []string
	add := func(page int, rel string) {
		if page > 0 {
			links = append(links, c.link(url.Values{"page": {strconv.Itoa(page)}, "per_page": {strconv.Itoa(p.per)}}, rel))
		}
	}
	add(at.prev, "prev")
	add(at.next, "next")
	add(1, "first")
	if at.total <= c.g.opts.CountLimit {
		add(at.last, "last")
		a = a.With("X-Total", strconv.Itoa(at.total)).With("X-Total-Pages", strconv.Itoa(at.last))
	}
	return a.
		With("Link", strings.Join(links, ", ")).
		With("X-Page", strconv.Itoa(p.n)).
		With("X-Per-Page", strconv.Itoa(p.per)).
		With("X-Next-Page", orEmpty(at.next)).
		With("X-Prev-Page", orEmpty(at.prev))
}

func orEmpty(page int) string {
	if page == 0 {
		return ""
	}
	return strconv.Itoa(page)
}

// link leads to this route with other parameters.
func (c *call) link(with url.Values, rel string) string {
	q := c.r.URL.Query()
	q.Del("private_token")
	for k := range with {
		q.Set(k, with.Get(k))
	}
	return fmt.Sprintf("<%s%s?%s>; rel=%q", c.g.core.BaseURL, c.r.URL.EscapedPath(), q.Encode(), rel)
}
